"""What the command palette leads to by name: tables of statistics, saved filters, and pages of the help.

They are found as one types; the list of all commands does not have them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import cache, partial
from typing import NamedTuple

from kdissect.help import TOPICS, title
from kdissect.present.sanitise import sanitise
from kdissect.tui.host import Host


class NamedPlace(NamedTuple):
    """Where a name leads."""

    kind: str
    """What it is, in a word."""
    names: tuple[str, ...]
    """What people type for it, in small letters."""
    text: str
    run: Callable[[], Awaitable[None] | None]


def named_places(app: Host) -> Iterator[NamedPlace]:
    """All of them, tables first."""
    for name in app.tables:
        words = name.replace("_", " ")
        text = f"Table {name}: show its rows"
        yield NamedPlace("table", (name, words), text, partial(app.show_table, name))
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
