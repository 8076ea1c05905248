"""Which columns the list of exchanges has: chosen from all of them, or made of the field under the cursor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kdissect.present.sanitise import sanitise
from kdissect.settings.list_columns import listed
from kdissect.tui.lists.exchange_columns import COLUMNS
from kdissect.tui.lists.exchanges import Exchanges
from kdissect.tui.pages.split import SplitPage
from kdissect.tui.widgets.dialogs import Pick


class ColumnChoice:
    """The columns of a page."""

    def __init__(self, page: SplitPage, rows: Exchanges) -> None:
        self._page, self._rows = page, rows

    def ask(self) -> None:
        """Ask which columns to show; with none ticked there are as many as there is room for."""
        rows = self._rows
        shown = rows.names(self._page.list_pane.columns) if rows.is_usual else rows.chosen
        *others, info = (name for name in COLUMNS if name != "mark")
        fields = rows.fields.shown
        names = (*others, *fields, info)
        heads = {name: each.title for name, each in fields.items()}
        words = [(name, _column_words(name, heads), name in shown or name in fields) for name in names]
        usual = [name for name, _, is_ticked in words if is_ticked and name in COLUMNS]

        def chosen(picked: list[str] | None) -> None:
            if picked is None:
                return
            left = [name for name in picked if name in fields]
            is_usual = rows.is_usual and [name for name in picked if name in COLUMNS] == usual
            self._show(left if is_usual else picked)

        self._page.app.push_screen(Pick("Columns", words), chosen)

    def add_or_remove(self, name: str) -> None:
        """Make a field a column, or take the column away.

        :param name: of the field, as filters have it.
        """
        try:
            (name,) = listed((name,))
        except LookupError as error:
            self._page.say(str(error.args[0]))
            return
        rows, before = self._rows, self._rows.chosen
        if name in COLUMNS and rows.is_usual:  # what is usual is no longer: it stays as it is now
            shown = [each for each in rows.names(self._list_width) if each != "mark"]
            before = (*shown, *(each for each in before if each not in shown))
        if name in before:
            self._show([each for each in before if each != name])
            self._page.say(f"{sanitise(name)} was removed from the columns")
            return
        title = COLUMNS[name].heading.title if name in COLUMNS else None
        there = [COLUMNS[each].heading.title for each in rows.names(self._list_width) if each in COLUMNS]
        if title is not None and title in there:  # with more, as the version of the API
            self._page.say(f"the column {title} shows it already")
            return
        at = before.index("info") if "info" in before else len(before)
        self._show((*before[:at], name, *before[at:]))
        has_room = name in rows.names(self._list_width)
        where = "the same key removes it" if has_room else "→ in the list leads to it"
        self._page.say(f"{sanitise(name)} is a column now; {where}")

    @property
    def _list_width(self) -> int:
        """The cells of a line of the list, or where the tree has its room about as many."""
        return self._page.list_pane.columns or self._page.app.size.width - 2

    def _show(self, names: Sequence[str]) -> None:
        rows, table = self._rows, self._page.list_pane
        rows.choose(names)
        self._page.kdissect.columns = rows.chosen
        table.column = None
        table.rows_changed()  # makes the values of the rows on the screen
        rows.fields.grow()
        table.rows_look_different()


def _column_words(name: str, heads: Mapping[str, str]) -> str:
    """What a column is called here, and in the configuration.

    :param heads: of the columns that show fields.
    """
    return f"{heads[name] if name in heads else COLUMNS[name].name:<12} {sanitise(name)}"
