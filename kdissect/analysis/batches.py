"""A record set → the number of its batches, records and bytes, by the headers of its batches.

Batches of magic 2 contain the number of their records, so nothing is unpacked. Compressed messages of magic 0
and 1 do not contain it, and are unpacked.
"""

from __future__ import annotations

from typing import Any

from kdissect.limits import Limits
from kdissect.record.records import wrap64
from kdissect.record.sets import read_record_set

_BROKEN = ("bad-batch", "bad-magic")


class Batches:  # noqa: PLW1641 - it changes
    """The counts."""

    __slots__ = (
        *("batch_bytes", "batches", "codecs", "control", "corrupt", "end", "largest", "partial"),
        *("records", "set_bytes", "smallest", "uncounted"),
    )

    def __init__(self) -> None:
        self.batches = 0
        """Whole batches of records; in magic 0 and 1, outer messages."""
        self.records = 0
        """The records in ``batches``."""
        self.uncounted = 0
        """Those of ``batches`` whose number of records is unknown."""
        self.control = 0
        """Batches of control records, such as transaction markers. ``batches`` does not contain them."""
        self.partial = 0
        """Batches that the end of the set cuts. Their records are not counted."""
        self.corrupt = 0
        """Batches with a wrong checksum, and sets whose rest cannot be read."""
        self.set_bytes = 0
        """The bytes of the record sets, with cut batches."""
        self.batch_bytes = 0
        """The bytes of the whole batches."""
        self.smallest: int | None = None
        self.largest: int | None = None
        self.codecs: set[str] = set()
        self.end: int | None = None
        """The offset after the last whole batch."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Batches) and self._parts() == other._parts()

    def __repr__(self) -> str:
        return f"Batches{self._parts()}"

    def _parts(self) -> tuple[Any, ...]:
        return (
            *(self.batches, self.records, self.uncounted, self.control, self.partial, self.corrupt),
            *(self.set_bytes, self.batch_bytes, self.smallest, self.largest, self.codecs, self.end),
        )

    def add(self, data: bytes, limits: Limits) -> None:
        """Count a record set."""
        self.set_bytes += len(data)
        found = read_record_set(data, limits)
        self.corrupt += len([each for each in found.own_faults if each.kind in _BROKEN])
        for batch in found.batches:
            if batch.partial:
                self.partial += 1
                continue
            self.end = wrap64(batch.last_offset + 1)
            self.corrupt += batch.crc_valid is False
            if batch.is_control:
                self.control += 1
                continue
            self.batches += 1
            self.batch_bytes += batch.size
            self.smallest = batch.size if self.smallest is None else min(self.smallest, batch.size)
            self.largest = batch.size if self.largest is None else max(self.largest, batch.size)
            self.codecs.add(batch.codec)
            count = batch.count
            if count is None or count < 0:
                self.uncounted += 1
            else:
                self.records += count

    def merge(self, later: Batches) -> None:
        """Add later counts."""
        self.batches += later.batches
        self.records += later.records
        self.uncounted += later.uncounted
        self.control += later.control
        self.partial += later.partial
        self.corrupt += later.corrupt
        self.set_bytes += later.set_bytes
        self.batch_bytes += later.batch_bytes
        if later.smallest is not None and (self.smallest is None or later.smallest < self.smallest):
            self.smallest = later.smallest
        if later.largest is not None and (self.largest is None or later.largest > self.largest):
            self.largest = later.largest
        if later.codecs:
            self.codecs |= later.codecs
        if later.end is not None:
            self.end = later.end
