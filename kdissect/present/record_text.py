"""Keys, values and headers of records → JSON, one at a time or all of a batch's columns at once.

:func:`nested_text` and :func:`line_text` write the same text as json would from an object for each record,
many times faster. They are for records that are nothing but what stands in them: no control records, no
secrets.
"""

from __future__ import annotations

from json.encoder import encode_basestring_ascii
from typing import Any

from kdissect.protocol.json_form import RawText, base64_text, dumps, text_or_base64
from kdissect.record.records import ROW, Columns, Headers, wrap64

VARIABLE = (
    *("offset", "assigned_offset", "timestamp", "key", "value", "headers"),
    *("key_size", "value_size", "sequence"),
)
"""The columns of the table ``records`` that differ from record to record in one batch, in its order."""


def bytes_form(data: bytes | None, form: str) -> str | dict[str, str] | None:
    """A key or value as the user wants to see it: ``text``, ``base64`` or ``hex``."""
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


def _bytes_text(data: bytes, form: str) -> str:
    """A key or value as JSON."""
    if form == "text":
        try:
            return encode_basestring_ascii(data.decode("utf-8"))
        except UnicodeDecodeError:
            pass
    return dumps(bytes_form(data, form))


def nested_text(columns: Columns, form: str) -> RawText:
    """The records as they stand in their batch inside a message: a JSON array."""
    data, rows, step = columns.data, columns.rows, ROW
    out = []
    for at in range(0, columns.count * step, step):
        offset, timestamp = rows[at], rows[at + 1]
        key_at, key_size = rows[at + 2], rows[at + 3]
        value_at, value_size = rows[at + 4], rows[at + 5]
        key = value = key_length = value_length = "null"
        if key_size >= 0:
            key, key_length = _bytes_text(data[key_at : key_at + key_size], form), str(key_size)
        if value_size >= 0:
            value, value_length = _bytes_text(data[value_at : value_at + value_size], form), str(value_size)
        headers = "[]"
        if rows[at + 6] >= 0:
            headers = dumps(header_objects(columns.headers(rows[at + 6]), form))
        sequence = columns.sequence(offset)
        out.append(
            f'{{"offset":{offset},"timestamp":{timestamp},"key":{key},"value":{value},"headers":{headers},'
            f'"key_size":{key_length},"value_size":{value_length},"sequence":{sequence},"control":null}}'
        )
    return RawText("[" + ",".join(out) + "]")


def line_text(
    columns: Columns, first: int, last: int, between: tuple[str, ...], assigned: int | None, form: str
) -> str:
    """The lines of the table ``records`` from the ``first`` record to before the ``last``.

    :param between: what stands before, between and behind the values of :data:`VARIABLE`, the last with the
        line's end.
    :param assigned: the offset that the broker gave the batch's base offset.
    """
    data, rows, step, base_offset = columns.data, columns.rows, ROW, columns.base_offset
    t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 = between
    assigned_text = "null"
    out = []
    for at in range(first * step, last * step, step):
        offset, timestamp = rows[at], rows[at + 1]
        key_at, key_size = rows[at + 2], rows[at + 3]
        value_at, value_size = rows[at + 4], rows[at + 5]
        key = value = key_length = value_length = sequence_text = "null"
        if key_size >= 0:
            key, key_length = _bytes_text(data[key_at : key_at + key_size], form), str(key_size)
        if value_size >= 0:
            value, value_length = _bytes_text(data[value_at : value_at + value_size], form), str(value_size)
        headers = "[]"
        if rows[at + 6] >= 0:
            headers = dumps(header_objects(columns.headers(rows[at + 6]), form))
        if assigned is not None:
            assigned_text = str(wrap64(assigned + offset - base_offset))
        time_text = "null" if timestamp == -1 else str(timestamp)
        sequence = columns.sequence(offset)
        if sequence != -1:
            sequence_text = str(sequence)
        out.append(
            f"{t0}{offset}{t1}{assigned_text}{t2}{time_text}{t3}{key}{t4}{value}{t5}{headers}{t6}{key_length}"
            f"{t7}{value_length}{t8}{sequence_text}{t9}"
        )
    return "".join(out)


def gathered(columns: Columns, part: int) -> bytes:
    """All keys (2) or values (4) of the columns, one after the other; the number is that of their position
    in a row of numbers."""
    data, rows, step = columns.data, columns.rows, ROW
    out = []
    for at in range(part, columns.count * step, step):
        size = rows[at + 1]
        if size > 0:
            start = rows[at]
            out.append(data[start : start + size])
    return b"".join(out)
