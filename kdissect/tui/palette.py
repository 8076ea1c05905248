"""The command palette: every action of the screen below it, and the way to an exchange by its number."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import NamedTuple

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.keys import format_key

from kdissect.settings.actions import IDS
from kdissect.settings.words import WORDS
from kdissect.tui.host import Host

_NOT_LISTED = ("palette",)


class _Command(NamedTuple):
    """An action of the table as the palette lists it."""

    name: str

    text: str
    help: str
    run: Callable[[], Awaitable[bool]]


def is_called(name: str, typed: str) -> bool:
    """Whether people may mean an action by what they typed: each word begins one of its :data:`WORDS`."""
    words = WORDS.get(name, "").split()
    return all(any(word.startswith(each) for word in words) for each in typed.lower().split())


class Commands(Provider):
    """What there is to choose from."""

    def _commands(self) -> Iterator[_Command]:
        found: dict[tuple[str, str], tuple[str, str, list[str]]] = {}
        nodes, names = {}, {}
        for key, active in self.screen.active_bindings.items():
            binding = active.binding
            if binding.id in IDS and binding.id not in _NOT_LISTED and active.enabled:
                at = (binding.action, str(id(active.node)))
                found.setdefault(at, (binding.description, binding.tooltip, []))[2].append(format_key(key))
                nodes[at], names[at] = active.node, binding.id or ""
        for at, (label, help_text, keys) in found.items():
            text = f"{label}: {help_text}" if label.lower() not in help_text.lower() else help_text
            run = partial(self.app.run_action, at[0], nodes[at])
            yield _Command(names[at], text[:1].upper() + text[1:], " ".join(keys), run)

    async def discover(self) -> Hits:
        for command in self._commands():
            yield DiscoveryHit(command.text, command.run, help=command.help)

    async def search(self, query: str) -> Hits:
        number = query.strip().removeprefix(":").replace(",", "")
        app = self.app
        if number.isdecimal() and len(number) < 20 and isinstance(app, Host):
            yield Hit(1, f"Go to No. {int(number)}", partial(app.go_to_number, int(number)))
        matcher = self.matcher(query)
        for command in self._commands():
            score = matcher.match(command.text)
            if query.strip() and is_called(command.name, query):
                yield Hit(1, command.text, command.run, help=command.help)
            elif score > 0:
                yield Hit(score, matcher.highlight(command.text), command.run, help=command.help)
