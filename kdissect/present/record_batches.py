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
from kdissect.present.record_text import VARIABLE, text_between, write_lines
from kdissect.present.records import batch_facts, batch_record_rows, place_context
from kdissect.present.tables import row_line
from kdissect.protocol.json_form import dumps
from kdissect.protocol.json_text import JsonText
from kdissect.record.records import Columns
from kdissect.record.sets import read_record_set

_ROWS_A_PIECE = 1_024


class PlainBatch(NamedTuple):
    """Records that are nothing but what stands in them, as columns."""

    columns: Columns
    common: dict[str, Any]
    """What they have in common, as in the row of each."""
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
                yield PlainBatch(batch.columns(), context | batch_facts(batch), assigned)
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
        self._text = JsonText()
        self._steps = tuple(
            [
                (column.name, _before(at, column.name), column.name in VARIABLE, column.optional)
                for at, column in enumerate(table.columns)
            ]
        )

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
        between = text_between(self._text, self._steps, batch.common)
        for first in range(0, columns.count, _ROWS_A_PIECE):
            last = min(first + _ROWS_A_PIECE, columns.count)
            write_lines(self._text, columns, first, last, between, assigned, form)
            self._file.write(self._text.take())
            yield last - first

    def close(self) -> None:
        """NDJSON has no end."""


def _before(at: int, name: str) -> bytes:
    """What stands before the value of the column at this place of a line."""
    return f"{',' if at else '{'}{dumps(name)}:".encode("ascii")
