"""Which records can be shown unchanged: those without possible secrets.

The columns of a batch give the answer, without an object for a record. If a record may contain a secret, all
records of its batch are examined one by one.
"""

from __future__ import annotations

from kdissect.present.record_secrets import is_connect_config
from kdissect.present.redact import secret_metadata_types
from kdissect.present.secret_names import suggests_secret
from kdissect.protocol.cursor import Cursor, cursor_between
from kdissect.record.batch import CONTROL, Batch
from kdissect.record.records import ROW, Columns

_C, _S, _T = b"cst"


def plain_columns(
    batch: Batch,
    shows_secrets: bool,
    is_metadata: bool | None,
    takes_control: bool = False,
    into: Columns | None = None,
) -> Columns | None:
    """The records of a batch, if the values of all of them can be shown unchanged; else None.

    :param shows_secrets: whether secrets are shown.
    :param is_metadata: whether they belong to ``__cluster_metadata``; None if their topic is unknown.
    :param takes_control: whether to accept control records, which have more to show than their values.
    :param into: as for :meth:`kdissect.record.batch.Batch.columns`.
    """
    if not takes_control and batch.has(CONTROL):
        return None
    columns = batch.columns(into)
    return columns if shows_secrets or are_plain(columns, is_metadata) else None


def are_plain(columns: Columns, is_metadata: bool | None) -> bool:
    """Whether none of the records can contain a secret.

    :param is_metadata: as for :func:`plain_columns`.
    """
    if is_metadata is not False and may_hold_types(columns, secret_metadata_types()):
        return False
    return not may_hold_secrets(columns)


def may_hold_secrets(columns: Columns) -> bool:
    """Whether any of the records may have a secret in its headers or its value (see
    :mod:`kdissect.present.record_secrets`)."""
    data, rows, step = columns.data, columns.rows.numbers, ROW
    raw = data
    cursor: Cursor | None = None
    for index in range(columns.count):
        at = index * step
        if rows[at + 6] >= 0:
            if cursor is None:
                cursor = cursor_between(data, 0, len(data))
            cursor.position = rows[at + 6]
            if _has_secret_header(cursor):
                return True
        start, size = rows[at + 2], rows[at + 3]
        # All keys of Connect begin with c, s or t.
        if size > 4 and rows[at + 5] > 0 and raw[start] in (_C, _S, _T):
            value = data[rows[at + 4] : rows[at + 4] + rows[at + 5]]
            if is_connect_config(data[start : start + size], value):
                return True
    return False


def may_hold_types(columns: Columns, types: bytes) -> bool:
    """Whether any of the values may be a record of ``__cluster_metadata`` of these types.

    The first two bytes decide: frame version and type. If one of them is a longer varint, it may be.

    :param types: for each type below 128, whether it is one of them: 128 bytes, 0 or 1.
    """
    rows, step = columns.rows.numbers, ROW
    raw, marks = columns.data, types
    for index in range(columns.count):
        at = index * step
        start, size = rows[at + 4], rows[at + 5]
        if size < 1:
            continue
        if raw[start] >= 0x80:
            return True
        if raw[start] == 1 and (size < 2 or raw[start + 1] >= 0x80 or marks[raw[start + 1]]):
            return True
    return False


def _has_secret_header(cursor: Cursor) -> bool:
    """Whether any of the headers at the cursor, of a record that was found to be complete, is secret."""
    # As in writing them, a varint of one byte is read directly.
    data, end = cursor.data, cursor.end
    raw = data
    count = cursor.read_varint()
    at = cursor.position
    while count > 0:
        count -= 1
        byte = raw[at] if at < end else 0x80
        if byte < 0x80:
            at += 1
            size = (byte >> 1) ^ -(byte & 1)
        else:
            cursor.position = at
            size = cursor.read_varint()
            at = cursor.position
        cursor.position = at
        cursor.take(size)
        if not _is_harmless(data, at, size):
            name = data[at : at + size]
            known = _NAMES.get(name)
            if known is None:
                known = _is_secret_name(name)
            if known:
                return True
        at += size
        byte = raw[at] if at < end else 0x80
        if byte < 0x80:
            at += 1
            size = (byte >> 1) ^ -(byte & 1)
        else:
            cursor.position = at
            size = cursor.read_varint()
            at = cursor.position
        if size > 0:
            at += size
    return False


_MOST_NAMES = 4_096
_NAMES: dict[bytes, bool] = {}
"""Names of headers that were seen, and whether they suggest a secret."""
_MOST_HARMLESS = 8
_HARMLESS: list[bytes] = []
"""The first harmless names. Most captures have few, and these are compared in place."""


def _is_harmless(raw: bytes, start: int, size: int) -> bool:
    """Whether the name at this place is one of :data:`_HARMLESS`."""
    for known in _HARMLESS:
        if len(known) == size:
            at, word = 0, known
            while at < size and raw[start + at] == word[at]:
                at += 1
            if at == size:
                return True
    return False


def _is_secret_name(name: bytes) -> bool:
    found = suggests_secret(name.decode("utf-8", "replace"))
    if len(_NAMES) >= _MOST_NAMES:
        _NAMES.clear()
    _NAMES[name] = found
    if not found and len(_HARMLESS) < _MOST_HARMLESS:
        _HARMLESS.append(name)
    return found
