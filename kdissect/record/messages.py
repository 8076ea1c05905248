"""Messages of magic 0 and 1, and the message sets inside compressed ones.

A message is offset, size, CRC, magic, attributes, in magic 1 a timestamp, then key and value with int32
lengths. A compressed message is a wrapper: its value is a message set. The rules for the messages inside
(KIP-31, KIP-32, ``AbstractLegacyRecordBatch.DeepRecordsIterator``):

* the wrapper's offset is that of its last message;
* magic 0: inner offsets are absolute. Magic 1: they are relative. The wrapper's offset minus the last inner
  one must be added, or nothing if the wrapper's offset is 0 (a producer may not set it);
* a wrapper with LogAppendTime gives its timestamp to every message in it;
* a wrapper in a wrapper is not allowed, and is not opened here.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple
from zlib import crc32

from kdissect.faults import fault
from kdissect.model import DecodeError, Fault
from kdissect.record.records import Columns, sum64, wrap64
from kdissect.wording import plural

MESSAGE_HEADER = Struct(">qiIbb")
"""Offset, size of the bytes after it, CRC, magic, attributes."""
LOG_OVERHEAD = 12
"""The bytes of offset and size, which the size does not include."""
SMALLEST_MESSAGE = (14, 22)
"""The smallest size by magic, with null key and value."""

# The same constants, as C numbers if this module is compiled.
_OVERHEAD = LOG_OVERHEAD
_LEAST_SIZE_0, _LEAST_SIZE_1 = SMALLEST_MESSAGE
_LOW = 0xFFFF_FFFF

_SHORT = 1_024
"""Copying up to this many bytes is faster than making a view of them."""
_FEW = 160
"""Up to this many bytes, the compiled loop is faster than a call of zlib."""
_IS_COMPILED = not __file__.endswith(".py")


def message_crc(data: bytes, position: int, end: int) -> int:
    """CRC-32 from magic to the end of the message at ``position``."""
    raw, start = data, position + 16
    if _IS_COMPILED and end - start <= _FEW and end <= len(data):
        return short_crc(raw, start, end)
    if end - start > _SHORT:
        return crc32(memoryview(data)[start:end])
    return crc32(raw[start:end])


_REVERSED = 0xEDB8_8320
"""The polynomial of CRC-32 (RFC 1952, 8), its lowest bit first."""
_TABLES = [0] * 1_024
"""What each value of each of four bytes adds to the CRC; four bytes are processed at a time. Filled at first
use."""


def short_crc(raw: bytes, start: int, end: int) -> int:
    """CRC-32 of the bytes from ``start`` to ``end``: fast if compiled and the bytes are few. Bounds are not
    checked."""
    if not _TABLES[1]:
        _fill_tables()
    crc, at = _LOW, start
    while end - at >= 4:
        # Compiled, the combined four bytes are a signed 32-bit number.
        crc = (crc ^ (raw[at] | raw[at + 1] << 8 | raw[at + 2] << 16 | raw[at + 3] << 24)) & _LOW
        crc = (
            _TABLES[768 + (crc & 0xFF)]
            ^ _TABLES[512 + (crc >> 8 & 0xFF)]
            ^ _TABLES[256 + (crc >> 16 & 0xFF)]
            ^ _TABLES[crc >> 24]
        )
        at += 4
    while at < end:
        crc = _TABLES[(crc ^ raw[at]) & 0xFF] ^ crc >> 8
        at += 1
    return crc ^ _LOW


def _fill_tables() -> None:
    for value in range(256):
        crc = value
        for _ in range(8):
            crc = crc >> 1 ^ (_REVERSED if crc & 1 else 0)
        _TABLES[value] = crc
    for at in range(256, 1_024):
        crc = _TABLES[at - 256]
        _TABLES[at] = _TABLES[crc & 0xFF] ^ crc >> 8


class Contents:
    """The positions of a message's key and value."""

    __slots__ = ("end", "key_at", "key_size", "value_at", "value_size")

    def __init__(self) -> None:
        self.key_at = self.value_at = 0
        self.key_size = self.value_size = -1
        """-1 is null."""
        self.end = 0
        """The end of the value."""

    def find(self, data: bytes, position: int, end: int, magic: int) -> None:
        """Find key and value of the message from ``position`` to ``end``, which has at least the smallest
        size.

        :raises DecodeError: a length that the message cannot hold.
        """
        at = position + (26 if magic == 1 else 18)
        size = int32_at(data, at)
        start = at + 4
        if size < -1 or size > end - start - 4:
            raise _no_room("key", size, end - start - 4, at)
        self.key_at, self.key_size = start, size
        at = start + (size if size > 0 else 0)
        size = int32_at(data, at)
        start = at + 4
        if size < -1 or size > end - start:
            raise _no_room("value", size, end - start, at)
        self.value_at, self.value_size = start, size
        self.end = start + (size if size > 0 else 0)

    def add_to(self, columns: Columns, offset: int, timestamp: int) -> None:
        """Add the record to columns."""
        columns.add(offset, timestamp, self.key_at, self.key_size, self.value_at, self.value_size)


def contents_of(data: bytes, position: int, end: int, magic: int) -> Contents:
    """The positions of key and value of the message from ``position`` to ``end``.

    :raises DecodeError: a length that the message cannot hold.
    """
    found = Contents()
    found.find(data, position, end, magic)
    return found


def int32_at(raw: bytes, at: int) -> int:
    """The int32 at a position. Bounds are not checked."""
    high = raw[at]
    if high > 0x7F:
        high -= 0x100
    return high * 0x100_0000 + (raw[at + 1] << 16 | raw[at + 2] << 8 | raw[at + 3])


def int64_at(raw: bytes, at: int) -> int:
    """The int64 at a position. Bounds are not checked."""
    high, low = int32_at(raw, at), int32_at(raw, at + 4) & _LOW
    return high << 32 | low


def _no_room(what: str, length: int, left: int, at: int) -> DecodeError:
    text = f"a {what} announces {plural(length, 'byte')}, but {plural(left, 'is', 'are')} left"
    return DecodeError(text, at)


def piece(data: bytes, start: int, length: int) -> bytes | None:
    """``length`` bytes, or null for -1."""
    return None if length < 0 else data[start : start + length]


class Unwrapped(NamedTuple):
    """The messages of a wrapper."""

    columns: Columns
    """The valid messages."""
    faults: list[Fault]
    found: int
    """The number of messages whose frame could be read; -1 if the set in the wrapper is incomplete."""
    base_offset: int | None
    """The offset of the first message, even if its content is broken; None if unknown."""


_new = tuple.__new__
"""``_new(Unwrapped, values)``: without the second call of NamedTuple's own ``__new__``."""


def unwrap(
    data: bytes,
    complete: bool,
    wrapper_magic: int,
    wrapper_offset: int,
    append_timestamp: int | None,
    limit: int,
    into: Columns,
) -> Unwrapped:
    """Read the message set that was unpacked from a wrapper.

    :param complete: whether all of it could be unpacked.
    :param append_timestamp: the wrapper's timestamp, if its timestamp type is ``LogAppendTime``.
    :param limit: the most records to make.
    :param into: columns to use; their old content is lost.
    """
    into.begin(data, 0, -1)
    inside = _Inside(into)
    _read_inside(inside, append_timestamp, limit)
    faults = _faults_inside(inside, complete)
    complete = complete and inside.stop is None
    columns = inside.columns
    base_offset = inside.first_offset if complete and inside.found else None
    if wrapper_magic == 1 and wrapper_offset != 0 and inside.found:
        try:
            base = _what_to_add(inside, complete, wrapper_offset)
        except DecodeError as error:
            left_out = plural(inside.found, "message")
            faults.append(fault("bad-batch", f"{left_out} left out: {error.reason}"))
            columns.begin(data, 0, -1)
            base_offset = None
        else:
            base_offset = sum64(base, inside.first_offset)
            columns.shift(base)
    columns.base_offset = base_offset or 0
    return _new(Unwrapped, (columns, faults, inside.found if complete else -1, base_offset))


class _Inside:
    """The messages of a wrapper, with offsets as stored."""

    __slots__ = (
        *("bad_crc", "broken", "columns", "excess", "first_broken", "first_offset", "found"),
        *("last_offset", "nested", "stop"),
    )

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.found = 0
        """The number of messages whose frame could be read."""
        self.first_offset = self.last_offset = -1
        self.stop: DecodeError | None = None
        """Why reading ended before the end."""
        self.bad_crc = 0
        self.nested = 0
        self.broken = 0
        self.first_broken = ""
        """The fault of the first broken message."""
        self.excess = 0
        """The number of bytes after the values."""


def _read_inside(inside: _Inside, append_timestamp: int | None, limit: int) -> None:
    """Read message after message, until the end or a broken frame."""
    columns = inside.columns
    data = raw = columns.data
    contents = Contents()
    is_appended = append_timestamp is not None
    appended = append_timestamp or 0
    position, end = 0, len(data)
    while position < end:
        try:
            message_end = _frame_inside(data, position, end, inside.found, limit)
        except DecodeError as error:
            inside.stop = error
            break
        offset = int64_at(raw, position)
        magic, attributes = raw[position + 16], raw[position + 17]
        if not inside.found:
            inside.first_offset = offset
        inside.found += 1
        inside.last_offset = offset
        if message_crc(data, position, message_end) != int32_at(raw, position + _OVERHEAD) & _LOW:
            inside.bad_crc += 1
        if attributes & 7:  # a codec
            inside.nested += 1
            position = message_end
            continue
        timestamp = -1
        if magic == 1:
            timestamp = appended if is_appended else int64_at(raw, position + 18)
        try:
            contents.find(data, position, message_end, magic)
        except DecodeError as error:
            inside.broken += 1
            inside.first_broken = inside.first_broken or error.reason
            position = message_end
            continue
        inside.excess += message_end - contents.end
        contents.add_to(columns, offset, timestamp)
        position = message_end


def _frame_inside(data: bytes, position: int, end: int, found: int, limit: int) -> int:
    """The end of the message that begins at ``position``.

    :param found: the number of messages before it.
    :raises DecodeError: no whole message of magic 0 or 1 begins there, or there are too many.
    """
    left = end - position
    if left < _OVERHEAD + _LEAST_SIZE_0:
        raise DecodeError(
            f"{plural(left, 'byte is', 'bytes are')} left, too few for a message", position, "bad-record"
        )
    raw = data
    size = int32_at(raw, position + 8)
    magic = raw[position + 16]
    if magic > 1:
        magic = magic - 0x100 if magic > 0x7F else magic
        text = f"a wrapper contains magic {magic}, at byte {position} of its contents"
        raise DecodeError(text, position, "bad-magic")
    left -= _OVERHEAD
    least = _LEAST_SIZE_1 if magic else _LEAST_SIZE_0
    if size < least or size > left:
        text = f"a message announces {plural(size, 'byte')}, but {plural(left, 'is', 'are')} left"
        raise DecodeError(text, position, "bad-record")
    if found >= limit:
        text = f"there are more messages than the limit of {limit:,}"
        raise DecodeError(text, position, "too-many-elements")
    return position + _OVERHEAD + size


def _faults_inside(inside: _Inside, complete: bool) -> list[Fault]:
    """The faults of the messages. If not all bytes could be unpacked, it is no further fault that the set is
    incomplete."""
    faults = []
    stop = inside.stop
    if stop is not None and stop.kind != "bad-record":
        faults.append(fault(stop.kind, stop.reason, layer="records"))
    elif stop is not None and complete:
        faults.append(fault(stop.kind, f"the set inside a wrapper ends too early: {stop.reason}"))
    if inside.bad_crc or inside.nested or inside.broken:
        among = f"of {plural(inside.found, 'message')} inside a wrapper"
        if inside.bad_crc:
            faults.append(fault("bad-crc", f"wrong checksum: {inside.bad_crc:,} {among}"))
        if inside.nested:
            faults.append(fault("nested-compression", f"compressed again: {inside.nested:,} {among}"))
        if inside.broken:
            text = f"not readable: {inside.broken:,} {among}; the first: {inside.first_broken}"
            faults.append(fault("bad-record", text))
    if inside.excess:
        excess = plural(inside.excess, "byte follows", "bytes follow")
        faults.append(fault("bad-record", f"{excess} the values of messages inside a wrapper"))
    if not inside.found and complete and stop is None:
        faults.append(fault("bad-batch", "a wrapper has no messages"))
    return faults


def _what_to_add(inside: _Inside, complete: bool, wrapper_offset: int) -> int:
    """The number that makes relative offsets absolute (magic 1).

    :raises DecodeError: it is unknown.
    """
    if not complete:
        # They count from the last one, which is missing: a guess is worse than a gap.
        raise DecodeError("their offsets are unknown", 0)
    if inside.last_offset > wrapper_offset:
        text = f"the last inner offset {inside.last_offset} is beyond the wrapper's {wrapper_offset}"
        raise DecodeError(text, 0)
    return wrap64(wrapper_offset - inside.last_offset)
