"""The table ``records`` in NDJSON, without ``--embedded``, straight from the bytes of record sets.

They are the same lines that the rows of :mod:`kdissect.present.records` would give. Text that the records of
a set or of a batch share is made once for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from kdissect.exchange import Exchange, PartitionKey, base_offset_of
from kdissect.names import is_metadata_topic
from kdissect.present.batches import shown
from kdissect.present.columns import Table
from kdissect.present.options import Options
from kdissect.present.plain_records import are_plain, plain_columns
from kdissect.present.record_batches import groups_of
from kdissect.present.record_set_text import ControlTexts
from kdissect.present.record_text import Group, text_between, write_lines, write_value
from kdissect.present.records import (
    batch_record_rows,
    brief_context,
    may_have_records,
    record_set_sources,
    row_in_batch,
)
from kdissect.present.tables import row_line
from kdissect.protocol.apis import PRODUCE
from kdissect.protocol.json_form import dumps
from kdissect.protocol.json_text import JsonText
from kdissect.record.batch import CONTROL, Batch
from kdissect.record.records import Columns
from kdissect.record.sets import BatchReader
from kdissect.session.briefs import Brief, BriefSet

_ROWS_A_PIECE = 1_024
_BYTES_A_PIECE = 1 << 16
_MOST_TRAITS = 1_024
_MOST_KEPT = 4_096
"""The most records whose columns are kept for the next batch."""

_NO_OFFSETS: dict[PartitionKey, int | None] = {}
"""The offsets of exchanges in which the broker gives none; nothing is added to it."""

_NO_OTHERS: list[tuple[int, bytes]] = []
"""The special records of batches whose records can all be shown unchanged; nothing is added to it."""

_OF_SET = ("exchange", "connection", "direction", "api", "api_version", "topic", "topic_id", "partition")
_OF_BATCH = (
    ("timestamp_type",),
    ("magic", "codec", "producer_id", "producer_epoch"),
    ("transactional", "control", "partition_leader_epoch", "batch_offset", "crc_valid"),
)
_ORDER = (_OF_SET, (), (), _OF_BATCH[0], (), (), (), (), *_OF_BATCH[1:])
"""The columns before each of :data:`~kdissect.present.record_text.VARIABLE`, and those after the last."""


class BatchTraits:
    """The texts that depend on the magic and the attributes of a batch only."""

    __slots__ = ("codec", "flags", "no_producer", "timestamp")

    def __init__(self, batch: Batch, groups: tuple[Group, ...]) -> None:
        self.timestamp = _first_columns(groups[3], (batch.timestamp_type,)) + groups[3][1]
        """The text between timestamp and key."""
        self.codec = _first_columns(groups[8], (batch.magic, batch.codec)) + groups[8][0][2][1]
        """The text before the producer's id."""
        self.flags = _first_columns(groups[9], (batch.is_transactional,)) + groups[9][0][1][1]
        """The text before the contents of a control record."""
        self.no_producer = self.codec + b"null" + groups[8][0][3][1] + b"null" + groups[8][1]
        """The text after the sequence number if there is no producer."""


def _first_columns(group: Group, values: tuple[str | int, ...]) -> bytes:
    """The text of the first columns of a group."""
    columns = group[0][: len(values)]
    return b"".join(
        before + dumps(value).encode("ascii") for (_, before, _), value in zip(columns, values, strict=True)
    )


class LinesWriter:
    """Writes lines."""

    def __init__(self, table: Table, file: BinaryIO, options: Options) -> None:
        self._table = table
        self._file = file
        self._options = options
        self._form, self._shows_secrets = options.bytes_form, options.show_secrets
        self._groups = groups_of(table)
        assert tuple(tuple(name for name, _, _ in group) for group, _ in self._groups) == _ORDER
        self._text, self._between = JsonText(), JsonText()
        self._reader = BatchReader(b"", options.limits)
        self._batch = Batch.__new__(Batch)
        self._columns = Columns(b"", 0, -1)
        """One object for all batches. The columns of the previous batch are already written."""
        self._controls = ControlTexts(options)
        self._traits: dict[int, BatchTraits] = {}
        """The texts by magic and attributes."""
        self._latest: BatchTraits | None = None
        """The texts of the last batch. The next one nearly always has the same."""
        self._latest_key = 0
        self._heads: dict[tuple[Any, ...], bytes] = {}
        """The text that the records of a set share, after the numbers of exchange and connection. It is kept
        by API with version, direction, topic and partition."""
        self._before = tuple([before for _, before, _ in self._groups[0][0][:2]])
        behind = [group[1] for group in self._groups]
        self._behind = (*behind[:8], self._groups[8][0][3][1], behind[8])
        """The text after each group except the last. The group of the producer has two: before its epoch and
        after it."""
        self._last = tuple([before for _, before, _ in self._groups[9][0][2:]])

    def write(self, source: Exchange | Brief) -> Iterator[int]:
        """Write the records of an exchange; give their number, if there are any."""
        count = self.add(source)
        self.flush()
        return iter((count,) if count else ())

    def add_all(self, events: Sequence[object]) -> int:
        """:meth:`add` of the exchanges among events."""
        count = 0
        for event in events:
            if may_have_records(event):
                count += self.add(event)
        return count

    def add(self, source: Exchange | Brief) -> int:
        """Write the records of an exchange; return their number. Some wait for :meth:`flush`."""
        if isinstance(source, Brief):
            brief = source
            return self._add_brief(brief)
        count = 0
        for data, topic, topic_id, assigned, context in record_set_sources(source):
            head = text_between(self._between, self._groups[:1], context)[0]
            count += self._write_set(data, topic, topic_id, assigned, head, context, ())
        return count

    def _add_brief(self, brief: Brief) -> int:
        """Write the records of an exchange in brief; return their number."""
        sets, form = brief.record_sets(), brief.form
        offsets: dict[PartitionKey, int | None] | None = _NO_OFFSETS
        if sets and form.key == PRODUCE:
            offsets = brief.base_offsets()
        if sets is None or offsets is None:
            return self.add(brief.exchange())
        count = 0
        for told in sets:
            is_request, start, size, topic, topic_id, partition = told
            assigned = base_offset_of(offsets, topic, topic_id, partition) if offsets and is_request else None
            whole = brief.request_data if is_request else brief.response_data
            assert whole is not None
            data = whole[start : start + size]
            head = self._head_of(brief, told)
            count += self._write_set(data, topic, topic_id, assigned, head, None, (brief, told))
        return count

    def _head_of(self, brief: Brief, told: BriefSet) -> bytes:
        """The text before the offset of each record of a set."""
        more = self._between
        key = (brief.form.api, told[0], told[3], told[4], told[5])
        rest = self._heads.get(key)
        if rest is None:
            if len(self._heads) >= _MOST_TRAITS:
                self._heads.clear()
            columns, behind = self._groups[0]
            rest = text_between(more, ((columns[2:], behind),), brief_context(brief, told))[0]
            self._heads[key] = rest
        more.put(self._before[0])
        more.number(brief.number)
        more.put(self._before[1])
        more.number(brief.connection)
        more.put(rest)
        return more.take()

    def flush(self) -> None:
        """Write the waiting lines."""
        if self._text.size():
            self._file.write(self._text.take())

    def close(self) -> None:
        """Do nothing: NDJSON has no end."""

    def _write_set(
        self,
        data: bytes,
        topic: str | None,
        topic_id: str | None,
        assigned: int | None,
        head: bytes,
        context: dict[str, Any] | None,
        told: tuple[Any, ...],
    ) -> int:
        """Write the records of a set.

        :param assigned: the broker's offset for its first record.
        :param head: the text before the offset of each record.
        :param context: the values that the records share.
        :param told: the exchange in brief and its set, if ``context`` is None.
        """
        options, batch, count = self._options, self._batch, 0
        is_known = topic is not None or topic_id is not None
        is_metadata = is_metadata_topic(topic, topic_id) if is_known else None
        reader = self._reader
        reader.begin(data)
        while reader.read(batch):
            columns = plain_columns(batch, self._shows_secrets, is_metadata, True, self._columns)
            others = _NO_OTHERS
            if columns is None and not batch.has(CONTROL):
                columns = batch.columns(self._columns)
                if context is None:
                    context = brief_context(told[0], told[1])
                others = self._others(batch, columns, (topic, topic_id), context, assigned, is_metadata)
            if columns is None:
                about = topic, topic_id
                if context is None:
                    context = brief_context(told[0], told[1])
                for _, row in batch_record_rows(batch, batch.records(), about, context, assigned, options):
                    self._text.put(row_line(self._table, row, options))
                    count += 1
            else:
                self._write_batch(batch, columns, head, assigned, others)
                count += columns.count
                if columns.count > _MOST_KEPT:
                    self._columns = Columns(b"", 0, -1)
            # The broker numbers the records of a set consecutively, whatever the producer's offsets were.
            if assigned is not None:
                found = batch.header_count if batch.magic >= 2 else batch.count
                assigned = None if found is None else assigned + found
            if self._text.size() >= _BYTES_A_PIECE:
                self.flush()
        return count

    def _others(
        self,
        batch: Batch,
        columns: Columns,
        about: tuple[str | None, str | None],
        context: dict[str, Any],
        assigned: int | None,
        is_metadata: bool | None,
    ) -> list[tuple[int, bytes]]:
        """The records of a batch with a secret: the place and the line of each."""
        options, records, found = self._options, columns.records(), []
        for index in range(columns.count):
            if are_plain(columns.only(index), is_metadata):
                continue
            if shown(records[index], options, is_metadata) is not records[index]:
                row = row_in_batch(batch, records, index, about, context, assigned, options)
                found.append((index, row_line(self._table, row, options)))
        return found

    def _write_batch(
        self,
        batch: Batch,
        columns: Columns,
        head: bytes,
        assigned: int | None,
        others: list[tuple[int, bytes]],
    ) -> None:
        """Write the records of a batch.

        :param head: the text before the offset of each record.
        :param assigned: the broker's offset for the first record.
        :param others: records that cannot be shown unchanged, in order: place and line of each.
        """
        text, more, last = self._text, self._between, self._last
        traits = self._traits_of(batch)
        producer = traits.no_producer
        if batch.producer_id != -1 or batch.producer_epoch != -1:
            more.put(traits.codec)
            _write_known(more, batch.producer_id)
            more.put(self._behind[8])
            _write_known(more, batch.producer_epoch)
            more.put(self._behind[9])
            producer = more.take()
        more.put(last[0])
        _write_known(more, batch.partition_leader_epoch)
        more.put(last[1])
        if batch._is_wrapper():
            write_value(more, batch.base_offset)
        else:
            more.number(batch.header_offset)
        more.put(last[2])
        write_value(more, batch.crc_valid)
        more.put(b"}\n")
        # In a wrapper of magic 0 or 1 the offsets may be anything: the broker numbers records by their
        # positions. If a message is broken, the positions are unknown.
        by_place = batch.magic < 2
        if by_place and assigned is not None and columns.count != batch.count:
            assigned = None
        _, t1, t2, _, t4, t5, t6, t7, _, _ = self._behind
        flags, end = traits.flags, more.take()
        before = head, t1, t2, traits.timestamp, t4, t5, t6, t7, producer
        first = 0
        if batch.has(CONTROL):
            for record in columns.records():
                said = flags + self._controls.text(batch, record) + end
                self._write_lines(columns, first, first + 1, (*before, said), assigned, by_place)
                first += 1
            return
        between = (*before, flags + b"null" + end)
        for index, line in others:
            self._write_lines(columns, first, index, between, assigned, by_place)
            text.put(line)
            first = index + 1
        self._write_lines(columns, first, columns.count, between, assigned, by_place)

    def _write_lines(
        self,
        columns: Columns,
        first: int,
        last: int,
        between: tuple[bytes, ...],
        assigned: int | None,
        by_place: bool,
    ) -> None:
        """Write the lines from the ``first`` record to before the ``last``."""
        text = self._text
        while first < last:
            if first and text.size() >= _BYTES_A_PIECE:
                self.flush()
            end = min(first + _ROWS_A_PIECE, last)
            write_lines(text, columns, first, end, between, assigned, self._form, by_place)
            first = end

    def _traits_of(self, batch: Batch) -> BatchTraits:
        key = batch.magic << 16 | batch.attributes & 0xFFFF
        latest = self._latest
        if latest is not None and key == self._latest_key:
            return latest
        traits = self._traits.get(key)
        if traits is None:
            if len(self._traits) >= _MOST_TRAITS:
                self._traits.clear()
            traits = self._traits[key] = BatchTraits(batch, self._groups)
        self._latest_key, self._latest = key, traits
        return traits


def _write_known(out: JsonText, number: int) -> None:
    """Write a number; null for -1, which is Kafka's none."""
    if number == -1:
        out.put(b"null")
    else:
        out.number(number)
