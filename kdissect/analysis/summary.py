"""Summaries of a statistic's rows: only sums and extremes of their values."""

from __future__ import annotations

from collections.abc import Iterable

from kdissect.analysis.counters import Grades, Span
from kdissect.analysis.fold import Row, least, most

BY_CONSUMERS = ("fetch", "share")
"""The directions in which records go to consumers."""


def by_topic(topics: Iterable[Row], positions: Iterable[Row]) -> list[Row]:
    """Rows of ``topics`` and ``positions`` → a row for each topic.

    Rates count from the topic's first exchange in a direction to its last. The lags are those of all
    consumers that still ask for a partition; without any, that of the consumer that asked last.
    """
    found: dict[str | None, _TopicSummary] = {}
    for row in topics:
        found.setdefault(row["topic"], _TopicSummary()).add(row)
    for row in positions:
        found.setdefault(row["topic"], _TopicSummary()).add_position(row)
    return [
        each.row(topic) for topic, each in sorted(found.items(), key=lambda item: (item[0] is None, item[0]))
    ]


class _RecordFlow:
    """The records of one direction."""

    def __init__(self) -> None:
        self.records = self.bytes = 0
        self.span = Span()

    def add(self, row: Row) -> None:
        self.records += row["records"]
        self.bytes += row["bytes"]
        for name in ("first_ns", "last_ns"):
            if row[name] is not None:
                self.span.add(row[name], 0)

    def row(self, name: str) -> Row:
        return {
            f"{name}_records": self.records,
            f"{name}_records_per_s": self.span.rate(self.records),
            f"{name}_bytes": self.bytes,
            f"{name}_bytes_per_s": self.span.rate(self.bytes),
        }


class _TopicSummary:
    """The summary of a topic."""

    def __init__(self) -> None:
        self.partitions: set[int | None] = set()
        self.produced, self.fetched, self.replicated = _RecordFlow(), _RecordFlow(), _RecordFlow()
        self.codecs: set[str] = set()
        self.smallest: int | None = None
        self.largest: int | None = None
        self.errors = Grades()
        self.lags: dict[int, list[Row]] = {}
        """The positions whose lag counts, by partition."""
        self.first_ns: int | None = None
        self.last_ns: int | None = None

    def add(self, row: Row) -> None:
        self.partitions.add(row["partition"])
        if row["direction"] == "produce":
            self.produced.add(row)
        elif row["direction"] in BY_CONSUMERS:
            self.fetched.add(row)
        else:
            self.replicated.add(row)
        self.codecs.update(row["codecs"])
        self.smallest = least(self.smallest, row["batch_bytes_min"])
        self.largest = most(self.largest, row["batch_bytes_max"])
        self.errors.merge(Grades(row["errors"], row["fatal"], row["routine"]))
        self._times(row)

    def add_position(self, row: Row) -> None:
        self.partitions.add(row["partition"])
        self._times(row)
        if row["lag"] is None or row["replica_id"] >= 0:
            return
        here = self.lags.setdefault(row["partition"], [])
        if here and not here[0]["asked"] and _lately(row) > _lately(here[0]):
            here.clear()
        if not here or (row["asked"] and here[0]["asked"]):
            here.append(row)

    def _times(self, row: Row) -> None:
        self.first_ns = least(self.first_ns, row["first_ns"])
        self.last_ns = most(self.last_ns, row["last_ns"])

    def row(self, topic: str | None) -> Row:
        lags = [row["lag"] for rows in self.lags.values() for row in rows]
        return {
            "topic": topic,
            "partitions": len(self.partitions),
            **self.produced.row("produced"),
            **self.fetched.row("fetched"),
            **self.replicated.row("replicated"),
            "codecs": sorted(self.codecs),
            "batch_bytes_min": self.smallest,
            "batch_bytes_max": self.largest,
            "lag_min": min(lags, default=None),
            "lag_max": max(lags, default=None),
            **self.errors.columns(),
            "first_ns": self.first_ns,
            "last_ns": self.last_ns,
        }


def _lately(row: Row) -> tuple[bool, int]:
    return row["asked"], row["last_ns"] or 0
