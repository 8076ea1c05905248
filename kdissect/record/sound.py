"""Is anything wrong with a record set? The short answer, for the sets that are as they should be.

What is asked of every exchange of a capture is nearly always answered here, without an object for a batch;
:mod:`kdissect.record.sets` says what is wrong where something may be.
"""

from __future__ import annotations

import crc32c

from kdissect.limits import Limits
from kdissect.model import DecodeError
from kdissect.protocol.cursor import Cursor
from kdissect.record.batch import BATCH_HEADER, CODEC_BITS, CRC_START, SMALLEST_BATCH
from kdissect.record.messages import LOG_OVERHEAD
from kdissect.record.records import are_sound

_HEADER_BYTES = BATCH_HEADER.size


def is_sound(data: bytes, start: int, end: int, limits: Limits) -> bool:
    """Whether the record set from ``start`` to ``end`` is nothing but whole batches of magic 2 that are not
    compressed, with the right checksums, and records of the right form and number. False where it may be all
    right too, and must be looked at more closely."""
    if start == end:
        return True
    cursor = Cursor(data, start, end, limits)
    most = limits.elements
    # As in read_record_set: the records of the whole set, and those of one batch.
    room = max(most, end - start)
    batches = 0
    position = start
    while position < end:
        if end - position < _HEADER_BYTES or data[position + 16] != 2 or batches >= most:
            return False
        batches += 1
        cursor.position, cursor.end = position + 8, end
        size = cursor.read_int32() + LOG_OVERHEAD
        if size < SMALLEST_BATCH + LOG_OVERHEAD or size > end - position:
            return False
        cursor.position = position + CRC_START - 4
        crc = cursor.read_uint32()
        attributes = cursor.read_int16()
        if attributes & CODEC_BITS or cursor.read_int32() < 0:
            return False
        if crc32c.crc32c(memoryview(data)[position + CRC_START : position + size]) != crc:
            return False
        cursor.position = position + _HEADER_BYTES - 4
        count = cursor.read_int32()
        position += size
        try:
            used = are_sound(cursor, position, count, min(most, room))
        except DecodeError:
            return False
        if used < 0:
            return False
        room -= used
    return True
