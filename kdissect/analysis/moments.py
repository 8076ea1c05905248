"""Moments that a time line shows: rebalances, moves of leaders, ends of transactions, each once.

The first mention of something older shows the state before. So only news are marked.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from kdissect.analysis.answers import KnownAnswers
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.latest import Latest
from kdissect.analysis.recent import Recent
from kdissect.analysis.room import Room
from kdissect.exchange import Exchange
from kdissect.message import Response, Token
from kdissect.protocol.schema import ZERO_UUID

MOST_TEXTS = 20
"""The most marks of one interval."""
_MEMBERS = ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit")
_EPOCHS = ("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")

MARKING = frozenset((*_MEMBERS, *_EPOCHS, "Metadata", "Produce", "Fetch", "EndTxn"))
"""APIs of exchanges that may contain a moment."""

_First = tuple[int, bool, bool, str]
"""When something was first told; whether it is a moment to mark; whether it counts; its text."""


REBALANCE, LEADER, TRANSACTION = "rebalance", "leader", "transaction"


class Moment(NamedTuple):
    """Something that happened."""

    ns: int
    kind: str
    """:data:`REBALANCE`, :data:`LEADER` or :data:`TRANSACTION`."""
    text: str


_Leaders = tuple[tuple[str | None, int, int, str], ...]
"""Topic, partition, epoch of the leader, leader."""
_MOST_TOLD = 64


def _leaders(answer: dict[str, Any]) -> _Leaders:
    """The leaders in an answer to Metadata."""
    found: list[tuple[str | None, int, int, str]] = []
    for topic in answer.get("topics") or ():
        for each in topic.get("partitions") or ():
            partition, epoch, leader = (
                each.get("partitionIndex"),
                each.get("leaderEpoch", -1),
                each.get("leaderId", -1),
            )
            if partition is not None and epoch >= 0 and leader >= 0:
                found.append((topic.get("name"), partition, epoch, str(leader)))
    return tuple(found)


_leaders_in = KnownAnswers(_leaders, _MOST_TOLD, 16_384).of
_FIRST_BYTES = 400
"""The approximate size of a first mention."""


class Moments:
    """The first mentions of things, with their times."""

    def __init__(self, room: Room, latest: Latest) -> None:
        self._labels = Labels(latest, room.limits)
        self._room = room
        self._generations: dict[tuple[str, int], _First] = {}
        """For groups: a moment when a member joins a generation."""
        self._leaders: dict[tuple[Topic, int, int], _First] = {}
        """For partitions, by leader epoch."""
        self._ended: dict[tuple[str, int], _First] = {}
        """For transactional ids, by the exchange that ends a transaction."""
        self._most = room.limits.rows
        self._told: Recent[int, tuple[_Leaders, int]] = Recent(_MOST_TOLD)
        """Leaders in recent answers, by the identity of the object that holds them, and when they were first
        told."""

    def see(self, exchange: Exchange, counts: bool) -> None:
        """Take in an exchange. Call it for every exchange of :data:`MARKING`; others have no moments."""
        api = exchange.api
        if api in _MEMBERS or api in _EPOCHS:
            self._member(exchange, counts)
        elif api == "Metadata" and exchange.response is not None:
            self._metadata(exchange, exchange.response, counts)
        elif api in ("Produce", "Fetch") and exchange.error is not None:
            self._hints(exchange, counts)
        elif api == "EndTxn" and exchange.request is not None and exchange.response is not None:
            body = exchange.request.body()
            if exchange.response.body().get("errorCode") == 0 and isinstance(
                body.get("transactionalId"), str
            ):
                outcome = "committed" if body.get("committed") else "aborted"
                key = body["transactionalId"], exchange.number
                self._add(self._ended, key, (exchange.ended_ns, True, counts, outcome))

    def _member(self, exchange: Exchange, counts: bool) -> None:
        asked = exchange.request.body() if exchange.request is not None else {}
        answer = exchange.response.body() if exchange.response is not None else {}
        group = asked.get("groupId")
        if not isinstance(group, str):
            return
        if exchange.api == "JoinGroup":
            if answer.get("errorCode") == 0 and answer.get("generationId", -1) >= 0:
                first = exchange.ended_ns, True, counts, "generation"
                self._add(self._generations, (group, answer["generationId"]), first)
        elif exchange.api in _EPOCHS:
            if answer.get("errorCode") == 0 and answer.get("memberEpoch", 0) > 0:
                is_news = answer.get("assignment") is not None or "activeTasks" in answer
                first = exchange.ended_ns, is_news, counts, "member epoch"
                self._add(self._generations, (group, answer["memberEpoch"]), first)
        else:
            generation = asked.get("generationId", asked.get("generationIdOrMemberEpoch", -1))
            if generation >= 0:
                self._add(self._generations, (group, generation), (exchange.begun_ns, False, counts, ""))

    def _metadata(self, exchange: Exchange, response: Response | Token, counts: bool) -> None:
        leaders, ns = _leaders_in(exchange, response), exchange.ended_ns
        known = self._told.get(id(leaders))
        if known is not None and known[1] <= ns:
            return  # the same leaders were told before
        self._told.keep(id(leaders), (leaders, ns))
        for name, partition, epoch, leader in leaders:
            key = self._labels.topic(name, None), partition, epoch
            self._add(self._leaders, key, (ns, True, counts, leader))

    def _hints(self, exchange: Exchange, counts: bool) -> None:
        """Leaders in answers of brokers that do not lead (KIP-951)."""
        answer = exchange.response.body() if exchange.response is not None else {}
        for topic in answer.get("responses") or ():
            topic_id = topic.get("topicId", ZERO_UUID)
            name = self._labels.topic(
                topic.get("name") or topic.get("topic"), topic_id if topic_id != ZERO_UUID else None
            )
            for partition in topic.get("partitions") or topic.get("partitionResponses") or ():
                hint = partition.get("currentLeader")
                if isinstance(hint, dict):
                    number = partition.get("partitionIndex", partition.get("index"))
                    self._leader(exchange, name, number, hint, counts)

    def _leader(
        self, exchange: Exchange, topic: Topic, partition: int | None, told: dict[str, Any], counts: bool
    ) -> None:
        epoch, leader = told.get("leaderEpoch", -1), told.get("leaderId", -1)
        if partition is not None and epoch >= 0 and leader >= 0:
            first = exchange.ended_ns, True, counts, str(leader)
            self._add(self._leaders, (topic, partition, epoch), first)

    def _add(self, known: dict[Any, _First], key: Any, first: _First) -> None:
        before = known.get(key)
        if before is None:
            if not self._room.refuses(len(known) >= self._most) and self._room.takes(_FIRST_BYTES):
                known[key] = first
        elif first[0] < before[0]:
            known[key] = first

    def merge(self, later: Moments) -> None:
        """Add the facts of later exchanges."""
        self._labels.merge(later._labels)
        for mine, theirs in (
            (self._generations, later._generations),
            (self._leaders, later._leaders),
            (self._ended, later._ended),
        ):
            for key, first in theirs.items():
                self._add(mine, key, first)

    def texts(self, length_ns: int) -> dict[int, list[str]]:
        """The moments of each interval, by its number. If there are many, the first ones and the number of
        the others."""
        found: dict[int, dict[str, list[int]]] = {}
        for ns, _, text in self.moments():
            times = found.setdefault(ns // length_ns, {})
            times.setdefault(text, []).append(ns)
        return {number: _texts_shown(texts) for number, texts in found.items()}

    def moments(self) -> Iterator[Moment]:
        """All moments, unsorted."""
        self._labels.resolve_names()
        for (group, generation), (ns, is_moment, counts, what) in self._generations.items():
            if is_moment and counts:
                yield Moment(ns, REBALANCE, f"group {group}: {what} {generation}")
        for (transactional_id, _), (ns, _, counts, outcome) in self._ended.items():
            if counts:
                yield Moment(ns, TRANSACTION, f"transaction {transactional_id} {outcome}")
        leaders: dict[tuple[str, int], list[tuple[int, _First]]] = {}
        for (topic, partition, epoch), first in self._leaders.items():
            name = self._labels.name(topic) or ""
            leaders.setdefault((name, partition), []).append((epoch, first))
        for (name, partition), epochs in leaders.items():
            epochs.sort()
            for (_, (_, _, _, before)), (_, (ns, _, counts, leader)) in pairwise(epochs):
                if leader != before and counts:
                    text = f"leader of {name}-{partition}: broker {leader}, before {before}"
                    yield Moment(ns, LEADER, text)


def _texts_shown(texts: dict[str, list[int]]) -> list[str]:
    ordered = sorted(texts.items(), key=lambda each: (min(each[1]), each[0]))
    out = [f"{text} ×{len(times)}" if len(times) > 1 else text for text, times in ordered[:MOST_TEXTS]]
    if len(ordered) > MOST_TEXTS:
        out.append(f"and {len(ordered) - MOST_TEXTS} more")
    return out
