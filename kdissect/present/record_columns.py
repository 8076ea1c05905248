"""Records → Arrow, column by column, from their numbers and bytes as :mod:`kdissect.present.gathered` has
them.

The same table as that of :class:`~kdissect.present.arrow.RowBatches`. Values that the records of a batch or
of a set share are kept once for each.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from kdissect.exchange import Exchange
from kdissect.present.arrow import ArrowWriter, ParquetWriter, arrow_schema
from kdissect.present.arrow_parts import BatchColumns, ColumnsSink
from kdissect.present.columns import Table
from kdissect.present.gathered import TIMESTAMP_TYPES, Gathered
from kdissect.present.options import Options
from kdissect.present.record_text import VARIABLE
from kdissect.present.records import may_have_records
from kdissect.record.batch import CODEC_BITS, codec_name
from kdissect.record.records import ROW
from kdissect.session.briefs import Brief

ROWS_AT_ONCE = 24_576
BYTES_AT_ONCE = 8 << 20
"""A batch is written when it has this many rows or about this many bytes, so that memory stays bounded.
32,768 rows take 10 MB more over 2 GB, 16,384 rows take a tenth more time."""


_OF_BATCH = (
    *("timestamp_type", "magic", "codec", "producer_id", "producer_epoch", "transactional", "control"),
    *("partition_leader_epoch", "batch_offset", "crc_valid"),
)
"""The columns with one value for all records of a batch. Those with one value for a set come before."""


class _RecordsWriter:
    """Exchanges → record batches of Arrow, for a writer or a sink."""

    def __init__(self, table: Table, options: Options) -> None:
        self._batches = RecordBatches(table, options, self._put)
        self._sink: ArrowWriter | ColumnsSink

    def write(self, source: Exchange | Brief) -> Iterator[int]:
        """Write the records of an exchange; give their number, if there are any."""
        count = self.add(source)
        return iter((count,) if count else ())

    def add(self, source: Exchange | Brief) -> int:
        """Write the records of an exchange; return their number."""
        return self._batches.add(source)

    def add_all(self, events: Sequence[object]) -> int:
        """:meth:`add` of the exchanges among events."""
        return sum([self.add(each) for each in events if may_have_records(each)])

    def flush(self) -> None:
        """Do nothing: records wait until they fill a batch."""

    def close(self) -> None:
        """Write the waiting records and the format's end."""
        self._put(self._batches.take())
        self._sink.close()

    def _put(self, batch: pa.RecordBatch | None) -> None:
        self._sink.write_batch(batch)


class ColumnsWriter(_RecordsWriter):
    """Writes the table in Parquet or as a stream of Arrow, without ``--embedded``."""

    def __init__(self, form: str, table: Table, file: BinaryIO, options: Options) -> None:
        super().__init__(table, options)
        kind = ParquetWriter if form == "parquet" else ArrowWriter
        self._sink = self._writer = kind(table, file, options, (ROWS_AT_ONCE, BYTES_AT_ONCE))

    def join(self, columns: BatchColumns) -> None:
        """As :meth:`kdissect.present.arrow.ArrowWriter.join`."""
        self._writer.join_batch(self._batches.take(), *self._batches.taken)
        self._writer.join(columns)


class RecordColumns(_RecordsWriter):
    """Makes the same rows for another process, which writes them."""

    def __init__(self, table: Table, file: BinaryIO, options: Options) -> None:
        super().__init__(table, options)
        self._sink = ColumnsSink(self._batches, file)


class RecordBatches:
    """Gathers records into batches of Arrow.

    :param put: receives each full batch.
    """

    def __init__(self, table: Table, options: Options, put: Callable[[pa.RecordBatch], None]) -> None:
        self.schema = arrow_schema(table)
        self._set_names = [name for name in self.schema.names if name not in (*VARIABLE, *_OF_BATCH)]
        self._put = put
        self._gathered = Gathered(options, self._full, ROWS_AT_ONCE, BYTES_AT_ONCE)
        self.taken: tuple[Sequence[int], Sequence[int]] = ((), ())
        """As :class:`kdissect.present.arrow_parts.Gathers` defines it."""

    def add(self, source: Exchange | Brief, more: dict[str, Any] | None = None) -> int:
        """Add the records of an exchange; return how many there are.

        :param more: further values of their rows, by column.
        """
        return self._gathered.add(source, more)

    def _full(self) -> None:
        batch = self.take()
        assert batch is not None
        self._put(batch)

    def take(self) -> pa.RecordBatch | None:
        """The waiting records as a batch, if there are any."""
        gathered = self._gathered
        if not gathered.records.count:
            return None
        count, numbers = gathered.records.count, gathered.numbers()
        self.taken = numbers["count"], gathered.held
        batch_of = None if count == gathered.batches else _batch_of(numbers["count"])
        of_batches = {name: _numbers(each) for name, each in numbers.items()}
        found = self._of_sets(of_batches["set"], batch_of)
        found |= {name: _spread(each, batch_of) for name, each in self._of_batches(of_batches).items()}
        shifts = (
            _spread(_where(of_batches[is_there].cast(pa.bool_()), of_batches[shift]), batch_of)
            for shift, is_there in (("shift", "is_assigned"), ("sequence_shift", "has_sequence"))
        )
        found |= self._of_records(*shifts)
        gathered.clear()
        return pa.record_batch([found[name] for name in self.schema.names], schema=self.schema)

    def _of_sets(self, sets: pa.Array, batch_of: pa.Array | None) -> dict[str, pa.Array]:
        """The columns with one value for all records of a set.

        :param sets: the index of its set for each batch.
        """
        contexts = self._gathered.sets
        set_of = _spread(sets, batch_of)
        found = {}
        for name in self._set_names:
            values = _column([each.get(name) for each in contexts], self.schema.field(name).type)
            found[name] = values.take(set_of)
        return found

    def _of_batches(self, numbers: dict[str, pa.Array]) -> dict[str, pa.Array]:
        """The columns with one value for all records of a batch, one for each batch.

        :param numbers: as :meth:`Gathered.numbers` gives them.
        """
        crc_valid, controls = numbers["crc_valid"], numbers["control"]
        zeros = _constant(0, len(controls))
        texts = [each.decode("ascii") for each in self._gathered.controls] or [""]
        found = {
            "timestamp_type": _texts(TIMESTAMP_TYPES).take(numbers["timestamp_type"]),
            "magic": numbers["magic"],
            "codec": _texts([codec_name(codec) for codec in range(CODEC_BITS + 1)]).take(numbers["codec"]),
            "producer_id": _known(numbers["producer_id"]),
            "producer_epoch": _known(numbers["producer_epoch"]),
            "transactional": numbers["is_transactional"],
            "control": _where(
                pc.greater_equal(controls, zeros), _texts(texts).take(pc.max_element_wise(controls, zeros))
            ),
            "partition_leader_epoch": _known(numbers["leader_epoch"]),
            "batch_offset": _where(numbers["has_offset"].cast(pa.bool_()), numbers["batch_offset"]),
            "crc_valid": _where(pc.greater_equal(crc_valid, zeros), crc_valid),
        }
        assert found.keys() == set(_OF_BATCH)
        wanted = [name for name in found if name in self.schema.names]
        return {name: found[name].cast(self.schema.field(name).type) for name in wanted}

    def _of_records(self, shifts: pa.Array, sequence_shifts: pa.Array) -> dict[str, pa.Array]:
        """The columns that differ from record to record.

        :param shifts: the amount to add to each offset to get the broker's offset.
        :param sequence_shifts: the same for sequence numbers.
        """
        records = self._gathered.records
        numbers = records.numbers()
        offsets, timestamps, key_sizes, value_sizes, headers = (
            _numbers(numbers[at::ROW]) for at in (0, 1, 3, 5, 6)
        )
        sequences = pc.bit_wise_and(pc.add(offsets, sequence_shifts), _constant(0x7FFFFFFF, records.count))
        shown_sizes = numbers[5::ROW]
        for place, size in self._gathered.value_sizes.items():
            shown_sizes[place] = size
        found = {
            "offset": offsets,
            "assigned_offset": pc.add(offsets, shifts),
            "timestamp": _known(timestamps),
            "key": _contents(key_sizes, records.keys.take(), pa.binary()),
            "value": _contents(value_sizes, records.values.take(), pa.binary()),
            "headers": self._headers(headers),
            "key_size": _known(key_sizes),
            "value_size": _known(_numbers(shown_sizes)),
            "sequence": sequences.cast(pa.int32()),
        }
        assert found.keys() == set(VARIABLE)
        return found

    def _headers(self, counts: pa.Array) -> pa.Array:
        """The headers of the records.

        :param counts: the number of headers of each record.
        """
        if "headers" not in self.schema.names:
            return pa.nulls(len(counts))
        records, kind = self._gathered.records, self.schema.field("headers").type
        sizes = records.header_sizes()
        names = _contents(_numbers(sizes[::2]), records.header_names.take(), pa.string())
        values = _contents(_numbers(sizes[1::2]), records.header_values.take(), pa.binary())
        headers = pa.StructArray.from_arrays([names, values], fields=list(kind.value_type))
        return pa.ListArray.from_arrays(_starts(counts), headers, type=kind)


# Arrays are made from buffers: pyarrow handles Python objects one by one, and imports pandas before the first
# one, if that is installed.


def _numbers(values: array[int]) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def _indexes(values: array[int]) -> pa.Array:
    return pa.Array.from_buffers(pa.int32(), len(values), [None, pa.py_buffer(values)])


def _constant(value: int, count: int) -> pa.Array:
    return _numbers(array("q", [value]) * count)


def _where(are_there: pa.Array, values: pa.Array) -> pa.Array:
    """The values, and null if there is none."""
    if are_there.true_count == len(values):
        return values
    return pc.if_else(are_there, values, pa.nulls(len(values), values.type))


def _known(numbers: pa.Array) -> pa.Array:
    """The numbers, with null for -1."""
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
    """Frequent texts, each stored once."""
    places = {value: at for at, value in enumerate(dict.fromkeys(values))}
    encoded = [value.encode() for value in places]
    ends = pc.cumulative_sum(_numbers(array("q", [0, *map(len, encoded)]))).cast(pa.int32())
    data = pa.py_buffer(b"".join(encoded))
    distinct = pa.Array.from_buffers(pa.string(), len(places), [None, ends.buffers()[1], data])
    return distinct.take(_indexes(array("i", [places[value] for value in values])))


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A column of values that batches share: text, integers or booleans, and null."""
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


def _batch_of(counts: Sequence[int]) -> pa.Array:
    """The batch of each record."""
    batch_of = array("i")
    for at, count in enumerate(counts):
        batch_of.extend(array("i", [at]) * count)
    return _indexes(batch_of)


def _spread(found: pa.Array, batch_of: pa.Array | None) -> pa.Array:
    """One value for each batch → one for each record."""
    return found if batch_of is None else found.take(batch_of)


def _contents(sizes: pa.Array, joined: bytes, kind: pa.DataType) -> pa.Array:
    """Bytes of these sizes, one after the other; a size of -1 is null."""
    count = len(sizes)
    starts = _starts(pc.max_element_wise(sizes, _constant(0, count)))
    found = pa.Array.from_buffers(kind, count, [None, starts.buffers()[1], pa.py_buffer(joined)])
    return _where(pc.not_equal(sizes, _constant(-1, count)), found)


def _starts(sizes: pa.Array) -> pa.Array:
    """The starts of items of these sizes, one after the other, and the end of the last."""
    return pa.concat_arrays([_indexes(array("i", [0])), pc.cumulative_sum(sizes).cast(pa.int32())])
