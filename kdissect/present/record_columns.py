"""Batches of records → Arrow, column by column: no object is made for a record but for its key and value.

The same table as that of :class:`~kdissect.present.arrow.RowBatches`. What the records of a batch have in
common is kept once for each, with how many they are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from kdissect.exchange import Exchange
from kdissect.present.arrow import ArrowWriter, ParquetWriter, arrow_schema, arrow_value
from kdissect.present.arrow_parts import BatchColumns, ColumnsSink
from kdissect.present.columns import Table
from kdissect.present.gathered import GatheredRecords
from kdissect.present.options import Options
from kdissect.present.record_batches import PlainBatch, record_batches
from kdissect.present.record_text import VARIABLE
from kdissect.record.records import ROW, wrap64

ROWS_AT_ONCE = 24_576
BYTES_AT_ONCE = 8 << 20
"""A batch is written when it has so many rows, or about so many bytes: memory stays bounded. 32,768 rows take
10 MB more over 2 GB, 16,384 a tenth more time."""


class _RecordsWriter:
    """Exchanges → record batches of Arrow's, which a writer or a sink takes."""

    def __init__(self, table: Table, options: Options) -> None:
        self._batches = RecordBatches(table)
        self._options = options
        self._sink: ArrowWriter | ColumnsSink

    def write(self, exchange: Exchange) -> Iterator[int]:
        """Write the records of an exchange, some at a time; gives how many."""
        for batch in record_batches(exchange, self._options):
            if isinstance(batch, PlainBatch):
                self._sink.write_batch(self._batches.add(batch))
                yield batch.columns.count
            else:
                for row in batch:
                    self._sink.write_batch(self._batches.add_row(row))
                yield len(batch)

    def close(self) -> None:
        """Write what waits and the format's end."""
        self._sink.write_batch(self._batches.take())
        self._sink.close()


class ColumnsWriter(_RecordsWriter):
    """The table in Parquet or as a stream of Arrow's, without ``--embedded``."""

    def __init__(self, form: str, table: Table, file: BinaryIO, options: Options) -> None:
        super().__init__(table, options)
        kind = ParquetWriter if form == "parquet" else ArrowWriter
        self._sink = self._writer = kind(table, file, options, (ROWS_AT_ONCE, BYTES_AT_ONCE))

    def join(self, columns: BatchColumns) -> None:
        """As :meth:`kdissect.present.arrow.ArrowWriter.join`."""
        self._writer.join_batch(self._batches.take(), *self._batches.taken)
        self._writer.join(columns)


class RecordColumns(_RecordsWriter):
    """The same rows, which another process writes."""

    def __init__(self, table: Table, file: BinaryIO, options: Options) -> None:
        super().__init__(table, options)
        self._sink = ColumnsSink(self._batches, file)


class RecordBatches:
    """Gathers batches of records until they make a batch of Arrow's."""

    def __init__(self, table: Table) -> None:
        self.schema = arrow_schema(table)
        self._common_names = [name for name in self.schema.names if name not in VARIABLE]
        self._records = GatheredRecords()
        self.taken: tuple[Sequence[int], Sequence[int]] = ((), ())
        """As :class:`kdissect.present.arrow_parts.Gathers` has it."""
        self._clear()

    def _clear(self) -> None:
        self._records.clear()
        self._value_sizes: dict[int, int] = {}
        """By row, of values that are hidden: what stands for them has another size."""
        self._common: list[list[Any]] = []
        """What the records of each batch have in common."""
        self._counts: list[int] = []
        """Of each batch, its records."""
        self._held = array("q")
        """The bytes up to each batch."""
        self._shifts: list[int | None] = []
        """Of each, what to add to offsets for those that the broker gave."""
        self._sequence_shifts: list[int | None] = []
        """Of each, what to add to offsets for sequence numbers; None without an idempotent producer."""

    def add(self, batch: PlainBatch) -> pa.RecordBatch | None:
        """Add a batch; gives the batch that is full now, if one is."""
        columns, count = batch.columns, batch.columns.count
        if not count:
            return None
        self._records.add(columns)
        self._counts.append(count)
        assigned, sequence = batch.assigned, columns.base_sequence
        self._shifts.append(None if assigned is None else wrap64(assigned - columns.base_offset))
        self._sequence_shifts.append(None if sequence < 0 else wrap64(sequence - columns.base_offset))
        common = batch.common
        if "control" in common:
            common = common | {"control": arrow_value("json", common["control"])}
        return self._add_common(common)

    def add_row(self, row: dict[str, Any]) -> pa.RecordBatch | None:
        """Add a row as :mod:`kdissect.present.records` gives it, a batch of its own; gives the batch that is
        full now, if one is."""
        offset, timestamp, value, value_size = (
            row["offset"],
            row["timestamp"],
            row["value"],
            row["value_size"],
        )
        if value_size is not None and value_size != (-1 if value is None else len(value)):
            self._value_sizes[self._records.count] = value_size
        self._records.add_one(
            offset, -1 if timestamp is None else timestamp, row["key"], value, row["headers"] or ()
        )
        self._counts.append(1)
        for shifts, name in ((self._shifts, "assigned_offset"), (self._sequence_shifts, "sequence")):
            shifts.append(None if row[name] is None else wrap64(row[name] - offset))
        return self._add_common(row | {"control": arrow_value("json", row["control"])})

    def _add_common(self, row: dict[str, Any]) -> pa.RecordBatch | None:
        """Add what records have in common; gives the batch that is full now, if one is."""
        self._common.append([row.get(name) for name in self._common_names])
        held = self._records.held()
        self._held.append(held)
        return self.take() if self._records.count >= ROWS_AT_ONCE or held >= BYTES_AT_ONCE else None

    def take(self) -> pa.RecordBatch | None:
        """What waits, as a batch; None if there is nothing."""
        records = self._records
        if not records.count:
            return None
        numbers = records.numbers()
        offsets, timestamps, key_sizes, value_sizes = (_numbers(numbers[at::ROW]) for at in (0, 1, 3, 5))
        batch_of = self._batch_of()
        low_bits = _constant(0x7FFFFFFF, records.count)
        found = {
            "offset": offsets,
            "assigned_offset": pc.add(offsets, _spread(_integers(self._shifts), batch_of)),
            "timestamp": _known(timestamps),
            "key": _contents(key_sizes, records.keys.take(), pa.binary()),
            "value": _contents(value_sizes, records.values.take(), pa.binary()),
            "headers": self._headers(_numbers(numbers[6::ROW])),
            "key_size": _known(key_sizes),
            "value_size": _known(_numbers(self._sizes_of_values(numbers))),
            "sequence": pc.bit_wise_and(
                pc.add(offsets, _spread(_integers(self._sequence_shifts), batch_of)), low_bits
            ).cast(pa.int32()),
        }
        assert found.keys() == set(VARIABLE)
        for name, values in zip(self._common_names, zip(*self._common, strict=True), strict=True):
            found[name] = _spread(_column(values, self.schema.field(name).type), batch_of)
        arrays = [found[name] for name in self.schema.names]
        self.taken = self._counts, self._held
        self._clear()
        return pa.record_batch(arrays, schema=self.schema)

    def _sizes_of_values(self, numbers: array[int]) -> array[int]:
        sizes = numbers[5::ROW]
        for row, size in self._value_sizes.items():
            sizes[row] = size
        return sizes

    def _batch_of(self) -> pa.Array | None:
        """Of each record, its batch; None where each is one of its own."""
        if self._records.count == len(self._counts):
            return None
        batch_of = array("i")
        for at, count in enumerate(self._counts):
            batch_of.extend(array("i", [at]) * count)
        return _indexes(batch_of)

    def _headers(self, counts: pa.Array) -> pa.Array:
        """:param counts: how many each record has."""
        records, kind = self._records, self.schema.field("headers").type
        sizes = records.header_sizes()
        names = _contents(_numbers(sizes[::2]), records.header_names.take(), pa.string())
        values = _contents(_numbers(sizes[1::2]), records.header_values.take(), pa.binary())
        headers = pa.StructArray.from_arrays([names, values], fields=list(kind.value_type))
        return pa.ListArray.from_arrays(_starts(counts), headers, type=kind)


# Arrays are made of buffers: pyarrow looks at objects of Python one by one, and imports pandas before the
# first, where that is installed.


def _numbers(values: array[int]) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def _indexes(values: array[int]) -> pa.Array:
    return pa.Array.from_buffers(pa.int32(), len(values), [None, pa.py_buffer(values)])


def _constant(value: int, count: int) -> pa.Array:
    return _numbers(array("q", [value]) * count)


def _where(are_there: pa.Array, values: pa.Array) -> pa.Array:
    """The values, null where there are none."""
    if are_there.true_count == len(values):
        return values
    return pc.if_else(are_there, values, pa.nulls(len(values), values.type))


def _known(numbers: pa.Array) -> pa.Array:
    """-1 is none."""
    return _where(pc.not_equal(numbers, _constant(-1, len(numbers))), numbers)


def _integers(values: Sequence[int | None]) -> pa.Array:
    missing = values.count(None)
    if missing == len(values):
        return pa.nulls(missing, pa.int64())
    found = _numbers(array("q", [each or 0 for each in values]))
    if not missing:
        return found
    are_there = array("q", [each is not None for each in values])
    return _where(_numbers(are_there).cast(pa.bool_()), found)


def _texts(values: Sequence[str]) -> pa.Array:
    """Texts that occur often, each once in memory."""
    places = {value: at for at, value in enumerate(dict.fromkeys(values))}
    encoded = [value.encode() for value in places]
    ends = pc.cumulative_sum(_numbers(array("q", [0, *map(len, encoded)]))).cast(pa.int32())
    data = pa.py_buffer(b"".join(encoded))
    distinct = pa.Array.from_buffers(pa.string(), len(places), [None, ends.buffers()[1], data])
    return distinct.take(_indexes(array("i", [places[value] for value in values])))


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A column of what batches have in common: text, integers or booleans, and null."""
    if kind != pa.string():
        return _integers(values).cast(kind)
    missing = values.count(None)
    if missing == len(values):
        return pa.nulls(missing, kind)
    found = _texts([each or "" for each in values])
    if not missing:
        return found
    are_there = array("q", [each is not None for each in values])
    return _where(_numbers(are_there).cast(pa.bool_()), found)


def _spread(found: pa.Array, batch_of: pa.Array | None) -> pa.Array:
    """A value for each batch → one for each record."""
    return found if batch_of is None else found.take(batch_of)


def _contents(sizes: pa.Array, joined: bytes, kind: pa.DataType) -> pa.Array:
    """Bytes of these sizes, one after the other; a size of -1 is null."""
    count = len(sizes)
    starts = _starts(pc.max_element_wise(sizes, _constant(0, count)))
    found = pa.Array.from_buffers(kind, count, [None, starts.buffers()[1], pa.py_buffer(joined)])
    return _where(pc.not_equal(sizes, _constant(-1, count)), found)


def _starts(sizes: pa.Array) -> pa.Array:
    """Where things of these sizes begin, one after the other, and where the last ends."""
    return pa.concat_arrays([_indexes(array("i", [0])), pc.cumulative_sum(sizes).cast(pa.int32())])
