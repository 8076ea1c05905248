"""The events of log directories: plain values, each with the file that it was read from."""

from __future__ import annotations

from typing import Any, NamedTuple

from kdissect.model import Fault
from kdissect.record.batch import Batch
from kdissect.record.records import Record


class LogFile(NamedTuple):
    """A file whose reading begins."""

    path: str
    """The path that the user gave, or the path below the folder that the user gave."""
    kind: str
    """See :class:`kdissect.logdir.names.FileName`; ``unknown`` for a file that is left out, ``folder`` for a
    folder that cannot be read."""
    size: int
    topic: str | None = None
    partition: int | None = None
    state: str | None = None
    """``delete``, ``future`` or ``stray``, the state of the folder; None for a partition in use."""
    base_offset: int | None = None
    epoch: int | None = None


class SegmentBatch(NamedTuple):
    """A batch of a segment or of a metadata snapshot."""

    file: LogFile
    position: int
    """The position in the file. The batch's own position counts in the part of the file that was read with
    it."""
    batch: Batch

    def records(self) -> list[Record]:
        """Its records. Their faults come as :class:`FileFault` before the next event."""
        return self.batch.records()


class IndexEntry(NamedTuple):
    """An entry of an index; offsets are absolute."""

    file: LogFile
    kind: str
    """``offset``, ``time`` or ``transaction``."""
    values: dict[str, int]
    """``offset`` and ``position``; ``timestamp`` and ``offset``; the fields of Kafka's ``AbortedTxn``."""


class SnapshotEntry(NamedTuple):
    """A producer's state, from a ``.snapshot`` file."""

    file: LogFile
    values: dict[str, Any]
    """The fields of Kafka's ``ProducerEntry``."""


class Fact(NamedTuple):
    """A fact from a small file: a line of a checkpoint, or the properties of a folder."""

    file: LogFile
    values: dict[str, Any]


class FileFault(NamedTuple):
    """A fault of a file; in every layer, the offset counts from the start of the file."""

    file: LogFile
    fault: Fault


Event = LogFile | SegmentBatch | IndexEntry | SnapshotEntry | Fact | FileFault
