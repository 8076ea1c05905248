"""Screens with a list of figures that can be ordered and saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from rich.cells import cell_len
from textual import on, work
from textual.screen import Screen

from kdissect.analysis.fold import Row
from kdissect.present.columns import Table
from kdissect.present.form import plural
from kdissect.present.options import Options
from kdissect.tui.lists.figures import Figures
from kdissect.tui.saving import TABLE_FORMS, save_table
from kdissect.tui.widgets.dialogs import Ask, Choose
from kdissect.tui.widgets.table import VirtualTable


class Saved(NamedTuple):
    """A table that can be saved."""

    name: str
    """As ``stats -z`` has it."""
    table: Table
    rows: Sequence[Any]
    """What the table is made from."""


class OrderedScreen(Screen[None]):
    """The screen. Its table has the id ``list``."""

    rows: Figures
    """What the table shows."""

    @property
    def list_pane(self) -> VirtualTable:
        """The table."""
        return self.query_one("#list", VirtualTable)

    @property
    def options(self) -> Options:
        """What is redacted in a table that is saved."""
        raise NotImplementedError

    def saved(self) -> list[Saved]:
        """The tables that can be saved."""
        raise NotImplementedError

    def say(self, text: str) -> None:
        """Write into the line above the keys."""
        raise NotImplementedError

    def tell(self) -> None:
        """Write there what is listed."""
        raise NotImplementedError

    def open(self, row: Row) -> None:
        """Show the exchanges of a row."""
        raise NotImplementedError

    def cursor_moved(self) -> None:
        """Another row is under the cursor, or the rows are others."""

    def say_notes(self, notes: Sequence[str]) -> None:
        """Say as many notes as there is room for, and the order of the list."""
        told = list(notes)
        if self.rows.sorted_by is not None:  # which the column's head says too
            order = "largest" if self.rows.descending else "smallest"
            told.append(f"by {self.rows.sorted_by}, {order} first")
        while len(told) > 1 and cell_len("   ".join(told)) >= self.app.size.width:
            told.pop()
        self.say("   ".join(told))

    def chosen_row(self) -> Row | None:
        """The row under the cursor; None without rows."""
        cursor = self.list_pane.cursor
        return self.rows.row(cursor) if cursor < len(self.rows) else None

    def row_with_cursor(self) -> object:
        """What tells the row under the cursor from others; None for the first row, on which the cursor stays
        until it is moved."""
        cursor = self.list_pane.cursor
        return self.rows.identity(cursor) if 0 < cursor < len(self.rows) else None

    def rows_changed(self, with_cursor: object) -> None:
        """The rows are others, or in another order; the cursor goes to the row that it was on."""
        self.list_pane.rows_changed(self.rows.row_of(with_cursor) or 0)
        self.cursor_moved()

    @on(VirtualTable.Highlighted, "#list")
    def _highlighted(self) -> None:
        self.cursor_moved()

    @on(VirtualTable.Chosen, "#list")
    def _chosen(self, event: VirtualTable.Chosen) -> None:
        self.open(self.rows.row(event.row))

    # -- the order ------------------------------------------------------------------------------------

    @on(VirtualTable.HeadingClicked, "#list")
    def _heading_clicked(self, event: VirtualTable.HeadingClicked) -> None:
        self._ordered(partial(self.rows.sort_at, event.column, self.list_pane.columns))

    def action_sort(self) -> None:
        self._ordered(partial(self.rows.sort_by_next, self.list_pane.columns))

    def action_order(self) -> None:
        def chosen(title: str | None) -> None:
            if title is not None:
                self._ordered(partial(self.rows.sort_by, title))

        titles = self.rows.orders()
        if titles:
            self.app.push_screen(Choose("Order by", titles), chosen)
        else:
            self.say("these rows have no other order")

    def action_turn(self) -> None:
        self._ordered(self.rows.turn)

    def _ordered(self, order: Callable[[], None]) -> None:
        with_cursor = self.row_with_cursor()
        order()
        self.rows_changed(with_cursor)
        self.tell()

    # -- saving ---------------------------------------------------------------------------------------

    def action_save(self) -> None:
        tables = [each for each in self.saved() if each.rows]
        if not tables:
            self.say("there is nothing to save")
        elif len(tables) == 1:
            self._ask_path(tables[0])
        else:
            words = {f"{each.name}: {plural(len(each.rows), 'row')}": each for each in tables}

            def chosen(word: str | None) -> None:
                if word is not None:
                    self._ask_path(words[word])

            self.app.push_screen(Choose("Save", list(words)), chosen)

    def _ask_path(self, saved: Saved) -> None:
        def given(path: str | None) -> None:
            if path is not None:
                self._save(path, saved)

        hint = f"name{', name'.join(TABLE_FORMS)}"
        self.app.push_screen(Ask(f"Save {saved.name}, {plural(len(saved.rows), 'row')}", hint), given)

    @work(thread=True, group="save")
    def _save(self, path: str, saved: Saved) -> None:
        said = save_table(path, saved.table, saved.rows, self.options)
        self.app.call_from_thread(self.say, said)
