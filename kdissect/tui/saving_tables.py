"""The table of a screen → a file, in the columns that ``kdissect stats -T`` writes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, BinaryIO

from kdissect.present.columns import Table
from kdissect.present.form import plural
from kdissect.present.options import Options
from kdissect.present.tables import table_writer
from kdissect.tui.whole_file import write_whole
from kdissect.wording import NotInstalledError

FORMS = {".csv": "csv", ".ndjson": "ndjson", ".parquet": "parquet", ".tsv": "tsv", ".arrow": "arrow"}
"""By the end of the file's name."""


def save_table(path: str, table: Table, rows: Iterable[Any], options: Options) -> str:
    """Write the rows, which are what the table is made from; gives what was done, or why it was not. A file
    that is there already stays."""
    form = FORMS.get(os.path.splitext(path)[1].lower())
    if form is None:
        return f"the name must end in one of {', '.join(FORMS)}"
    if os.path.lexists(path):
        return f"{path} is there already; give another name"

    def write(file: BinaryIO) -> str:
        writer, count = table_writer(form, table, file, options), 0
        for row in rows:
            writer.write(row)
            count += 1
        writer.close()
        return plural(count, "row")

    try:
        return write_whole(path, write)
    except OSError as error:
        return f"{path} cannot be written: {error.strerror or error}"
    except NotInstalledError as error:
        return str(error)
