"""A record set → the headers of its whole batches, with no checksum computed and nothing unpacked.

What counts batches checks them too (:mod:`kdissect.record.sets`). Folds that ask who wrote a batch, when and
in which order need its first 61 bytes only. Messages of magic 0 and 1 have no such header: they are read as
record sets are, and of wrappers it is told how many messages they hold only where unpacking them is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kdissect.limits import DEFAULTS, Limits
from kdissect.record.batch import (
    BATCH_HEADER,
    CODEC_BITS,
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    codec_name,
)
from kdissect.record.messages import LOG_OVERHEAD
from kdissect.record.records import wrap64
from kdissect.record.sets import read_record_set

HEADER_BYTES = BATCH_HEADER.size
_SMALLEST = HEADER_BYTES - LOG_OVERHEAD
_read = BATCH_HEADER.unpack_from


class Header(NamedTuple):
    """What stands in front of a batch."""

    position: int
    """Of its first byte in the set."""
    size: int
    """Its bytes, header and all."""
    magic: int
    crc: int
    attributes: int
    base_offset: int
    """As it stands there: in a Produce request mostly 0."""
    last_offset: int
    base_timestamp: int
    """Ms since the epoch, -1 for none; in magic 0 and 1, the outer message's."""
    max_timestamp: int
    producer_id: int
    """-1 for none, as in magic 0 and 1."""
    producer_epoch: int
    base_sequence: int
    records: int | None
    """How many, as it announces; None where only unpacking tells."""

    @property
    def codec(self) -> str:
        return codec_name(self.attributes)

    @property
    def is_compressed(self) -> bool:
        return bool(self.attributes & CODEC_BITS)

    @property
    def is_transactional(self) -> bool:
        return self.magic >= 2 and bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return self.magic >= 2 and bool(self.attributes & CONTROL)

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker wrote the times, so that they tell nothing of the producer."""
        return self.magic >= 1 and bool(self.attributes & LOG_APPEND_TIME)


def headers(data: bytes, limits: Limits = DEFAULTS) -> Iterator[Header]:
    """The headers of the whole batches, in order, up to the first that no batch can have."""
    position, end, found = 0, len(data), 0
    while position + HEADER_BYTES <= end and data[position + 16] == 2 and found < limits.elements:
        (
            base_offset,
            length,
            _,
            magic,
            crc,
            attributes,
            last_delta,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        ) = _read(data, position)
        size = length + LOG_OVERHEAD
        if length < _SMALLEST or position + size > end:
            return
        yield Header(
            position,
            size,
            magic,
            crc,
            attributes,
            base_offset,
            wrap64(base_offset + last_delta),
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count if count >= 0 else None,
        )
        position += size
        found += 1
    if position < end and end - position > 16 and data[position + 16] < 2:
        yield from _old(data, position, limits)


def _old(data: bytes, start: int, limits: Limits) -> Iterator[Header]:
    """Those of magic 0 and 1."""
    for batch in read_record_set(data[start:], limits).batches:
        if batch.partial or batch.magic >= 2:
            return
        is_wrapper = bool(batch.attributes & CODEC_BITS)
        yield Header(
            start + batch.position,
            batch.size,
            batch.magic,
            batch.crc,
            batch.attributes,
            batch.header_offset,
            batch.last_offset,
            batch.max_timestamp,
            batch.max_timestamp,
            -1,
            -1,
            -1,
            None if is_wrapper else 1,
        )
