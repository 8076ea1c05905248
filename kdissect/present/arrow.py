"""Rows → Parquet files and Arrow IPC streams, through pyarrow (the extra ``arrow``)."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from typing import Any, BinaryIO

from kdissect.present.columns import Table
from kdissect.present.options import PLAIN, Options
from kdissect.present.sanitise import valid_text
from kdissect.present.tables import json_line, readers
from kdissect.protocol.json_form import RawText
from kdissect.wording import NotInstalledError, how_to_install

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    raise NotInstalledError(
        f"Parquet and Arrow need pyarrow, which is not installed: {how_to_install('arrow')}"
    ) from error

from kdissect.present.arrow_parts import BatchColumns, ColumnsSink, JoinedBatches

ROWS_A_BATCH = 8_192
BYTES_A_BATCH = 32 << 20
"""A batch is written when it has this many rows or about this many bytes, so that memory stays bounded."""

_TYPES: dict[str, pa.DataType] = {
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "text": pa.string(),
    "bytes": pa.binary(),
    "json": pa.string(),
    "texts": pa.list_(pa.string()),
    "int64s": pa.list_(pa.int64()),
    "faults": pa.list_(
        pa.struct(
            [
                ("layer", pa.string()),
                ("kind", pa.string()),
                ("message", pa.string()),
                ("packet", pa.int64()),
                ("offset", pa.int64()),
            ]
        )
    ),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}


def arrow_schema(table: Table) -> pa.Schema:
    """The table's columns as Arrow types; every column may be null."""
    return pa.schema([(column.name, _TYPES[column.type]) for column in table.columns])


class _NoPandas(MetaPathFinder):
    """Refuses to import pandas."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)


def keep_pandas_out() -> None:
    """Make the first array while pandas cannot be imported. pyarrow looks for pandas then, and only then.
    Where pandas is installed, pyarrow would import it, which takes 0.3 s and 45 MB. It still imports pandas
    when it is asked for a data frame."""
    no_pandas = _NoPandas()
    sys.meta_path.insert(0, no_pandas)
    try:
        pa.array(["a"])
    finally:
        sys.meta_path.remove(no_pandas)


class RowBatches:
    """Gathers rows into batches."""

    def __init__(self, table: Table, options: Options = PLAIN) -> None:
        self.schema = arrow_schema(table)
        self._options = options
        self._columns: list[list[Any]] = [[] for _ in table.columns]
        self._ways = [
            (read, column.type) for read, column in zip(readers(table, options), table.columns, strict=True)
        ]
        """For each column, the function that reads its value, and its type."""
        self._bytes = 0
        self._held = array("q")
        """The bytes up to each row."""
        self.taken: tuple[None, Sequence[int]] = (None, ())
        """As :class:`kdissect.present.arrow_parts.Gathers` defines it."""

    def add(self, source: Any) -> pa.RecordBatch | None:
        """Add a row; return a batch if one is full now."""
        options = self._options
        for (read, kind), values in zip(self._ways, self._columns, strict=True):
            value = arrow_value(kind, read(source, options))
            values.append(value)
            if isinstance(value, str | bytes):
                self._bytes += len(value)
            elif value and kind == "headers":
                self._bytes += sum(len(each["key"]) + len(each["value"] or b"") for each in value)
        self._held.append(self._bytes)
        if len(self._columns[0]) >= ROWS_A_BATCH or self._bytes >= BYTES_A_BATCH:
            return self.take()
        return None

    def take(self) -> pa.RecordBatch | None:
        """The waiting rows as a batch, if there are any."""
        if not self._columns[0]:
            return None
        arrays = [
            pa.array(values, field.type) for values, field in zip(self._columns, self.schema, strict=True)
        ]
        self._columns = [[] for _ in self._ways]
        self._bytes = 0
        self.taken, self._held = (None, self._held), array("q")
        return pa.record_batch(arrays, schema=self.schema)


class ArrowWriter:
    """Writes an Arrow IPC stream.

    :param most: the rows and the bytes that fill a batch, if other processes make the rows.
    """

    def __init__(
        self, table: Table, file: BinaryIO, options: Options = PLAIN, most: tuple[int, int] | None = None
    ) -> None:
        self._rows = RowBatches(table, options)
        self._joined = JoinedBatches(self._rows.schema, *(most or (ROWS_A_BATCH, BYTES_A_BATCH)))
        self._sink = self._open(file)

    def _open(self, file: BinaryIO) -> Any:
        return pa.ipc.new_stream(_Sink(file), self._rows.schema)

    def write(self, source: Any) -> None:
        self._write(self._rows.add(source))

    def write_batch(self, batch: pa.RecordBatch | None) -> None:
        """Add rows that are already a batch, after the waiting ones."""
        if batch is not None:
            self._write(self._rows.take())
            self._write(batch)

    def join(self, columns: BatchColumns) -> None:
        """Add rows that another process made. From then on all rows come from other processes."""
        self.join_batch(self._rows.take(), *self._rows.taken)
        for batch in self._joined.read(columns):
            self._write(batch)

    def join_batch(
        self, batch: pa.RecordBatch | None, counts: Sequence[int] | None, held: Sequence[int]
    ) -> None:
        """Add rows that this process made before. They may share a batch with rows of other processes."""
        for full in () if batch is None else self._joined.add(batch, counts, held):
            self._write(full)

    def close(self) -> None:
        self._write(self._joined.take())
        self._write(self._rows.take())
        self._sink.close()

    def _write(self, batch: pa.RecordBatch | None) -> None:
        if batch is not None:
            self._sink.write_batch(batch)
            # Batches differ in size: the memory that the allocator keeps for them would grow by 15 MB over 2
            # GB of input.
            pa.default_memory_pool().release_unused()


class ParquetWriter(ArrowWriter):
    """Writes a Parquet file."""

    def _open(self, file: BinaryIO) -> Any:
        return parquet_writer(_Sink(file), self._rows.schema)


def parquet_writer(file: Any, schema: pa.Schema) -> pq.ParquetWriter:
    """The writer of all Parquet files of kdissect: compressed with zstd. It stores minimum and maximum values
    of columns for which queries use them, but not of bytes, which may be long.

    :param file: as pyarrow takes it; the caller closes it.
    """
    ordered = [field.name for field in schema if field.type != pa.binary()]
    return pq.ParquetWriter(file, schema, compression="zstd", write_statistics=ordered)


class RowColumns:
    """Makes rows that another process writes."""

    def __init__(self, table: Table, file: BinaryIO, options: Options = PLAIN) -> None:
        self._rows = RowBatches(table, options)
        self._sink = ColumnsSink(self._rows, file)

    def write(self, source: Any) -> None:
        self._sink.write_batch(self._rows.add(source))

    def close(self) -> None:
        """Hand on the waiting rows; more may come later."""
        self._sink.write_batch(self._rows.take())


class _Sink:
    """The file that pyarrow needs, over a file that cannot seek (a pipe) and that pyarrow must not close."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._position = 0

    def write(self, data: Any) -> int:
        self._file.write(data)
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.flush()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


def arrow_value(kind: str, value: Any) -> Any:
    """A column's value in the form of Arrow."""
    if value is None or isinstance(value, RawText):
        return value
    if kind == "json":
        return json_line(value).decode("ascii").rstrip("\n")
    if kind == "headers":
        return [{"key": valid_text(name), "value": content} for name, content in value]
    return value
