"""The tables of ``kdissect log``, and the functions that make their rows from events of a log directory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdissect.logdir.events import Event, Fact, FileFault, IndexEntry, LogFile, SegmentBatch, SnapshotEntry
from kdissect.present.batches import batch_values
from kdissect.present.catalogue import BATCHES, FAULTS, LOG_RECORDS
from kdissect.present.columns import Column, Table, dict_column
from kdissect.present.options import PLAIN, Options
from kdissect.present.records import record_row
from kdissect.present.sanitise import valid_text


def _file_column(meaning: str) -> Column:
    return dict_column("file", "text", meaning)


INDEX = Table(
    "index",
    (
        _file_column("the index file"),
        dict_column("kind", "text", "offset, time or transaction"),
        dict_column("timestamp", "int64", "time: ms since the epoch", True),
        dict_column("offset", "int64", "offset, time: the record's offset", True),
        dict_column("position", "int64", "offset: position of the batch in the segment", True),
        dict_column("version", "int16", "transaction: version of the entry", True),
        dict_column(
            "producerId", "int64", "transaction: id of the producer whose transaction was aborted", True
        ),
        dict_column("firstOffset", "int64", "transaction: offset of its first record", True),
        dict_column("lastOffset", "int64", "transaction: offset of its marker", True),
        dict_column("lastStableOffset", "int64", "transaction: last stable offset when it was aborted", True),
    ),
)

SNAPSHOT = Table(
    "snapshot",
    (
        _file_column("the snapshot file"),
        dict_column("producerId", "int64", "the producer's id"),
        dict_column("epoch", "int16", "the producer's epoch"),
        dict_column("lastSequence", "int32", "sequence number of its last record"),
        dict_column("lastOffset", "int64", "offset of its last record"),
        dict_column("offsetDelta", "int32", "last minus first offset of its last batch"),
        dict_column("timestamp", "int64", "timestamp of its last batch, ms since the epoch"),
        dict_column("coordinatorEpoch", "int32", "epoch of the coordinator that wrote its last marker"),
        dict_column("currentTxnFirstOffset", "int64", "first offset of its open transaction; -1 without one"),
    ),
)

FACTS = Table(
    "facts",
    (
        _file_column("the checkpoint, properties or other small file"),
        dict_column("kind", "text", "kind of the file"),
        dict_column("values", "json", "contents of the entry"),
    ),
)

LOG_FAULTS = Table(
    "faults",
    (
        _file_column("the file"),
        *(
            dict_column(column.name, column.type, column.meaning)
            for column in FAULTS.select(("layer", "kind", "message")).columns
        ),
        dict_column("offset", "int64", "position in the file"),
    ),
)

LOG_TABLES = {table.name: table for table in (LOG_RECORDS, BATCHES, INDEX, SNAPSHOT, FACTS, LOG_FAULTS)}


def log_rows(table: str, event: Event, options: Options = PLAIN) -> Iterator[dict[str, Any]]:
    """The rows that an event adds to a table."""
    if isinstance(event, LogFile):
        return
    file = valid_text(event.file.path)
    if isinstance(event, SegmentBatch):
        if table == "records":
            yield from _record_rows(event, file, options)
        elif table == "batches":
            yield {"file": file, **batch_values(event.batch), "position": event.position}
        elif table == "faults":
            event.records()  # the faults of the files are events of their own
    elif isinstance(event, IndexEntry):
        if table == "index":
            yield {"file": file, "kind": event.kind, **event.values}
    elif isinstance(event, SnapshotEntry):
        if table == "snapshot":
            yield {"file": file, **event.values}
    elif isinstance(event, Fact):
        if table == "facts":
            yield {"file": file, "kind": event.file.kind, "values": event.values}
    elif table == "faults":
        yield fault_row(event)


def fault_row(event: FileFault) -> dict[str, Any]:
    """A row of the table ``faults``."""
    fault = event.fault
    return {
        "file": valid_text(event.file.path),
        "layer": fault.layer,
        "kind": fault.kind,
        "message": fault.message,
        "offset": fault.offset,
    }


def _record_rows(event: SegmentBatch, file: str, options: Options) -> Iterator[dict[str, Any]]:
    place = {
        "file": file,
        "position": event.position,
        "topic": event.file.topic,
        "partition": event.file.partition,
    }
    for record in event.records():
        yield place | record_row(record, event.batch, options, event.file.topic)
