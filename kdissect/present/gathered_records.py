"""Records of many batches, one after the other: their numbers, and the bytes of keys, values and headers.
They become columns of Arrow, without an object for a record.
"""

from __future__ import annotations

from array import array

from kdissect.present.sanitise import valid_text
from kdissect.protocol.cursor import Cursor, cursor_between
from kdissect.protocol.json_text import JsonText
from kdissect.record.records import ROW, Columns, Headers
from kdissect.record.rows import Int64Rows

_HEADER_COST = 16
"""The bytes of the two numbers that are kept for a header."""


class GatheredRecords:
    """Gathers records until the caller takes them all."""

    def __init__(self) -> None:
        self.keys, self.values = JsonText(), JsonText()
        self.header_names, self.header_values = JsonText(), JsonText()
        """The bytes of header names and values, one after the other. Bytes in names that were not UTF-8
        appear as ``\\xff``."""
        self.count = 0
        """The number of records."""
        self.header_count = 0
        """The number of headers of all records."""
        self._numbers, self._sizes = Int64Rows(), Int64Rows()

    def numbers(self) -> array[int]:
        """Seven numbers for each record. They are offset, timestamp, an unused one, the size of the key,
        another unused one, the size of the value, and the number of headers. A size of -1 is null."""
        return self._numbers.part(0, self.count * ROW)

    def header_sizes(self) -> array[int]:
        """Two numbers for each header: the sizes of its name and of its value; -1 is null."""
        return self._sizes.part(0, self.header_count * 2)

    def held(self) -> int:
        """The bytes that wait."""
        names, values = self.header_names.size(), self.header_values.size()
        return self.keys.size() + self.values.size() + names + values + _HEADER_COST * self.header_count

    def clear(self) -> None:
        """Empty it. The bytes of the texts are taken separately."""
        self.count = self.header_count = 0

    def add(self, columns: Columns, start: int, end: int) -> None:
        """Add the records of a batch from ``start`` to before ``end``."""
        data, step = columns.data, ROW
        cursor: Cursor | None = None
        to = self.count * step
        self._numbers.reserve(to + (end - start) * step)
        rows, mine = columns.rows.numbers, self._numbers.numbers
        for index in range(start, end):
            at = index * step
            mine[to], mine[to + 1], mine[to + 2], mine[to + 3] = rows[at], rows[at + 1], 0, rows[at + 3]
            mine[to + 4], mine[to + 5], mine[to + 6] = 0, rows[at + 5], 0
            if rows[at + 3] > 0:
                self.keys.part(data, rows[at + 2], rows[at + 3])
            if rows[at + 5] > 0:
                self.values.part(data, rows[at + 4], rows[at + 5])
            if rows[at + 6] >= 0:
                if cursor is None:
                    cursor = cursor_between(data, 0, len(data))
                cursor.position = rows[at + 6]
                mine[to + 6] = self._add_headers(cursor)
            to += step
        self.count += end - start

    def add_one(
        self, offset: int, timestamp: int, key: bytes | None, value: bytes | None, headers: Headers
    ) -> None:
        """Add a record.

        :param timestamp: the timestamp; -1 for none.
        """
        to = self.count * ROW
        self._numbers.reserve(to + ROW)
        mine = self._numbers.numbers
        mine[to], mine[to + 1], mine[to + 2], mine[to + 4] = offset, timestamp, 0, 0
        mine[to + 3] = -1 if key is None else len(key)
        mine[to + 5] = -1 if value is None else len(value)
        mine[to + 6] = len(headers)
        self.keys.put(key or b"")
        self.values.put(value or b"")
        for name, content in headers:
            self._add_header(valid_text(name).encode(), content)
        self.count += 1

    def _add_headers(self, cursor: Cursor) -> int:
        """Add the headers at the cursor, of a record that was found to be complete; return how many there
        are."""
        data, count = cursor.data, cursor.read_varint()
        at = self.header_count * 2
        self._sizes.reserve(at + count * 2)
        sizes = self._sizes.numbers
        for _ in range(count):
            size = cursor.read_varint()
            start = cursor.take(size)
            if _is_ascii(data, start, start + size):
                self.header_names.part(data, start, size)
            else:
                name = valid_text(data[start : start + size].decode("utf-8", "surrogateescape")).encode()
                self.header_names.put(name)
                size = len(name)
            sizes[at] = size
            size = cursor.read_varint()
            sizes[at + 1] = size
            if size > 0:
                self.header_values.part(data, cursor.take(size), size)
            at += 2
        self.header_count += count
        return count

    def _add_header(self, name: bytes, value: bytes | None) -> None:
        at = self.header_count * 2
        self._sizes.reserve(at + 2)
        sizes = self._sizes.numbers
        sizes[at], sizes[at + 1] = len(name), -1 if value is None else len(value)
        self.header_names.put(name)
        self.header_values.put(value or b"")
        self.header_count += 1


def _is_ascii(raw: bytes, start: int, end: int) -> bool:
    """Whether these bytes are all ASCII."""
    at = start
    while at < end and raw[at] < 0x80:
        at += 1
    return at == end
