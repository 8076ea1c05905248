"""Rows of a Parquet file or an Arrow stream: several processes make them, and one writes them.

    rows ─► RowBatches | RecordBatches ─► BatchColumns ─► Joined ─► ArrowWriter

A single process ends a batch of the file after some number of rows or bytes. The processes that make rows do
not know where that is. So they send the sizes of their rows beside the columns. :class:`JoinedBatches` ends
batches where one process would have ended them. So the file is the same, byte for byte, with one process or
several.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, Protocol

import pyarrow as pa


class BatchColumns(NamedTuple):
    """Rows that were made by another process than the one that writes them."""

    data: bytes
    """A record batch, as a message of Arrow's IPC format without its schema."""
    counts: Sequence[int] | None
    """How many rows are added at a time; None for one."""
    held: Sequence[int]
    """The bytes of all rows up to each addition, as a batch counts them."""


class Gathers(Protocol):
    """Makes record batches of rows."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def taken(self) -> tuple[Sequence[int] | None, Sequence[int]]:
        """``counts`` and ``held`` of :class:`BatchColumns`, for the last batch that was returned."""


class RowOutlet(Protocol):
    """Receives rows that are made for another process."""

    def write(self, data: Any) -> None: ...


class ColumnsSink:
    """Takes record batches as a writer does, and sends them as :class:`BatchColumns` to the process that
    writes the file."""

    def __init__(self, rows: Gathers, file: Any) -> None:
        """:param file: accepts :class:`BatchColumns`, too."""
        self._rows = rows
        self._file: RowOutlet = file

    def write_batch(self, batch: pa.RecordBatch | None) -> None:
        """Send a batch, if there is one."""
        if batch is not None:
            self._file.write(BatchColumns(batch.serialize().to_pybytes(), *self._rows.taken))
            pa.default_memory_pool().release_unused()

    def close(self) -> None:
        """Do nothing: the process that writes the file writes its end."""


class JoinedBatches:
    """BatchColumns → the batches that a single process would have made.

    :param most_rows: a batch ends when it has this many rows …
    :param most_bytes: … or this many bytes.
    """

    def __init__(self, schema: pa.Schema, most_rows: int, most_bytes: int) -> None:
        self._schema = schema
        self._most_rows = most_rows
        self._most_bytes = most_bytes
        self._waiting: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0
        """The rows and the bytes that wait."""

    def read(self, columns: BatchColumns) -> Iterator[pa.RecordBatch]:
        """Add the next rows of another process; give the batches that are full now."""
        batch = pa.ipc.read_record_batch(pa.py_buffer(columns.data), self._schema)
        return self.add(batch, columns.counts, columns.held)

    def add(
        self, batch: pa.RecordBatch, counts: Sequence[int] | None, held: Sequence[int]
    ) -> Iterator[pa.RecordBatch]:
        """Add the next rows of this process; give the batches that are full now."""
        rows = range(1, len(held) + 1) if counts is None else list(accumulate(counts))
        done = at = 0  # rows, and additions
        while at < len(held):
            before = held[at - 1] if at else 0
            by_rows = bisect_left(rows, done + self._most_rows - self._rows, at)
            by_bytes = bisect_left(held, before + self._most_bytes - self._bytes, at)
            end = min(by_rows, by_bytes) + 1
            if end > len(held):
                break
            self._put(batch, done, rows[end - 1], 0)
            full = self.take()
            assert full is not None
            yield full
            done, at = rows[end - 1], end
        if at < len(held):
            self._put(batch, done, rows[-1], held[-1] - (held[at - 1] if at else 0))

    def take(self) -> pa.RecordBatch | None:
        """The waiting rows as a batch, if there are any."""
        if not self._waiting:
            return None
        waiting, self._waiting = self._waiting, []
        self._rows = self._bytes = 0
        arrays = [
            pa.concat_arrays([batch.column(at) for batch in waiting]) for at in range(len(self._schema))
        ]
        return pa.record_batch(arrays, schema=self._schema)

    def _put(self, batch: pa.RecordBatch, start: int, end: int, size: int) -> None:
        self._waiting.append(batch.slice(start, end - start))
        self._rows += end - start
        self._bytes += size
