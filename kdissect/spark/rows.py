"""Events → record batches of the tables, for Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kdissect.capture.reader import Item
from kdissect.capture.segments import SegmentReader
from kdissect.collector import rarely_collected
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.limits import Limits
from kdissect.model import Fault, Packet, Segment, endpoint_text
from kdissect.present.arrow import RowBatches, arrow_schema
from kdissect.present.columns import Table
from kdissect.present.options import PLAIN
from kdissect.present.record_columns import RecordBatches
from kdissect.present.sources import sources_of
from kdissect.spark.progress import Note
from kdissect.spark.pushed import ALL, Pushed
from kdissect.spark.replay import size_of
from kdissect.spark.row_filter import Choice
from kdissect.spark.settings import TableSettings
from kdissect.spark.tables import PLACED, POINT, place_of, placed, table_at

PACKETS_A_BLOCK = 1_024


class PointRows:
    """Makes the rows of one table from the events of a capture point.

    Records come in columns, a whole batch of a producer at a time, if each of its rows is needed unchanged.

    :param table: the columns to make.
    :param point: the name of the capture point.
    :param choice: the choice of rows for this table.
    :param pushed: filters of a query, which leave out rows too.
    """

    def __init__(
        self, table: Table, point: str, settings: TableSettings, choice: Choice, pushed: Pushed = ALL
    ) -> None:
        self.schema = arrow_schema(table)
        self.name = table.name
        self._choice = choice
        self._options = settings.shown
        self._point = point or None
        self._with_place = settings.places and table.name in PLACED
        at_point = table_at(table, point, settings.head)
        self._rows = RowBatches(at_point, self._options)
        self._pushed = pushed
        self._passes = pushed.of_sources(at_point, self._options) if pushed else None
        self._full: list[Any] = []
        """Record batches of records that wait to be given out."""
        self._records = None
        if _goes_in_columns(table, settings):
            self._records = RecordBatches(table, self._options, self._full.append)

    def takes(self, event: Event) -> bool:
        """Whether the next event may have rows. It must be called once for each event."""
        return self._choice.event(event)

    def feed(self, event: Event) -> Iterator[Any]:
        """Take in an event that may have rows; give the record batches that are full now."""
        if self._records is not None:
            if isinstance(event, Exchange) and any(each.may_have_records() for each in event.messages):
                yield from self._in_columns(self._records, event)
            return
        sources: Iterator[Any] = sources_of(self.name, event, self._options)
        chosen = (source for source in sources if self._choice.row(event, source))
        for source in placed(event, chosen) if self._with_place else chosen:
            if self._passes is not None and not self._passes(source):
                continue
            if (batch := self._rows.add(source)) is not None:
                yield batch

    def close(self) -> Iterator[Any]:
        """The rows that still wait for a full batch."""
        if self._records is None:
            batch = self._rows.take()
        elif (batch := self._records.take()) is not None and self._pushed:
            batch = self._pushed.of_batch(batch)
        if batch is not None:
            yield batch

    def _in_columns(self, records: RecordBatches, exchange: Exchange) -> Iterator[Any]:
        records.add(exchange, {POINT: self._point, **place_of(exchange)})
        for batch in self._full:
            yield self._pushed.of_batch(batch) if self._pushed else batch
        self._full.clear()


def _goes_in_columns(table: Table, settings: TableSettings) -> bool:
    """Whether no row of a batch of records is left out, changed or decoded further."""
    changes = settings.filter is not None or settings.head is not None
    return table.name == "records" and not (changes or settings.embedded or settings.decodes)


def batches_of(
    events: Iterable[Event],
    table: Table,
    point: str,
    settings: TableSettings,
    choice: Choice,
    note: Note,
    pushed: Pushed = ALL,
) -> Iterator[Any]:
    """The chosen rows of ``table`` from these events."""
    rows = PointRows(table, point, settings, choice, pushed)
    with rarely_collected():
        for event in events:
            if isinstance(event, Fault) and event.layer == "file":
                note.damage += 1
            if not rows.takes(event):
                continue
            if isinstance(event, Exchange):
                note.rows_of(size_of(event))
            yield from rows.feed(event)
        note.write()
        yield from rows.close()


class PacketRows:
    """Makes the rows of the table ``packets`` for a task's share: every ``count``-th block of packets.

    :param table: as :func:`~kdissect.spark.tables.table_at` gives it.
    :param pushed: filters of a query, which leave out rows.
    """

    def __init__(
        self, table: Table, limits: Limits, index: int = 0, count: int = 1, pushed: Pushed = ALL
    ) -> None:
        self.schema = arrow_schema(table)
        self.name = table.name
        self._reader = SegmentReader(limits)
        self._rows = RowBatches(table)
        self._passes = pushed.of_sources(table, PLAIN) if pushed else None
        self._index = index
        self._count = count

    def feed(self, items: Iterable[Item]) -> Iterator[Any]:
        """Take in the next items; give the record batches that are full now."""
        return self.add(self.sources(items))

    def sources(self, items: Iterable[Item]) -> list[dict[str, Any]]:
        """The sources of the rows of the next packets."""
        found = []
        for item in items:
            if not isinstance(item, Packet):
                continue
            segment = self._reader.feed(item)
            if (item.number // PACKETS_A_BLOCK) % self._count == self._index:
                found.append(packet_row(item, segment if isinstance(segment, Segment) else None))
        return found

    def add(self, sources: Iterable[dict[str, Any]]) -> Iterator[Any]:
        """Take in rows; give the record batches that are full now."""
        for source in sources:
            if self._passes is not None and not self._passes(source):
                continue
            if (batch := self._rows.add(source)) is not None:
                yield batch

    def close(self) -> Iterator[Any]:
        """The rows that still wait for a full batch."""
        if (batch := self._rows.take()) is not None:
            yield batch


def packet_row(packet: Packet, segment: Segment | None) -> dict[str, Any]:
    """The row of a packet, with the segment in it."""
    row: dict[str, Any] = {
        "packet": packet.number,
        "time_ns": packet.timestamp_ns,
        "interface": packet.interface,
        "link_type": packet.link_type,
        "captured_size": len(packet.data),
        "wire_size": packet.wire_length,
    }
    if segment is not None:
        row["source"] = endpoint_text(segment.source)
        row["destination"] = endpoint_text(segment.destination)
        row["sequence"] = segment.seq
        row["acknowledgement"] = segment.ack
        row["flags"] = segment.flags
        row["payload_size"] = segment.length
    return row
