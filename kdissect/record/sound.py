"""Is anything wrong with a record set? The short answer, for the sets that are as they should be.

What is asked of every exchange of a capture is nearly always answered here, without an object for a batch. If
something may be wrong, :mod:`kdissect.record.sets` says what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdissect.later import Later
from kdissect.limits import Limits
from kdissect.model import DecodeError
from kdissect.protocol.cursor import Cursor, cursor_between
from kdissect.record.batch import BATCH_HEADER, CODEC_BITS, CRC_START, NEWEST_CODEC, SMALLEST_BATCH
from kdissect.record.messages import LOG_OVERHEAD, SMALLEST_MESSAGE, Contents, message_crc
from kdissect.record.records import are_sound, has_value

if TYPE_CHECKING:
    import crc32c
else:
    crc32c = Later("crc32c", "_crc32c")  # the rest of the package takes ten times as long to import

_HEADER_BYTES = BATCH_HEADER.size
_LEAST_0, _LEAST_1 = SMALLEST_MESSAGE
NEWEST_OF_MESSAGES = 3
"""The last codec of magic 0 and 1."""


def is_sound(data: bytes, start: int, end: int, limits: Limits, unpacks: bool = True) -> bool:
    """Whether the record set from ``start`` to ``end`` has only whole, uncompressed batches with the right
    checksums, and records of the right form and number. False does not mean that it is wrong: then it must be
    looked at more closely.

    :param unpacks: whether compressed batches must be looked at more closely; else their headers and
        checksums are enough.
    """
    if start == end:
        return True
    cursor, contents = cursor_between(data, start, end, limits), Contents()
    most = limits.elements
    # As in read_record_set: the records of the whole set, and those of one batch.
    room = max(most, end - start)
    batches = 0
    position = start
    while position < end:
        if end - position < LOG_OVERHEAD + _LEAST_0 or batches >= most:
            return False
        batches += 1
        if data[position + 16] != 2:
            size = _sound_message(cursor, contents, position, end, unpacks)
            if size < 0 or room <= 0:
                return False
            position += size
            room -= 1
            continue
        if end - position < _HEADER_BYTES:
            return False
        cursor.position, cursor.end = position + 8, end
        size = cursor.read_int32() + LOG_OVERHEAD
        if size < SMALLEST_BATCH + LOG_OVERHEAD or size > end - position:
            return False
        cursor.position = position + CRC_START - 4
        crc = cursor.read_uint32()
        attributes = cursor.read_int16()
        codec = attributes & CODEC_BITS
        if (codec and unpacks) or codec > NEWEST_CODEC or cursor.read_int32() < 0:
            return False
        if crc32c.crc32c(memoryview(data)[position + CRC_START : position + size]) != crc:
            return False
        if codec:
            position += size
            continue
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


def are_plain(data: bytes) -> bool:
    """Whether a record set has only whole batches of magic 2 that are not compressed."""
    cursor = cursor_between(data, 0, len(data))
    position, end = 0, len(data)
    while position < end:
        if end - position < _HEADER_BYTES or data[position + 16] != 2 or data[position + 22] & CODEC_BITS:
            return False
        cursor.position = position + 8
        size = cursor.read_int32() + LOG_OVERHEAD
        if size < SMALLEST_BATCH + LOG_OVERHEAD or size > end - position:
            return False
        position += size
    return True


def may_have_value(data: bytes, begin: bytes, limits: Limits) -> bool:
    """Whether a record set may have a record whose value begins so. It may where batches are
    compressed, of magic 0 or 1, or out of the ordinary."""
    if not are_plain(data):
        return True
    if begin not in data:
        return False
    cursor = cursor_between(data, 0, len(data), limits)
    position = 0
    try:
        while position < len(data):
            cursor.position, cursor.end = position + 8, len(data)
            size = cursor.read_int32() + LOG_OVERHEAD
            cursor.position = position + _HEADER_BYTES
            position += size
            if has_value(cursor, position, begin, limits.elements):
                return True
    except DecodeError:
        return True
    return bool(cursor.notes)


def _sound_message(cursor: Cursor, contents: Contents, position: int, end: int, unpacks: bool) -> int:
    """The bytes of the message of magic 0 or 1 at ``position``, if nothing is wrong with it; else -1.

    :param contents: to be used for its key and value.
    """
    data = cursor.data
    magic = data[position + 16]
    codec = data[position + 17] & CODEC_BITS
    if magic > 1 or codec > NEWEST_OF_MESSAGES or (codec and unpacks):
        return -1
    cursor.position, cursor.end = position + 8, end
    size = cursor.read_int32() + LOG_OVERHEAD
    if size < LOG_OVERHEAD + (_LEAST_1 if magic else _LEAST_0) or size > end - position:
        return -1
    if message_crc(data, position, position + size) != cursor.read_uint32():
        return -1
    try:
        contents.find(cursor, position, position + size, magic)
    except DecodeError:
        return -1
    return size if contents.end == position + size and (not codec or contents.value_size >= 0) else -1
