"""The table of a screen → a file, in the columns that ``kdissect stats -T`` writes."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from kdissect.present.columns import Table
from kdissect.present.form import plural
from kdissect.present.options import Options
from kdissect.present.tables import table_writer

FORMS = {".csv": "csv", ".ndjson": "ndjson", ".parquet": "parquet", ".tsv": "tsv", ".arrow": "arrow"}
"""By the end of the file's name."""


def save_table(path: str, table: Table, rows: Iterable[dict[str, Any]], options: Options) -> str:
    """Write the rows; gives what was done, or why it was not. A file that is there already stays."""
    form = FORMS.get(os.path.splitext(path)[1].lower())
    if form is None:
        return f"the name must end in one of {', '.join(FORMS)}"
    count = 0
    try:
        with open(path, "xb") as file:
            try:
                writer = table_writer(form, table, file, options)
                for row in rows:
                    writer.write(row)
                    count += 1
                writer.close()
            except (OSError, RuntimeError):
                with suppress(OSError):
                    os.unlink(path)  # what was begun here is of no use
                raise
    except FileExistsError:
        return f"{path} is there already; give another name"
    except OSError as error:
        return f"{path} cannot be written: {error.strerror or error}"
    except RuntimeError as error:  # an extra is not installed; the text says which
        return str(error)
    return f"{plural(count, 'row')} written to {path}"
