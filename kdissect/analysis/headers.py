"""A record set → the headers of its batches, with no checksum computed.

The statistic that counts batches also checks them (:mod:`kdissect.record.sets`). The first 61 bytes of a
batch tell who wrote it, when and in which order. Nothing is unpacked for that. Messages of magic 0 and 1 have
no such header. They are read as record sets are; compressed ones are unpacked only where that is asked for.
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
    SMALLEST_BATCH,
    TRANSACTIONAL,
    codec_name,
)
from kdissect.record.messages import LOG_OVERHEAD
from kdissect.record.records import ROW, wrap64
from kdissect.record.scan import read_records
from kdissect.record.sets import read_record_set

HEADER_BYTES = BATCH_HEADER.size
MOST_MS = (1 << 63) // 2_000_000
"""Of timestamps; what lies beyond is none that could be told in ns."""
APART_MS = 4
"""Records that lie closer together need no closer look."""
MOST_LOOKED_AT = 10_000
SAMPLE = 64
"""So many timestamps stand for all of a larger batch."""
_MAGIC_AT = 16
_read = BATCH_HEADER.unpack_from


class Header(NamedTuple):
    """What stands in front of a batch."""

    position: int
    """Of its first byte in the set."""
    size: int
    """Its bytes, header and all, as it announces them."""
    magic: int
    crc: int
    attributes: int
    base_offset: int
    """As it stands there: in a Produce request mostly 0. Of a compressed message that is not unpacked, the
    offset of its last record."""
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
    is_whole: bool = True
    """Whether all its bytes are there."""

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

    @property
    def length(self) -> int:
        """How many offsets it takes, one at the least."""
        return max(self.records or self.last_offset - self.base_offset + 1, 1)

    @property
    def first_ms(self) -> int | None:
        """The timestamp of its first record; None without a timestamp."""
        return self.base_timestamp if 0 <= self.base_timestamp <= MOST_MS else None

    @property
    def last_ms(self) -> int | None:
        """The largest timestamp in it; None without a timestamp."""
        return self.max_timestamp if 0 <= self.max_timestamp <= MOST_MS else None

    @property
    def content_crc(self) -> int | None:
        """The checksum of all that the producer sent, which brokers keep as it is; None in magic 0 and 1."""
        return self.crc if self.magic >= 2 else None


def headers(data: bytes, limits: Limits = DEFAULTS) -> Iterator[Header]:
    """The headers of the whole batches, in order, up to the first that no batch can have. Nothing is
    unpacked."""
    return (each for each in _headers(data, 0, limits, unpacks=False) if each.is_whole)


def sets_of(data: bytes, limits: Limits = DEFAULTS) -> Iterator[Header]:
    """The same, and the last one too if its end is cut off. Consecutive messages of magic 0 and 1 become one,
    and are unpacked because their offsets are inside."""
    run: list[Header] = []
    for each in _headers(data, 0, limits, unpacks=True):
        if each.magic < 2:
            run.append(each)
            continue
        if run:
            yield _joined(run)
            run = []
        yield each
    if run:
        yield _joined(run)


def _joined(run: list[Header]) -> Header:
    stamps = [each.max_timestamp for each in run if each.last_ms is not None]
    counts = [each.records for each in run]
    by_broker = [each for each in run if each.is_log_append_time]
    return (by_broker or run)[0]._replace(
        position=run[0].position,
        size=sum(each.size for each in run),
        base_offset=run[0].base_offset,
        last_offset=run[-1].last_offset,
        base_timestamp=stamps[0] if stamps else -1,
        max_timestamp=max(stamps, default=-1),
        records=None if None in counts else sum(count or 0 for count in counts),
    )


def stamps_of(batch: Header, data: bytes) -> list[int]:
    """Timestamps of records of a batch, ms, that stand for equally many each; empty where they lie close
    together anyway, or only unpacking would tell.

    :param data: the set that the batch is of.
    """
    count, first, last = batch.records, batch.first_ms, batch.last_ms
    if count is None or not 2 < count <= MOST_LOOKED_AT or first is None or last is None:
        return []
    if batch.magic < 2 or batch.is_compressed or not batch.is_whole or batch.is_log_append_time:
        return []
    if last - first <= APART_MS:
        return []
    start = batch.position + HEADER_BYTES
    columns = read_records(data, start, len(data), 0, first, None, -1, count).columns
    stamps = sorted(columns.numbers()[1::ROW])
    if len(stamps) != count:
        return []
    if count <= SAMPLE:
        return stamps
    return [stamps[(2 * part + 1) * count // (2 * SAMPLE)] for part in range(SAMPLE)]


def _headers(data: bytes, position: int, limits: Limits, unpacks: bool) -> Iterator[Header]:
    """Those of a set from a position on; only the last may be cut."""
    end, found = len(data), 0
    while position + HEADER_BYTES <= end and data[position + _MAGIC_AT] == 2 and found < limits.elements:
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
        if length < SMALLEST_BATCH:
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
            position + size <= end,
        )
        position += size
        found += 1
    if end - position > _MAGIC_AT and data[position + _MAGIC_AT] < 2:
        yield from _messages(data, position, limits, unpacks)


def _messages(data: bytes, start: int, limits: Limits, unpacks: bool) -> Iterator[Header]:
    """Those of magic 0 and 1, and of the batches behind them."""
    for batch in read_record_set(data[start:], limits).batches:
        if batch.magic >= 2:
            yield from _headers(data, start + batch.position, limits, unpacks)
            return
        if batch.partial:
            return
        is_wrapper = bool(batch.attributes & CODEC_BITS)
        base = batch.base_offset if unpacks else batch.header_offset
        if base is None:
            continue  # where its records begin is not known
        yield Header(
            start + batch.position,
            batch.size,
            batch.magic,
            batch.crc,
            batch.attributes,
            base,
            batch.last_offset,
            batch.max_timestamp,
            batch.max_timestamp,
            -1,
            -1,
            -1,
            batch.count if unpacks else None if is_wrapper else 1,
        )
