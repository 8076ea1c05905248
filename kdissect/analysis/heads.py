"""A record set → what the headers of its batches say: offsets, counts, timestamps, checksums.

Nothing is unpacked and no checksum computed, so that this costs little. Messages of magic 0 and 1 have no
such header: a run of them is one head, read as :mod:`kdissect.record.sets` reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kdissect.limits import Limits
from kdissect.record.batch import BATCH_HEADER, CODEC_BITS, CONTROL, LOG_APPEND_TIME, SMALLEST_BATCH
from kdissect.record.messages import LOG_OVERHEAD
from kdissect.record.records import ROW, read_records, wrap64
from kdissect.record.sets import read_record_set

_unpack = BATCH_HEADER.unpack_from


class Head(NamedTuple):
    """What is told of a batch."""

    base: int
    """Offset of its first record: as sent in a Produce request, as assigned elsewhere."""
    last: int
    """Offset of its last record."""
    records: int | None
    """How many it has; None where that is not told."""
    first_ms: int | None
    """Timestamp of its first record; None where there is none."""
    last_ms: int | None
    """The largest timestamp in it; None where there is none."""
    crc: int | None
    """Of all that the producer sent, which brokers keep as it is; None in magic 0 and 1."""
    is_create_time: bool
    """Whether the timestamps are the producer's, and not the broker's (LogAppendTime)."""
    is_control: bool
    is_whole: bool
    """Whether all its bytes are there."""
    start: int = -1
    """Where its records begin in the set; -1 where they would have to be unpacked."""


def heads(data: bytes, limits: Limits) -> Iterator[Head]:
    """The heads of a set, up to where it is no longer understood."""
    position, end = 0, len(data)
    while end - position > _MAGIC_AT and data[position + _MAGIC_AT] == 2:
        if end - position < BATCH_HEADER.size:
            return
        base, length, _, _, crc, attributes, delta, first, last, _, _, _, count = _unpack(data, position)
        if length < SMALLEST_BATCH:
            return
        is_whole = position + LOG_OVERHEAD + length <= end
        yield Head(
            base,
            wrap64(base + delta),
            count if count >= 0 else None,
            first if 0 <= first <= MOST_MS else None,
            last if 0 <= last <= MOST_MS else None,
            crc,
            not attributes & LOG_APPEND_TIME,
            bool(attributes & CONTROL),
            is_whole,
            -1 if attributes & CODEC_BITS else position + BATCH_HEADER.size,
        )
        position += LOG_OVERHEAD + length
    if end - position > _MAGIC_AT:
        yield from _messages(data[position:], limits)


_MAGIC_AT = 16
MOST_MS = (1 << 63) // 2_000_000
"""Of timestamps; what lies beyond is none that could be told in ns."""
APART_MS = 4
"""Records that lie closer together need no closer look."""
MOST_LOOKED_AT = 10_000
SAMPLE = 64
"""So many timestamps stand for all of a larger batch."""


def sample(head: Head, data: bytes) -> list[int]:
    """Timestamps of records of a batch, ms, that stand for equally many each; empty where they lie close
    together anyway, or only unpacking would tell.

    :param data: the set that the head is of.
    """
    count, first, last = head.records, head.first_ms, head.last_ms
    if count is None or not 2 < count <= MOST_LOOKED_AT or head.start < 0 or first is None or last is None:
        return []
    if last - first <= APART_MS or not head.is_whole or not head.is_create_time:
        return []
    columns = read_records(data, head.start, len(data), 0, first, None, -1, count).columns
    stamps = sorted(columns.rows[1 : columns.count * ROW : ROW])
    if len(stamps) != count:
        return []
    if count <= SAMPLE:
        return stamps
    return [stamps[(2 * part + 1) * count // (2 * SAMPLE)] for part in range(SAMPLE)]


def _messages(data: bytes, limits: Limits) -> Iterator[Head]:
    """The head of a run of messages of magic 0 and 1; batches behind them are told each."""
    first = last = None
    count: int | None = 0
    stamps: list[int] = []
    is_create_time = True
    rest = len(data)
    for batch in read_record_set(data, limits).batches:
        if batch.magic == 2:
            rest = batch.position
            break
        if batch.partial:
            continue
        base, records = batch.base_offset, batch.count
        first = base if first is None else first
        last = batch.last_offset
        count = None if count is None or records is None else count + records
        is_create_time &= batch.timestamp_type != "LogAppendTime"
        if 0 <= batch.max_timestamp <= MOST_MS:
            stamps.append(batch.max_timestamp)
    if first is not None and last is not None:
        begin, end = (stamps[0], max(stamps)) if stamps else (None, None)
        yield Head(first, last, count, begin, end, None, is_create_time, False, True)
    if rest < len(data):
        yield from heads(data[rest:], limits)
