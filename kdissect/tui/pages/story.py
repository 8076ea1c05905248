"""The screen of a story: the causes and the effects of an exchange, on all connections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import ActiveBinding, BindingType
from textual.timer import Timer
from textual.widgets import Static

from kdissect.analysis.fold import Row
from kdissect.analysis.story import StoryLine
from kdissect.exchange import Exchange
from kdissect.feed.counting import Asked
from kdissect.feed.statistics import CountedTables, Statistics
from kdissect.feed.stories import CLIENT, GROUP, OFFSET, PRODUCER, TRANSACTION, Subject, subjects_of
from kdissect.present.form import Clock, plural
from kdissect.present.sanitise import sanitise
from kdissect.present.stories import STORY
from kdissect.protocol.errors import errors
from kdissect.tui.host import MOST_STEPS
from kdissect.tui.keys import bindings_of
from kdissect.tui.lists.figures import FigureColumn, Figures
from kdissect.tui.pages.ladder import OF_STORY, Drawn
from kdissect.tui.pages.listed import Saved
from kdissect.tui.pages.page import BACK, NAMED_BACK
from kdissect.tui.pages.statistics import GroupedTable, StatisticsPage

HERE = "▶"
"""The sign before the line that contains the exchange."""
WHAT = "What"
"""The heading of the column with the text."""
REST_SECONDS = 0.12
"""How long the cursor must rest on a line before its exchange is decoded. Decoding may take some frames."""
_LEADS = {
    "of-transaction": TRANSACTION,
    "of-producer": PRODUCER,
    "of-group": GROUP,
    "of-client": CLIENT,
    "of-offset": OFFSET,
}
"""The kind of story that each action leads to."""


def _line(row: Row) -> StoryLine:
    found: StoryLine = row["line"]
    return found


def _what(row: Row) -> str:
    return sanitise(_line(row).whole, None)


def _columns(clock: Clock) -> tuple[FigureColumn, ...]:
    return (
        FigureColumn("", lambda row: HERE if row["is_here"] else " ", None, 0, False),
        FigureColumn(
            "Time", lambda row: clock.text(_line(row).ns), lambda row: _line(row).ns, is_most_first=False
        ),
        FigureColumn("No.", lambda row: str(_line(row).exchange), lambda row: _line(row).exchange),
        FigureColumn(
            "Who", lambda row: sanitise(_line(row).client_id or _line(row).client), None, 1, False, 32
        ),
        FigureColumn(WHAT, _what, None, 0, False, 400, False, 40),  # with its error
    )


class _Left(NamedTuple):
    """A story that the user left for another one."""

    exchange: Exchange | None
    """The exchange at the top."""
    subject: Subject
    line: int
    """The line, by its exchange."""


class StoryPage(StatisticsPage):
    """The story of one exchange, or of a subject from another screen. An exchange belongs to several stories:
    one key goes from one to the next. Other keys lead from the line under the cursor to the story of its
    transaction, producer, group, client or offset. Enter shows the exchange of a line."""

    DEFAULT_CSS = """
    StoryPage #about { height: auto; max-height: 4; padding: 0 1; background: $surface; }
    StoryPage #list { border-top: hkey $panel; }
    StoryPage #line { height: 2; display: none; padding: 0 1; background: $panel; color: $text-muted; }
    StoryPage.-long #line { display: block; }
    StoryPage.-tiny #about { max-height: 2; }
    StoryPage.-tiny #line { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = bindings_of("story")
    OF_WHAT = "from all exchanges, without the filter"

    def __init__(self) -> None:
        self._subjects: Sequence[Subject] = ()
        self._subject: Subject | None = None
        """The subject of the shown story."""
        self._exchange: Exchange | None = None
        self._longest = 0
        """The width of the longest line, in cells."""
        self._to_find = True
        """Whether the cursor still has to go to the exchange."""
        self._line_to_find: int | None = None
        """The line to which it has to go instead, by its exchange."""
        self._time_to_find: int | None = None
        """The time to which it has to go if there is no exchange: the first line that is not before it."""
        self._before: list[_Left] = []
        """The stories that the user left for others."""
        self._rest: Timer | None = None
        """The timer until the cursor has rested."""
        self._told = Text()
        """The text above the list."""
        self._kinds: frozenset[str] | None = None
        """The kinds of other stories to which the line under the cursor leads; None while unknown."""
        super().__init__()

    def figures(self) -> Figures:
        return Figures(
            _columns(self.clock),
            lambda row: _line(row).exchange,
            lambda row: "table--warning" if _line(row).error else None,
        )

    def body(self) -> ComposeResult:
        yield Static(id="about", markup=False)
        yield GroupedTable(self.rows, id="list")
        yield Static(id="line", markup=False)

    @property
    def statistics(self) -> Statistics:
        return self.kdissect.judging

    @property
    def names(self) -> frozenset[str]:
        return frozenset()

    def shown(self) -> int:
        return len(self.kdissect.index)

    def show_story_of(
        self, exchange: Exchange | None, subject: Subject | None = None, ns: int | None = None
    ) -> None:
        """Tell the story of an exchange, or of a subject.

        :param subject: by default, the one that is closest to the exchange.
        :param ns: the time to which the cursor goes without an exchange, since the epoch.
        """
        row = self.chosen_row() if self.is_current else None
        if row is not None and self._subject is not None:
            left = _Left(self._exchange, self._subject, _line(row).exchange)
            self._before = [*self._before, left][-MOST_STEPS:]
        else:
            self._before = []
        self._begin(exchange, subject, ns=ns)

    def _begin(
        self,
        exchange: Exchange | None,
        subject: Subject | None,
        line: int | None = None,
        ns: int | None = None,
    ) -> None:
        self._exchange, self._line_to_find = exchange, line
        self._time_to_find = ns if exchange is None else None
        by_title: dict[str, Subject] = {}
        for each in () if exchange is None else subjects_of(exchange):
            by_title.setdefault(each.title, each)  # several kinds may have the same title
        self._subjects = list(by_title.values())
        self._load_story(subject or self._subjects[0])

    def _load_story(self, subject: Subject) -> None:
        self._subject, self.counted, self._to_find = subject, None, True
        self.rows.narrow("")
        if self.is_mounted and self.is_current:
            self.rows.show(())
            self.list_pane.rows_changed(0)
            self.statistics.request(self.needed_statistics())
            self.index_grew()

    def on_screen_resume(self) -> None:
        self._show_subject()

    def needed_statistics(self) -> Asked:
        return () if self._subject is None else (self._subject.asked,)

    def fill(self, counted: CountedTables) -> None:
        rows = [{**row, "is_here": self._is_here(row)} for row in counted.tables[self.needed_statistics()[0]]]
        self.rows.show(rows, _columns(self.clock))
        self._longest = max((cell_len(_what(row)) for row in rows), default=0)
        at = next((at for at, row in enumerate(rows) if row["is_here"]), None)
        line, ns = self._line_to_find, self._time_to_find
        if ns is not None:
            at = next((at for at, row in enumerate(rows) if _line(row).ns >= ns), None)
        elif self._exchange is None and rows:  # whichever line of the story before had the cursor
            at = 0
        at = next((at for at, row in enumerate(rows) if _line(row).exchange == line), at)
        if self._to_find and at is not None:
            self._to_find = False
            self.call_after_refresh(self._go_to, at)

    def _go_to(self, row: int) -> None:
        self.list_pane.go_to(row)

    def _is_here(self, row: Row) -> bool:
        """Whether a line contains the exchange, alone or with others of the same action."""
        exchange, line = self._exchange, _line(row)
        if exchange is None or line.connection != exchange.connection:
            return False
        return line.exchange <= exchange.number and line.ns <= exchange.begun_ns <= line.last_ns

    def _show_subject(self) -> None:
        exchange, subject = self._exchange, self._subject
        if subject is None:
            return
        text = Text()
        if exchange is not None:
            who = sanitise(exchange.client_id or exchange.client)
            text.append(f"#{exchange.number} {exchange.api} of {who}", "bold")
            error = next((each for each in errors().values() if each.name == exchange.error), None)
            if exchange.error is not None:
                text.append(f" → {exchange.error} ({exchange.error_class})", self.alarm)
            if error is not None:
                text.append(f"\n{error.meaning}")
            text.append("\n")
        text.append(f"the story of {sanitise(subject.title)}", "" if exchange is not None else "bold")
        if text != self._told:  # Textual lays out the whole screen again
            self._told = text
            self.query_one("#about", Static).update(text)

    def index_grew(self) -> None:
        super().index_grew()
        self._show_subject()

    def rows_text(self) -> str:
        return plural(len(self.rows), "line")

    def cursor_moved(self) -> None:
        self.update_message()
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(REST_SECONDS, self._rested) if self.is_current else None

    def _rested(self) -> None:
        """Find the stories to which the line leads, for the footer."""
        self._rest = None
        place = self.chosen_place()
        exchange = None if place is None else self.kdissect.exchange_at(place)
        subjects = () if exchange is None else subjects_of(exchange)
        kinds = frozenset(each.kind for each in subjects if each != self._subject)
        if kinds != self._kinds:
            self._kinds = kinds
            self.refresh_bindings()

    @property
    def is_at_rest(self) -> bool:
        return self._rest is None and super().is_at_rest

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """The keys. The footer has only those that lead to another story from this line; the others say why
        they lead nowhere."""
        found, kinds = super().active_bindings, self._kinds
        for key, active in found.items():
            kind = _LEADS.get(active.binding.id or "")
            leads_nowhere = kind is not None and kinds is not None and kind not in kinds
            if leads_nowhere or (active.binding.id == "next-story" and len(self._subjects) < 2):
                found[key] = active._replace(binding=replace(active.binding, show=False))
        return found

    def update_message(self) -> None:
        """Write the whole line under the cursor if the list has no room for it. It takes two lines if some
        line of the story needs them."""
        row, room = self.chosen_row(), self.app.size.width - 2
        text = "" if row is None else _what(row)
        headings = self.rows.headings(self.list_pane.columns)
        in_list = next((each.width for each in headings if each.title == WHAT), 0)
        is_cut = super().is_at_rest and cell_len(text) > in_list > 0
        self.set_class(self._longest > room, "-long")
        if is_cut and (cell_len(text) <= room or self.has_class("-tiny")):
            self.show_message(text)
        else:
            super().update_message()
        self.query_one("#line", Static).update(Text(text if is_cut and cell_len(text) > room else ""))

    def notes(self) -> list[str]:
        subjects = self._subjects
        at = subjects.index(self._subject) if self._subject in subjects else -1
        others = [sanitise(each.title, 60) for each in (*subjects[at + 1 :], *subjects[: max(0, at)])]
        return [
            *super().notes(),
            *([f"n: {others[0]}" + (" …" if len(others) > 1 else "")] if others else []),
        ]

    def saved(self) -> list[Saved]:
        return [Saved("story", STORY, [_line(self.rows.row(at)) for at in range(len(self.rows))])]

    def exchange_of(self, row: Row) -> int | None:
        return _line(row).exchange

    def action_next_story(self) -> None:
        """Tell the next story of the exchange."""
        if self._subject is not None and len(self._subjects) > 1:
            at = self._subjects.index(self._subject) if self._subject in self._subjects else -1
            self._line_to_find = None
            self._load_story(self._subjects[(at + 1) % len(self._subjects)])
        else:
            self.show_message("there is no other story of this")

    def action_tell(self, kind: str) -> None:
        """Tell the story of an object in the line under the cursor: a group, an offset …"""
        exchange = self.kdissect.chosen_exchange()
        if exchange is None:
            return
        found = next((each for each in subjects_of(exchange) if each.kind == kind), None)
        if found is None:
            self.show_message(f"#{exchange.number} {exchange.api} names no {kind}")
        else:
            self.show_story_of(exchange, found)

    def action_out(self) -> None:
        """Show the previous story."""
        if self.show_all_rows():
            return
        if self._before:
            self._begin(*self._before.pop())
        else:
            super().action_out()

    @property
    def way_out(self) -> str:
        return BACK if self._before and not self.rows.is_narrow else super().way_out

    def drawn(self) -> Drawn | None:
        """The story for the ladder; None if none is told."""
        numbers = tuple(_line(self.rows.row(at)).exchange for at in range(len(self.rows)))
        title = "" if self._subject is None else self._subject.title
        return Drawn(OF_STORY, self.chosen_place(), numbers, title) if numbers else None

    @property
    def opens(self) -> str:
        return "Exchange" if self.app.size.width >= NAMED_BACK else ""  # the stories come first

    def open(self, row: Row) -> None:
        self.kdissect.go_to_number(_line(row).exchange)
