"""The records of a batch: columns of numbers, and :class:`Record` objects on demand.

:mod:`kdissect.record.scan` fills the columns from batches of magic 2, :mod:`kdissect.record.messages` from
messages of magic 0 and 1.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from kdissect.protocol.cursor import Cursor
from kdissect.record.rows import Int64Rows

Headers = tuple[tuple[str, bytes | None], ...]

_INT64 = 1 << 63
_SPAN = 1 << 64
_LEAST, _MOST = -_INT64, _INT64 - 1


class Record(NamedTuple):
    """One record. Sizes of key and value are their lengths. Facts that all records of a batch share
    (timestamp type, producer, codec …) are in the batch."""

    offset: int
    """Absolute. In a Produce request it counts from the base offset as sent, usually 0."""
    timestamp: int
    """Milliseconds since the epoch; -1 for no timestamp (always so in magic 0). If the timestamp type is
    ``LogAppendTime``, it is the batch's."""
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    """Names that are not UTF-8 have lone surrogates (PEP 383)."""
    sequence: int = -1
    """The sequence number of an idempotent producer; -1 for other producers."""


new_record = tuple.__new__
"""``new_record(Record, values)``: a Record of all its values, without the second call of NamedTuple's own
``__new__``."""


ROW = 7
"""The numbers of one record in :class:`Columns`: offset, timestamp, the position and size of the key, the
position and size of the value, the position of the headers. A size of -1 is null, a position of -1 is no
headers. Positions count in the data."""


class Columns:
    """The records of one batch as numbers: nothing is copied, and a :class:`Record` is made on demand."""

    __slots__ = ("base_offset", "base_sequence", "count", "data", "rows")

    def __init__(self, data: bytes, base_offset: int, base_sequence: int) -> None:
        self.rows = Int64Rows()
        """:data:`ROW` numbers for each record."""
        self.begin(data, base_offset, base_sequence)

    def begin(self, data: bytes, base_offset: int, base_sequence: int) -> None:
        """Start again, without records."""
        self.data = data
        """The bytes in which positions count: the record set, or the unpacked batch."""
        self.count = 0
        self.base_offset = base_offset
        self.base_sequence = base_sequence

    def numbers(self) -> array[int]:
        """:data:`ROW` numbers for each record; a copy."""
        return self.rows.part(0, self.count * ROW)

    def records(self) -> list[Record]:
        """All records."""
        data, rows, base_sequence = self.data, self.rows.numbers, self.base_sequence
        out, step = [], ROW
        for index in range(self.count):
            at = index * step
            offset, timestamp = rows[at], rows[at + 1]
            key_at, key_size = rows[at + 2], rows[at + 3]
            value_at, value_size = rows[at + 4], rows[at + 5]
            headers_at = rows[at + 6]
            key = None if key_size < 0 else data[key_at : key_at + key_size]
            value = None if value_size < 0 else data[value_at : value_at + value_size]
            headers = () if headers_at < 0 else self.headers(headers_at)
            sequence = -1 if base_sequence < 0 else self.sequence(offset)
            out.append(new_record(Record, (offset, timestamp, key, value, headers, sequence)))
        return out

    def sequence(self, offset: int) -> int:
        """The sequence number of the record with an offset; -1 without an idempotent producer."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + offset - self.base_offset) & 0x7FFFFFFF

    def assigned(self, offset: int, base: int) -> int:
        """The offset that the broker gave a record, if it gave ``base`` to the batch's base offset."""
        found = base + offset - self.base_offset
        return found if _LEAST <= found <= _MOST else wrap64(found)

    def add(
        self, offset: int, timestamp: int, key_at: int, key_size: int, value_at: int, value_size: int
    ) -> None:
        """Add a record without headers; the numbers are described at :data:`ROW`."""
        at = self.count * ROW
        self.rows.reserve(at + ROW)
        rows = self.rows.numbers
        rows[at] = offset
        rows[at + 1] = timestamp
        rows[at + 2] = key_at
        rows[at + 3] = key_size
        rows[at + 4] = value_at
        rows[at + 5] = value_size
        rows[at + 6] = -1
        self.count += 1

    def only(self, index: int) -> Columns:
        """One of the records alone; its offset becomes the base offset."""
        rows, at = self.rows.numbers, index * ROW
        one = Columns(self.data, rows[at], self.base_sequence)
        one.add(rows[at], rows[at + 1], rows[at + 2], rows[at + 3], rows[at + 4], rows[at + 5])
        one.rows.numbers[6] = rows[at + 6]
        return one

    def within(self, start: int, most: int) -> int:
        """The end of the records from ``start`` on that have ``most`` bytes together; at least one record."""
        rows, step = self.rows.numbers, ROW
        begin, index = rows[start * step + 2], start + 1
        while index < self.count:
            at = index * step
            key_end = rows[at + 2] + max(rows[at + 3], 0)
            if max(key_end, rows[at + 4] + rows[at + 5]) - begin > most:
                break
            index += 1
        return index

    def shift(self, base: int) -> None:
        """Add a number to all offsets."""
        rows, step = self.rows.numbers, ROW
        for index in range(self.count):
            at = index * step
            rows[at] = sum64(base, rows[at])

    def is_consecutive(self) -> bool:
        """Whether the offsets increase by one, beginning with the base offset."""
        rows, step, base, index = self.rows.numbers, ROW, self.base_offset, 0
        while index < self.count and rows[index * step] == sum64(base, index):
            index += 1
        return index == self.count

    def headers(self, position: int) -> Headers:
        """The headers at a position, of a record that was already checked."""
        cursor = Cursor(self.data, position)
        count = cursor.read_varint()
        return tuple([_read_header(cursor) for _ in range(count)])


def wrap64(value: int) -> int:
    """The same bits as a signed 64-bit number: how Kafka's additions overflow."""
    return (value + _INT64) % _SPAN - _INT64


def sum64(base: int, delta: int) -> int:
    """A sum that overflows as in Kafka."""
    found = base + delta
    return found if _LEAST <= found <= _MOST else wrap64(found)


def _read_header(cursor: Cursor) -> tuple[str, bytes | None]:
    size = cursor.read_varint()
    name = cursor.read_text(size)
    size = cursor.read_varint()
    return name, None if size == -1 else cursor.read_bytes(size)
