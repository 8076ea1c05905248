"""The screen of errors and faults.

Error codes of brokers are fatal, retriable or routine (:mod:`kdissect.protocol.errors`). A fault is one of
the bytes. A note need not be a problem: for example a side that was not captured. Below the list is the text
of a row: its subject, its meaning, its reason, and the remedy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
from textual import on
from textual.app import ComposeResult
from textual.timer import Timer

from kdissect.analysis.fold import Row
from kdissect.faults import KINDS
from kdissect.feed.counting import Asked
from kdissect.feed.filtering import quoted
from kdissect.feed.index import Index, Places
from kdissect.feed.statistics import CountedTables
from kdissect.present.error_pages import error_lines, error_page
from kdissect.present.form import plural
from kdissect.present.paragraphs import fold_text, paragraph
from kdissect.present.sanitise import sanitise
from kdissect.present.whole_record import TextLine
from kdissect.protocol.errors import FATAL, RETRIABLE, ROUTINE, SIGNS, errors
from kdissect.tui.lists.figures import (
    FigureColumn,
    Figures,
    address,
    exchange_number,
    name_column,
    number,
    words,
)
from kdissect.tui.pages.arranging import Sparing
from kdissect.tui.pages.statistics import StatisticsPage
from kdissect.tui.widgets.text_pane import TextPane

FAULT, NOTE = "fault", "note"
_ORDER = (FATAL, RETRIABLE, FAULT, NOTE, ROUTINE)
_SIGNS = {**SIGNS, FAULT: "!", NOTE: "∅"}
NOTHING_AMISS = ("acks=0", "waiting")
"""Reasons for a missing response that mean that none is due, or due yet."""


def columns(time_text: Callable[[int], str]) -> tuple[FigureColumn, ...]:
    """The columns; ``time_text`` writes a time."""

    def when(name: str) -> Callable[[Row], str]:
        def text(row: Row) -> str:
            if row[f"{name}_ns"] is not None:
                return time_text(row[f"{name}_ns"])
            packet = row[f"{name}_packet"]
            return f"packet {packet:,}" if packet is not None else ""

        return text

    return (
        FigureColumn("Kind", _kind, _gravity, 0, False, 11, False),
        words("What", "what", most=44, least=28),
        number("Count", "count"),
        words("API", "api", 2, most=26),
        name_column("Topic", "topic", 1, most=60, least=16),
        number("Part", "partition", 1),
        name_column("Client id", "client_id", 1, most=28),
        name_column("Principal", "principal", 4, most=28),
        name_column("Group", "group", 1, most=40),
        name_column("Transactional id", "transactional_id", 2, most=40),
        address("Broker", "broker", 5),
        FigureColumn("First", when("first"), lambda row: row["first_ns"], 3, True, 27, False),
        FigureColumn("Last", when("last"), lambda row: row["last_ns"], 4),
        exchange_number("number", 6),
        words("Said", "said", 7, most=200, least=40),
    )


def _kind(row: Row) -> str:
    return f"{_SIGNS[row['severity']]} {row['severity']}"


def _gravity(row: Row) -> int:
    return _ORDER.index(row["severity"])


def figures(columns: tuple[FigureColumn, ...]) -> Figures:
    """The empty rows."""
    return Figures(columns, lambda row: row["key"], lambda row: _TONES[row["severity"]])


_TONES = {FATAL: "table--error", RETRIABLE: "table--warning", FAULT: "table--warning"}
_TONES |= {NOTE: "table--dim", ROUTINE: "table--dim"}


def problem_rows(refused: Iterable[Row], others: Iterable[Row]) -> list[Row]:
    """All rows: errors from the statistic ``errors``, and others, the graver first."""
    rows = [*map(_error, refused), *others]
    return sorted(rows, key=lambda row: (_ORDER.index(row["severity"]), -row["count"]))


def other_rows(index: Index, places: Places, is_filtered: bool) -> list[Row]:
    """Rows that are no errors of a broker: missing sides of exchanges, and faults."""
    return [*_missing(index, places), *_faults(index, is_filtered)]


_ASKED = ("api", "topic", "client_id", "principal", "group", "transactional_id")
"""The columns that are fields of filters under the same name."""
_ABOUT = (*_ASKED, "partition", "client", "broker")
"""The columns that distinguish rows with the same error."""


def _row(severity: str, what: str, count: int, key: object, **more: object) -> Row:
    nothing = (*_ABOUT, "first_ns", "last_ns", "first_packet", "last_packet")
    rest = dict.fromkeys((*nothing, "number", "said", "filter", "error_code", "reason"))
    return {"severity": severity, "what": what, "count": count, "key": key, **rest, **more}


def filter_of(row: Row) -> str | None:
    """The filter that shows the exchanges of a row; None if no filter does. The filter of an error is made on
    demand: there may be thousands of rows."""
    if row["error_code"] is None:
        text: str | None = row["filter"]
        return text
    parts = [f"errors == {quoted(row['what'])}"]
    parts += [f"{each} == {quoted(row[each])}" for each in _ASKED if row[each] is not None]
    parts.append(f"client.ip == {row['client'].strip('[]')} and broker == {quoted(row['broker'])}")
    return " and ".join(parts)


def _error(row: Row) -> Row:
    name = row["error"]
    known = errors().get(row["error_code"])
    return _row(
        row["error_class"],
        name,
        row["count"],
        (name, row["error_class"], *(row[each] for each in _ABOUT)),
        **{each: row[each] for each in (*_ABOUT, "first_ns", "last_ns")},
        number=row["first_exchange"],
        error_code=row["error_code"],
        said=None if known is None else f"{name}: {known.meaning}",
    )


def _missing(index: Index, places: Places) -> Iterator[Row]:
    """Exchanges with a missing side, by the reason."""
    column = index.column("missing")
    if len(places) == len(column):  # all of them, in any order
        places = np.flatnonzero(column).astype(np.uint32)
    else:
        places = places[column[places] != 0]
    reasons = column[places]
    for reason in np.flatnonzero(np.bincount(reasons)).tolist():
        text = index.texts[reason]
        if text in NOTHING_AMISS:
            continue
        here = places[reasons == reason]
        times, numbers = index.column("time_ns")[here], index.column("number")[here]
        yield _row(
            NOTE,
            f"missing: {text}",
            len(here),
            ("missing", text),
            first_ns=int(times.min()),
            last_ns=int(times.max()),
            number=int(numbers.min()),
            reason=text,
            filter=f"missing == {quoted(text)}",
        )


def _faults(index: Index, is_filtered: bool) -> Iterator[Row]:
    """Faults by kind, always of the whole capture: most belong to no exchange."""
    for (layer, kind), (count, first) in index.faults.items():
        whole = " (whole capture)" if is_filtered else ""
        yield _row(
            FAULT,
            f"{layer}: {kind}{whole}",
            count,
            ("fault", layer, kind),
            first_packet=first.packet,
            number=first.exchange,
            said=f"{KINDS[kind][1]}; the first: {first.message}",
            filter=f"fault == {quoted(kind)}" if first.exchange is not None else None,
        )


ASKED = ("errors",)


class ProblemsPage(StatisticsPage):
    """Errors of brokers, and faults of the bytes; below, the whole text of the row under the cursor. Enter
    shows its exchanges."""

    DEFAULT_CSS = """
    ProblemsPage #list { max-height: 60%; }
    ProblemsPage #said { height: 1fr; border-top: hkey $panel; }
    ProblemsPage.-none #list { max-height: 100%; }
    ProblemsPage.-none #said { display: none; }
    """

    def __init__(self) -> None:
        self._looked_at: tuple[object, ...] = ()
        """The number and the selection of exchanges at the last search for rows that are no errors."""
        self._others: list[Row] = []
        """The rows of that search, …"""
        self._shown_others: list[Row] = []
        """… and those of them in the list."""
        self._looking = Sparing()
        self._later: Timer | None = None
        """The timer for another search, if news came too early."""
        self._of: object = None
        """The subject of the text."""
        super().__init__()

    def body(self) -> ComposeResult:
        yield from super().body()
        yield TextPane(id="said")

    def figures(self) -> Figures:
        return figures(columns(self.clock.text))

    def needed_statistics(self) -> Asked:
        return ASKED

    def fill(self, counted: CountedTables) -> None:
        self._shown_others = self._others
        self.rows.show(problem_rows(counted.tables["errors"], self._others))
        self.wish(self.list_pane, len(self.rows) + 1 if len(self.rows) else "1fr")  # with its heading

    def index_grew(self) -> None:
        self._look()
        super().index_grew()
        if self._others is not self._shown_others:
            self.refill()
            self.update_message()

    def _look(self) -> None:
        """Search for rows that are no errors, as often as it takes little of the time."""
        app, began = self.kdissect, time.monotonic()
        index, shown = app.index, app.shown
        looked_at = len(index), index.fault_count(), shown.version, shown.is_filtered, shown.text
        if looked_at == self._looked_at:
            return
        is_same_filter = looked_at[3:] == self._looked_at[3:]
        if app.ended is None and is_same_filter and not self._looking.is_due:
            if self._later is None:  # nothing more may come for a while
                self._later = self.set_timer(self._looking.wait_s, self._look_later)
            return
        self._looked_at = looked_at
        others = other_rows(index, shown.places, shown.is_filtered)
        if others != self._others:
            self._others = others
        self._looking.done(began)

    def _look_later(self) -> None:
        self._later = None
        self.index_grew()

    def listed(self) -> str:
        return "error or fault"

    def rows_text(self) -> str:
        if not len(self.rows):
            return "no errors and no faults" if self.kdissect.ended is not None else "none so far"
        return plural(len(self.rows), "row")

    def cursor_moved(self) -> None:
        row, pane = self.chosen_row(), self.query_one("#said", TextPane)
        self.set_class(row is None, "-none")
        if row is not None:
            pane.show_folded(
                partial(text_of, row, filter_of(row), self.clock.text), stay=row["key"] == self._of
            )
            self._of = row["key"]

    @on(TextPane.Chosen)
    def _text_chosen(self) -> None:
        row = self.chosen_row()
        if row is not None:
            self.open(row)

    def exchange_of(self, row: Row) -> int | None:
        number: int | None = row["number"]
        return number

    def filter_of(self, row: Row) -> str | None:
        return filter_of(row)

    def open(self, row: Row) -> None:
        if filter_of(row) is None:
            self.show_message(f"this belongs to no exchange: {row['said']}")
        else:
            super().open(row)


_SUBJECTS = {
    "client_id": "client",
    "principal": "principal",
    "group": "group",
    "transactional_id": "transactional id",
    "topic": "topic",
    "partition": "partition",
    "broker": "broker",
}
"""The subjects in the first line, by the columns of a row."""
_MISSING = {
    "not captured": "The request or the response of these exchanges is not in the capture.",
    "gap": "The capture lacks the bytes of the request or the response.",
    "capture ended": "The capture ended before the response came.",
    "connection closed": "The connection ended before the response came.",
    "evicted": "kdissect reached a limit and forgot the request before the response came.",
}
"""The explanation of a missing side of an exchange, by the reason."""


def text_of(row: Row, shown_by: str | None, time_text: Callable[[int], str], room: int) -> list[TextLine]:
    """The whole text of a row of the list.

    :param shown_by: the filter that shows its exchanges, if there is one.
    :param time_text: writes a time.
    :param room: cells of a line.
    """
    out = [TextLine(part, "heading") for part in fold_text(_heading(row), room)]
    out += [TextLine(part) for part in fold_text(_how_often(row, time_text), room)]
    if row["error_code"] is not None and row["error_code"] in errors():
        out.append(TextLine(""))
        out += map(TextLine, error_lines(error_page(errors()[row["error_code"]]), room))
    else:
        for text in filter(None, (row["said"], _MISSING.get(row["reason"] or ""))):
            out += [TextLine(""), *(TextLine(part) for part in fold_text(sanitise(text, None), room))]
    if shown_by is not None:
        see = paragraph(f"{shown_by}  (Enter; i shows what led to the first)", "", "see", room)
        out += [TextLine(""), *(TextLine(part, "fact") for part in see)]
    return out


def _heading(row: Row) -> str:
    api = f" of {row['api']}" if row["api"] is not None else ""
    return ", ".join((f"{row['severity'].upper()} {row['what']}{api}", *_subject_text(row)))


def _subject_text(row: Row) -> Iterator[str]:
    for name, word in _SUBJECTS.items():
        if row[name] is not None:
            yield f"{word} {sanitise(str(row[name]), None)}"


def _how_often(row: Row, time_text: Callable[[int], str]) -> str:
    parts = [plural(row["count"], "time")]
    first, last = row["first_ns"], row["last_ns"]
    if first is not None and last is not None and first != last:
        parts.append(f"from {time_text(first)} to {time_text(last)}")
    elif first is not None:
        parts.append(f"at {time_text(first)}")
    elif row["first_packet"] is not None:
        parts.append(f"first in packet {row['first_packet']:,}")
    if row["number"] is not None:
        parts.append(f"first in exchange No. {row['number']}")
    return ", ".join(parts)
