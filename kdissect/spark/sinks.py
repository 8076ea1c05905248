"""Record batches of a table → a file of Parquet, which a task writes itself.

Spark would turn each row into a Java object, and that into Parquet: several times as much work. The name of a
file has the task's number and a random word, so that two attempts of a task never write the same file.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from kdissect.lazy import Later
from kdissect.present.arrow import parquet_writer
from kdissect.spark.storage import join
from kdissect.spark.table_layout import moment_name
from kdissect.spark.writing import create_file, remove

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
else:
    pa = Later("pyarrow")
    pc = Later("pyarrow.compute")


class TaskFile(NamedTuple):
    """A file that a task wrote."""

    table: str
    """The key of the table."""
    path: str
    rows: int
    """The number of its rows."""
    size: int
    """Its size in bytes."""


class FileSink:
    """Writes the record batches of one table.

    :param folder: the folder of its file.
    :param table: the key of the table.
    :param task: the number of the task.
    :param epochs: the columns that get a moment beside them.
    :param is_first: whether to make the file even without rows, because a table has at least one file.
    """

    def __init__(
        self, folder: str, table: str, task: int, schema: pa.Schema, epochs: list[str], is_first: bool
    ) -> None:
        self._path = join(folder, f"{table}/part-{task:05}-{uuid.uuid4().hex[:12]}.parquet")
        self._table = table
        self._epochs = epochs
        self._schema = moments_in(schema, epochs)
        self._rows = 0
        self._file: Any = None
        self._writer: pq.ParquetWriter | None = None
        if is_first:
            self._open()

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the next rows.

        :raises OSError: they cannot be written.
        """
        if self._writer is None:
            self._open()
        assert self._writer is not None
        self._writer.write_batch(_with_moments(batch, self._epochs, self._schema))
        self._rows += batch.num_rows
        pa.default_memory_pool().release_unused()  # as for files of read

    def close(self) -> TaskFile | None:
        """Write the end; return the written file, or None if there were no rows and no file was made.

        :raises OSError: it cannot be written.
        """
        if self._writer is None:
            return None
        self._writer.close()
        size = self._file.tell()
        self._file.close()
        return TaskFile(self._table, self._path, self._rows, size)

    def abandon(self) -> None:
        """Remove the file, because the task failed."""
        for each in (self._writer, self._file):
            if each is not None:
                with suppress(OSError, ValueError, pa.ArrowException):
                    each.close()
        if self._file is not None:
            with suppress(OSError):
                remove(self._path)

    def _open(self) -> None:
        self._file = create_file(self._path)
        self._writer = parquet_writer(self._file, self._schema)


def moments_in(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """The schema of :func:`~kdissect.spark.table_layout.with_moments`, for Arrow."""
    fields: list[pa.Field] = []
    for field in schema:
        fields.append(field)
        if field.name in names:
            fields.append(pa.field(moment_name(field.name), pa.timestamp("us", tz="UTC")))
    return pa.schema(fields)


def _with_moments(batch: pa.RecordBatch, names: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """A record batch with the moments of :func:`~kdissect.spark.table_layout.with_moments`.

    :param schema: the schema of :func:`moments_in`.
    """
    if not names:
        return batch
    columns: list[pa.Array] = []
    for name, values in zip(batch.schema.names, batch.columns, strict=True):
        columns.append(values)
        if name in names:
            micros = pc.divide(values, 1_000)
            columns.append(micros.cast(pa.timestamp("us")).cast(pa.timestamp("us", tz="UTC")))
    return pa.record_batch(columns, schema=schema)
