"""A record set → how many batches, records and bytes are in it, by the headers of its batches.

Batches of magic 2 say how many records they hold; nothing is unpacked for that. Compressed messages of
magic 0 and 1 do not say it, and are unpacked.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kdissect.analysis.packed import packed
from kdissect.limits import Limits
from kdissect.record.records import wrap64
from kdissect.record.sets import read_record_set

_BROKEN = ("bad-batch", "bad-magic")


@packed
@dataclass(slots=True)
class Batches:
    """What was counted."""

    batches: int = 0
    """Whole batches of records, each an outer message in magic 0 and 1."""
    records: int = 0
    """Records in them."""
    uncounted: int = 0
    """Of them, batches of which it cannot be told how many records they hold."""
    control: int = 0
    """Batches of control records, which are not among the above: transaction markers and the like."""
    partial: int = 0
    """Batches that the end of the set cuts; their records are not counted."""
    corrupt: int = 0
    """Batches whose checksum is wrong, and sets of which the rest cannot be read."""
    set_bytes: int = 0
    """Of the record sets, cut batches and all."""
    batch_bytes: int = 0
    """Of the whole batches."""
    smallest: int | None = None
    largest: int | None = None
    codecs: set[str] = field(default_factory=set)
    end: int | None = None
    """The offset after the last whole batch."""

    def add(self, data: bytes, limits: Limits) -> None:
        """Count a record set."""
        self.set_bytes += len(data)
        found = read_record_set(data, limits)
        self.corrupt += sum(each.kind in _BROKEN for each in found.own_faults)
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
        """Add what was counted later."""
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
