"""Fast checks whether a record set has no faults.

Nearly every set has none, and this module shows that without creating an object for each batch. If a set may
have a fault, :mod:`kdissect.record.sets` finds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kdissect.lazy import Later
from kdissect.limits import Limits
from kdissect.model import DecodeError
from kdissect.protocol.cursor import Cursor, cursor_between
from kdissect.record.batch import BATCH_HEADER, CODEC_BITS, CRC_START, NEWEST_CODEC, SMALLEST_BATCH
from kdissect.record.messages import LOG_OVERHEAD, SMALLEST_MESSAGE, message_crc
from kdissect.record.scan import are_sound, has_value

if TYPE_CHECKING:
    import crc32c
else:
    crc32c = Later("crc32c", "_crc32c")  # the rest of the package takes ten times as long to import

_checksum: Any = None
"""``crc32c.crc32c``, once it is needed: looking it up in the module takes as long as a short checksum."""
_HEADER_BYTES = BATCH_HEADER.size
_LEAST_0, _LEAST_1 = SMALLEST_MESSAGE
NEWEST_OF_MESSAGES = 3
"""The last codec of magic 0 and 1."""
_SHORT = 1_024


def is_sound(
    data: bytes, start: int, end: int, limits: Limits, unpacks: bool = True, may_end_early: bool = False
) -> bool:
    """Whether the record set from ``start`` to ``end`` has only whole, uncompressed batches with the right
    checksums, and records of the right form and number. False means only that a closer look is needed.

    :param unpacks: whether compressed batches need a closer look; else their headers and checksums are
        enough.
    :param may_end_early: whether it is normal that the set ends inside a batch.
    """
    global _checksum  # noqa: PLW0603 - found once
    raw, most = data, limits.elements
    # As in read_record_set: the records of the whole set, and those of one batch.
    room = max(most, end - start)
    cursor: Cursor | None = None
    batches = 0
    position = start
    while position < end:
        if may_end_early and batches < most and _is_cut(data, position, end, unpacks):
            return True
        if end - position < LOG_OVERHEAD + _LEAST_0 or batches >= most:
            return False
        batches += 1
        size = _int32(raw, position + 8) + LOG_OVERHEAD
        if raw[position + 16] != 2:
            if room <= 0 or not _is_sound_message(data, position, size, end, unpacks):
                return False
            position += size
            room -= 1
            continue
        if end - position < _HEADER_BYTES:
            return False
        if size < SMALLEST_BATCH + LOG_OVERHEAD or size > end - position:
            return False
        codec = raw[position + 22] & CODEC_BITS
        if (codec and unpacks) or codec > NEWEST_CODEC or _int32(raw, position + 23) < 0:
            return False
        if _checksum is None:
            _checksum = crc32c.crc32c
        checked = position + CRC_START
        # Copying up to this many bytes is faster than making a view of them.
        if size > _SHORT:
            crc = _checksum(memoryview(data)[checked : position + size])
        else:
            crc = _checksum(raw[checked : position + size])
        if crc != _uint32(raw, checked - 4):
            return False
        if codec:
            position += size
            continue
        if cursor is None:
            cursor = cursor_between(data, start, end, limits)
        cursor.position, cursor.end = position + _HEADER_BYTES, end
        count = _int32(raw, position + _HEADER_BYTES - 4)
        position += size
        try:
            used = are_sound(cursor, position, count, min(most, room))
        except DecodeError:
            return False
        if used < 0:
            return False
        room -= used
    return True


def _is_cut(data: bytes, position: int, end: int, unpacks: bool) -> bool:
    """Whether only the end of the last batch is missing, and what is there has certainly no fault. That is so
    if no record of it can be read: one of magic 0 or 1, only a part of a header, or one that is compressed.

    :param position: the beginning of the batch, and ``end``: the end of the set.
    """
    raw, left = data, end - position
    if left < LOG_OVERHEAD:
        return True
    size = _int32(raw, position + 8)
    if size <= left - LOG_OVERHEAD or size < _LEAST_0:
        return False
    if left <= LOG_OVERHEAD + 4:
        return True
    magic = raw[position + 16]
    if magic < 2:
        return magic == 0 or size >= _LEAST_1
    if magic > 2 or size < SMALLEST_BATCH:
        return False
    if left < _HEADER_BYTES:
        return True
    codec = raw[position + 22] & CODEC_BITS
    return 0 < codec <= NEWEST_CODEC and not unpacks and _int32(raw, position + 23) >= 0


def are_plain(data: bytes, start: int = 0, end: int = -1) -> bool:
    """Whether a record set has only whole, uncompressed batches of magic 2.

    :param start: where the set begins in the bytes, and ``end``: where it ends, by default at their end.
    """
    raw, position = data, start
    if end < 0 or end > len(data):
        end = len(data)
    if position < 0:
        return False
    while position < end:
        if end - position < _HEADER_BYTES or raw[position + 16] != 2 or raw[position + 22] & CODEC_BITS:
            return False
        size = _int32(raw, position + 8) + LOG_OVERHEAD
        if size < SMALLEST_BATCH + LOG_OVERHEAD or size > end - position:
            return False
        position += size
    return True


def may_have_value(data: bytes, start: int, end: int, begin: bytes, limits: Limits) -> bool:
    """Whether the record set from ``start`` to ``end`` may have a record whose value begins with ``begin``.
    True also if batches are compressed, of magic 0 or 1, or unusual."""
    if not are_plain(data, start, end):
        return True
    if data.find(begin, start, end) < 0:
        return False
    raw, position = data, start
    cursor = cursor_between(data, start, end, limits)
    try:
        while position < end:
            size = _int32(raw, position + 8) + LOG_OVERHEAD
            cursor.position, cursor.end = position + _HEADER_BYTES, end
            position += size
            if has_value(cursor, position, begin, limits.elements):
                return True
    except DecodeError:
        return True
    return bool(cursor.notes)


def _is_sound_message(data: bytes, position: int, size: int, end: int, unpacks: bool) -> bool:
    """Whether the message of magic 0 or 1 at ``position`` has no fault.

    :param size: the size that it announces.
    :param end: the end of the set, which has at least the bytes of the smallest message.
    """
    raw = data
    magic, codec = raw[position + 16], raw[position + 17] & CODEC_BITS
    if magic > 1 or codec > NEWEST_OF_MESSAGES or (codec and unpacks):
        return False
    if size < LOG_OVERHEAD + (_LEAST_1 if magic else _LEAST_0) or size > end - position:
        return False
    stop = position + size
    at = position + (26 if magic else 18)
    length = _int32(raw, at)  # of the key
    at += 4
    if length < -1 or length > stop - at - 4:
        return False
    if length > 0:
        at += length
    length = _int32(raw, at)  # of the value
    at += 4
    if length != stop - at and (length != -1 or at != stop or codec):
        return False
    return message_crc(data, position, stop) == _uint32(raw, position + 12)


def _int32(raw: bytes, at: int) -> int:
    high = raw[at]  # a separate number: compiled, shifting a byte would lose bits
    if high > 0x7F:
        high -= 0x100
    return high * 0x100_0000 + (raw[at + 1] << 16 | raw[at + 2] << 8 | raw[at + 3])


def _uint32(raw: bytes, at: int) -> int:
    high = raw[at]
    return high << 24 | raw[at + 1] << 16 | raw[at + 2] << 8 | raw[at + 3]
