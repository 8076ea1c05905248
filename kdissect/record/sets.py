# cython: always_allow_keywords=True
"""Record sets: the content of a Produce request, a Fetch response or a log segment, as batches.

:func:`read_record_set` turns bytes into :class:`Batch` objects: it reads headers and checksums, and unpacks
nothing. :meth:`~kdissect.record.batch.Batch.records` unpacks one batch and reads its records.

The rules:

* The magic at byte 16 of every entry decides its form; a set may mix them. In magic 0 and 1 every outer
  message is a batch.
* A batch with a valid header and a broken body costs only itself: reading continues at its declared end. An
  impossible length, or another magic, ends the set: the rest is the remainder.
* A set that ends inside a batch is ordinary in Fetch responses, which are cut at a number of bytes. If its
  header is complete, a batch of magic 2 is listed, marked partial, with its complete records. A message of
  magic 0 or 1 holds no record without its last byte.
* A wrong checksum is reported, and the batch is decoded all the same.
* Unpacked bytes and records are bounded for the set as a whole. So many small batches cannot take more memory
  than a large one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kdissect.faults import fault
from kdissect.lazy import Later
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Fault
from kdissect.record.batch import BATCH_HEADER, CODEC_BITS, CRC_START, SMALLEST_BATCH, Batch, Budget
from kdissect.record.messages import LOG_OVERHEAD, SMALLEST_MESSAGE, int32_at, int64_at, message_crc
from kdissect.record.records import Record, sum64
from kdissect.wording import plural

if TYPE_CHECKING:
    import crc32c
else:
    crc32c = Later("crc32c", "_crc32c")

# The same constants, as C numbers if this module is compiled.
_OVERHEAD, _CODEC_BITS, _CRC_START, _HEADER_BYTES = LOG_OVERHEAD, CODEC_BITS, CRC_START, BATCH_HEADER.size
_LEAST_0, _LEAST_1 = SMALLEST_MESSAGE
_LEAST_2 = SMALLEST_BATCH
_LOW = 0xFFFF_FFFF


class RecordSet:
    """The batches of a record set, and bytes outside of any batch."""

    __slots__ = ("batches", "own_faults", "remainder")

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.remainder = 0
        """The start of the bytes outside of batches; the set's length if there are no such bytes."""
        self.own_faults: list[Fault] = []

    @property
    def faults(self) -> list[Fault]:
        """Faults of the set, of batch headers, and of the records read so far."""
        return [*(each for batch in self.batches for each in batch.faults), *self.own_faults]

    def records(self) -> Iterator[Record]:
        """The records of all batches, one batch unpacked at a time."""
        for batch in self.batches:
            yield from batch.records()


class BatchReader:
    """Reads a record set batch by batch. Damaged bytes never raise an exception."""

    __slots__ = ("_budget", "_count", "_data", "_limits", "faults", "position")

    def __init__(self, data: bytes, limits: Limits) -> None:
        self._limits = limits
        self._budget = Budget(0, limits)
        self.begin(data)

    def begin(self, data: bytes) -> None:
        """Start again with another record set. Batches of the earlier set must not be read any more."""
        self._data = data
        self._budget.begin(len(data))
        self._count = 0
        """The number of batches so far."""
        self.position = 0
        """The start of the next batch; at the end, of the bytes outside of batches."""
        self.faults: list[Fault] = []
        """The faults of the set."""

    def read(self, batch: Batch) -> bool:
        """Read the header of the next batch into ``batch``. False at the end; do not call it again then."""
        data, position = self._data, self.position
        left = len(data) - position
        if left <= 0:
            return False
        defect = frame_defect(data, position)
        partial = False
        if defect is not None:
            partial = defect.kind == "partial-batch"
            self.faults.append(defect)
            if not (partial and left >= _HEADER_BYTES and data[position + 16] == 2):
                return False
        if self._count >= self._budget.most_elements:
            most = plural(self._limits.elements, "batch", "batches")
            unread = plural(left, "byte is", "bytes are")
            text = f"there are more than the limit of {most}; {unread} not read"
            self.faults.append(fault("too-many-elements", text, offset=position, layer="records"))
            return False
        batch.begin(data, position, self._budget)
        if data[position + 16] == 2:
            _read_batch(batch, partial)
        else:
            _read_message(batch)
        self._count += 1
        self.position = batch._end()
        return True


def read_record_set(data: bytes, limits: Limits = DEFAULTS) -> RecordSet:
    """Read the headers of all batches. Damaged bytes never raise an exception."""
    found = RecordSet()
    reader = BatchReader(data, limits)
    batch = Batch.__new__(Batch)
    while reader.read(batch):
        found.batches.append(batch)
        batch = Batch.__new__(Batch)
    found.own_faults, found.remainder = reader.faults, reader.position
    return found


def frame_defect(data: bytes, position: int) -> Fault | None:
    """The fault in the frame (offset, length, magic) of the batch at ``position``; None if all its bytes are
    present. ``partial-batch`` means that only its end is missing."""
    left = len(data) - position
    if left < _OVERHEAD:
        text = f"{plural(left, 'byte is', 'bytes are')} left, too few for a batch"
        return fault("partial-batch", text, offset=position)
    raw = data
    high = raw[position + 8]
    if high > 0x7F:
        high -= 0x100
    size = high * 0x100_0000 + (raw[position + 9] << 16 | raw[position + 10] << 8 | raw[position + 11])
    if size < _LEAST_0:
        return _end_of_set("bad-batch", f"a batch announces {plural(size, 'byte')}", left, position)
    if left > 16:
        magic = raw[position + 16]
        if magic > 2:
            return _end_of_set("bad-magic", f"the magic is {magic}", left, position)
        least = _LEAST_2 if magic == 2 else _LEAST_1 if magic == 1 else _LEAST_0
        if size < least:
            text = f"a batch of magic {magic} announces {plural(size, 'byte')}, but needs {least}"
            return _end_of_set("bad-batch", text, left, position)
    if size > left - _OVERHEAD:
        whole = plural(size + LOG_OVERHEAD, "byte")
        text = f"the batch announces {whole}, but {plural(left, 'is', 'are')} there"
        return fault("partial-batch", text, offset=position)
    return None


def _end_of_set(kind: str, what: str, left: int, position: int) -> Fault:
    unread = plural(left, "byte from there on is not read", "bytes from there on are not read")
    return fault(kind, f"{what}; {unread}", offset=position)


def _read_batch(batch: Batch, partial: bool) -> None:
    """Read the header of a batch of magic 2. Its bytes are present."""
    data, position = batch._data, batch.position
    raw, at = data, position
    batch.header_offset = int64_at(raw, at)
    batch.size = size = int32_at(raw, at + 8) + _OVERHEAD
    batch.partition_leader_epoch = int32_at(raw, at + 12)
    batch.magic = 2
    batch.crc = int32_at(raw, at + 17) & _LOW
    batch.attributes = _int16(raw, at + 21)
    last_delta = int32_at(raw, at + 23)
    batch.base_timestamp = int64_at(raw, at + 27)
    batch.max_timestamp = int64_at(raw, at + 35)
    batch.producer_id = int64_at(raw, at + 43)
    batch.producer_epoch = _int16(raw, at + 51)
    batch.base_sequence = int32_at(raw, at + 53)
    batch.header_count = int32_at(raw, at + 57)
    batch.last_offset = sum64(batch.header_offset, last_delta)
    if partial:
        batch.partial = True
    elif checksum(data, position + _CRC_START, position + size) == batch.crc:
        batch.crc_valid = True
    else:
        _note_checksum(batch, "CRC-32C")
    if last_delta < 0:
        batch.note(fault("bad-batch", f"the last offset delta is {last_delta}", offset=position))


def _read_message(batch: Batch) -> None:
    """Read the header of a whole message. :func:`frame_defect` has checked that it has at least the header
    and, in magic 1, the timestamp."""
    data, position = batch._data, batch.position
    raw, at = data, position
    batch.header_offset = batch.last_offset = int64_at(raw, at)
    batch.size = size = int32_at(raw, at + 8) + _OVERHEAD
    batch.crc = int32_at(raw, at + 12) & _LOW
    batch.magic, attributes = raw[at + 16], raw[at + 17]
    batch.attributes = attributes - 0x100 if attributes > 0x7F else attributes
    if batch.magic == 1:
        batch.max_timestamp = int64_at(raw, at + 18)
    if message_crc(data, position, position + size) == batch.crc:
        batch.crc_valid = True
    else:
        _note_checksum(batch, "CRC-32")
    if batch.attributes & _CODEC_BITS == 4:
        text = f"a message of magic {batch.magic} uses zstd, which Kafka allows only from magic 2 on"
        batch.note(fault("bad-batch", text, offset=position))


def _int16(raw: bytes, at: int) -> int:
    """The int16 at a position."""
    value = raw[at] << 8 | raw[at + 1]
    return value - 0x1_0000 if value > 0x7FFF else value


_SHORT = 1_024
"""Copying up to this many bytes is faster than making a view of them."""


def checksum(data: bytes, start: int, end: int) -> int:
    """The CRC-32C of a part of the bytes."""
    raw = data
    found: int = crc32c.crc32c(raw[start:end] if end - start <= _SHORT else memoryview(data)[start:end])
    return found


def _note_checksum(batch: Batch, algorithm: str) -> None:
    """Report a wrong checksum."""
    batch.crc_valid = False
    text = f"{algorithm} 0x{batch.crc:08x} does not match the {plural(batch.size, 'byte')} of the batch"
    batch.note(fault("bad-crc", text, offset=batch.position))
