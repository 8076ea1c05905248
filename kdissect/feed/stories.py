"""The stories of an exchange, as the screens request them from the process that counts.

A story is sent to the process as a text, beside the names of statistics.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kdissect.analysis.fold import Row
from kdissect.analysis.neighbours import keys_of
from kdissect.analysis.sentences import records_of
from kdissect.analysis.story import (
    Offset,
    Story,
    of_client,
    of_group,
    of_offset,
    of_topic,
    of_transactional_id,
)
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.limits import Limits
from kdissect.record.sets import read_record_set

_PREFIX = "story "
COURSE, TRANSACTION, PRODUCER, GROUP, CLIENT, TOPIC, OFFSET = (
    "course",
    "transactional id",
    "producer",
    "group",
    "client",
    "topic",
    "offset",
)
"""The subjects of stories. A course is everything that shares a transaction, a producer or a member."""
_OF: dict[str, Callable[[str, Limits], Story]] = {
    TRANSACTION: of_transactional_id,
    GROUP: of_group,
    TOPIC: of_topic,
    CLIENT: of_client,
}
MOST_TOPICS = 3
"""The number of topics of one exchange for which a story is offered."""


class Subject(NamedTuple):
    """The subject of a story."""

    title: str
    """The title in words, as on the wire."""
    asked: str
    """The text that the process takes."""
    kind: str = COURSE


def is_story(asked: str) -> bool:
    """Whether a requested text is a story, not a statistic."""
    return asked.startswith(_PREFIX)


def subjects_of(exchange: Exchange) -> Iterator[Subject]:
    """The stories that an exchange belongs to, the closest first. They are of its transaction, producer and
    member together, and of each alone. Its client, topics and the first offset of its records follow."""
    keys = list(keys_of(exchange))
    keys += [(PRODUCER, each) for each in producers_of(exchange) if (PRODUCER, each) not in keys]
    if keys:
        title = ", ".join(f"{word} {_name(name)}" for word, name in keys)
        yield Subject(title, _subject_text(COURSE, keys))
    yield from (subject(GROUP, name) for name in exchange.groups)
    yield from (subject(TRANSACTION, name) for name in exchange.transactional_ids)
    yield from (subject(PRODUCER, name) for word, name in keys if word == PRODUCER)
    yield subject(CLIENT, exchange.client_id or exchange.client)
    yield from (subject(TOPIC, name) for name in exchange.topics[:MOST_TOPICS])
    for records in records_of(exchange):
        if records.partition is not None and records.first is not None:
            yield offset_subject(records.topic, records.partition, records.first)
            break


def producers_of(exchange: Exchange) -> Iterator[int]:
    """The ids of the producers that an exchange names: in its request, or in the batches that it writes. If a
    producer begins, the answer names it."""
    answer = exchange.response if exchange.api == "InitProducerId" else None
    for message in (exchange.request, answer):
        found = -1 if message is None else message.body().get("producerId", -1)
        if isinstance(found, int) and found >= 0:
            yield found
    if exchange.api == "Produce":
        batches = (each for place in exchange.record_sets() for each in read_record_set(place.data).batches)
        yield from dict.fromkeys(each.producer_id for each in batches if each.producer_id >= 0)


def subject(kind: str, name: object) -> Subject:
    """The story of a named thing: a transactional id, producer id, group, client or topic."""
    return Subject(f"{kind} {_name(name)}", _subject_text(kind, name), kind)


def offset_subject(topic: str, partition: int, offset: int) -> Subject:
    """The story of one offset: its writer, its readers, and the groups that are past it."""
    asked = _subject_text(OFFSET, [topic, partition, offset])
    return Subject(f"offset {offset:,} of {topic}-{partition}", asked, OFFSET)


def _name(name: object) -> str:
    """The text of a name; a member with its group is one name."""
    return f"{name[0]}: {name[1]}" if isinstance(name, tuple) else str(name)


def _subject_text(kind: str, what: object) -> str:
    return _PREFIX + json.dumps([kind, what])


def _story(kind: str, what: Any, limits: Limits) -> Story:
    if kind == OFFSET:
        return of_offset(Offset(*what), limits)
    if kind in _OF:
        return _OF[kind](what, limits)
    named = what if kind == COURSE else [[kind, what]]
    keys = {(word, tuple(name) if isinstance(name, list) else name) for word, name in named}
    producers = {name for word, name in keys if word == PRODUCER}

    def matched(exchange: Exchange) -> str | None:
        is_of_it = not keys.isdisjoint(keys_of(exchange))
        return "" if is_of_it or (producers and not producers.isdisjoint(producers_of(exchange))) else None

    return Story(matched, lambda each: [], limits)


class StoryCollector:
    """Collects a story from the exchanges, as rows."""

    def __init__(self, asked: str, limits: Limits) -> None:
        kind, what = json.loads(asked.removeprefix(_PREFIX))
        self._story = _story(kind, what, limits)

    def feed(self, event: Event) -> None:
        """Take in the next event."""
        if isinstance(event, Exchange):
            self._story.feed(event)

    @property
    def left_out(self) -> int:
        """The number of lines beyond the limit."""
        return self._story.left_out

    def rows(self) -> list[Row]:
        """The lines so far, in the order of time: each a :class:`~kdissect.analysis.story.Line`."""
        return [{"line": each} for each in self._story.lines_in_order()]
