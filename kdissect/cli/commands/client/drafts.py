"""The input of a user → records to produce: lines of text, or the table ``records`` as NDJSON."""

from __future__ import annotations

import os
import stat
import sys
from base64 import b64decode
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any, BinaryIO, cast

from kdissect.cli.contents import json_from
from kdissect.cli.errors import Unreadable, Wrong
from kdissect.client.produce import Draft
from kdissect.present.catalogue import LOG_RECORDS, RECORDS
from kdissect.present.form import size
from kdissect.present.nearest import nearest
from kdissect.wording import plural

LONGEST_LINE = 256 << 20
"""The most bytes of a line, with its end: no broker accepts a record that large."""

_COLUMNS = frozenset(column.name for table in (RECORDS, LOG_RECORDS) for column in table.columns)
"""The columns that a row may have: all that ``read``, ``fetch`` and ``log`` print."""
_RANGES = {"timestamp": range(-1, 1 << 63), "partition": range(1 << 31)}
"""The ranges of the values beside key, value and headers: int64 with -1 for none, int32."""


class Drafts:
    """The records of a file or of stdin (``-``), in order.

    :param form: ``lines`` (each a value) or ``ndjson`` (each a row of the table ``records``).
    :param separator: the text between key and value of a line; None if there are no keys.
    :param bytes_form: the form of keys and values in NDJSON: ``text``, ``base64`` or ``hex``.
    """

    def __init__(self, path: str, form: str, separator: str | None, bytes_form: str) -> None:
        """:raises Unreadable: there is no such file, or it is not a file."""
        self._path = path
        self._name = "standard input" if path == "-" else path
        self._form = form
        self._separator = separator
        self._bytes_form = bytes_form
        self.records = 0
        """How many records the last reading gave."""
        self.left_out = 0
        """Rows that only a broker writes, such as markers of transactions. They are skipped."""
        self.can_be_checked = False
        """Whether the input can be read twice: first to check it, and then to send it."""
        if path != "-":
            try:
                self.can_be_checked = stat.S_ISREG(os.stat(path).st_mode)
            except OSError as error:
                raise Unreadable(f"{path}: cannot be read: {error.strerror}") from None

    def check(self) -> None:
        """Read all of the input, so that errors in it are reported before anything is sent.

        :raises Unreadable: it cannot be read, or a line has another form.
        """
        for _ in self:
            pass

    def summary(self) -> str:
        """The number of records, in words."""
        said = f"{self._name}: {plural(self.records, 'record')}"
        if self.left_out:
            said += f", {plural(self.left_out, 'marker')} of transactions left out: only brokers write them"
        return said

    def __iter__(self) -> Iterator[Draft]:
        self.records = self.left_out = 0
        with self._opened() as file:
            number = 0
            while line := file.readline(LONGEST_LINE):
                number += 1
                try:
                    if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                        raise ValueError(f"it is longer than {size(LONGEST_LINE)}")
                    draft = self._draft(line)
                except ValueError as error:
                    raise Unreadable(f"{self._name}, line {number}: {error}") from None
                if draft is not None:
                    self.records += 1
                    yield draft

    def _opened(self) -> Any:
        if self._path == "-":
            return nullcontext(cast(BinaryIO, sys.stdin.buffer))
        try:
            return open(self._path, "rb")
        except OSError as error:
            raise Unreadable(f"{self._path}: cannot be read: {error.strerror}") from None

    def _draft(self, line: bytes) -> Draft | None:
        """The record of a line; None for a row that is skipped.

        :raises ValueError: the line has another form.
        """
        if self._form == "lines":
            return _of_line(line, self._separator)
        if not line.strip():
            return None
        row = json_from(line)
        if not isinstance(row, dict):
            raise ValueError("a JSON object is needed")
        _check_names(row, _COLUMNS, "column")
        if row.get("control") is not None:
            self.left_out += 1
            return None
        return _of_row(row, self._bytes_form)


def _of_line(line: bytes, separator: str | None) -> Draft:
    value = line.removesuffix(b"\n").removesuffix(b"\r")
    if separator is None:
        return Draft(None, value)
    key, found, rest = value.partition(separator.encode("utf-8", "surrogateescape"))
    if not found:
        raise ValueError(f"there is no {separator!r} between key and value")
    return Draft(key, rest)


def _check_names(row: dict[str, Any], known: Iterable[str], what: str) -> None:
    for name in row:
        if name not in known:
            raise ValueError(f"there is no {what} {name!r}{nearest(name, known)}")


def _of_row(row: dict[str, Any], bytes_form: str) -> Draft:
    headers = row.get("headers") or []
    if not isinstance(headers, list) or not all(
        isinstance(each, dict) and isinstance(each.get("key"), str) for each in headers
    ):
        raise ValueError('headers: a list of {"key", "value"} is needed')
    for each in headers:
        _check_names(each, ("key", "value"), "field of a header")
    for name, fitting in _RANGES.items():
        given = row.get(name)
        if given is not None and (not isinstance(given, int) or isinstance(given, bool)):
            raise ValueError(f"{name}: a whole number is needed")
        if given is not None and given not in fitting:
            raise ValueError(f"{name}: {given} is outside {fitting[0]} to {fitting[-1]}")
    return Draft(
        _bytes("key", row.get("key"), bytes_form),
        _bytes("value", row.get("value"), bytes_form),
        tuple((each["key"], _bytes("headers", each.get("value"), bytes_form)) for each in headers),
        row.get("timestamp"),
        row.get("partition"),
    )


def _bytes(name: str, value: Any, form: str) -> bytes | None:
    if value is None:
        return None
    try:
        if isinstance(value, dict) and value.keys() == {"base64"}:
            return b64decode(value["base64"], validate=True)
        if isinstance(value, str):
            if form == "text":
                return value.encode()
            return bytes.fromhex(value) if form == "hex" else b64decode(value, validate=True)
    except (ValueError, TypeError):
        pass
    raise ValueError(f'{name}: {form} is needed, or {{"base64": …}}')


def headers_from(given: tuple[str, ...]) -> tuple[tuple[str, bytes], ...]:
    """The headers that options give.

    :raises Wrong: one has no name or no value.
    """
    found: list[tuple[str, bytes]] = []
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise Wrong(
                f"--header {text}: the form is NAME=VALUE; NAME= has an empty value, --input ndjson has null"
            )
        found.append((name, value.encode("utf-8", "surrogateescape")))
    return tuple(found)
