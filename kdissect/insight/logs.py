"""Events of log directories → rows that the rules of :mod:`kdissect.insight.rules.logs` read.

It reads only the headers of batches.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Self

from kdissect.analysis.declared import PARTITION_COLUMN, TOPIC_COLUMN, column
from kdissect.analysis.fold import Row, Statistic
from kdissect.analysis.rows import Rows
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.logdir.events import Event as LogEvent
from kdissect.logdir.events import FileFault, LogFile, SegmentBatch
from kdissect.record.batch import Batch

MOST_OPEN = 1_000
"""The most open transactions of a partition that are kept."""
INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")
"""Kafka's own topics. All of them are compacted, or cut after a snapshot."""


class OpenTransaction(NamedTuple):
    """A transaction without an end in the log."""

    producer_id: int
    offset: int
    """The offset of its first batch."""
    last_ms: int | None
    """The newest timestamp in it."""


@dataclass(slots=True)
class _PartitionLog:
    """The state of one partition."""

    batches: int = 0
    records: int = 0
    bytes: int = 0
    first_offset: int | None = None
    end_offset: int | None = None
    newest_ms: int | None = None
    gaps: int = 0
    missing: int = 0
    gap_offset: int | None = None
    largest: int = 0
    largest_offset: int | None = None
    bad: int = 0
    bad_offset: int | None = None
    open: dict[int, OpenTransaction] = field(default_factory=dict)

    def add(self, batch: Batch) -> None:
        if batch.partial or batch.base_offset is None:
            return
        first, last = batch.base_offset, batch.last_offset
        self.batches += 1
        self.bytes += batch.size
        self.records += 0 if batch.is_control else max(0, batch.count or 0)
        if self.first_offset is None:
            self.first_offset = first
        if self.end_offset is not None and first > self.end_offset:
            self.gaps += 1
            self.missing += first - self.end_offset
            self.gap_offset = self.end_offset if self.gap_offset is None else self.gap_offset
        self.end_offset = max(self.end_offset or 0, last + 1)
        if batch.size > self.largest:
            self.largest, self.largest_offset = batch.size, first
        if batch.crc_valid is False:
            self.bad += 1
            self.bad_offset = first if self.bad_offset is None else self.bad_offset
        ms = batch.max_timestamp
        if ms is not None and ms >= 0:
            self.newest_ms = ms if self.newest_ms is None else max(self.newest_ms, ms)
        self._transaction(batch, first, ms)

    def _transaction(self, batch: Batch, first: int, ms: int | None) -> None:
        producer = batch.producer_id
        if batch.is_control:
            self.open.pop(producer, None)
        elif batch.is_transactional and (producer in self.open or len(self.open) < MOST_OPEN):
            begun = self.open.get(producer)
            self.open[producer] = OpenTransaction(producer, first if begun is None else begun.offset, ms)

    def merge(self, later: _PartitionLog) -> None:
        raise NotImplementedError  # log directories are read by one process


class Logs(Statistic):
    """One row for each partition of log directories."""

    name = "logs"
    about = "partitions of log directories"
    columns = (
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        column("batches", "int64", "batches"),
        column("records", "int64", "records, without control records"),
        column("bytes", "int64", "bytes of batches"),
        column("first_offset", "int64", "the first offset"),
        column("end_offset", "int64", "the offset after the last record"),
        column("newest_ms", "int64", "the newest timestamp, ms since the epoch"),
        column("gaps", "int64", "gaps in the offsets"),
        column("missing", "int64", "offsets that are missing in these gaps"),
        column("gap_offset", "int64", "the first missing offset"),
        column("largest_bytes", "int64", "bytes of the largest batch"),
        column("largest_offset", "int64", "offset of the largest batch"),
        column("bad", "int64", "batches whose checksum is wrong"),
        column("bad_offset", "int64", "the offset of the first such batch"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self.files = 0
        self.faults = 0
        self._rows: Rows[tuple[str, int], _PartitionLog] = Rows(_PartitionLog, self.room)

    def take(self, event: LogEvent) -> None:
        """Take in an event of a log directory."""
        if isinstance(event, LogFile):
            self.files += 1
        elif isinstance(event, FileFault):
            self.faults += 1
        elif isinstance(event, SegmentBatch):
            file = event.file
            if file.kind == "segment" and file.state is None:
                row = self._rows.row(
                    (file.topic or file.path, -1 if file.partition is None else file.partition)
                )
                if row is not None:
                    row.add(event.batch)

    def _exchange(self, exchange: Exchange) -> None:
        """Do nothing: captures have no log directories."""

    def merge(self, later: Self) -> None:
        self._rows.merge(later._rows)

    @property
    def left_out(self) -> int:
        return self._rows.left_out

    def result(self) -> list[Row]:
        return [
            {
                "topic": topic,
                "partition": None if partition < 0 else partition,
                "batches": log.batches,
                "records": log.records,
                "bytes": log.bytes,
                "first_offset": log.first_offset,
                "end_offset": log.end_offset,
                "newest_ms": log.newest_ms,
                "gaps": log.gaps,
                "missing": log.missing,
                "gap_offset": log.gap_offset,
                "largest_bytes": log.largest,
                "largest_offset": log.largest_offset,
                "bad": log.bad,
                "bad_offset": log.bad_offset,
                "open": sorted(log.open.values(), key=lambda each: each.offset),
            }
            for (topic, partition), log in self._rows.rows.items()
        ]
