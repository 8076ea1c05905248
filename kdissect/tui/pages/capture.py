"""The screen of the capture itself: interfaces, files, and undecoded data."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from kdissect.analysis.fold import Row
from kdissect.faults import KINDS
from kdissect.feed.batches import Ended
from kdissect.feed.counting import Asked
from kdissect.feed.index import Index
from kdissect.feed.source import ScreenSource
from kdissect.live.journal import Status
from kdissect.present.columns import Table, dict_column
from kdissect.present.form import Clock, duration, plural, size
from kdissect.present.sanitise import sanitise
from kdissect.tui.lists.figures import Figures, in_bytes, number, words
from kdissect.tui.pages.listed import Saved
from kdissect.tui.pages.statistics import StatisticsPage

INTERFACES = Table(
    "interfaces",
    (
        dict_column("interface", "int64", "number of the interface in the whole input, from 0"),
        dict_column("name", "text", "name of the interface; null if the file does not contain it"),
        dict_column("description", "text", "description of the interface in the file"),
        dict_column("link_type", "int32", "LINKTYPE number of its packets"),
        dict_column("snap_length", "int64", "bytes kept of each packet; 0 means no limit"),
        dict_column("packets", "int64", "packets in the file"),
        dict_column("bytes", "int64", "bytes of these packets on the wire"),
        dict_column("captured_bytes", "int64", "bytes of these packets in the file"),
        dict_column("received", "int64", "packets that the interface saw, according to the file"),
        dict_column("dropped", "int64", "packets that the interface lost, according to the file"),
        dict_column("dropped_by_system", "int64", "packets that the system lost, according to the file"),
    ),
)

COLUMNS = (
    number("If", "interface"),
    words("Name", "name", most=24),
    number("Packets", "packets"),
    in_bytes("On the wire", "bytes"),
    in_bytes("Captured", "captured_bytes"),
    number("Saw", "received", 2),
    number("Dropped", "dropped", 1),
    number("by system", "dropped_by_system", 1),
    number("Snap", "snap_length", 3),
    number("Link", "link_type", 4),
    words("Description", "description", 5, most=200),
)


_FULL = 0.5
"""If this share of the ring is full, packets may be lost soon."""


def figures() -> Figures:
    """The empty rows."""
    return Figures(COLUMNS, lambda row: row["interface"], _tone)


def _tone(row: Row) -> str | None:
    return "table--error" if row["dropped"] or row["dropped_by_system"] else None


def interface_rows(index: Index) -> list[Row]:
    """A row for each interface."""
    return [
        {
            "interface": at,
            **each.interface._asdict(),
            "packets": each.packets,
            "bytes": each.bytes,
            "captured_bytes": each.captured,
        }
        for at, each in enumerate(index.interfaces)
    ]


Lines = Iterator[tuple[str, str, bool]]
"""Name, value, and whether the value is a warning."""


def lines(index: Index, source: ScreenSource, ended: Ended | None, live: Status | None = None) -> Lines:
    """The figures below the interfaces."""
    total, read = source.bytes_in_all, index.bytes_read
    yield "files", _files(source.paths), False
    if index.first_ns is not None and index.last_ns is not None:
        took = duration(index.last_ns - index.first_ns)
        yield "time", f"{Clock('u').text(index.first_ns)} and {took} more", False
    yield "packets", f"{index.packets:,}", False
    if live is not None:
        yield from _live_lines(index, live)
    if ended is not None and ended.reason is not None:
        yield "decoding", f"stopped: {sanitise(ended.reason, None)}", True
    elif live is not None:
        yield "decode backlog", plural(max(0, live.written - index.packets), "packet"), False
    elif ended is None:
        said = f"about {size(max(0, total - read))} of {size(total)}" if read <= total else "not known"
        yield "decode backlog", said, False
    else:
        yield "decode backlog", f"none: all {size(total)} were read", False
    yield "spool", f"{size(index.spooled)} for {plural(len(index), 'exchange')}", False
    yield from _streams(index)
    yield from _fault_lines(index)


def _live_lines(index: Index, live: Status) -> Lines:
    yield "captured", f"{live.received:,}, in {plural(live.files, 'file')} of {size(live.bytes)}", False
    yield "dropped", f"{live.dropped:,} by the system, because the ring was full", bool(live.dropped)
    yield "not written", f"{live.lost:,}", bool(live.lost)
    yield "ring", f"{live.fill:.0%} waits to be written", live.fill > _FULL
    for note in live.notes:
        yield "capture", sanitise(note, None), True


def _files(paths: Sequence[str]) -> str:
    named = ", ".join(sanitise(os.path.basename(path)) for path in paths[:3])
    return named + (f" and {len(paths) - 3:,} more" if len(paths) > 3 else "")


def _streams(index: Index) -> Lines:
    over = index.connections.carried
    kafka = f"{over.kafka:,} of them with Kafka, {size(over.bytes['kafka'])}"
    yield "connections over", f"{len(index.connections):,}, {kafka}", False
    yield "undecoded", f"{size(over.skipped_bytes)} of Kafka that are in no frame", bool(over.skipped_bytes)
    for protocol, count in sorted(over.bytes.items()):
        if protocol != "kafka":
            what = "an unknown protocol" if protocol == "unknown" else protocol
            yield "not decoded", f"{size(count)} of {what}", False
    yield (
        "not captured",
        f"{size(over.gap_bytes)} between captured bytes of connections",
        bool(over.gap_bytes),
    )
    yield "sent again", size(over.retransmitted), False


def _fault_lines(index: Index) -> Lines:
    for layer in dict.fromkeys(layer for layer, _ in KINDS.values()):
        found = {kind: each.number for (where, kind), each in index.faults.items() if where == layer}
        if found:
            said = ", ".join(f"{kind} {count:,}" for kind, count in sorted(found.items()))
            yield f"faults: {layer}", said, True
    if not index.faults:
        yield "faults", "none", False


_NAMES = 18
"""Cells for the names of lines."""


class CapturePage(StatisticsPage):
    """Interfaces above, figures of the whole capture below. All counts come from the decoder."""

    DEFAULT_CSS = """
    CapturePage #list { height: 1fr; }
    CapturePage VerticalScroll { height: 1fr; border-top: hkey $panel; background: $surface; }
    CapturePage #lines { height: auto; }
    """

    def figures(self) -> Figures:
        return figures()

    def needed_statistics(self) -> Asked:
        return ()

    @property
    def has_story(self) -> bool:
        return False

    def body(self) -> ComposeResult:
        yield from super().body()
        with VerticalScroll():
            yield Static(id="lines", markup=False)

    def index_grew(self) -> None:
        super().index_grew()
        app, index = self.kdissect, self.kdissect.index
        with_cursor = self.row_with_cursor()
        self.rows.show(interface_rows(index))
        self.at_most(self.list_pane, len(self.rows) + 2)
        self.rows_changed(with_cursor)
        text = Text()
        for name, value, is_bad in lines(index, app.feed.source, app.ended, app.feed.capture):
            text.append(f" {name:<{_NAMES}}", "bold")
            text.append(f"{'! ' if is_bad else '  '}{value}\n", self.alarm if is_bad else "")
        self.query_one("#lines", Static).update(text)
        self.update_message()

    def notes(self) -> list[str]:
        return [self.rows_text()]

    @property
    def opens(self) -> str:
        return ""

    def rows_text(self) -> str:
        return plural(len(self.rows), "interface")

    def saved(self) -> list[Saved]:
        return [Saved("interfaces", INTERFACES, interface_rows(self.kdissect.index))]
