"""Events of a log directory → lines: a file, with its contents below."""

from __future__ import annotations

import time
from collections.abc import Iterator

from kdissect.logdir.events import Event, Fact, FileFault, IndexEntry, LogFile, SegmentBatch, SnapshotEntry
from kdissect.present.form import plural
from kdissect.present.sanitise import sanitise
from kdissect.present.tree import fault_text
from kdissect.protocol.json_form import dumps


def log_lines(event: Event) -> Iterator[str]:
    """The lines of one event."""
    if isinstance(event, LogFile):
        yield _file(event)
    elif isinstance(event, SegmentBatch):
        yield f"  {_batch(event)}"
    elif isinstance(event, FileFault):
        yield f"  {fault_text(event.fault)}"
    elif isinstance(event, IndexEntry):
        yield f"  {event.kind}: " + ", ".join(f"{name} {value}" for name, value in event.values.items())
    elif isinstance(event, SnapshotEntry):
        yield "  producer: " + ", ".join(f"{name} {value}" for name, value in event.values.items())
    elif isinstance(event, Fact):
        yield "  " + sanitise(dumps(event.values), None)


def _file(file: LogFile) -> str:
    if file.kind == "unknown":
        return f"{sanitise(file.path, None)}: no file of a log directory, left out"
    if file.kind == "folder":
        return f"{sanitise(file.path, None)}: folder"
    parts = [file.kind, plural(file.size, "byte")]
    if file.topic is not None:
        parts.append(f"topic {sanitise(file.topic)} partition {file.partition}")
    if file.state is not None:
        parts.append(file.state)
    return f"{sanitise(file.path, None)}: {', '.join(parts)}"


def _batch(event: SegmentBatch) -> str:
    batch = event.batch
    first = "?" if batch.base_offset is None else batch.base_offset
    count = "records of unknown number" if batch.count is None else plural(batch.count, "record")
    words = [f"offsets {first} to {batch.last_offset}", count, f"magic {batch.magic}", batch.codec]
    if batch.max_timestamp >= 0:
        words.append(f"{batch.timestamp_type} {_millis(batch.max_timestamp)}")
    if batch.producer_id >= 0:
        words.append(f"producer {batch.producer_id} epoch {batch.producer_epoch}")
    for word, holds in (
        ("transactional", batch.is_transactional),
        ("control", batch.is_control),
        ("CRC wrong", batch.crc_valid is False),
        ("cut", batch.partial),
    ):
        if holds:
            words.append(word)
    return f"{event.position:>10}  {', '.join(words)}"


def _millis(value: int) -> str:
    """``2026-01-31T12:00:00.250Z``; the number itself if it is outside of the calendar."""
    try:
        parts = time.gmtime(value // 1_000)
    except (OverflowError, ValueError, OSError):
        return f"{value} ms"
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', parts)}.{value % 1_000:03d}Z"
