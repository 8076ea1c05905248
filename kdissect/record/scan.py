"""Bytes of a batch of magic 2 → columns of numbers: the hot loop of all that reads topics.

Compiled, ``raw`` is a pointer to the bytes, and the numbers are memory of C. Every position is checked before
it is read.

The rules (KIP-98, ``DefaultRecord.java``): a record is its length, attributes (unused), a timestamp delta, an
offset delta, key, value and headers. All numbers are zigzag varints, a length of -1 is null. A broken record
costs only itself: reading continues at its declared end.
"""

from __future__ import annotations

from collections.abc import MutableSequence

from kdissect.model import DecodeError
from kdissect.protocol.cursor import Cursor, cursor_between
from kdissect.record.records import ROW, Columns, Record, sum64
from kdissect.record.rows import Int64Rows
from kdissect.wording import plural

SMALLEST_RECORD = 6
"""Bytes of a record after its length: attributes and five varints of one byte."""
MOST_BROKEN = 100
"""After this many broken records, reading ends: the bytes are probably no records."""

_ROW, _SMALLEST = ROW, SMALLEST_RECORD


class RecordsFound:
    """The result of :func:`read_records`."""

    __slots__ = (
        *("broken", "columns", "elements", "end", "first_position", "first_problem", "found"),
        *("not_utf8", "over_limit", "stopped"),
    )

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.found = 0
        """The number of records whose length could be read, including broken ones."""
        self.broken = 0
        self.first_problem: str | None = None
        """The fault of the first broken record."""
        self.first_position = -1
        self.end = 0
        """Where reading ended. It is before the end of the bytes only if the rest are no records."""
        self.stopped: str | None = None
        """Why reading ended before the end of the bytes."""
        self.over_limit = False
        self.elements = 0
        """The number of records and headers made, which counts against the limit."""
        self.not_utf8 = 0
        """The number of header names that are not UTF-8."""

    @property
    def records(self) -> list[Record]:
        """The valid records, made anew at each call."""
        return self.columns.records()


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
    into: Columns | None = None,
) -> RecordsFound:
    """Read records until ``end``, whatever number the batch announces.

    This function follows the lengths from record to record and handles broken records. :func:`_scan` reads
    the fields of a record.

    :param append_timestamp: the timestamp of every record (``LogAppendTime``); None if each has its own.
    :param limit: the most records and headers to make.
    :param keep: whether to fill the columns; else only faults are searched for.
    :param into: columns to use; their old content is lost.
    """
    if into is None:
        columns = Columns(data, base_offset, base_sequence)
    else:
        columns = into
        columns.begin(data, base_offset, base_sequence)
    found = RecordsFound(columns)
    end = min(end, len(data))
    cursor = cursor_between(data, position, end)
    room = limit
    is_appended = append_timestamp is not None
    appended = append_timestamp or 0
    raw, room_for, at = data, 0, 0
    records = broken = 0
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
                found.stopped = error.reason
                break
            position = cursor.position
        if size < 0 or size > end - position:
            left = plural(end - position, "is", "are")
            found.stopped = f"a record announces {plural(size, 'byte')}, but {left} left"
            position = start
            break
        if room <= 0:
            found.stopped = f"there are more records and headers than the limit of {limit:,}"
            found.over_limit = True
            position = start
            break
        records += 1
        record_end = position + size
        if at == room_for:
            room_for = 8 * _ROW if at == 0 else 2 * room_for
            columns.rows.reserve(room_for)
            rows = columns.rows.numbers
        try:
            if size < _SMALLEST:
                raise DecodeError(f"a record announces only {plural(size, 'byte')}", start)
            headers = _scan(cursor, rows, at, position, record_end, room)
        except DecodeError as error:
            broken += 1
            if found.first_problem is None:
                found.first_problem, found.first_position = error.reason, start
            position = record_end
            if broken == MOST_BROKEN:
                found.stopped = f"{MOST_BROKEN} broken records"
                break
            continue
        room -= 1 + headers
        position = record_end
        if not keep:
            continue
        rows[at] = sum64(base_offset, rows[at])
        rows[at + 1] = appended if is_appended else sum64(base_timestamp, rows[at + 1])
        at += _ROW
    columns.count = at // _ROW
    found.found, found.broken, found.end = records, broken, position
    found.elements, found.not_utf8 = limit - room, len(cursor.notes)
    return found


def are_sound(cursor: Cursor, end: int, count: int, room: int) -> int:
    """The number of records and headers from the cursor to ``end``. -1 unless they are exactly ``count``
    valid records, in which :func:`read_records` finds no fault.

    :param room: the most records and headers that are allowed.
    :raises DecodeError: a record is broken.
    """
    place = Int64Rows()
    place.reserve(_ROW)
    position = cursor.position
    granted, found = room, 0
    while position < end:
        cursor.position, cursor.end = position, end
        size = cursor.read_varint()
        position = cursor.position
        if size < _SMALLEST or size > end - position or room <= 0:
            return -1
        room -= 1 + _scan(cursor, place.numbers, 0, position, position + size, room)
        found += 1
        position += size
    return granted - room if found == count and not cursor.notes else -1


def has_value(cursor: Cursor, end: int, begin: bytes, room: int) -> bool:
    """Whether the value of a record from the cursor to ``end`` begins with ``begin``.

    :param room: the most records and headers that are allowed.
    :raises DecodeError: a record is broken, or there are more.
    """
    place = Int64Rows()
    place.reserve(_ROW)
    position = cursor.position
    size_of_begin, data, rows = len(begin), cursor.data, place.numbers
    while position < end:
        cursor.position, cursor.end = position, end
        size = cursor.read_varint()
        position = cursor.position
        if size < _SMALLEST or size > end - position or room <= 0:
            raise DecodeError("records of another form", position)
        room -= 1 + _scan(cursor, rows, 0, position, position + size, room)
        if rows[5] >= size_of_begin and data.startswith(begin, rows[4]):
            return True
        position += size
    return False


def _scan(cursor: Cursor, rows: MutableSequence[int], at: int, position: int, end: int, room: int) -> int:
    """Read the record whose length ends at ``position``, and which must end at ``end``. Return the number of
    its headers.

    :param rows: gets the record's :data:`ROW` numbers from ``at`` on, with the deltas of offset and
        timestamp.
    :param room: the most headers that are allowed.
    :raises DecodeError: the record is broken.
    """
    # A varint of one byte, by far the most frequent, is read in place; the cursor reads longer ones. For the
    # same reason, the code for key and value is written twice: one function for both costs 1 to 7 % of the
    # time. Check for each varint but the first that its byte exists: earlier varints may have had several
    # bytes, and the next record follows.
    raw = cursor.data
    cursor.end = end
    position += 1  # attributes: unused
    byte = raw[position]
    if byte < 0x80:
        position += 1
        rows[at + 1] = (byte >> 1) ^ -(byte & 1)
    else:
        cursor.position = position
        rows[at + 1] = cursor.read_varlong()
        position = cursor.position
    if position >= end:
        raise DecodeError("the record ends before its offset delta", position)
    byte = raw[position]
    if byte < 0x80:
        position += 1
        rows[at] = (byte >> 1) ^ -(byte & 1)
    else:
        cursor.position = position
        rows[at] = cursor.read_varint()
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
    rows[at + 2], rows[at + 3] = position, length
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
    rows[at + 4], rows[at + 5] = position, length
    if length != -1:
        if length < 0 or length > end - position:
            raise _no_room("value", length, end, position)
        position += length

    rows[at + 6] = -1
    if position + 1 == end and raw[position] == 0:
        return 0
    cursor.position = position
    headers = _pass_headers(cursor, room)
    if headers:
        rows[at + 6] = position
    return headers


def _no_room(what: str, length: int, end: int, position: int) -> DecodeError:
    left = plural(end - position, "is", "are")
    return DecodeError(f"a {what} announces {plural(length, 'byte')}, but {left} left", position)


def _pass_headers(cursor: Cursor, limit: int) -> int:
    """Move past the headers of one record, with their count. Return the count.

    :raises DecodeError: they are broken, are more than the bytes or ``limit`` allow, or do not end the
        record.
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
        raise DecodeError(
            f"{plural(cursor.remaining(), 'byte follows', 'bytes follow')} the last header", cursor.position
        )
    return count


def _pass_header(cursor: Cursor) -> None:
    """Move past a header, with the same notes and errors as :func:`_read_header`."""
    raw, at, end = cursor.data, cursor.position, cursor.end
    byte = raw[at] if at < end else 0x80
    if byte < 0x80:
        size = (byte >> 1) ^ -(byte & 1)
        cursor.position = at + 1
    else:
        size = cursor.read_varint()
    start = cursor.take(size)
    for at in range(start, start + size):
        if raw[at] >= 0x80:
            cursor.position = start
            cursor.read_text(size)  # notes a name that is not UTF-8
            break
    at = cursor.position
    byte = raw[at] if at < end else 0x80
    if byte < 0x80:
        size = (byte >> 1) ^ -(byte & 1)
        cursor.position = at + 1
    else:
        size = cursor.read_varint()
    if size != -1:
        cursor.take(size)
