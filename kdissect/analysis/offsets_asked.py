"""Clients that were given a committed offset of their group, and clients that were told that nothing is
committed. Rules judge by this."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kdissect.analysis.declared import (
    EXCHANGE,
    GROUP_COLUMN,
    SPEAKER_COLUMNS,
    column,
    time_column,
)
from kdissect.analysis.fold import OneTable, Row
from kdissect.analysis.packed import packed
from kdissect.analysis.shared_parts import topics_of
from kdissect.analysis.speakers import address
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits

MOST = 8
"""The most topics, exchanges and brokers that are kept for a client."""


class _LastAnswer(NamedTuple):
    """The last answer."""

    ns: int = 0
    exchange: int = 0
    partitions: int = 0
    without: int = 0
    """The number of its partitions without an offset."""


_NO_ANSWER = _LastAnswer()


@packed
@dataclass(slots=True)
class _OffsetAnswers:
    answers: int = 0
    without: int = 0
    last: _LastAnswer = _NO_ANSWER
    topics: list[str] = field(default_factory=list)
    """The topics of partitions without an offset."""
    exchanges: list[int] = field(default_factory=list)
    """The numbers of the first answers with such partitions."""
    brokers: list[str] = field(default_factory=list)

    def merge(self, later: _OffsetAnswers) -> None:
        self.answers += later.answers
        self.without += later.without
        self.last = max(self.last, later.last)
        self.topics = list(dict.fromkeys((*self.topics, *later.topics)))[:MOST]
        self.exchanges = sorted({*self.exchanges, *later.exchanges})[:MOST]
        self.brokers = sorted({*self.brokers, *later.brokers})[:MOST]


class OffsetsAsked(OneTable[tuple[str, str, str], _OffsetAnswers]):
    """A row for each client, client id and group."""

    apis = frozenset(("OffsetFetch",))
    name = "offsets_asked"
    about = "who asked for committed offsets, and how often there were none"
    columns = (
        *SPEAKER_COLUMNS,
        GROUP_COLUMN,
        column("answers", "int64", "answers to OffsetFetch"),
        column("without", "int64", "answers in which partitions have no committed offset"),
        column("last_partitions", "int64", "partitions in the last answer"),
        column("last_without", "int64", "partitions without a committed offset in the last answer"),
        time_column("last_ns", "time of the last answer"),
        column("topics", "texts", "topics of answers in which partitions have none"),
        column("exchanges", "int64s", "the first answers in which partitions have none", unit=EXCHANGE),
        column("brokers", "texts", "brokers that answered"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_OffsetAnswers, limits)

    def _exchange(self, exchange: Exchange) -> None:
        if exchange.api != "OffsetFetch" or exchange.request is None or exchange.response is None:
            return
        asked, answer = exchange.request.body(), exchange.response.body()
        for group in answer.get("groups") or [{**answer, "groupId": asked.get("groupId")}]:
            if not group.get("errorCode") and isinstance(group.get("groupId"), str):
                self._answered(exchange, group["groupId"], group)

    def _answered(self, exchange: Exchange, group: str, told: dict[str, Any]) -> None:
        offsets = [
            partition.get("committedOffset")
            for topic in told.get("topics") or ()
            for partition in topic.get("partitions") or ()
            if partition.get("errorCode") == 0
        ]
        row = self._rows.row((address(exchange.client), exchange.client_id or "", group)) if offsets else None
        if row is None:
            return
        without = sum(each == -1 for each in offsets)
        last = _LastAnswer(exchange.ended_ns, exchange.number, len(offsets), without)
        row.merge(
            _OffsetAnswers(
                1,
                1 if without else 0,
                last,
                list(topics_of(exchange))[:MOST] if without else [],
                [exchange.number] if without else [],
                [exchange.broker],
            )
        )

    def result(self) -> list[Row]:
        return [
            {
                "client": client,
                "client_id": client_id or None,
                "group": group,
                "answers": row.answers,
                "without": row.without,
                "last_partitions": row.last.partitions,
                "last_without": row.last.without,
                "last_ns": row.last.ns,
                "topics": row.topics,
                "exchanges": row.exchanges,
                "brokers": row.brokers,
            }
            for (client, client_id, group), row in sorted(self._rows.rows.items())
        ]
