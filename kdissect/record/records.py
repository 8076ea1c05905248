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

Headers = tuple[tuple[str, bytes | None], ...]

SMALLEST_RECORD = 6
"""Bytes of a record after its length: attributes and five varints of one byte."""
MOST_BROKEN = 100
"""After so many broken records the bytes are taken for something else, and reading ends."""

_INT64 = 1 << 63
_SPAN = 1 << 64


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

    :param append_timestamp: the timestamp of every record (``LogAppendTime``), or None: that of each.
    :param limit: the most records and headers to make.
    """
    records: list[Record] = []
    append = records.append
    new = tuple.__new__
    cursor = Cursor(data, position, end)
    broken = elements = found = 0
    first_problem = stopped = None
    first_position = -1
    over_limit = False
    while position < end:
        start = position
        # A varint of one byte, by far the most frequent, is read in place, here and below.
        byte = data[position]
        if byte < 0x80:
            position += 1
            size = (byte >> 1) ^ -(byte & 1)
        else:
            cursor.position = position
            try:
                size = cursor.read_varint()
            except DecodeError as error:
                stopped = error.reason
                break
            position = cursor.position
        if size < 0 or size > end - position:
            stopped = f"a record of {size} bytes where {end - position} are left"
            position = start
            break
        if elements >= limit:
            stopped = f"more than {limit} records and headers, the limit"
            over_limit = True
            position = start
            break
        found += 1
        record_end = position + size
        try:
            if size < SMALLEST_RECORD:
                raise DecodeError(f"a record of {size} bytes", start)
            cursor.end = record_end
            position += 1  # attributes: unused
            byte = data[position]
            if byte < 0x80:
                position += 1
                timestamp = base_timestamp + ((byte >> 1) ^ -(byte & 1))
            else:
                cursor.position = position
                timestamp = base_timestamp + cursor.read_varlong()
                position = cursor.position
            # Each further byte must be checked for: the ones before may have been longer than one.
            if position >= record_end:
                raise DecodeError("the record ends before its offset delta", position)
            byte = data[position]
            if byte < 0x80:
                position += 1
                delta = (byte >> 1) ^ -(byte & 1)
            else:
                cursor.position = position
                delta = cursor.read_varint()
                position = cursor.position
            if position >= record_end:
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
                if length < 0 or length > record_end - position:
                    raise DecodeError(
                        f"a key of {length} bytes where {record_end - position} are left", position
                    )
                key = data[position : position + length]
                position += length
            if position >= record_end:
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
                if length < 0 or length > record_end - position:
                    raise DecodeError(
                        f"a value of {length} bytes where {record_end - position} are left", position
                    )
                value = data[position : position + length]
                position += length
            headers: Headers = ()
            if position + 1 == record_end and data[position] == 0:
                position += 1
            else:
                cursor.position = position
                headers = _read_headers(cursor, limit - elements)
                position = cursor.position
                if position != record_end:
                    raise DecodeError(f"{record_end - position} bytes after the last header", position)
            elements += 1 + len(headers)
            if not -_INT64 <= timestamp < _INT64:
                timestamp = wrap64(timestamp)
            offset = base_offset + delta
            if not -_INT64 <= offset < _INT64:
                offset = wrap64(offset)
            append(
                new(
                    Record,
                    (
                        offset,
                        timestamp if append_timestamp is None else append_timestamp,
                        key,
                        value,
                        headers,
                        -1 if base_sequence < 0 else (base_sequence + delta) & 0x7FFFFFFF,
                    ),
                )
            )
        except DecodeError as error:
            broken += 1
            if first_problem is None:
                first_problem, first_position = error.reason, start
            if broken == MOST_BROKEN:
                stopped = f"{MOST_BROKEN} broken records"
                position = record_end
                break
        cursor.end = end
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
        elements,
        len(cursor.notes),
    )


def _read_headers(cursor: Cursor, limit: int) -> Headers:
    """The headers of one record, with their count.

    :raises DecodeError: they do not have their form, or are more than the bytes or ``limit`` allow.
    """
    count = cursor.read_varint()
    if count < 0 or count > cursor.remaining() // 2:
        raise DecodeError(f"{count} headers in {cursor.remaining()} bytes", cursor.position)
    if count > limit:
        raise DecodeError(f"{count} headers where {limit} are within the limit", cursor.position)
    headers = []
    for _ in range(count):
        size = cursor.read_varint()
        name = cursor.read_text(size)
        size = cursor.read_varint()
        headers.append((name, None if size == -1 else cursor.read_bytes(size)))
    return tuple(headers)
