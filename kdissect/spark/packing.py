"""Parts of captures → packed rows: the segments of many connections, by bucket.

A row has a task, the packet of its first segment, a kind and the data. Kinds are smaller numbers than those
of facts, so that segments come before the numbers of the same packet that they need. Only workers of the same
job, with the same Python, read what is packed.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from kdissect.capture.reader import Item
from kdissect.capture.segments import SegmentReader
from kdissect.faults import fault
from kdissect.model import CaptureError, Fault, Packet, Segment, parts
from kdissect.spark.facts import Bucket, Thing
from kdissect.spark.progress import Note
from kdissect.spark.settings import Settings
from kdissect.spark.splits import Part, PartReader

_PACKED = pa.schema(
    [("task", pa.int32()), ("packet", pa.int64()), ("kind", pa.int32()), ("data", pa.binary())]
)
PACKED_DDL = "task int, packet bigint, kind int, data binary"
_SEGMENTS, _FAULT = -2, -1
"""Kinds of packed rows; those of facts follow them at the same packet."""
_BLOCK_BYTES = 256 << 10
_BATCH_BYTES = 8 << 20
_SEGMENT_COST = 120
"""About what a segment takes beside its payload, in bytes."""


class Place(NamedTuple):
    """A part of a file in its capture."""

    part: Part
    point: int
    base: int
    """Packets before it."""
    task: int
    """The first of the capture point's tasks, which takes its faults too."""
    buckets: int
    is_one_of_several: bool
    """Whether the capture has other files."""


class _Blocks:
    """Gathers segments by bucket."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._buckets = [Bucket(index, place.buckets) for index in range(place.buckets)]
        self._segments: list[list[tuple[object, ...]]] = [[] for _ in self._buckets]
        self._sizes = [0] * place.buckets
        self._rows: list[tuple[int, int, int, bytes]] = []
        self._bytes = 0

    def segment(self, segment: Segment) -> None:
        index = self._buckets[0].index_of(segment.source, segment.destination)
        self._segments[index].append(parts(segment))
        self._sizes[index] += len(segment.payload) + _SEGMENT_COST
        if self._sizes[index] >= _BLOCK_BYTES:
            self._finish(index)

    def fault(self, packet: int, found: Fault) -> None:
        self._row((self._place.task, packet, _FAULT, marshal.dumps(tuple(found))))

    def take(self, everything: bool = False) -> pa.RecordBatch | None:
        """What is worth sending."""
        for index in range(len(self._buckets)) if everything else ():
            self._finish(index)
        if not self._rows or (self._bytes < _BATCH_BYTES and not everything):
            return None
        columns = zip(*self._rows, strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, _PACKED, strict=True)]
        self._rows, self._bytes = [], 0
        return pa.record_batch(arrays, schema=_PACKED)

    def _finish(self, index: int) -> None:
        if segments := self._segments[index]:
            first = segments[0][0]
            assert isinstance(first, int)
            self._row((self._place.task + index, first, _SEGMENTS, marshal.dumps(segments)))
            self._segments[index], self._sizes[index] = [], 0

    def _row(self, row: tuple[int, int, int, bytes]) -> None:
        self._rows.append(row)
        self._bytes += len(row[3])


def pack(
    places: Sequence[Place], settings: Settings, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Numbers of places → packed rows."""
    for number in task_numbers(batches):
        place = places[number]
        blocks, segments = _Blocks(place), SegmentReader(settings.limits)
        note = Note(settings.progress, f"pack-{number}")
        packet = place.base
        for item in _items(place, settings):
            if isinstance(item, Fault):
                known = None if item.packet is None else packet
                blocks.fault(packet, item._replace(packet=known))
                continue
            if not isinstance(item, Packet):
                continue
            packet += 1
            note.packet(len(item.data))
            found = segments.feed(item._replace(number=packet))
            if isinstance(found, Segment):
                blocks.segment(found)
            elif found is not None:
                blocks.fault(packet, found)
            if (batch := blocks.take()) is not None:
                yield batch
        note.write()
        if (batch := blocks.take(everything=True)) is not None:
            yield batch


def _items(place: Place, settings: Settings) -> Iterator[Item]:
    """What a part holds; faults have the name of their file where there are several, as ``read`` has it."""
    path, several = place.part.path, place.is_one_of_several
    try:
        for item in PartReader(place.part, settings.limits):
            if several and isinstance(item, Fault):
                item = item._replace(message=f"{path}: {item.message}")
            yield item
    except CaptureError as error:
        kind = "unreadable" if isinstance(error.__cause__, OSError) else "not-a-capture"
        yield fault(kind, f"{error}; the other files are read" if several else str(error))


def unpacked(kind: int, packet: int, data: bytes) -> Iterator[Thing]:
    """What a packed row holds."""
    if kind == _FAULT:
        yield packet, Fault(*marshal.loads(data))
        return
    for values in marshal.loads(data):
        yield values[0], Segment(*values)


def task_numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    """What ``spark.range`` gives a task."""
    for batch in batches:
        yield from batch.column(0).to_pylist()
