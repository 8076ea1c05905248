"""Stories of what an exchange belongs to, as the screens ask the process that counts for them.

A story goes to the process as a text, beside the names of statistics.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from kdissect.analysis.beside import keys_of
from kdissect.analysis.fold import Row
from kdissect.analysis.story import Story, of_client, of_group, of_topic, of_transactional_id
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.limits import Limits

_PREFIX = "story "
_COURSE = "course"
_OF = {
    "transactional id": of_transactional_id,
    "group": of_group,
    "topic": of_topic,
    "client": of_client,
}
MOST_TOPICS = 3
"""Topics of one exchange of which a story is offered."""


class Subject(NamedTuple):
    """What a story is about."""

    title: str
    """In words, as it came from the wire."""
    asked: str
    """The story, as the process takes it."""


def is_story(asked: str) -> bool:
    """Whether a story is asked for, and no statistic."""
    return asked.startswith(_PREFIX)


def subjects_of(exchange: Exchange) -> Iterator[Subject]:
    """The stories that an exchange belongs to, the closest first: of its transaction, producer and member, of
    its group, its client, its topics."""
    keys = list(keys_of(exchange))
    if keys:
        title = ", ".join(f"{word} {_name(name)}" for word, name in keys)
        yield Subject(title, _asked(_COURSE, keys))
    named = [("group", name) for name in exchange.groups]
    if len(keys) > 1:
        named += [("transactional id", name) for name in exchange.transactional_ids]
    named.append(("client", exchange.client_id or exchange.client))
    named += [("topic", name) for name in exchange.topics[:MOST_TOPICS]]
    for kind, name in named:
        yield Subject(f"{kind} {name}", _asked(kind, name))


def _name(name: object) -> str:
    """A member with its group is one name."""
    return f"{name[0]}: {name[1]}" if isinstance(name, tuple) else str(name)


def _asked(kind: str, what: object) -> str:
    return _PREFIX + json.dumps([kind, what])


class Telling:
    """A story that is told while exchanges come, as rows."""

    def __init__(self, asked: str, limits: Limits) -> None:
        kind, what = json.loads(asked.removeprefix(_PREFIX))
        if kind == _COURSE:
            keys = {(word, tuple(name) if isinstance(name, list) else name) for word, name in what}
            self._story = Story(
                lambda each: None if keys.isdisjoint(keys_of(each)) else "", lambda each: [], limits
            )
        else:
            self._story = _OF[kind](what, limits)

    def feed(self, event: Event) -> None:
        """Take in the next event."""
        if isinstance(event, Exchange):
            self._story.feed(event)

    @property
    def left_out(self) -> int:
        """Lines that are too many."""
        return self._story.left_out

    def rows(self) -> list[Row]:
        """The lines so far, in the order of time: each a :class:`~kdissect.analysis.story.Line`."""
        return [{"line": each} for each in self._story.told()]
