"""A growing text, in bytes: written directly from bytes of the wire, without an object for each value.

As JSON, it equals the output of :func:`~kdissect.protocol.json_form.dumps` for the values: one line, ASCII
only. Compiled, ``json_text.pyx`` replaces this module and keeps the text in C memory. One source for both
would be ten times slower compiled, or hardly run uncompiled.
"""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from json.encoder import encode_basestring_ascii


class JsonText:
    """Bytes of JSON text, or of lines in UTF-8. The writer must make sure that they are valid."""

    __slots__ = ("_text",)

    def __init__(self) -> None:
        self._text = bytearray()

    def size(self) -> int:
        """The number of bytes written."""
        return len(self._text)

    def cut(self, size: int) -> None:
        """Drop all but the first ``size`` bytes."""
        del self._text[size:]

    def since(self, size: int) -> bytes:
        """The bytes after the first ``size`` bytes."""
        return bytes(self._text[size:])

    def is_since(self, size: int, text: bytes) -> bool:
        """Whether the bytes after the first ``size`` bytes equal this text."""
        return self._text[size:] == text

    def move(self, start: int, to: int) -> None:
        """Move the bytes after the first ``start`` bytes to an earlier position, before the bytes there."""
        self._text[to:] = self._text[start:] + self._text[to:start]

    def take(self) -> bytes:
        """Return all bytes, and begin an empty text."""
        found = bytes(self._text)
        self._text.clear()
        return found

    def put(self, text: bytes) -> None:
        """Append text unchanged."""
        self._text += text

    def add(self, other: JsonText) -> None:
        """Append another text."""
        self._text += other._text

    def part(self, data: bytes, start: int, size: int) -> None:
        """Append a part of these bytes unchanged."""
        self._text += data[start : start + size]

    def number(self, value: int) -> None:
        """Append an integer of at most 64 bits."""
        self._text += b"%d" % value

    def digits(self, value: int, count: int) -> None:
        """Append a non-negative integer with at least this number of digits, at most 20."""
        self._text += b"%0*d" % (min(count, 20), value)

    def fixed(self, value: int, count: int) -> None:
        """Append a non-negative integer with a point before its last ``count`` digits, 1 to 18."""
        whole, part = divmod(value, 10**count)
        self._text += b"%d.%0*d" % (whole, count, part)

    def text(self, text: str) -> None:
        """Append text unchanged, in UTF-8.

        :raises UnicodeEncodeError: it has a lone surrogate.
        """
        self._text += text.encode()

    def fill(self, start: int, count: int, before: bool) -> None:
        """Add this number of spaces: at the end, or before the bytes after the first ``start`` bytes."""
        at = start if before else len(self._text)
        self._text[at:at] = b" " * count

    def trim(self) -> None:
        """Drop the spaces at the end."""
        while self._text.endswith(b" "):
            del self._text[-1:]

    def string(self, data: bytes, start: int, size: int) -> bool:
        """Append these bytes as a string, or as ``{"base64": …}`` if they are not UTF-8. Return whether they
        are UTF-8."""
        part = data[start : start + size]
        try:
            self._text += encode_basestring_ascii(part.decode("utf-8")).encode("ascii")
        except UnicodeDecodeError:
            self._text += b'{"base64":"%b"}' % b64encode(part)
            return False
        return True

    def base64(self, data: bytes, start: int, size: int) -> None:
        """Append these bytes in padded standard base64, as a string."""
        self._text += b'"%b"' % b64encode(data[start : start + size])

    def hexadecimal(self, data: bytes, start: int, size: int) -> None:
        """Append these bytes in hex, as a string."""
        self._text += b'"%b"' % data[start : start + size].hex().encode("ascii")

    def uuid(self, data: bytes, start: int) -> None:
        """Append the 16 bytes at ``start`` as a uuid in Kafka's own form, as a string."""
        self._text += b'"%b"' % urlsafe_b64encode(data[start : start + 16])[:22]
