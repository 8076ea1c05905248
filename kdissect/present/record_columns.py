"""Batches of records → Arrow, column by column: no object is made for a record but for its key and value.

The same table as that of :class:`~kdissect.present.arrow.RowBatches`. What the records of a batch have in
common is kept once for each, with how many they are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from kdissect.exchange import Exchange
from kdissect.present.arrow import ArrowWriter, ParquetWriter, arrow_schema, arrow_value
from kdissect.present.columns import Table
from kdissect.present.options import Options
from kdissect.present.record_batches import PlainBatch, record_batches
from kdissect.present.record_text import VARIABLE, gathered
from kdissect.record.records import ROW, wrap64

ROWS_AT_ONCE = 16_384
BYTES_AT_ONCE = 4 << 20
"""A batch is written when it has so many rows, or about so many bytes: memory stays bounded."""


class ColumnsWriter:
    """The table in Parquet or as a stream of Arrow's, without ``--embedded``."""

    def __init__(self, form: str, table: Table, file: BinaryIO, options: Options) -> None:
        self._writer = (ParquetWriter if form == "parquet" else ArrowWriter)(table, file, options)
        self._batches = RecordBatches(table, options)
        self._options = options

    def write(self, exchange: Exchange) -> Iterator[int]:
        """Write the records of an exchange, some at a time; gives how many."""
        for batch in record_batches(exchange, self._options):
            if isinstance(batch, PlainBatch):
                self._writer.write_batch(self._batches.add(batch))
                yield batch.columns.count
            else:
                self._writer.write_batch(self._batches.take())
                for row in batch:
                    self._writer.write(row)
                yield len(batch)

    def close(self) -> None:
        """Write what waits and the format's end."""
        self._writer.write_batch(self._batches.take())
        self._writer.close()


class RecordBatches:
    """Gathers batches of records until they make a batch of Arrow's."""

    def __init__(self, table: Table, options: Options) -> None:
        self._schema = arrow_schema(table)
        self._common_columns = [column for column in table.columns if column.name not in VARIABLE]
        self._options = options
        self._clear()

    def _clear(self) -> None:
        self._offsets, self._timestamps = array("q"), array("q")
        self._key_sizes, self._value_sizes = array("q"), array("q")
        self._keys: list[bytes] = []
        self._values: list[bytes] = []
        self._headers: dict[int, Any] = {}
        """By row, of those that have some."""
        self._common: list[list[Any]] = []
        """A row of each batch that was added."""
        self._shifts: list[int | None] = []
        """Of each, what to add to offsets for those that the broker gave."""
        self._sequence_shifts: list[int | None] = []
        """Of each, what to add to offsets for sequence numbers; None without an idempotent producer."""
        self._batch_of = array("i")
        """Of each record, its batch."""
        self._bytes = 0

    def add(self, batch: PlainBatch) -> pa.RecordBatch | None:
        """Add a batch; gives the batch that is full now, if one is."""
        columns, count = batch.columns, batch.columns.count
        rows, end, first = columns.rows, count * ROW, len(self._offsets)
        self._offsets.extend(rows[0:end:ROW])
        self._timestamps.extend(rows[1:end:ROW])
        self._key_sizes.extend(rows[3:end:ROW])
        self._value_sizes.extend(rows[5:end:ROW])
        positions = rows[6:end:ROW]
        if max(positions, default=-1) >= 0:
            for at, position in enumerate(positions):
                if position >= 0:
                    self._headers[first + at] = arrow_value("headers", columns.headers(position))
        keys, values = gathered(columns, 2), gathered(columns, 4)
        self._keys.append(keys)
        self._values.append(values)
        self._bytes += len(keys) + len(values) + count
        assigned = batch.assigned
        self._shifts.append(None if assigned is None else wrap64(assigned - columns.base_offset))
        sequence = columns.base_sequence
        self._sequence_shifts.append(None if sequence < 0 else wrap64(sequence - columns.base_offset))
        self._batch_of.extend(array("i", [len(self._common)]) * count)
        self._common.append(
            [arrow_value(c.type, c.value(batch.common, self._options)) for c in self._common_columns]
        )
        if len(self._offsets) >= ROWS_AT_ONCE or self._bytes >= BYTES_AT_ONCE:
            return self.take()
        return None

    def take(self) -> pa.RecordBatch | None:
        """What waits, as a batch; None if there is nothing."""
        if not self._offsets:
            return None
        batch_of = pa.Array.from_buffers(
            pa.int32(), len(self._batch_of), [None, pa.py_buffer(self._batch_of)]
        )
        offsets = _numbers(self._offsets)
        key_sizes, value_sizes = _numbers(self._key_sizes), _numbers(self._value_sizes)
        shifts = pa.array(self._shifts, pa.int64()).take(batch_of)
        sequence_shifts = pa.array(self._sequence_shifts, pa.int64()).take(batch_of)
        found = {
            "offset": offsets,
            "assigned_offset": pc.add(offsets, shifts),
            "timestamp": _known(_numbers(self._timestamps)),
            "key": _contents(key_sizes, self._keys),
            "value": _contents(value_sizes, self._values),
            "headers": self._all_headers(len(offsets)),
            "key_size": _known(key_sizes),
            "value_size": _known(value_sizes),
            "sequence": pc.bit_wise_and(pc.add(offsets, sequence_shifts), 0x7FFFFFFF).cast(pa.int32()),
        }
        assert found.keys() == set(VARIABLE)
        for column, values in zip(self._common_columns, zip(*self._common, strict=True), strict=True):
            kind = self._schema.field(column.name).type
            found[column.name] = pa.array(values, kind).take(batch_of)
        arrays = [found[name] for name in self._schema.names]
        self._clear()
        return pa.record_batch(arrays, schema=self._schema)

    def _all_headers(self, count: int) -> pa.Array:
        kind = self._schema.field("headers").type
        if self._headers:
            return pa.array([self._headers.get(row, ()) for row in range(count)], kind)
        starts = pa.array(array("i", bytes(4 * (count + 1))), pa.int32())
        return pa.ListArray.from_arrays(starts, pa.array([], kind.value_type), type=kind)


def _numbers(values: Any) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def _known(numbers: pa.Array) -> pa.Array:
    """-1 is none."""
    return pc.if_else(pc.equal(numbers, -1), pa.scalar(None, numbers.type), numbers)


def _contents(sizes: pa.Array, parts: list[bytes]) -> pa.Array:
    """Bytes of these sizes, one after the other; a size of -1 is null."""
    ends = pc.cumulative_sum(pc.max_element_wise(sizes, 0)).cast(pa.int32())
    starts = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    data = pa.py_buffer(b"".join(parts))
    found = pa.Array.from_buffers(pa.binary(), len(sizes), [None, starts.buffers()[1], data])
    is_null = pc.equal(sizes, -1)
    return pc.if_else(is_null, pa.scalar(None, pa.binary()), found) if pc.any(is_null).as_py() else found
