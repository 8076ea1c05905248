"""What a user hands over to be produced → records: lines of text, or the table ``records`` as NDJSON."""

from __future__ import annotations

import sys
from base64 import b64decode
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, BinaryIO, cast

from kdissect.cli.errors import Unreadable, Wrong
from kdissect.cli.given import json_from
from kdissect.client.produce import Draft

LONGEST_LINE = 256 << 20


def drafts_from(path: str, form: str, separator: str | None, bytes_form: str) -> Iterator[Draft]:
    """The records of a file or of stdin (``-``).

    :param form: ``lines`` (each a value) or ``ndjson`` (each a row of the table ``records``).
    :param separator: what stands between key and value of a line; None: there are no keys.
    :param bytes_form: how keys and values of NDJSON are written: ``text``, ``base64`` or ``hex``.
    :raises Unreadable: the file cannot be read, or a line is not of the form.
    """
    try:
        opened = nullcontext(cast(BinaryIO, sys.stdin.buffer)) if path == "-" else open(path, "rb")  # noqa: SIM115
    except OSError as error:
        raise Unreadable(f"{path}: cannot be read: {error.strerror}") from None
    with opened as file:
        number = 0
        while line := file.readline(LONGEST_LINE):
            number += 1
            try:
                if form == "lines":
                    yield _of_line(line, separator)
                elif line.strip() and (draft := _of_row(json_from(line), bytes_form)) is not None:
                    yield draft
            except ValueError as error:
                raise Unreadable(f"{path}, line {number}: {error}") from None


def _of_line(line: bytes, separator: str | None) -> Draft:
    value = line.removesuffix(b"\n").removesuffix(b"\r")
    if separator is None:
        return Draft(None, value)
    key, found, rest = value.partition(separator.encode())
    if not found:
        raise ValueError(f"there is no {separator!r} between key and value")
    return Draft(key, rest)


def _of_row(row: Any, bytes_form: str) -> Draft | None:
    """A row's record; None for control records, which only a broker writes."""
    if not isinstance(row, dict):
        raise ValueError("a JSON object is needed")
    if row.get("control") is not None:
        return None
    headers = row.get("headers") or []
    if not isinstance(headers, list) or not all(
        isinstance(each, dict) and isinstance(each.get("key"), str) for each in headers
    ):
        raise ValueError('headers: a list of {"key", "value"} is needed')
    for name in ("timestamp", "partition"):
        if row.get(name) is not None and (not isinstance(row[name], int) or isinstance(row[name], bool)):
            raise ValueError(f"{name}: a whole number is needed")
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


def headers_from(given: tuple[str, ...]) -> tuple[tuple[str, bytes | None], ...]:
    """Headers as options give them: NAME=VALUE, or NAME alone for null.

    :raises Wrong: one has no name.
    """
    found: list[tuple[str, bytes | None]] = []
    for text in given:
        name, equals, value = text.partition("=")
        if not name:
            raise Wrong(f"--header {text}: the form is NAME=VALUE")
        found.append((name, value.encode("utf-8", "surrogateescape") if equals else None))
    return tuple(found)
