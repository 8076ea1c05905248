"""Keys, values and headers of records → JSON, one at a time or all of a batch's columns at once.

:func:`write_nested` and :func:`write_lines` write the same text as json would from an object for each record,
many times faster. They are for records whose values can be shown unchanged: no control records, no secrets.
"""

from __future__ import annotations

from collections.abc import Sequence
from json.encoder import encode_basestring_ascii
from typing import Any

from kdissect.present.sanitise import valid_text
from kdissect.protocol.cursor import Cursor, cursor_between
from kdissect.protocol.json_form import base64_text, dumps, text_or_base64
from kdissect.protocol.json_text import JsonText
from kdissect.record.records import ROW, Columns, Headers, sum64, wrap64

VARIABLE = (
    *("offset", "assigned_offset", "timestamp", "key", "value", "headers"),
    *("key_size", "value_size", "sequence"),
)
"""The columns of the table ``records`` that differ from record to record in one batch, in the order of the
table."""


def bytes_form(data: bytes | None, form: str) -> str | dict[str, str] | None:
    """A key or value in the form that the user wants: ``text``, ``base64`` or ``hex``."""
    if data is None:
        return None
    if form == "hex":
        return data.hex()
    if form == "base64":
        return base64_text(data)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64_text(data)}


def header_objects(headers: Headers, form: str) -> list[dict[str, Any]]:
    """The headers of a record for JSON."""
    return [{"key": text_or_base64(name), "value": bytes_form(value, form)} for name, value in headers]


def _write_bytes(out: JsonText, data: bytes, start: int, size: int, form: str) -> None:
    """Write a key or value; a ``size`` of -1 is null."""
    if size < 0:
        out.put(b"null")
    elif form == "text":
        out.string(data, start, size)
    elif form == "hex":
        out.hexadecimal(data, start, size)
    else:
        out.base64(data, start, size)


def _write_headers(out: JsonText, cursor: Cursor, position: int, form: str) -> None:
    """Write the headers at a position, of a record that was found to be complete.

    :param cursor: a cursor over the data that contains it.
    """
    # A varint of one byte, by far the most frequent, is read directly; the cursor reads longer ones.
    data, end = cursor.data, cursor.end
    raw = data
    cursor.position = position
    count, before = cursor.read_varint(), b'[{"key":'
    at = cursor.position
    while count > 0:
        count -= 1
        out.put(before)
        byte = raw[at] if at < end else 0x80
        if byte < 0x80:
            at += 1
            size = (byte >> 1) ^ -(byte & 1)
        else:
            cursor.position = at
            size = cursor.read_varint()
            at = cursor.position
        out.string(data, at, size)
        at += size
        out.put(b',"value":')
        byte = raw[at] if at < end else 0x80
        if byte < 0x80:
            at += 1
            size = (byte >> 1) ^ -(byte & 1)
        else:
            cursor.position = at
            size = cursor.read_varint()
            at = cursor.position
        _write_bytes(out, data, at, size, form)
        if size > 0:
            at += size
        before = b'},{"key":'
    out.put(b"}]")


def _write_size(out: JsonText, size: int) -> None:
    if size < 0:
        out.put(b"null")
    else:
        out.number(size)


def write_nested(
    out: JsonText,
    columns: Columns,
    form: str,
    controls: list[bytes] | None = None,
    others: Sequence[tuple[int, bytes]] = (),
) -> None:
    """Write the records of a batch inside a message: a JSON array.

    :param controls: the contents of each control record, as JSON.
    :param others: records that cannot be shown unchanged, in order: place and JSON of each.
    """
    first = 0
    out.put(b"[")
    for index, text in others:
        _write_nested(out, columns, first, index, form, controls)
        if index:
            out.put(b",")
        out.put(text)
        first = index + 1
    _write_nested(out, columns, first, columns.count, form, controls)
    out.put(b"]")


def _write_nested(
    out: JsonText, columns: Columns, first: int, last: int, form: str, controls: list[bytes] | None
) -> None:
    """Write the records from ``first`` to before ``last``."""
    data, rows, step = columns.data, columns.rows.numbers, ROW
    cursor: Cursor | None = None
    is_plain = controls is None and columns.base_sequence < 0
    before = b',{"offset":' if first else b'{"offset":'
    for index in range(first, last):
        at = index * step
        out.put(before)
        out.number(rows[at])
        out.put(b',"timestamp":')
        out.number(rows[at + 1])
        out.put(b',"key":')
        _write_bytes(out, data, rows[at + 2], rows[at + 3], form)
        out.put(b',"value":')
        _write_bytes(out, data, rows[at + 4], rows[at + 5], form)
        if rows[at + 6] < 0:
            out.put(b',"headers":[],"key_size":')
        else:
            out.put(b',"headers":')
            if cursor is None:
                cursor = cursor_between(data, 0, len(data))
            _write_headers(out, cursor, rows[at + 6], form)
            out.put(b',"key_size":')
        _write_size(out, rows[at + 3])
        out.put(b',"value_size":')
        _write_size(out, rows[at + 5])
        if is_plain:
            out.put(b',"sequence":-1,"control":null')
        else:
            out.put(b',"sequence":')
            out.number(columns.sequence(rows[at]))
            out.put(b',"control":')
            out.put(b"null" if controls is None else controls[index])
        before = b'},{"offset":'
    if first < last:
        out.put(b"}")


def write_lines(
    out: JsonText,
    columns: Columns,
    first: int,
    last: int,
    between: tuple[bytes, ...],
    assigned: int | None,
    form: str,
    by_place: bool = False,
) -> None:
    """Write the lines of the table ``records`` from the ``first`` record to before the ``last``.

    :param between: the texts before, between and after the values of :data:`VARIABLE`, the last with the
        line's end.
    :param assigned: the broker's offset for the batch's base offset.
    :param by_place: whether that is the offset of the first record, and the broker numbered the others by
        their positions.
    """
    data, rows, step = columns.data, columns.rows.numbers, ROW
    t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 = between
    cursor: Cursor | None = None
    is_assigned = assigned is not None
    base = 0 if assigned is None else wrap64(assigned)
    for index in range(first, last):
        at = index * step
        offset, timestamp = rows[at], rows[at + 1]
        out.put(t0)
        out.number(offset)
        out.put(t1)
        if is_assigned:
            out.number(sum64(base, index) if by_place else columns.assigned(offset, base))
        else:
            out.put(b"null")
        out.put(t2)
        if timestamp == -1:
            out.put(b"null")
        else:
            out.number(timestamp)
        out.put(t3)
        _write_bytes(out, data, rows[at + 2], rows[at + 3], form)
        out.put(t4)
        _write_bytes(out, data, rows[at + 4], rows[at + 5], form)
        out.put(t5)
        if rows[at + 6] < 0:
            out.put(b"[]")
        else:
            if cursor is None:
                cursor = cursor_between(data, 0, len(data))
            _write_headers(out, cursor, rows[at + 6], form)
        out.put(t6)
        _write_size(out, rows[at + 3])
        out.put(t7)
        _write_size(out, rows[at + 5])
        out.put(t8)
        sequence = columns.sequence(offset)
        if sequence == -1:
            out.put(b"null")
        else:
            out.number(sequence)
        out.put(t9)


_SHORT = 256
"""The longest texts that are kept."""


_MOST_TEXTS = 4_096
_TEXTS: dict[str, bytes] = {}
"""Texts as JSON, because many rows repeat the same texts."""


def _text_of(value: str) -> bytes:
    """A text as JSON. Bytes in it that were not UTF-8 appear as ``\\xff``."""
    text = _TEXTS.get(value)
    if text is None:
        text = encode_basestring_ascii(valid_text(value)).encode("ascii")
        if len(value) < _SHORT:
            if len(_TEXTS) >= _MOST_TEXTS:
                _TEXTS.clear()
            _TEXTS[value] = text
    return text


def write_value(out: JsonText, value: str | int | None) -> None:
    """Write a text, in which bytes that were not UTF-8 appear as ``\\xff``, an integer of at most 64 bits, a
    boolean or null."""
    if value is None:
        out.put(b"null")
    elif isinstance(value, str):
        out.put(_text_of(value))
    elif value is True:
        out.put(b"true")
    elif value is False:
        out.put(b"false")
    else:
        out.number(value)


def write_texts(out: JsonText, values: list[str]) -> None:
    """Write a list of texts, each like :func:`write_value`."""
    before = b"["
    for value in values:
        out.put(before)
        out.put(_text_of(value))
        before = b","
    out.put(b"]" if values else b"[]")


Group = tuple[tuple[tuple[str, bytes, bool], ...], bytes]
"""Consecutive columns, and the text after them. Each column has its name, the text before its value, and
whether it is left out if it is null."""


def text_between(out: JsonText, groups: tuple[Group, ...], row: dict[str, Any]) -> tuple[bytes, ...]:
    """The texts around the values of :data:`VARIABLE` in the lines of one batch.

    :param out: for making the texts.
    :param row: the values that the records share.
    """
    parts = []
    for columns, behind in groups:
        if not columns:
            parts.append(behind)
            continue
        start = out.size()
        for name, before, is_optional in columns:
            value = row.get(name)
            if value is not None or not is_optional:
                out.put(before)
                if isinstance(value, dict):
                    out.put(dumps(value).encode("ascii"))
                else:
                    write_value(out, value)
        out.put(behind)
        parts.append(out.since(start))
        out.cut(start)
    return tuple(parts)
