"""An exchange → the batches of records in it: for who writes many records at a time, as NDJSON here and as
Arrow in :mod:`kdissect.present.record_columns`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from kdissect.exchange import Exchange
from kdissect.names import is_metadata_topic
from kdissect.present.batches import control_of, plain_columns
from kdissect.present.columns import Table
from kdissect.present.options import Options
from kdissect.present.record_text import VARIABLE, Group, text_between, write_lines
from kdissect.present.records import add_batch, batch_record_rows, place_context
from kdissect.present.tables import row_line
from kdissect.protocol.json_form import dumps
from kdissect.protocol.json_text import JsonText
from kdissect.record.batch import Batch
from kdissect.record.records import Columns, wrap64
from kdissect.record.sets import read_record_set

_ROWS_A_PIECE = 1_024
_BYTES_A_PIECE = 1 << 16


class PlainBatch:
    """Records whose values can be shown as they stand, as columns."""

    __slots__ = ("assigned", "columns", "common")

    def __init__(self, columns: Columns, common: dict[str, Any], assigned: int | None) -> None:
        self.columns = columns
        self.common = common
        """What they have in common, as in the row of each."""
        self.assigned = assigned
        """The offset that the broker gave the batch's base offset."""


def record_batches(exchange: Exchange, options: Options) -> Iterator[PlainBatch | list[dict[str, Any]]]:
    """The records of an exchange, batch by batch: as columns, or else as rows."""
    for place in exchange.record_sets():
        context = place_context(exchange, place)
        assigned = exchange.assigned_base_offset(place)
        is_metadata = is_metadata_topic(place.topic, place.topic_id)
        is_known = place.topic is not None or place.topic_id is not None
        for batch in read_record_set(place.data, options.limits).batches:
            columns = plain_columns(batch, options, is_metadata if is_known else None, takes_control=True)
            if columns is None or (batch.is_control and columns.count != 1):
                rows = batch_record_rows(batch, batch.records(), place, context, assigned, options)
                yield [row for _, row in rows]
            else:
                common = context.copy()
                add_batch(common, batch)
                if batch.is_control:  # they have one record, as nearly every broker writes them
                    common["control"] = control_of(columns.records()[0], batch, options)
                yield from _plain_batches(batch, columns, common, assigned)
            # The broker numbers the records of a set through, whatever the producer's offsets were.
            if assigned is not None:
                assigned = None if batch.count is None else assigned + batch.count


def _plain_batches(
    batch: Batch, columns: Columns, common: dict[str, Any], assigned: int | None
) -> Iterator[PlainBatch]:
    """The records of a batch as one, or as one each.

    The broker counts records by their places. In a wrapper of magic 0 or 1 offsets may say something else:
    then each record is a batch. Where a message is broken, nobody can count.
    """
    if assigned is None or batch.magic >= 2:
        yield PlainBatch(columns, common, assigned)
    elif columns.count != batch.count:
        yield PlainBatch(columns, common, None)
    elif columns.is_consecutive():
        yield PlainBatch(columns, common, assigned)
    else:
        for index in range(columns.count):
            yield PlainBatch(columns.only(index), common, wrap64(assigned + index))


class LinesWriter:
    """The table in NDJSON, without ``--embedded``.

    They are the lines that the rows of :mod:`kdissect.present.records` would give. What the records of a
    batch have in common is made once for each batch.
    """

    def __init__(self, table: Table, file: BinaryIO, options: Options) -> None:
        self._table = table
        self._file = file
        self._options = options
        self._text = JsonText()
        self._groups = groups_of(table)

    def write(self, exchange: Exchange) -> Iterator[int]:
        """Write the records of an exchange, some at a time; gives how many."""
        text, file, options, count = self._text, self._file, self._options, 0
        for batch in record_batches(exchange, options):
            if isinstance(batch, list):
                for row in batch:
                    text.put(row_line(self._table, row, options))
                count += len(batch)
            else:
                columns = batch.columns
                between = text_between(text, self._groups, batch.common)
                for first in range(0, columns.count, _ROWS_A_PIECE):
                    last = min(first + _ROWS_A_PIECE, columns.count)
                    write_lines(text, columns, first, last, between, batch.assigned, options.bytes_form)
                    count += last - first
                    if text.size() >= _BYTES_A_PIECE:
                        file.write(text.take())
                        yield count
                        count = 0
            if text.size() >= _BYTES_A_PIECE:
                file.write(text.take())
                yield count
                count = 0
        if count:
            file.write(text.take())
            yield count

    def close(self) -> None:
        """NDJSON has no end."""


def groups_of(table: Table) -> tuple[Group, ...]:
    """The columns before each of :data:`VARIABLE`, and behind the last."""
    groups: list[Group] = []
    steps: list[tuple[str, bytes, bool]] = []
    for at, column in enumerate(table.columns):
        before = f"{',' if at else '{'}{dumps(column.name)}:".encode("ascii")
        if column.name in VARIABLE:
            groups.append((tuple(steps), before))
            steps = []
        else:
            steps.append((column.name, before, column.optional))
    return (*groups, (tuple(steps), b"}\n"))
