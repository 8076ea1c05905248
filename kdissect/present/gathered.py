"""Records of many exchanges, one after the other, as numbers and bytes. They become columns of Arrow, without
an object for a record or a batch.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

from kdissect.exchange import Exchange
from kdissect.names import is_metadata_topic
from kdissect.present.gathered_records import GatheredRecords
from kdissect.present.options import Options
from kdissect.present.plain_records import plain_columns
from kdissect.present.record_batches import by_places
from kdissect.present.record_set_text import ControlTexts
from kdissect.present.records import RecordSetSource, batch_record_rows, record_set_sources
from kdissect.protocol.json_form import dumps
from kdissect.record.batch import CODEC_BITS, CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, Batch
from kdissect.record.records import Columns, sum64, wrap64
from kdissect.record.rows import Int64Rows
from kdissect.record.sets import BatchReader
from kdissect.session.briefs import Brief

SET, COUNT, MAGIC, CODEC, TIMESTAMP_TYPE, PRODUCER_ID, PRODUCER_EPOCH, LEADER_EPOCH = range(8)
BATCH_OFFSET, HAS_OFFSET, CRC_VALID, IS_TRANSACTIONAL, CONTROL_TEXT = range(8, 13)
SHIFT, IS_ASSIGNED, SEQUENCE_SHIFT, HAS_SEQUENCE = range(13, 17)
"""The indexes of the numbers of a batch."""

NUMBERS = (
    *("set", "count", "magic", "codec", "timestamp_type", "producer_id", "producer_epoch", "leader_epoch"),
    *("batch_offset", "has_offset", "crc_valid", "is_transactional", "control"),
    *("shift", "is_assigned", "sequence_shift", "has_sequence"),
)
"""The numbers of a batch: the index of its set in :attr:`Gathered.sets`; the number of records; magic; codec;
the index in :data:`TIMESTAMP_TYPES`; producer id, its epoch and the leader's epoch, -1 for none; base offset,
and whether it is known; whether the checksum is right, -1 if unknown; whether it is transactional; the index
of the control text in :attr:`Gathered.controls`, -1 for none. The last four are the amounts to add for the
broker's offsets and for sequence numbers, each with whether there are any."""

TIMESTAMP_TYPES = ("NoTimestampType", "CreateTime", "LogAppendTime")

_ROW = len(NUMBERS)
_CODEC_BITS, _LOG_APPEND_TIME = CODEC_BITS, LOG_APPEND_TIME
_MOST_KEPT = 4_096
"""The most records whose columns are kept for the next batch."""


class Gathered:
    """Gathers the records of exchanges until there are enough.

    :param full: called after the batch that makes them enough.
    :param most_rows: the rows that are enough …
    :param most_bytes: … or about the bytes that are.
    """

    def __init__(self, options: Options, full: Callable[[], None], most_rows: int, most_bytes: int) -> None:
        self.records = GatheredRecords()
        self._options = options
        self._shows_secrets = options.show_secrets
        self._full = full
        self._most_rows, self._most_bytes = most_rows, most_bytes
        self._controls = ControlTexts(options)
        self._reader = BatchReader(b"", options.limits)
        self._batch = Batch.__new__(Batch)
        self._columns = Columns(b"", 0, -1)
        """One object for all batches. The columns of the previous batch are already copied."""
        self._numbers = Int64Rows()
        self.clear()

    def clear(self) -> None:
        """Empty it. The bytes of the records are taken separately."""
        self.records.clear()
        self.batches = 0
        """The number of batches. A record that is not shown unchanged is a batch of its own."""
        self.sets: list[dict[str, Any]] = []
        """For each set, the values that all its records share."""
        self._set: dict[str, Any] | None = None
        """The last of these sets."""
        self.controls: list[bytes] = []
        """The contents of control records, as JSON."""
        self.value_sizes: dict[int, int] = {}
        """The sizes of hidden values, by the index of their records, because the replacement has another
        size."""
        self.held = array("q")
        """The bytes up to each batch."""

    def numbers(self) -> dict[str, array[int]]:
        """The numbers of all batches, by the names in :data:`NUMBERS`."""
        rows = self._numbers.part(0, self.batches * _ROW)
        return {name: rows[at::_ROW] for at, name in enumerate(NUMBERS)}

    def add(self, source: Exchange | Brief, more: dict[str, Any] | None = None) -> int:
        """Add the records of an exchange; return how many there are.

        :param more: further values of their rows.
        """
        count = 0
        for told in record_set_sources(source):
            count += self._add_set(told, more)
        return count

    def _add_set(self, told: RecordSetSource, more: dict[str, Any] | None) -> int:
        data, topic, topic_id, assigned, context = told
        if more is not None:
            context.update(more)
        reader, batch, count = self._reader, self._batch, 0
        is_known = topic is not None or topic_id is not None
        is_metadata = is_metadata_topic(topic, topic_id) if is_known else None
        reader.begin(data)
        while reader.read(batch):
            columns = plain_columns(batch, self._shows_secrets, is_metadata, True, self._columns)
            if columns is None or (batch.has(CONTROL) and columns.count != 1):
                about = topic, topic_id
                rows = batch_record_rows(batch, batch.records(), about, context, assigned, self._options)
                for _, row in rows:
                    self._add_row(context, batch, row)
                    count += 1
            elif columns.count:
                count += columns.count
                self._add_plain(context, batch, columns, assigned)
                if columns.count > _MOST_KEPT:
                    self._columns = Columns(b"", 0, -1)
            # The broker numbers the records of a set consecutively, whatever the producer's offsets were.
            if assigned is not None:
                found = batch.header_count if batch.magic >= 2 else batch.count
                assigned = None if found is None else assigned + found
        return count

    def _add_plain(
        self, context: dict[str, Any], batch: Batch, columns: Columns, assigned: int | None
    ) -> None:
        """Add records whose values can be shown unchanged."""
        control = -1
        if batch.has(CONTROL):  # control batches have one record, as nearly every broker writes them
            control = len(self.controls)
            self.controls.append(self._controls.text(batch, columns.records()[0]))
        if assigned is None or batch.magic >= 2:
            self._add_columns(context, batch, columns, assigned, control)
            return
        for part, first in by_places(batch, columns, assigned):
            self._add_columns(context, batch, part, first, control)

    def _add_columns(
        self, context: dict[str, Any], batch: Batch, columns: Columns, assigned: int | None, control: int
    ) -> None:
        """Add records as one batch, or as several if they alone are too many. A column of Arrow has room for
        2 GiB.

        :param assigned: the broker's offset for the base offset.
        """
        start, end = 0, columns.count
        base, sequence = columns.base_offset, columns.base_sequence
        while start < columns.count:
            if len(columns.data) > self._most_bytes:
                end = columns.within(start, self._most_bytes)
            at = self._begin_batch(context, batch, end - start, control)
            numbers = self._numbers.numbers
            if assigned is not None:
                numbers[at + SHIFT], numbers[at + IS_ASSIGNED] = wrap64(assigned - base), 1
            if sequence >= 0:
                numbers[at + SEQUENCE_SHIFT], numbers[at + HAS_SEQUENCE] = sum64(sequence, -base), 1
            self.records.add(columns, start, end)
            self._end_batch()
            start = end

    def _add_row(self, context: dict[str, Any], batch: Batch, row: dict[str, Any]) -> None:
        """Add a record from its row of :mod:`kdissect.present.records`."""
        control = -1
        if row["control"] is not None:
            control = len(self.controls)
            self.controls.append(dumps(row["control"]).encode("ascii"))
        at = self._begin_batch(context, batch, 1, control)
        numbers = self._numbers.numbers
        offset, assigned, sequence = row["offset"], row["assigned_offset"], row["sequence"]
        if assigned is not None:
            numbers[at + SHIFT], numbers[at + IS_ASSIGNED] = wrap64(assigned - offset), 1
        if sequence is not None:
            numbers[at + SEQUENCE_SHIFT], numbers[at + HAS_SEQUENCE] = wrap64(sequence - offset), 1
        value, size, timestamp = row["value"], row["value_size"], row["timestamp"]
        if size is not None and size != (-1 if value is None else len(value)):
            self.value_sizes[self.records.count] = size
        self.records.add_one(
            offset, -1 if timestamp is None else timestamp, row["key"], value, row["headers"]
        )
        self._end_batch()

    def _begin_batch(self, context: dict[str, Any], batch: Batch, count: int, control: int) -> int:
        """Add the values that the records of a batch share; return the index of its numbers."""
        if context is not self._set:
            self._set = context
            self.sets.append(context)
        at = self.batches * _ROW
        self._numbers.reserve(at + _ROW)
        numbers = self._numbers.numbers
        numbers[at + SET], numbers[at + COUNT] = len(self.sets) - 1, count
        numbers[at + MAGIC], numbers[at + CODEC] = batch.magic, batch.attributes & _CODEC_BITS
        is_appended = batch.attributes & _LOG_APPEND_TIME != 0
        numbers[at + TIMESTAMP_TYPE] = 0 if batch.magic == 0 else 2 if is_appended else 1
        numbers[at + PRODUCER_ID], numbers[at + PRODUCER_EPOCH] = batch.producer_id, batch.producer_epoch
        numbers[at + LEADER_EPOCH] = batch.partition_leader_epoch
        base = batch.base_offset if batch._is_wrapper() else batch.header_offset
        numbers[at + BATCH_OFFSET], numbers[at + HAS_OFFSET] = base or 0, base is not None
        is_valid = batch.crc_valid
        numbers[at + CRC_VALID] = -1 if is_valid is None else 1 if is_valid else 0
        numbers[at + IS_TRANSACTIONAL] = batch.has(TRANSACTIONAL)
        numbers[at + CONTROL_TEXT] = control
        numbers[at + SHIFT] = numbers[at + IS_ASSIGNED] = 0
        numbers[at + SEQUENCE_SHIFT] = numbers[at + HAS_SEQUENCE] = 0
        return at

    def _end_batch(self) -> None:
        """End a batch, after its records."""
        held = self.records.held()
        self.batches += 1
        self.held.append(held)
        if self.records.count >= self._most_rows or held >= self._most_bytes:
            self._full()
