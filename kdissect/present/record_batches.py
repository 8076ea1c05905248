"""An exchange → the batches of records in it: for who writes many records at a time, as NDJSON here and as
Arrow in :mod:`kdissect.present.record_columns`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

from kdissect.exchange import Exchange
from kdissect.names import is_metadata_topic
from kdissect.present.batches import is_plain
from kdissect.present.columns import Table
from kdissect.present.options import Options
from kdissect.present.record_text import VARIABLE, line_text
from kdissect.present.records import batch_record_rows, place_context, record_row
from kdissect.present.tables import json_value, row_line
from kdissect.protocol.json_form import dumps
from kdissect.record.records import Columns, Record
from kdissect.record.sets import read_record_set

_ROWS_A_PIECE = 1_024
_NO_RECORD = Record(0, 0, None, None)


class PlainBatch(NamedTuple):
    """Records that are nothing but what stands in them, as columns."""

    columns: Columns
    common: dict[str, Any]
    """A row with what they have in common."""
    assigned: int | None
    """The offset that the broker gave the batch's base offset."""


def record_batches(exchange: Exchange, options: Options) -> Iterator[PlainBatch | list[dict[str, Any]]]:
    """The records of an exchange, batch by batch: as columns, or else as rows."""
    for place in exchange.record_sets():
        context = place_context(exchange, place)
        assigned = exchange.assigned_base_offset(place)
        is_metadata = is_metadata_topic(place.topic, place.topic_id)
        is_known = place.topic is not None or place.topic_id is not None
        for batch in read_record_set(place.data, options.limits).batches:
            if is_plain(batch, options, is_metadata if is_known else None):
                common = context | record_row(_NO_RECORD, batch, options, place.topic, place.topic_id)
                yield PlainBatch(batch.columns(), common, assigned)
            else:
                rows = batch_record_rows(batch, place, context, assigned, options)
                yield [row for _, row in rows]
            # The broker numbers the records of a set through, whatever the producer's offsets were.
            if assigned is not None:
                assigned = None if batch.count is None else assigned + batch.count


class LinesWriter:
    """The table in NDJSON, without ``--embedded``.

    They are the lines that the rows of :mod:`kdissect.present.records` would give; what the records of a
    batch have in common is made once for each batch.
    """

    def __init__(self, table: Table, file: BinaryIO, options: Options) -> None:
        self._table = table
        self._file = file
        self._options = options

    def write(self, exchange: Exchange) -> Iterator[int]:
        """Write the records of an exchange, some at a time; gives how many."""
        for batch in record_batches(exchange, self._options):
            if isinstance(batch, PlainBatch):
                yield from self._write_plain(batch)
            else:
                for row in batch:
                    self._file.write(row_line(self._table, row, self._options))
                yield len(batch)

    def _write_plain(self, batch: PlainBatch) -> Iterator[int]:
        columns, assigned, form = batch.columns, batch.assigned, self._options.bytes_form
        between = _between(self._table, batch.common, self._options)
        for first in range(0, columns.count, _ROWS_A_PIECE):
            last = min(first + _ROWS_A_PIECE, columns.count)
            text = line_text(columns, first, last, between, assigned, form)
            self._file.write(text.encode("ascii"))
            yield last - first

    def close(self) -> None:
        """NDJSON has no end."""


def _between(table: Table, row: dict[str, Any], options: Options) -> tuple[str, ...]:
    """What stands around the values of :data:`VARIABLE` in the lines of one batch.

    :param row: of any record of it.
    """
    parts, text = [], "{"
    for column in table.columns:
        value = column.value(row, options)
        if value is None and column.optional:
            continue
        text += f"{dumps(column.name)}:"
        if column.name in VARIABLE:
            parts.append(text)
            text = ","
        else:
            text += f"{dumps(json_value(column.type, value, options))},"
    return (*parts, text.removesuffix(",") + "}\n")
