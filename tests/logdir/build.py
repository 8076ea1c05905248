"""Segments and indexes for tests."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from kdissect.limits import DEFAULTS, Limits
from kdissect.logdir.search import ReadAt
from kdissect.logdir.segment import read_batches
from kdissect.model import Fault
from kdissect.record.batch import Batch
from kdissect.record.records import Record
from kdissect.record.write import write_batch

NOW = 1_700_000_000_000


def reader_of(data: bytes) -> ReadAt:
    """A file that is in memory."""
    return lambda position, count: data[position : position + count]


def batch_of(base_offset: int, count: int = 2, size: int = 20, producer_id: int = -1) -> bytes:
    """A batch of ``count`` records, with timestamps that go on with the offsets;
    of a transaction where there is a producer."""
    records = [
        Record(offset, NOW + offset, b"k%d" % offset, b"v" * size)
        for offset in range(base_offset, base_offset + count)
    ]
    return write_batch(
        records, base_offset=base_offset, producer_id=producer_id, transactional=producer_id >= 0
    )


def marker_of(offset: int, producer: int, kind: int) -> bytes:
    """The control batch that ends a transaction: kind 0 aborts, 1 commits."""
    record = Record(offset, NOW + offset, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0))
    return write_batch([record], base_offset=offset, producer_id=producer, transactional=True, control=True)


class Read(NamedTuple):
    """What a segment gave."""

    batches: list[tuple[int, Batch]]
    faults: list[tuple[int, Fault]]

    @property
    def offsets(self) -> list[tuple[int, int]]:
        return [(position, batch.last_offset) for position, batch in self.batches]

    @property
    def kinds(self) -> list[str]:
        return [fault.kind for _, fault in self.faults]


def read(data: bytes, base_offset: int | None = 0, limits: Limits = DEFAULTS) -> Read:
    """Read a segment, records and all."""
    out = Read([], [])
    for position, found in read_batches(reader_of(data), len(data), limits, base_offset):
        if isinstance(found, Fault):
            out.faults.append((position, found))
        else:
            out.batches.append((position, found))
            found.records()
            out.faults.extend((position, each) for each in found.faults)
    return out


def places(data: bytes) -> Iterator[tuple[int, Batch]]:
    """The batches of a segment, with their positions."""
    yield from read(data).batches
