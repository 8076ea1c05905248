"""The records of a batch of magic 2: bytes in, columns of numbers out, and a :class:`Record` where one is
wanted. (Messages of magic 0 and 1 become columns too, in :mod:`kdissect.record.messages`.)

This is the hot loop of everything that looks into topics. Compiled, ``raw`` is a pointer to the bytes: every
position is checked before it is looked at.

The rules (KIP-98, ``DefaultRecord.java``): a record is its length, attributes (unused), a timestamp delta, an
offset delta, key, value and headers. All numbers are zigzag varints, a length of -1 is null. A record that
does not have its form costs only itself: reading goes on at its declared end.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from kdissect.model import DecodeError
from kdissect.protocol.cursor import Cursor, cursor_between
from kdissect.wording import plural

Headers = tuple[tuple[str, bytes | None], ...]

SMALLEST_RECORD = 6
"""Bytes of a record after its length: attributes and five varints of one byte."""
MOST_BROKEN = 100
"""After so many broken records the bytes are taken for something else, and reading ends."""

_INT64 = 1 << 63
_SPAN = 1 << 64
_LEAST, _MOST = -_INT64, _INT64 - 1


class Record(NamedTuple):
    """One record. Sizes of key and value are their lengths; what all records of a batch share (timestamp
    type, producer, codec …) stands in the batch."""

    offset: int
    """Absolute. In what a producer sends it counts from the base offset as sent, usually 0."""
    timestamp: int
    """Milliseconds since the epoch; -1 is none (always so in magic 0). Where the timestamp type is
    ``LogAppendTime``, the batch's."""
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    """Names that are not UTF-8 have lone surrogates (PEP 383)."""
    sequence: int = -1
    """The idempotent producer's; -1 is none."""


new_record = tuple.__new__
"""``new_record(Record, values)``: a Record of all its values, without the second call that NamedTuple's own
``__new__`` costs."""


ROW = 7
"""Numbers of one record in :attr:`Columns.rows`: offset, timestamp, where the key begins and its size, where
the value begins and its size (-1: null), where the headers begin (-1: none). Positions count in the data."""


_NO_ROWS = array("q")
"""Never changed: who adds a row makes a new one."""
_ONE_ROW = array("q", [-1] * ROW)
_ROOM = bytes(8 * 8 * ROW)
"""For 8 rows."""


class Columns:
    """The records of one batch as numbers: nothing is copied, a :class:`Record` is made when asked for."""

    __slots__ = ("base_offset", "base_sequence", "count", "data", "rows")

    def __init__(self, data: bytes, base_offset: int, base_sequence: int) -> None:
        self.data = data
        """What positions count in: the record set, or what the batch unpacked to."""
        self.count = 0
        self.rows = _NO_ROWS
        """:data:`ROW` numbers for each record, and room behind them."""
        self.base_offset = base_offset
        self.base_sequence = base_sequence

    def records(self) -> list[Record]:
        """All of them."""
        data, rows, base_sequence = self.data, self.rows, self.base_sequence
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
        """The offset that the broker gave a record, where it gave ``base`` to the batch's base offset."""
        found = base + offset - self.base_offset
        return found if _LEAST <= found <= _MOST else wrap64(found)

    def add(
        self, offset: int, timestamp: int, key_at: int, key_size: int, value_at: int, value_size: int
    ) -> None:
        """Add a record without headers; what the numbers mean stands at :data:`ROW`."""
        at = self.count * ROW
        if at == len(self.rows):
            _grow(self, at)
        rows = self.rows
        rows[at] = offset
        rows[at + 1] = timestamp
        rows[at + 2] = key_at
        rows[at + 3] = key_size
        rows[at + 4] = value_at
        rows[at + 5] = value_size
        rows[at + 6] = -1
        self.count += 1

    def set_only(
        self, offset: int, timestamp: int, key_at: int, key_size: int, value_at: int, value_size: int
    ) -> None:
        """Let a record without headers be the only one: :meth:`add` makes room for more."""
        rows = self.rows = _ONE_ROW[:]
        rows[0], rows[1] = offset, timestamp
        rows[2], rows[3] = key_at, key_size
        rows[4], rows[5] = value_at, value_size
        self.count = 1

    def only(self, index: int) -> Columns:
        """One of the records alone; its offset is the base offset."""
        rows, at = self.rows, index * ROW
        one = Columns(self.data, rows[at], self.base_sequence)
        one.rows, one.count = rows[at : at + ROW], 1
        return one

    def shift(self, base: int) -> None:
        """Add a number to all offsets."""
        rows, step = self.rows, ROW
        for index in range(self.count):
            at = index * step
            rows[at] = sum64(base, rows[at])

    def is_consecutive(self) -> bool:
        """Whether the offsets count up by one from the base offset."""
        rows, step, base, index = self.rows, ROW, self.base_offset, 0
        while index < self.count and rows[index * step] == sum64(base, index):
            index += 1
        return index == self.count

    def headers(self, position: int) -> Headers:
        """The headers that begin there, of a record that was found to be whole."""
        cursor = Cursor(self.data, position)
        count = cursor.read_varint()
        return tuple([_read_header(cursor) for _ in range(count)])


class RecordsFound(NamedTuple):
    """What :func:`read_records` found."""

    columns: Columns
    found: int
    """Records whose length could be read, broken ones among them."""
    broken: int
    first_problem: str | None
    """What is wrong with the first broken one."""
    first_position: int
    end: int
    """Where reading ended; before the end of the bytes only where the rest are no records."""
    stopped: str | None
    """Why it ended there."""
    over_limit: bool
    elements: int
    """Records and headers made, what counts against the limit."""
    not_utf8: int
    """Header names that are not UTF-8."""

    @property
    def records(self) -> list[Record]:
        """The records that have their form, made anew each time."""
        return self.columns.records()


new_body = tuple.__new__
"""The same for a :class:`RecordsFound`."""


def wrap64(value: int) -> int:
    """The same bits as a signed 64-bit number: how Kafka's additions overflow."""
    return (value + _INT64) % _SPAN - _INT64


def read_records(
    data: bytes,
    position: int,
    end: int,
    base_offset: int,
    base_timestamp: int,
    append_timestamp: int | None,
    base_sequence: int,
    limit: int,
    keep: bool = True,
) -> RecordsFound:
    """Read records until ``end``, whatever number the batch announces.

    Here are the lengths, which lead from record to record, and what becomes of broken ones; what a
    record holds is :func:`_scan`'s.

    :param append_timestamp: the timestamp of every record (``LogAppendTime``), or None: that of each.
    :param limit: the most records and headers to make.
    :param keep: whether the columns are filled; without, only what is wrong is found out.
    """
    columns = Columns(data, base_offset, base_sequence)
    end = min(end, len(data))
    cursor = cursor_between(data, position, end)
    place = _RecordParts()
    raw = data
    least, step = SMALLEST_RECORD, ROW
    at = capacity = 0
    room = limit
    broken = found = 0
    first_problem: str | None = None
    stopped: str | None = None
    first_position = -1
    over_limit = False
    is_appended = append_timestamp is not None
    appended = append_timestamp or 0
    while position < end:
        start = position
        byte = raw[position]
        if byte < 0x80:
            position += 1
            size = (byte >> 1) ^ -(byte & 1)
        else:
            cursor.position, cursor.end = position, end
            try:
                size = cursor.read_varint()
            except DecodeError as error:
                stopped = error.reason
                break
            position = cursor.position
        if size < 0 or size > end - position:
            stopped = f"a record of {plural(size, 'byte')} where {plural(end - position, 'is', 'are')} left"
            position = start
            break
        if room <= 0:
            stopped = f"more than {plural(limit, 'record or header', 'records and headers')}, the limit"
            over_limit = True
            position = start
            break
        found += 1
        record_end = position + size
        try:
            if size < least:
                raise DecodeError(f"a record of {plural(size, 'byte')}", start)
            _scan(cursor, place, position, record_end, room)
        except DecodeError as error:
            broken += 1
            if first_problem is None:
                first_problem, first_position = error.reason, start
            if broken == MOST_BROKEN:
                stopped = f"{MOST_BROKEN} broken records"
                position = record_end
                break
            position = record_end
            continue
        room -= 1 + place.headers
        position = record_end
        if not keep:
            continue
        if at == capacity:
            capacity = _grow(columns, at)
            rows = columns.rows
        rows[at] = sum64(base_offset, place.offset_delta)
        rows[at + 1] = appended if is_appended else sum64(base_timestamp, place.timestamp_delta)
        rows[at + 2] = place.key_at
        rows[at + 3] = place.key_size
        rows[at + 4] = place.value_at
        rows[at + 5] = place.value_size
        rows[at + 6] = place.headers_at
        at += step
    columns.count = at // step
    problem = first_problem, first_position
    return new_body(
        RecordsFound,
        (columns, found, broken, *problem, position, stopped, over_limit, limit - room, len(cursor.notes)),
    )


def are_sound(cursor: Cursor, end: int, count: int, room: int) -> int:
    """How many records and headers there are from the cursor to ``end``. -1 unless they are exactly ``count``
    records in their right form: :func:`read_records` finds nothing wrong with these.

    :param room: the most records and headers that are allowed.
    :raises DecodeError: one is broken.
    """
    place = _RecordParts()
    position = cursor.position
    least, granted, found = SMALLEST_RECORD, room, 0
    while position < end:
        cursor.position, cursor.end = position, end
        size = cursor.read_varint()
        position = cursor.position
        if size < least or size > end - position or room <= 0:
            return -1
        _scan(cursor, place, position, position + size, room)
        found += 1
        room -= 1 + place.headers
        position += size
    return granted - room if found == count and not cursor.notes else -1


def has_value(cursor: Cursor, end: int, begin: bytes, room: int) -> bool:
    """Whether the value of a record from the cursor to ``end`` begins so.

    :param room: the most records and headers that are allowed.
    :raises DecodeError: one is broken, or they are more.
    """
    place = _RecordParts()
    position = cursor.position
    least, size_of_begin, data = SMALLEST_RECORD, len(begin), cursor.data
    while position < end:
        cursor.position, cursor.end = position, end
        size = cursor.read_varint()
        position = cursor.position
        if size < least or size > end - position or room <= 0:
            raise DecodeError("records of another form", position)
        _scan(cursor, place, position, position + size, room)
        if place.value_size >= size_of_begin and data.startswith(begin, place.value_at):
            return True
        room -= 1 + place.headers
        position += size
    return False


def _grow(columns: Columns, used: int) -> int:
    """Room for as many records again, for 8 at first; gives the numbers that there is room for."""
    if used == 0:
        columns.rows = rows = array("q", _ROOM)
    else:
        rows = columns.rows[:used]  # the old ones are in use
        rows.frombytes(bytes(8 * used))
        columns.rows = rows
    return len(rows)


def sum64(base: int, delta: int) -> int:
    """How Kafka's additions overflow."""
    found = base + delta
    return found if _LEAST <= found <= _MOST else wrap64(found)


class _RecordParts:
    """Where the parts of one record are."""

    __slots__ = (
        "headers",
        "headers_at",
        "key_at",
        "key_size",
        "offset_delta",
        "timestamp_delta",
        "value_at",
        "value_size",
    )

    def __init__(self) -> None:
        self.timestamp_delta = self.offset_delta = 0
        self.key_at = self.value_at = 0
        self.key_size = self.value_size = -1
        self.headers_at = -1
        self.headers = 0
        """How many."""


def _scan(cursor: Cursor, place: _RecordParts, position: int, end: int, room: int) -> None:
    """The record whose length ends at ``position``, and which must fill its bytes to ``end``.

    :param room: the most headers that are allowed.
    :raises DecodeError: it does not have its form.
    """
    # A varint of one byte, by far the most frequent, is read in place; the cursor reads longer ones. Key
    # and value are spelled out one after the other for the same reason: one function for both costs 1 to
    # 7 % of the time. That a byte is there must be checked for each but the first: those before it may
    # have been longer than one, and behind the record stands the next.
    raw = cursor.data
    cursor.end = end
    position += 1  # attributes: unused
    byte = raw[position]
    if byte < 0x80:
        position += 1
        place.timestamp_delta = (byte >> 1) ^ -(byte & 1)
    else:
        cursor.position = position
        place.timestamp_delta = cursor.read_varlong()
        position = cursor.position
    if position >= end:
        raise DecodeError("the record ends before its offset delta", position)
    byte = raw[position]
    if byte < 0x80:
        position += 1
        place.offset_delta = (byte >> 1) ^ -(byte & 1)
    else:
        cursor.position = position
        place.offset_delta = cursor.read_varint()
        position = cursor.position

    if position >= end:
        raise DecodeError("the record ends before its key", position)
    byte = raw[position]
    if byte < 0x80:
        position += 1
        length = (byte >> 1) ^ -(byte & 1)
    else:
        cursor.position = position
        length = cursor.read_varint()
        position = cursor.position
    place.key_at, place.key_size = position, length
    if length != -1:
        if length < 0 or length > end - position:
            raise _no_room("key", length, end, position)
        position += length

    if position >= end:
        raise DecodeError("the record ends before its value", position)
    byte = raw[position]
    if byte < 0x80:
        position += 1
        length = (byte >> 1) ^ -(byte & 1)
    else:
        cursor.position = position
        length = cursor.read_varint()
        position = cursor.position
    place.value_at, place.value_size = position, length
    if length != -1:
        if length < 0 or length > end - position:
            raise _no_room("value", length, end, position)
        position += length

    if position + 1 == end and raw[position] == 0:
        place.headers_at, place.headers = -1, 0
    else:
        cursor.position = position
        place.headers = _pass_headers(cursor, room)
        place.headers_at = position if place.headers else -1


def _no_room(what: str, length: int, end: int, position: int) -> DecodeError:
    left = plural(end - position, "is", "are")
    return DecodeError(f"a {what} of {plural(length, 'byte')} where {left} left", position)


def _pass_headers(cursor: Cursor, limit: int) -> int:
    """Move past the headers of one record, with their count: the last of it; gives how many.

    :raises DecodeError: they do not have their form, are more than the bytes or ``limit`` allow, or are
        not the last.
    """
    count = cursor.read_varint()
    if count < 0 or count > cursor.remaining() // 2:
        left = plural(cursor.remaining(), "byte")
        raise DecodeError(f"{plural(count, 'header')} in {left}", cursor.position)
    if count > limit:
        left = plural(limit, "is", "are")
        raise DecodeError(f"{plural(count, 'header')} where {left} within the limit", cursor.position)
    for _ in range(count):
        _pass_header(cursor)
    if cursor.position != cursor.end:
        raise DecodeError(f"{plural(cursor.remaining(), 'byte')} after the last header", cursor.position)
    return count


def _pass_header(cursor: Cursor) -> None:
    """Move past a header as :func:`_read_header` does, with the same notes and errors."""
    size = cursor.read_varint()
    start = cursor.take(size)
    raw = cursor.data
    for at in range(start, start + size):
        if raw[at] >= 0x80:
            cursor.position = start
            cursor.read_text(size)  # notes what is not UTF-8
            break
    size = cursor.read_varint()
    if size != -1:
        cursor.take(size)


def _read_header(cursor: Cursor) -> tuple[str, bytes | None]:
    size = cursor.read_varint()
    name = cursor.read_text(size)
    size = cursor.read_varint()
    return name, None if size == -1 else cursor.read_bytes(size)
