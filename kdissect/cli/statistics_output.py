"""Prints tables of statistics, one below the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, BinaryIO

from kdissect.cli.errors import Wrong
from kdissect.cli.formats import writer_of
from kdissect.cli.output import TextOutput
from kdissect.present.columns import Table
from kdissect.present.form import Clock
from kdissect.present.options import Options
from kdissect.present.statistics import titled
from kdissect.present.statistics_text import table_lines

_LINES_AT_ONCE = 256
"""How many lines of a table are written at once."""


def refuse_several(form: str, count: int) -> None:
    """:raises Wrong: the format allows one table only, and there are several."""
    if count > 1 and form not in ("table", "ndjson"):
        raise Wrong(f"-T {form} prints only one table: give one -z, or -T ndjson")


class TablesOutput:
    """Writes tables to a file.

    :param path: the name of the file, if it is not stdout.
    :param form: ``table``, for people, or one of the formats.
    :param count: the number of tables. If there are several, each gets a title.
    """

    def __init__(
        self, file: BinaryIO, path: str | None, form: str, count: int, options: Options, clock: Clock
    ) -> None:
        self._file = file
        self._path = path
        self._form = form
        self._is_one = count == 1
        self._options = options
        self._clock = clock
        self._is_first = True
        self.rows = 0
        """How many rows were written."""

    def write(self, title: str, table: Table, rows: Iterable[Any], whole: bool = False) -> None:
        """Write the next table.

        :param rows: its rows. None of them is kept.
        :param whole: whether a table for people has all columns, because the user asked for them.
        """
        rows = self._counted(rows)
        if self._form == "table":
            output = TextOutput(self._file, self._path)
            if not self._is_one:
                output.line(("" if self._is_first else "\n") + title)
            lines = table_lines(table, rows, self._options, self._clock, whole, output.room)
            while some := tuple(islice(lines, _LINES_AT_ONCE)):
                output.lines(some)
        else:
            one = table if self._is_one else titled(table.name, table)
            writer = writer_of(self._form, one, self._file, self._options)
            for row in rows:
                writer.write(row)
            writer.close()
        self._is_first = False

    def _counted(self, rows: Iterable[Any]) -> Iterator[Any]:
        for row in rows:
            self.rows += 1
            yield row
