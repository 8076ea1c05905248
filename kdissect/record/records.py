"""The records of a batch of magic 2: bytes in, a list of :class:`Record` out.

This is the hot loop of everything that looks into topics. Ints and bytes go in, plain values come
out, so that it can be compiled as it stands.

The rules (KIP-98, ``DefaultRecord.java``): a record is its length, attributes (unused), a timestamp
delta, an offset delta, key, value and headers; all numbers are zigzag varints, a length of -1 is null.
A record that does not have its form costs only itself: reading goes on at its declared end.
"""

from __future__ import annotations

from typing import NamedTuple

from kdissect.model import DecodeError
from kdissect.protocol.cursor import Cursor
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


class Body(NamedTuple):
    """What :func:`read_records` found."""

    records: list[Record]
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
) -> Body:
    """Read records until ``end``, whatever number the batch announces.

    Here are the lengths, which lead from record to record, and what becomes of broken ones; what a
    record holds is :func:`_read_record`'s.

    :param append_timestamp: the timestamp of every record (``LogAppendTime``), or None: that of each.
    :param limit: the most records and headers to make.
    """
    records: list[Record] = []
    cursor = Cursor(data, position, end)
    room = limit
    broken = found = 0
    first_problem = stopped = None
    first_position = -1
    over_limit = False
    while position < end:
        start = position
        byte = data[position]
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
            if size < SMALLEST_RECORD:
                raise DecodeError(f"a record of {plural(size, 'byte')}", start)
            record = _read_record(
                cursor,
                position,
                record_end,
                base_offset,
                base_timestamp,
                append_timestamp,
                base_sequence,
                room,
            )
            records.append(record)
            room -= 1 + len(record[4])
        except DecodeError as error:
            broken += 1
            if first_problem is None:
                first_problem, first_position = error.reason, start
            if broken == MOST_BROKEN:
                stopped = f"{MOST_BROKEN} broken records"
                position = record_end
                break
        position = record_end
    return Body(
        records,
        found,
        broken,
        first_problem,
        first_position,
        position,
        stopped,
        over_limit,
        limit - room,
        len(cursor.notes),
    )


def _read_record(
    cursor: Cursor,
    position: int,
    end: int,
    base_offset: int,
    base_timestamp: int,
    append_timestamp: int | None,
    base_sequence: int,
    room: int,
) -> Record:
    """The record whose length ends at ``position``, and which must fill its bytes to ``end``.

    :param room: the most headers to make.
    :raises DecodeError: it does not have its form.
    """
    # A varint of one byte, by far the most frequent, is read in place; the cursor reads longer ones. Key
    # and value are spelled out one after the other for the same reason: one function for both costs 1 to
    # 7 % of the time. That a byte is there must be checked for each but the first: those before it may
    # have been longer than one, and behind the record stands the next.
    data = cursor.data
    cursor.end = end
    position += 1  # attributes: unused
    byte = data[position]
    if byte < 0x80:
        position += 1
        timestamp = base_timestamp + ((byte >> 1) ^ -(byte & 1))
    else:
        cursor.position = position
        timestamp = base_timestamp + cursor.read_varlong()
        position = cursor.position
    if position >= end:
        raise DecodeError("the record ends before its offset delta", position)
    byte = data[position]
    if byte < 0x80:
        position += 1
        delta = (byte >> 1) ^ -(byte & 1)
    else:
        cursor.position = position
        delta = cursor.read_varint()
        position = cursor.position

    if position >= end:
        raise DecodeError("the record ends before its key", position)
    byte = data[position]
    if byte < 0x80:
        position += 1
        length = (byte >> 1) ^ -(byte & 1)
    else:
        cursor.position = position
        length = cursor.read_varint()
        position = cursor.position
    if length == -1:
        key = None
    else:
        if length < 0 or length > end - position:
            raise _no_room("key", length, end, position)
        key = data[position : position + length]
        position += length

    if position >= end:
        raise DecodeError("the record ends before its value", position)
    byte = data[position]
    if byte < 0x80:
        position += 1
        length = (byte >> 1) ^ -(byte & 1)
    else:
        cursor.position = position
        length = cursor.read_varint()
        position = cursor.position
    if length == -1:
        value = None
    else:
        if length < 0 or length > end - position:
            raise _no_room("value", length, end, position)
        value = data[position : position + length]
        position += length

    headers: Headers = ()
    if position + 1 != end or data[position] != 0:
        cursor.position = position
        headers = _read_headers(cursor, room)
    offset = base_offset + delta
    if not _LEAST <= offset <= _MOST:
        offset = wrap64(offset)
    if append_timestamp is not None:
        timestamp = append_timestamp
    elif not _LEAST <= timestamp <= _MOST:
        timestamp = wrap64(timestamp)
    sequence = -1 if base_sequence < 0 else (base_sequence + delta) & 0x7FFFFFFF
    return new_record(Record, (offset, timestamp, key, value, headers, sequence))


def _no_room(what: str, length: int, end: int, position: int) -> DecodeError:
    left = plural(end - position, "is", "are")
    return DecodeError(f"a {what} of {plural(length, 'byte')} where {left} left", position)


def _read_headers(cursor: Cursor, limit: int) -> Headers:
    """The headers of one record, with their count: the last of it.

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
    headers = []
    for _ in range(count):
        size = cursor.read_varint()
        name = cursor.read_text(size)
        size = cursor.read_varint()
        headers.append((name, None if size == -1 else cursor.read_bytes(size)))
    if cursor.position != cursor.end:
        raise DecodeError(f"{plural(cursor.remaining(), 'byte')} after the last header", cursor.position)
    return tuple(headers)
