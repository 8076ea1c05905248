"""Kafka's primitive types, read in place from a buffer.

The names are those of Kafka's ``Type`` classes with a verb. Every read first checks the remaining bytes. It
allocates nothing for a length or a count that the buffer cannot hold (Kafka's own rule since CVE-2022-34917).
Only DecodeError leaves this module.

Compiled, ``raw`` is a pointer to the bytes, and only :meth:`Cursor.take` guards it.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from struct import Struct

from kdissect.limits import DEFAULTS, Limits
from kdissect.model import DecodeError
from kdissect.wording import plural

_float64 = Struct(">d").unpack_from


_ELEMENTS = DEFAULTS.message_elements


def cursor_at(data: bytes, position: int, limits: Limits) -> Cursor:
    """A cursor over all of ``data``. It is set attribute by attribute: compiled, that is several times faster
    than a call of the class."""
    cursor = Cursor.__new__(Cursor)
    cursor.data, cursor.limits = data, limits
    cursor.elements_left = _ELEMENTS if limits is DEFAULTS else limits.message_elements
    cursor.position, cursor.end = position, len(data)
    cursor.notes = []
    return cursor


def cursor_between(data: bytes, position: int, end: int, limits: Limits = DEFAULTS) -> Cursor:
    """A cursor that ends at ``end``, which must be in ``data``, made like :func:`cursor_at`."""
    cursor = cursor_at(data, position, limits)
    cursor.end = end
    return cursor


_MOST_UUIDS = 4_096
"""The number of uuids whose texts are remembered: messages name the same topics again and again."""
_uuids: dict[bytes, str] = {}


def uuid_text(data: bytes) -> str:
    """A uuid in Kafka's own form (``Uuid.toString``): base64url without padding, 22 characters."""
    text = _uuids.get(data)
    if text is None:
        if len(_uuids) >= _MOST_UUIDS:
            _uuids.clear()
        text = _uuids[data] = urlsafe_b64encode(data)[:22].decode("ascii")
    return text


class Cursor:
    """A position in ``data`` that moves forward as values are read, never past ``end``."""

    __slots__ = ("data", "elements_left", "end", "limits", "notes", "position")

    def __init__(
        self, data: bytes, position: int = 0, end: int | None = None, limits: Limits = DEFAULTS
    ) -> None:
        self.data = data
        self.limits = limits
        self.elements_left = limits.message_elements
        """How many more elements the current message may have."""
        self.position = position
        self.end = len(data) if end is None else min(end, len(data))
        self.notes: list[tuple[str, str, int]] = []
        """Defects that did not stop the reading: (fault kind, message, offset)."""

    def remaining(self) -> int:
        """Bytes not yet read."""
        return self.end - self.position

    def take(self, count: int) -> int:
        """Move past ``count`` bytes and give the position before them.

        :raises DecodeError: fewer bytes are left, or ``count`` is negative.
        """
        position = self.position
        if count > self.end - position:
            left = plural(self.end - position, "is", "are")
            raise DecodeError(f"needs {plural(count, 'byte')}, but {left} left", position, "truncated")
        if count < 0:
            raise DecodeError(f"the length is {count}", position, "negative-length")
        self.position = position + count
        return position

    def read_int8(self) -> int:
        at = self.take(1)
        raw = self.data
        byte = raw[at]
        return byte - 256 if byte > 127 else byte

    def read_boolean(self) -> bool:
        """Any byte but 0 is true (Kafka's ``Type.BOOLEAN``)."""
        at = self.take(1)
        raw = self.data
        return raw[at] != 0

    def read_int16(self) -> int:
        at = self.take(2)
        raw = self.data
        value = raw[at] << 8 | raw[at + 1]
        return value - 0x1_0000 if value > 0x7FFF else value

    def read_uint16(self) -> int:
        at = self.take(2)
        raw = self.data
        return raw[at] << 8 | raw[at + 1]

    def read_int32(self) -> int:
        at = self.take(4)
        raw = self.data
        high = raw[at]
        if high > 0x7F:
            high -= 0x100  # here: computed with 1 << 32, C would make a Python object
        return high * 0x100_0000 + (raw[at + 1] << 16 | raw[at + 2] << 8 | raw[at + 3])

    def read_uint32(self) -> int:
        at = self.take(4)
        raw = self.data
        high = raw[at]
        return high << 24 | raw[at + 1] << 16 | raw[at + 2] << 8 | raw[at + 3]

    def read_int64(self) -> int:
        self.position = self.take(8)  # all its bytes are there
        high = self.read_int32()
        return high << 32 | self.read_uint32()

    def read_float64(self) -> float:
        value: float = _float64(self.data, self.take(8))[0]
        return value

    def read_uuid(self) -> str:
        start = self.take(16)
        return uuid_text(self.data[start : start + 16])

    def read_bytes(self, count: int) -> bytes:
        start = self.take(count)
        raw = self.data
        return raw[start : start + count]

    def read_text(self, count: int) -> str:
        """Read ``count`` bytes of UTF-8. Bytes that are not UTF-8 become lone surrogates (PEP 383), and a
        note reports them. So nothing is lost, and encoding returns the same bytes."""
        start = self.take(count)
        raw = self.data
        data = raw[start : start + count]
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            self.notes.append(("not-utf8", f"the string is not UTF-8: {error.reason}", start + error.start))
            return data.decode("utf-8", "surrogateescape")

    def read_unsigned_varint(self) -> int:
        """Read KIP-482's varint: seven bits a byte, lowest first, at most five bytes, at most 2**32 - 1."""
        raw, position, end = self.data, self.position, self.end
        if position + 1 < end:  # one byte or two, as nearly all varints
            byte = raw[position]
            if byte < 0x80:
                self.position = position + 1
                return byte
            value = raw[position + 1]
            if value < 0x80:
                self.position = position + 2
                return byte & 0x7F | value << 7
        value = shift = 0
        while position < end:
            byte = raw[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> 32:
                    raise DecodeError("the varint has more than 32 bits", self.position, "varint-too-long")
                self.position = position
                return value
            shift += 7
            if shift > 28:
                raise DecodeError("the varint is longer than 5 bytes", self.position, "varint-too-long")
        raise DecodeError("the varint ends too early", self.position, "truncated")

    def read_unsigned_varlong(self) -> int:
        """Read a varint as :meth:`read_unsigned_varint`, of at most ten bytes and 2**64 - 1."""
        raw, position, end = self.data, self.position, self.end
        value = shift = 0
        while position < end:
            byte = raw[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if shift == 63 and byte > 1:
                    raise DecodeError("the varlong has more than 64 bits", self.position, "varint-too-long")
                self.position = position
                return value
            shift += 7
            if shift > 63:
                raise DecodeError("the varlong is longer than 10 bytes", self.position, "varint-too-long")
        raise DecodeError("the varlong ends too early", self.position, "truncated")

    def read_varint(self) -> int:
        """Read a zigzag varint: 0, -1, 1, -2 … (``ByteUtils.readVarint``), as in records."""
        value = self.read_unsigned_varint()
        return (value >> 1) ^ -(value & 1)

    def read_varlong(self) -> int:
        """Read a zigzag varlong (``ByteUtils.readVarlong``)."""
        value = self.read_unsigned_varlong()
        return (value >> 1) ^ -(value & 1)
