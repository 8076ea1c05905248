"""Errors: every error code in a response that is not 0, with what it is about, and when it came first
and last. One response may hold many: one for each topic, partition, member …"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from kdissect.analysis.fold import OneTable, Row, Span
from kdissect.analysis.labels import Labels, Topic
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.protocol.errors import error_name
from kdissect.protocol.topics import partition_of


@dataclass(slots=True)
class _Times:
    count: int = 0
    span: Span = field(default_factory=Span)

    def merge(self, later: _Times) -> None:
        self.count += later.count
        self.span.merge(later.span)


_Key = tuple[Topic, int | None, str | None, int, str]
"""Topic, partition, API, error code, broker."""


class Errors(OneTable[_Key, _Times]):
    """The statistic ``errors``."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_Times, limits)
        self._labels = Labels(limits)

    def _exchange(self, exchange: Exchange) -> None:
        self._labels.see(exchange)
        response = exchange.response
        if response is None:
            return
        for code, ancestors in exchange.error_codes():
            name, topic_id, partition = partition_of(ancestors)
            topic = self._labels.topic(name, topic_id)
            row = self._rows.row((topic, partition, exchange.api, code, exchange.broker))
            if row is not None:
                row.count += 1
                row.span.add(response.frame.last_ns, exchange.number)

    def _other(self, exchange: Exchange) -> None:
        self._labels.see(exchange)

    def merge(self, later: Self) -> None:
        self._labels.merge(later._labels)
        super().merge(later)

    def result(self) -> list[Row]:
        rows = []
        for (topic, partition, api, code, broker), row in self._labels.by_name(
            self._rows.rows, _Times
        ).items():
            assert isinstance(code, int)
            rows.append(
                {
                    "error": error_name(code),
                    "error_code": code,
                    "api": api,
                    "broker": broker,
                    "topic": topic,
                    "partition": partition,
                    "count": row.count,
                    "first_exchange": row.span.first_exchange,
                    "first_ns": row.span.first_ns,
                    "last_exchange": row.span.last_exchange,
                    "last_ns": row.span.last_ns,
                }
            )
        return sorted(rows, key=_order)


def _order(row: Row) -> tuple[int, str, str, str, int, str]:
    """The most frequent first."""
    partition = row["partition"]
    about = (row["topic"] or "", -1 if partition is None else partition)
    return (-row["count"], row["error"], row["api"] or "", *about, row["broker"])
