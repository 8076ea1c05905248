"""Events → record batches of one table, for Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kdissect.capture.segments import SegmentReader
from kdissect.collector import rarely_collected
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.limits import Limits
from kdissect.model import Fault, Packet, Secrets, Segment, endpoint_text
from kdissect.present.arrow import RowBatches
from kdissect.present.columns import Table
from kdissect.present.sources import sources_of
from kdissect.spark.choice import Choice
from kdissect.spark.progress import Note
from kdissect.spark.replay import size_of
from kdissect.spark.settings import Settings
from kdissect.spark.tables import PLACED, placed

PACKETS_A_BLOCK = 1_024


def batches_of(
    events: Iterable[Event], table: Table, settings: Settings, choice: Choice, note: Note
) -> Iterator[Any]:
    """The chosen rows of ``table`` that the events bring."""
    shown = settings.shown
    rows = RowBatches(table, shown)
    with_place = settings.places and table.name in PLACED
    with rarely_collected():
        for event in events:
            if isinstance(event, Fault) and event.layer == "file":
                note.damage += 1
            if not choice.event(event):
                continue
            if isinstance(event, Exchange):
                note.rows_of(size_of(event))
            sources: Iterator[Any] = sources_of(table.name, event, shown)
            chosen = (source for source in sources if choice.row(event, source))
            for source in placed(event, chosen) if with_place else chosen:
                if (batch := rows.add(source)) is not None:
                    yield batch
        note.write()
        if (batch := rows.take()) is not None:
            yield batch


def packet_batches(
    items: Iterable[Packet | Secrets | Fault],
    table: Table,
    limits: Limits,
    index: int,
    count: int,
    note: Note,
) -> Iterator[Any]:
    """The rows of the table ``packets`` that are the share of a task: every so many packets one block."""
    reader = SegmentReader(limits)
    rows = RowBatches(table)
    for item in items:
        if isinstance(item, Fault):
            note.damage += 1
        if not isinstance(item, Packet):
            continue
        note.packet(len(item.data))
        segment = reader.feed(item)
        if (item.number // PACKETS_A_BLOCK) % count != index:
            continue
        source = _packet(item, segment if isinstance(segment, Segment) else None)
        if (batch := rows.add(source)) is not None:
            yield batch
    note.write()
    if (batch := rows.take()) is not None:
        yield batch


def _packet(packet: Packet, segment: Segment | None) -> dict[str, Any]:
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
