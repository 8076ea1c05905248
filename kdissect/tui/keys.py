"""The table of actions → Textual's bindings and key map."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from textual.binding import Binding, BindingType
from textual.keys import format_key
from textual.screen import Screen

from kdissect.settings.actions import IDS, PLACES, actions_of
from kdissect.settings.key_names import key_names


def bindings_of(where: str) -> list[BindingType]:
    """The bindings of a page or pane, for its ``BINDINGS``.

    :param where: one of :data:`kdissect.settings.actions.PLACES`.
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
    """The keys of actions by their names (``[keymap]``) as Textual has them."""
    return {name: ",".join(key_names(text)) for name, text in keys.items()}


Help = list[tuple[str, list[tuple[str, str]]]]
"""Headings, and below each keys with what they do."""


def help_of(screen: Screen[object]) -> Help:
    """The keys that work where the focus is on a screen. The order: of the pane, of this page, of every page,
    of everywhere."""
    every_page = {action.id for action in actions_of("page")}
    parts: dict[str, list[tuple[int, str, str]]] = {}
    for key, active in screen.active_bindings.items():
        name = active.binding.id
        if name in IDS:
            is_shared = name in every_page and active.node is screen
            heading = PLACES["page"] if is_shared else active.node.BINDING_GROUP_TITLE or "Here"
            rows = parts.setdefault(heading, [])
            rows.append((IDS.index(name), active.binding.tooltip, format_key(key)))
    last = (PLACES["page"], PLACES["everywhere"])
    headings = [*(each for each in parts if each not in last), *(each for each in last if each in parts)]
    return [(heading, _joined(sorted(parts[heading], key=lambda row: row[0]))) for heading in headings]


def _joined(rows: Iterable[tuple[int, str, str]]) -> list[tuple[str, str]]:
    """The keys of each action in one, with what it does."""
    keys: dict[str, list[str]] = {}
    for _, what, key in rows:
        keys.setdefault(what, []).append(key)
    return [(" ".join(each), what) for what, each in keys.items()]
