"""The screen of the capture itself: interfaces, files, and what could not be decoded."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from kdissect.present.form import plural
from kdissect.tui.feed.counting import Asked
from kdissect.tui.lists import capture
from kdissect.tui.lists.figures import Figures
from kdissect.tui.pages.statistics import Saved, StatisticsPage

_NAMES = 18
"""Cells for the names of lines."""


class CapturePage(StatisticsPage):
    """Interfaces above, figures of the whole capture below. Nothing here is counted but by the decoder."""

    DEFAULT_CSS = """
    CapturePage #list { height: 1fr; max-height: 12; }
    CapturePage VerticalScroll { height: 1fr; border-top: hkey $panel; background: $surface; }
    CapturePage #lines { height: auto; }
    """

    def figures(self) -> Figures:
        return capture.figures()

    def asked(self) -> Asked:
        return ()

    def body(self) -> ComposeResult:
        yield from super().body()
        with VerticalScroll():
            yield Static(id="lines", markup=False)

    def index_grew(self) -> None:
        super().index_grew()
        app, index = self.kdissect, self.kdissect.index
        with_cursor = self._with_cursor()
        self.rows.show(capture.interface_rows(index))
        self._rows_changed(with_cursor)
        text = Text()
        for name, value, is_bad in capture.lines(index, app.feed.source, app.ended, app.feed.capture):
            text.append(f" {name:<{_NAMES}}", "bold")
            text.append(f"{'! ' if is_bad else '  '}{value}\n", self.alarm if is_bad else "")
        self.query_one("#lines", Static).update(text)
        self.tell()

    def notes(self) -> list[str]:
        return [self.what()]

    def what(self) -> str:
        return plural(len(self.rows), "interface")

    def saved(self) -> list[Saved]:
        return [Saved("interfaces", capture.INTERFACES, capture.interface_rows(self.kdissect.index))]
