"""The table of actions → Textual's bindings and key map, the help of a screen, and the command palette.

The palette has every action of the screen below it. It has the ways to an exchange: by its number, by a
packet, by a time. It also has named things: tables of statistics, saved filters, and pages of the help. These
appear only while the user types; the list of all commands does not have them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from textual.binding import Binding, BindingType
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.dom import DOMNode
from textual.keys import format_key
from textual.screen import Screen

from kdissect.feed.targets import targets
from kdissect.help import TOPICS, title
from kdissect.present.sanitise import sanitise
from kdissect.settings.actions import IDS, actions_of
from kdissect.settings.key_names import key_names
from kdissect.settings.places import PAGES, PLACES
from kdissect.settings.words import WORDS, WORDS_OF_COMMANDS
from kdissect.tui.host import Host


def bindings_of(where: str) -> list[BindingType]:
    """The bindings of a page or pane, for its ``BINDINGS``.

    :param where: one of :data:`kdissect.settings.places.PLACES`.
    """
    return [
        Binding(
            ",".join(key_names(action.keys)),
            action.call,
            action.label,
            show=action.in_footer,
            id=action.id,
            tooltip=action.help,
        )
        for action in actions_of(where)
    ]


def keymap_of(keys: Mapping[str, str]) -> dict[str, str]:
    """The keys of actions by their names (``[keymap]``) in Textual's form."""
    return {name: ",".join(key_names(text)) for name, text in keys.items()}


Help = list[tuple[str, list[tuple[str, str]]]]
"""Headings, each with its keys and their effects."""


def help_of(screen: Screen[Any]) -> Help:
    """The keys that work at the focus of a screen. The order: of the pane, of this page, of every page, of
    everywhere."""
    every_page = {(action.id, action.help) for action in actions_of("page")}
    parts: dict[str, list[tuple[int, str, str]]] = {}
    for key, active in screen.active_bindings.items():
        name = active.binding.id
        if name in IDS:
            is_shared = (name, active.binding.tooltip) in every_page and active.node is screen
            heading = PLACES["page"] if is_shared else active.node.BINDING_GROUP_TITLE or "Here"
            rows = parts.setdefault(heading, [])
            rows.append((IDS.index(name), active.binding.tooltip, format_key(key)))
    last = (PLACES["page"], PLACES["everywhere"])
    headings = [*(each for each in parts if each not in last), *(each for each in last if each in parts)]
    return [(heading, _joined(sorted(parts[heading], key=lambda row: row[0]))) for heading in headings]


def _joined(rows: Iterable[tuple[int, str, str]]) -> list[tuple[str, str]]:
    """The keys of each action in one text, with its effect."""
    keys: dict[str, list[str]] = {}
    for _, what, key in rows:
        keys.setdefault(what, []).append(key)
    return [(" ".join(each), what) for what, each in keys.items()]


MOVES = (
    *("up", "down", "page-up", "page-down", "first", "last", "column-before", "column-after"),
    *("earlier", "later", "pane-before", "pane-after"),
)
"""Arrow keys, and others that everybody finds: the palette lists them last."""
_LAST = {"theme": 1, **dict.fromkeys(MOVES, 2)}
"""The last entries of the palette, in this order."""
_CALLED = 1_000.0
"""Higher than the rank of any text that only has the letters in that order."""
_FIRST = 1_500.0
"""Higher than the rank of an action that has the word among others."""
_LABEL = 3_000.0
"""The rank of an action with exactly this word in the footer: it comes first."""
_NAMED = {3: 2_500.0, 2: 2_000.0, 1: 450.0}
"""The rank of a table, filter or help page, by how well the text names it (:func:`leads_to`). Its exact name
comes before actions with this word among their words; a beginning of the name comes after them."""
_ELSEWHERE = 0.3
"""The factor for actions of other screens."""
_NOT_LISTED = ("palette",)
_MORE_PLACES: Mapping[str, Sequence[str]] = {"findings": ("time",), "latency": ("grouped",)}
"""Further places on a screen whose actions are offered on other screens. Actions that work on all screens of
figures are not offered, because it is unclear which screen is meant. Grouping is offered for response times,
which people group."""


class _Command(NamedTuple):
    """An action of the table, as the palette lists it."""

    name: str
    label: str
    text: str
    help: str
    run: Callable[[], Awaitable[object] | None]


_ENDINGS = ("ing", "ed", "es", "s", "e")
"""Endings of words that people add or leave out."""


def is_called(name: str, typed: str, label: str = "") -> bool:
    """Whether people may mean an action by their typed text. Each word begins one of its label or of its
    :data:`WORDS`, or differs from one only at its end: ``rebalancing``."""
    known = WORDS.get(name) or WORDS_OF_COMMANDS.get(name, "")
    words = [*label.lower().split(), *known.split()]
    stems = {_stem(word) for word in words}
    return all(
        any(word.startswith(each) for word in words) or _stem(each) in stems for each in typed.lower().split()
    )


def _rank(name: str, typed: str, label: str) -> float:
    """The rank of an action among those with matching words."""
    words = WORDS.get(name) or WORDS_OF_COMMANDS.get(name, "")
    return _LABEL if typed == label else _FIRST if typed == words.partition(" ")[0] else _CALLED


def _stem(word: str) -> str:
    ending = next((each for each in _ENDINGS if word.endswith(each) and len(word) > len(each) + 2), "")
    return word.removesuffix(ending)


class Commands(Provider):
    """The entries of the palette."""

    def _commands(self) -> Iterator[_Command]:
        found: dict[tuple[str, str], tuple[str, str, list[str]]] = {}
        nodes: dict[tuple[str, str], DOMNode] = {}
        names: dict[tuple[str, str], str] = {}
        for key, active in self.screen.active_bindings.items():
            binding = active.binding
            if binding.id in IDS and binding.id not in _NOT_LISTED and active.enabled:
                at = (binding.action, str(id(active.node)))
                found.setdefault(at, (binding.description, binding.tooltip, []))[2].append(format_key(key))
                nodes[at] = active.node
                names.setdefault(at, binding.id or "")
        for at, (label, help_text, keys) in found.items():
            text = f"{label}: {help_text}" if label.lower() not in help_text.lower() else help_text
            run = partial(self.app.run_action, at[0], nodes[at])
            yield _Command(names[at], label, text[:1].upper() + text[1:], " ".join(keys), run)
        if isinstance(self.app, Host) and self.app.is_open:
            go, compare = (partial(self.app.run_action, f"app.{each}") for each in ("ask_where", "compare"))
            yield _Command("go-to", "Go to", "Go to an exchange, a packet or a time", "", go)
            text = "Compare with another capture: copies the command kdissect diff"
            yield _Command("compare", "Compare", text, "", compare)
            if self.app.pages.get("exchanges") not in (None, self.screen):  # there w does so
                text = "Save exchanges to a file: pcapng, NDJSON, CSV, Parquet"
                save = partial(self.app.run_action, "app.save_exchanges")
                yield _Command("save-exchanges", "Save exchanges", text, "", save)
        change = partial(self.app.run_action, "change_theme")
        yield _Command("theme", "Theme", "Theme: other colours (colors), dark or light", "", change)

    def _elsewhere(self) -> Iterator[_Command]:
        """Actions that only other screens have: each goes to its screen first, and runs there."""
        app = self.app
        if not isinstance(app, Host) or not app.is_open:
            return
        known = {active.binding.id for active in self.screen.active_bindings.values() if active.enabled}
        for name, of_page in PAGES.items():
            page = app.pages[name]
            if page is self.screen:
                continue
            for place in (name, *_MORE_PLACES.get(name, ())):
                for action in actions_of(place):
                    if action.id not in known and action.id not in MOVES:
                        known.add(action.id)
                        text = f"{of_page}: {action.label}: {action.help}"
                        run = partial(app.act_on, name, action.id)
                        yield _Command(action.id, action.label, text, "", run)

    async def discover(self) -> Hits:
        for command in sorted(self._commands(), key=lambda each: _LAST.get(each.name, 0)):
            yield DiscoveryHit(Content(command.text), command.run, help=command.help)

    async def search(self, query: str) -> Hits:
        app = self.app
        if isinstance(app, Host):
            for at, target in enumerate(targets(query)):
                yield Hit(1 - at / 10, Content(f"Go to {target.words}"), partial(app.go_to, target))
        matcher, is_called_so = self.matcher(query), False
        others = []
        for command in self._commands():
            score = matcher.match(command.text)
            if query.strip() and is_called(command.name, query, command.label):
                is_called_so = True
                rank = _rank(command.name, query.strip().lower(), command.label.lower())
                yield Hit(rank + score, Content(command.text), command.run, help=command.help)
            elif score > 0:
                others.append((score, command))
        if query.strip():
            for command in self._elsewhere():
                if is_called(command.name, query, command.label):
                    is_called_so = True
                    rank = _rank(command.name, query.strip().lower(), command.label.lower())
                    yield Hit(rank * _ELSEWHERE, Content(command.text), command.run)
        if isinstance(app, Host) and app.is_open:
            for place in named_places(app):
                score = leads_to(place, query)
                if score:
                    is_called_so = True
                    yield Hit(_NAMED[score], Content(place.text), place.run)
        for score, command in others:
            # Letters far from each other are a guess. It helps only if nothing has that name.
            if not is_called_so or query.strip().lower() in command.text.lower():
                yield Hit(score, matcher.highlight(command.text), command.run, help=command.help)


class NamedPlace(NamedTuple):
    """The target of a name."""

    kind: str
    """Its kind, in a word."""
    names: tuple[str, ...]
    """The texts that people type for it, in small letters."""
    text: str
    run: Callable[[], Awaitable[None] | None]


_ALSO = {"slowest": ("slow",)}
"""Further texts that people type for a table."""


def named_places(app: Host) -> Iterator[NamedPlace]:
    """All named places, tables first."""
    for name in app.tables:
        names = (name, name.replace("_", " "), *_ALSO.get(name, ()))
        text = f"Table {name}: show its rows"
        yield NamedPlace("table", names, text, partial(app.show_table, name))
    for name, filter in app.remembered.named.items():
        text = sanitise(f"Filter {name}: {filter}")
        yield NamedPlace("filter", (name.lower(),), text, partial(app.filter_by, filter))
    for topic in TOPICS:
        text = f"Help {topic}: {_title(topic)}"
        yield NamedPlace("help", (topic,), text, partial(app.show_help, topic))


_title = cache(title)


def leads_to(place: NamedPlace, typed: str) -> int:
    """How well a typed text names a place: 3 for kind and name, 2 for the name, 1 for beginnings of words."""
    text = " ".join(typed.lower().split())
    if any(text in (f"{place.kind} {name}", f"{name} {place.kind}") for name in place.names):
        return 3
    if text in place.names:
        return 2
    begins = (all(_begins(word, place.kind, name) for word in text.split()) for name in place.names)
    return 1 if text and any(begins) else 0


def _begins(word: str, kind: str, name: str) -> bool:
    return any(each.startswith(word) for each in (kind, name, *name.split()))
