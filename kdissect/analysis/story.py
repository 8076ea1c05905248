"""Exchanges → the story of one group, topic, client, transactional id or offset, as lines in time.

Consecutive exchanges of one connection with the same action are one line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from kdissect.analysis.membership import COMMITS
from kdissect.analysis.packed import packed
from kdissect.analysis.sentences import action_of, committed, records_of
from kdissect.analysis.speakers import address
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.wording import plural

MOST_LINES = 100_000
"""The most lines of a story. Further ones are only counted."""


@packed
@dataclass(slots=True)
class StoryLine:
    """A line of a story."""

    ns: int
    last_ns: int
    exchange: int
    """The number of its first exchange."""
    connection: int
    client: str
    client_id: str | None
    text: str
    kind: str
    count: int = 1
    records: int = 0
    error: str | None = None

    @property
    def whole(self) -> str:
        """The text, with the number of repetitions."""
        return self.repeated()

    def repeated(self, until: str = "") -> str:
        """The text, with the number of repetitions.

        :param until: the time of the last repetition, for people.
        """
        if self.count == 1:
            return self.text
        end = f", until {until}" if until else ""
        if self.records:
            return f"{self.text} (the first of {self.count:,}, {plural(self.records, 'record')} in all{end})"
        return f"{self.text} ({self.count:,} times{end})"


class Story:
    """Takes in exchanges and keeps those that belong to the story.

    :param tells: the text for an exchange of the story. The empty text means the usual sentence; None means
        that the exchange does not belong.
    :param names: the names of the kind that an exchange has, for a list of the available names.
    :param nearest: the name nearest to the requested one; None without any.
    :param when: the time of an exchange in the story, ns; by default, its beginning.
    """

    def __init__(
        self,
        tells: Callable[[Exchange], str | None],
        names: Callable[[Exchange], list[str]],
        limits: Limits = DEFAULTS,
        nearest: Callable[[], str | None] = lambda: None,
        when: Callable[[Exchange], int] = lambda exchange: exchange.begun_ns,
    ) -> None:
        self.nearest = nearest
        self.lines: list[StoryLine] = []
        self.left_out = 0
        self.names: set[str] = set()
        self._tells = tells
        self._names = names
        self._when = when
        self._limits = limits
        self._last: dict[int, StoryLine] = {}
        """The last line of each connection."""

    def feed(self, exchange: Exchange) -> None:
        """Take in the next exchange."""
        for name in self._names(exchange):
            if len(self.names) < self._limits.rows:
                self.names.add(name)
        text = self._tells(exchange)
        if text is None:
            return
        did = action_of(exchange, self._limits)
        kind, records = (text, 0) if text else (did.kind, did.records)
        ns, last = self._when(exchange), self._last.get(exchange.connection)
        if last is not None and last.kind == kind:
            last.count += 1
            last.last_ns = max(last.last_ns, ns)
            last.records += records
            return
        if len(self.lines) >= MOST_LINES:
            self.left_out += 1
            return
        line = StoryLine(
            ns,
            ns,
            exchange.number,
            exchange.connection,
            exchange.client,
            exchange.client_id,
            text or did.text,
            kind,
            records=records,
            error=exchange.error,
        )
        self._last[exchange.connection] = line
        self.lines.append(line)

    def lines_in_order(self) -> list[StoryLine]:
        """The lines, in the order of time."""
        return sorted(self.lines, key=lambda line: (line.ns, line.exchange))


class Offset(NamedTuple):
    """One offset of a partition."""

    topic: str
    partition: int
    offset: int


def of_group(group: str, limits: Limits = DEFAULTS) -> Story:
    """The story of a group."""
    return Story(lambda each: "" if group in each.groups else None, lambda each: each.groups, limits)


def of_topic(topic: str, limits: Limits = DEFAULTS) -> Story:
    """The story of a topic."""
    return Story(lambda each: "" if topic in each.topics else None, lambda each: each.topics, limits)


def of_transactional_id(name: str, limits: Limits = DEFAULTS) -> Story:
    """The story of a transactional id."""
    return Story(
        lambda each: "" if name in each.transactional_ids else None,
        lambda each: each.transactional_ids,
        limits,
    )


def of_client(client: str, limits: Limits = DEFAULTS) -> Story:
    """The story of a client: a client id, an address, or an address with its port."""

    def names(each: Exchange) -> list[str]:
        known = [each.client, address(each.client)]
        return [*known, each.client_id] if each.client_id is not None else known

    return Story(lambda each: "" if client in names(each) else None, names, limits)


def of_offset(asked: Offset, limits: Limits = DEFAULTS) -> Story:
    """The story of one offset: who wrote it, who read it, which groups are past it."""
    past: dict[str, bool] = {}
    """For each group, whether its commit is past the offset."""
    where = f"{asked.topic}-{asked.partition}"
    begun: dict[int, int] = {}
    """The offset from which each connection asked for records last. A broker sends whole batches, and the
    client leaves out what comes before."""
    near: list[int] = []
    """The record's offset that is nearest to the requested one."""

    def left_out(each: Exchange) -> str:
        """Why the client does not take the record from an answer that has it; empty if it may."""
        if each.api == "ShareFetch":
            parts = list(_of_partition(each, "response", "responses", "partitionIndex"))
            given = [one for part in parts for one in part.get("acquiredRecords") or ()]
            has_it = any(
                one.get("firstOffset", 0) <= asked.offset <= one.get("lastOffset", -1) for one in given
            )
            return "" if has_it or not parts else "but was not given it"
        first = begun.get(each.connection, 0) if each.api == "Fetch" else 0
        return f"and leaves it out: it asked for {first:,} and later" if first > asked.offset else ""

    def _of_partition(each: Exchange, side: str, topics: str, number: str) -> Iterator[dict[str, Any]]:
        """What a message says of the partition."""
        message = each.request if side == "request" else each.response
        for topic in () if message is None else message.body().get(topics) or ():
            name = topic.get("topic") or each.topic_names.get(topic.get("topicId") or "")
            if name == asked.topic or topic.get("topicId") == asked.topic:
                parts = topic.get("partitions") or ()
                yield from (one for one in parts if one.get(number) == asked.partition)

    def tells(each: Exchange) -> str | None:
        if asked.topic not in each.topics:
            return None
        if each.api in COMMITS and each.request is not None:
            return _commits(each)
        if each.api == "Fetch":  # in a session, only what changed is named
            for one in _of_partition(each, "request", "topics", "partition"):
                begun[each.connection] = one.get("fetchOffset", 0)
        for records in records_of(each, limits, with_control=True):
            if (records.topic, records.partition) != (asked.topic, asked.partition):
                continue
            if records.first is None or records.last is None:
                continue
            near[:] = [min((*near, records.first, records.last), key=lambda at: abs(at - asked.offset))]
            if records.first <= asked.offset <= records.last:
                why = left_out(each)
                verb = "wrote" if each.api == "Produce" else "was sent" if why else "read"
                end = f", {why}" if why else ""
                if records.first == records.last:
                    return f"{verb} it, offset {records.first:,} of {where}{end}"
                return f"{verb} it, with offsets {records.first:,} to {records.last:,} of {where}{end}"
        return None

    def _commits(each: Exchange) -> str | None:
        assert each.request is not None
        group = each.request.body().get("groupId", "")
        for topic, partition, offset in committed(each):
            if (topic, partition) != (asked.topic, asked.partition) or offset < 0:
                continue
            is_past, was_past = offset > asked.offset, past.get(group)
            past[group] = is_past
            if is_past and not was_past:
                return f"group {group} committed {offset:,}, past this record"
            if was_past and not is_past:
                return f"group {group} went back to {offset:,}: it will read this record again"
        return None

    def names(each: Exchange) -> list[str]:
        if each.api not in ("Produce", "Fetch", "ShareFetch"):
            return []
        return [f"{one.topic}/{one.partition}" for one in records_of(each, limits)]

    def nearest() -> str | None:
        return f"{asked.topic}/{asked.partition}/{near[0]}" if near else None

    def when(each: Exchange) -> int:
        """The time of an exchange. A Fetch may wait before anybody writes the record, so its time is that of
        the answer."""
        return each.begun_ns if each.api == "Produce" or each.api in COMMITS else each.ended_ns

    return Story(tells, names, limits, nearest, when)
