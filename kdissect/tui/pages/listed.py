"""Screens with a list of figures that can be ordered, searched, copied and saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from rich.cells import cell_len
from textual import on, work

from kdissect.analysis.fold import Row
from kdissect.feed.saving import TABLE_FORMS, save_table, why_no_name
from kdissect.feed.searching import why_not_in_texts
from kdissect.present.columns import Table
from kdissect.present.form import plural
from kdissect.present.options import Options
from kdissect.present.sanitise import sanitise
from kdissect.tui.copying import copied_message
from kdissect.tui.lists.figures import Figures, asked_text
from kdissect.tui.widgets.dialogs import Ask, Choose
from kdissect.tui.widgets.split_panes import PanesScreen
from kdissect.tui.widgets.table import VirtualTable

Copies = Mapping[str, Callable[[], str]]
"""The texts that can be copied, by the word for each."""
_ASKED = "a part of any column, or a regex as /or.ers/"
"""The forms of a search text."""
COPIED_CELLS = 80
"""The width of a line of copied text, in cells, as on the command line."""


class Saved(NamedTuple):
    """A table that can be saved."""

    name: str
    """The name in the form of ``stats -z``."""
    table: Table
    rows: Sequence[Any]
    """The data of the table."""


def no_row(rows: Figures) -> str:
    """The text of a list without rows if only some are to be shown."""
    return f"No row is shown: {sanitise(rows.narrowed)}. Esc shows all rows."


class OrderedScreen(PanesScreen):
    """The screen. Its table has the id ``list``."""

    rows: Figures
    """The rows of the table."""
    sought = ""
    """The last search text."""
    _all_lists: Sequence[VirtualTable] = ()
    """The lists of the screen; empty before it is made."""

    @property
    def list_pane(self) -> VirtualTable:
        """The table."""
        return self.query_one("#list", VirtualTable)

    @property
    def options(self) -> Options:
        """The options for redacting a saved table."""
        raise NotImplementedError

    def saved(self) -> list[Saved]:
        """The tables that can be saved."""
        raise NotImplementedError

    def show_message(self, text: str) -> None:
        """Write into the line above the keys."""
        raise NotImplementedError

    def show_message_later(self, text: str) -> None:
        """Write a text after a dialog has closed and the cursor has moved, because both write about the
        list."""
        self.call_after_refresh(self.show_message, text)

    def update_message(self) -> None:
        """Write into the line above the keys about the list."""
        raise NotImplementedError

    def open(self, row: Row) -> None:
        """Show the exchanges of a row."""
        raise NotImplementedError

    def cursor_moved(self) -> None:
        """Handle another row under the cursor, or other rows."""

    def show_notes(self, notes: Sequence[str]) -> None:
        """Write the first note, others that have room, and the order of the list."""
        wanted = list(notes)
        if self.rows.is_narrow:
            wanted.insert(0, sanitise(self.rows.narrowed))
        if self.rows.sorted_by is not None:  # which the column's heading shows too
            order = "largest" if self.rows.descending else "smallest"
            wanted.append(f"by {self.rows.sorted_by}, {order} first")
        tables = [each for each in self._lists() if each.columns and each.display]
        hints = [each.hint for each in tables if each.hint and not each.has_room_for_hint]
        if hints:
            wanted.insert(1, f"columns: {', '.join(dict.fromkeys(hints))}")
        told = "   ".join(wanted[:1])
        for note in wanted[1:]:
            longer = f"{told}   {note}"
            if cell_len(longer) < self.app.size.width:
                told = longer
        self.show_message(told)

    def _lists(self) -> Sequence[VirtualTable]:
        """The lists of the screen. They are looked up until it is made: each time that takes as long as
        drawing some lines."""
        if not self._all_lists:
            found = tuple(self.query(VirtualTable))
            self._all_lists = found if self.is_mounted else ()
            return found
        return self._all_lists

    def chosen_row(self) -> Row | None:
        """The row under the cursor; None without rows."""
        cursor = self.list_pane.cursor
        return self.rows.row(cursor) if cursor < len(self.rows) else None

    def row_with_cursor(self) -> object:
        """The identity of the row under the cursor; None for the first row, on which the cursor stays until
        it is moved."""
        cursor = self.list_pane.cursor
        return self.rows.identity(cursor) if 0 < cursor < len(self.rows) else None

    def rows_changed(self, with_cursor: object) -> None:
        """Show changed or newly ordered rows; the cursor goes to its earlier row."""
        self.list_pane.rows_changed(self.rows.row_of(with_cursor) or 0)
        self.cursor_moved()

    @on(VirtualTable.Highlighted, "#list")
    def _highlighted(self) -> None:
        self.cursor_moved()

    @on(VirtualTable.Chosen, "#list")
    def _chosen(self, event: VirtualTable.Chosen) -> None:
        self.open(self.rows.row(event.row))

    def on_resize(self) -> None:
        self.call_after_refresh(self._refresh_message)

    def _refresh_message(self) -> None:
        """Write how many columns have no room now, unless the screen was left before it was made."""
        if self.is_attached and self.query_one_optional("#list"):
            self.update_message()

    @on(VirtualTable.Turned)
    def _columns_turned(self) -> None:
        self.update_message()

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
            self.show_message("these rows cannot be ordered in another way")

    def action_turn(self) -> None:
        self._ordered(self.rows.turn)

    def _ordered(self, order: Callable[[], None]) -> None:
        with_cursor = self.row_with_cursor()
        order()
        self.rows_changed(with_cursor)
        self.update_message()

    # -- searching ------------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Ask for a text, and go to the next row that has it."""

        def given(text: str | None) -> None:
            if text is not None:
                self.sought = text
                self.action_match(1)

        ask = Ask("Search in this list", _ASKED, self.sought, why_not=why_not_in_texts)
        self.app.push_screen(ask, given)

    def action_match(self, step: int) -> None:
        """Go to the next row (1) with the search text, or to the one before (-1)."""
        if not self.sought:
            self.action_search()
            return
        table = self._searched()
        rows = table.rows
        assert isinstance(rows, Figures)
        row = rows.find(self.sought, table.cursor, step)
        if row is None:
            self.show_message_later(f"no row has {self.sought}")
            return
        has_turned = (row - table.cursor) * step <= 0
        table.cursor = row
        if has_turned:
            self.show_message_later(f"the search went on from the {'top' if step > 0 else 'end'}")

    def action_narrow(self) -> None:
        """Ask for a text, and show only rows that have it."""

        def given(text: str | None) -> None:
            if text is not None:
                self._narrow(text.strip(), self.rows.only_trouble)

        note = "" if self.rows.only_trouble else "nothing: all rows again"
        before = self.rows.only_text
        hint = "a part of any column, a regex as /or.ers/, or !text for rows without it"

        def why_not(text: str) -> str:
            return why_not_in_texts(asked_text(text)[1])

        ask = Ask("Only rows with", hint, before, may_be_empty=True, note=note, why_not=why_not)
        self.app.push_screen(ask, given)

    def action_trouble(self) -> None:
        """Show only rows with a problem, or all again."""
        if self.rows.marks_trouble:
            self._narrow(self.rows.only_text, not self.rows.only_trouble)
        else:
            self.show_message("no row of this list is marked as trouble")

    def _narrow(self, text: str, only_trouble: bool = False) -> None:
        with_cursor = self.row_with_cursor()
        self.rows.narrow(text, only_trouble)
        self.rows_changed(with_cursor)
        self.call_after_refresh(self.update_message)

    def show_all_rows(self) -> bool:
        """Show all rows again; return whether some were hidden."""
        if not self.rows.is_narrow:
            return False
        self._narrow("")
        return True

    def _searched(self) -> VirtualTable:
        """The table with the focus, if it has figures."""
        focused = self.focused
        has_figures = isinstance(focused, VirtualTable) and isinstance(focused.rows, Figures)
        return focused if isinstance(focused, VirtualTable) and has_figures else self.list_pane

    # -- copying --------------------------------------------------------------------------------------

    def copies(self, row: Row) -> Copies:
        """The texts that can be copied from a row and from the list."""
        rows = self.rows
        return {"row": partial(rows.as_text, row), "list": rows.as_text}

    def action_copy(self) -> None:
        row = self.chosen_row()
        if row is None:
            self.show_message("there is nothing to copy")
            return
        copies = self.copies(row)

        def chosen(form: str | None) -> None:
            if form is not None:
                text = copies[form]()
                self.app.copy_to_clipboard(text)
                self.show_message_later(copied_message(form, text))

        self.app.push_screen(Choose("Copy", list(copies)), chosen)

    # -- saving ---------------------------------------------------------------------------------------

    def action_save(self) -> None:
        tables = [each for each in self.saved() if each.rows]
        if not tables:
            self.show_message("there is nothing to save")
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
        is_more = self.rows.is_narrow and len(saved.rows) > len(self.rows)
        note = "all rows, not only those that are shown" if is_more else ""
        title = f"Save {saved.name}, {plural(len(saved.rows), 'row')}"
        why_not = partial(why_no_name, forms=TABLE_FORMS)
        self.app.push_screen(Ask(title, hint, note=note, why_not=why_not), given)

    @work(thread=True, group="save")
    def _save(self, path: str, saved: Saved) -> None:
        said = save_table(path, saved.table, saved.rows, self.options)
        self.app.call_from_thread(self.show_message, said)
