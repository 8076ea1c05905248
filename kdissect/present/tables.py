"""Rows → NDJSON, CSV and TSV: one writer for each format. It receives the sources of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, BinaryIO, Protocol, runtime_checkable

from kdissect.present.columns import EXCHANGES, Column, Source, Table
from kdissect.present.options import PLAIN, Options
from kdissect.present.record_text import bytes_form, header_objects
from kdissect.present.sanitise import cell
from kdissect.protocol.json_form import RawText, dumps

FORMATS = ("ndjson", "csv", "tsv", "parquet", "arrow")
BINARY = ("parquet", "arrow")
"""Formats that must not be written to a terminal."""


class Writer(Protocol):
    """Writes the rows of one table."""

    def write(self, source: Any) -> None:
        """Add a row."""

    def close(self) -> None:
        """Write waiting rows and the format's end."""


@runtime_checkable
class ManyWriter(Writer, Protocol):
    """A writer that accepts many rows at a time, and writes them together."""

    def write_all(self, sources: Iterable[Any]) -> None:
        """Add rows."""


class JoiningWriter(Writer, Protocol):
    """A writer of a :data:`BINARY` format, which also accepts rows of other processes."""

    def join(self, columns: Any) -> None:
        """Add rows that another process made."""


Read = Callable[[Source, Options], Any]
"""Reads the value of a column from the source of a row."""


def readers(table: Table, options: Options) -> list[Read]:
    """The functions that read the columns of a table. For the requests and responses of exchanges they give
    JSON text, which is made many times faster than objects."""
    if table.name != EXCHANGES.name:
        return [column.value for column in table.columns]
    from kdissect.present.message_json import MessageJson

    texts = MessageJson(options).text
    sides = {each.name: each.value for each in EXCHANGES.columns if each.type == "json"}
    return [
        partial(texts, column.name) if sides.get(column.name) is column.value else column.value
        for column in table.columns
    ]


class NdjsonWriter:
    """Writes one JSON object a line, ASCII only, with LF at its end."""

    def __init__(self, table: Table, file: BinaryIO, options: Options = PLAIN) -> None:
        self._table = table
        self._file = file
        self._options = options._replace(as_text=True)
        self._led, self._names, self._values = _read_as_they_stand(table)

    def write(self, source: Any) -> None:
        if self._values is not None:
            row = {column.name: column.value(source, self._options) for column in self._led}
            row.update(zip(self._names, self._values(source), strict=True))
            text = dumps(row)
            if _SURROGATE not in text:  # otherwise it may have text that is not valid
                self._file.write(text.encode("ascii") + b"\n")
                return
        self._file.write(row_line(self._table, source, self._options))

    def close(self) -> None:
        """Do nothing: NDJSON has no end."""


def _read_as_they_stand(
    table: Table,
) -> tuple[list[Column], list[str], Callable[[dict[str, Any]], tuple[Any, ...]] | None]:
    """How to read rows that are dicts at once, if no value has another form in JSON: the columns that are not
    in a row, the names of those that are, and the function that reads these. The function is None if this is
    not possible.
    """
    led = [column for column in table.columns if column.key is None]
    rest = table.columns[len(led) :]
    keys = [column.key for column in rest if column.key is not None]
    others = any(column.optional or column.type in _OF_BYTES for column in table.columns)
    if len(led) > 1 or len(keys) < len(rest) or len(keys) < 2 or others:
        return [], [], None
    return led, [column.name for column in rest], itemgetter(*keys)


def row_line(table: Table, source: Any, options: Options) -> bytes:
    """One row as a line of NDJSON."""
    row = {}
    for column in table.columns:
        value = column.value(source, options)
        if value is None and column.optional:
            continue
        kind = column.type
        row[column.name] = json_value(kind, value, options) if kind in _OF_BYTES else value
    return dumps(row, options.records).encode("ascii") + b"\n"


def json_line(value: Any) -> bytes:
    """One line of NDJSON."""
    return dumps(value).encode("ascii") + b"\n"


_SURROGATE = "\\ud"
"""The beginning of a surrogate in JSON of ASCII."""
_OF_BYTES = ("bytes", "headers")
"""Types whose values have another form in JSON."""


def json_value(kind: str, value: Any, options: Options) -> Any:
    """A column's value in the form of JSON."""
    if value is None:
        return None
    if kind == "bytes":
        return bytes_form(value, options.bytes_form)
    if kind == "headers":
        return header_objects(value, options.bytes_form)
    return value


class DelimitedWriter:
    """CSV (RFC 4180, every cell in quotes) or TSV (no quotes: cells hold no tab and no line end).

    Null is an empty cell. In CSV it has no quotes, because with quotes it would be empty text. A list or
    object is JSON text. Numbers stay numbers.
    """

    def __init__(
        self,
        table: Table,
        file: BinaryIO,
        options: Options,
        delimiter: str,
        quote: str,
        heading: bool = True,
    ) -> None:
        self._file = file
        self._options = options
        self._delimiter = delimiter
        self._quote = quote
        self._columns = [
            (read, column.type, column.type in _NUMBERS)
            for read, column in zip(readers(table, options), table.columns, strict=True)
        ]
        """For each column, the function that reads its value, its type, and whether that is a type of
        numbers."""
        if heading:
            self._line([self._quoted(column.name) for column in table.columns])

    def write(self, source: Any) -> None:
        quote, options = self._quote, self._options
        cells = []
        for read, kind, is_number in self._columns:
            value = read(source, options)
            if value is None:
                cells.append("")
            elif is_number:
                cells.append(f"{quote}{value}{quote}")
            else:
                cells.append(self._quoted(_cell(kind, value, options)))
        self._line(cells)

    def close(self) -> None:
        """Do nothing: neither format has an end."""

    def _quoted(self, text: str) -> str:
        quote = self._quote
        return quote + text.replace(quote, quote * 2) + quote if quote else text

    def _line(self, cells: Sequence[str]) -> None:
        self._file.write(self._delimiter.join(cells).encode("utf-8") + b"\n")


_NUMBERS = ("int16", "int32", "int64", "float64")


def _cell(kind: str, value: Any, options: Options) -> str:
    value = json_value(kind, value, options)
    if isinstance(value, RawText):
        return value
    if isinstance(value, str):
        return cell(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return "[]" if value == [] else dumps(value)
