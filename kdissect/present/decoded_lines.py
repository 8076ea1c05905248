"""The table ``records`` in NDJSON with decoded keys and values, many rows at a time.

The lines are the same as from rows (:mod:`kdissect.present.records`), and many times faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from kdissect.embedded.internal import family_of_topic
from kdissect.exchange import Exchange
from kdissect.names import METADATA_TOPIC, is_metadata_topic
from kdissect.present.columns import Table
from kdissect.present.decoded import COLUMNS, Texts
from kdissect.present.options import Options
from kdissect.present.record_batches import PlainBatch, groups_of, record_batches
from kdissect.present.record_text import text_between, write_lines
from kdissect.present.tables import row_line
from kdissect.protocol.json_text import JsonText
from kdissect.record.records import ROW

_BYTES_A_PIECE = 1 << 16
_END = len(b"}\n")


class DecodedLinesWriter:
    """A :class:`~kdissect.present.record_batches.LinesWriter` for a table that ends with
    :data:`~kdissect.present.decoded.COLUMNS`."""

    def __init__(self, table: Table, file: BinaryIO, options: Options) -> None:
        assert options.payloads is not None
        assert tuple(column.name for column in table.columns[-len(COLUMNS) :]) == COLUMNS
        self._table = table
        self._file = file
        self._options = options
        self._text = JsonText()
        self._groups = groups_of(Table(table.name, table.columns[: -len(COLUMNS)]))
        self._texts = Texts(options.payloads)

    def write(self, exchange: Exchange) -> Iterator[int]:
        """Write the records of an exchange, some at a time; give the number of each."""
        count = 0
        for batch in record_batches(exchange, self._options):
            for _ in self._rows(batch) if isinstance(batch, list) else self._lines(batch):
                count += 1
                if self._text.size() >= _BYTES_A_PIECE:
                    self._file.write(self._text.take())
                    yield count
                    count = 0
        if count:
            self._file.write(self._text.take())
            yield count

    def close(self) -> None:
        """Do nothing: NDJSON has no end."""

    def _rows(self, rows: list[dict[str, object]]) -> Iterator[None]:
        for row in rows:
            self._text.put(row_line(self._table, row, self._options))
            yield

    def _lines(self, batch: PlainBatch) -> Iterator[None]:
        text, columns, form = self._text, batch.columns, self._options.bytes_form
        data, numbers = columns.data, columns.numbers()
        topic = batch.common["topic"] or ""
        is_metadata = is_metadata_topic(topic, batch.common["topic_id"])
        # The format of Kafka's own records is not guessed: --embedded decodes them.
        is_own = family_of_topic(METADATA_TOPIC if is_metadata else topic) is not None
        is_own = is_own or "control" in batch.common
        between = text_between(text, self._groups, batch.common)
        for index in range(columns.count):
            write_lines(text, columns, index, index + 1, between, batch.assigned, form)
            if not is_own:
                at = index * ROW
                key_at, key_size, value_at, value_size, headers_at = numbers[at + 2 : at + 7]
                key = data[key_at : key_at + key_size] if key_size >= 0 else None
                value = data[value_at : value_at + value_size] if value_size >= 0 else None
                headers = columns.headers(headers_at) if headers_at >= 0 else ()
                text.cut(text.size() - _END)
                self._texts.write(text, topic, key, value, headers)
            yield
