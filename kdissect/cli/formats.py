"""``-T``: the table and its format; ``-e``: its columns."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import BinaryIO, NamedTuple, cast

from kdissect.cli.errors import Wrong
from kdissect.cli.interrupts import WholeRows
from kdissect.cli.output import refuse_terminal
from kdissect.present.catalogue import TABLES
from kdissect.present.columns import EXCHANGES, Table
from kdissect.present.nearest import nearest
from kdissect.present.options import Options
from kdissect.present.tables import BINARY, FORMATS, JoiningWriter, Writer
from kdissect.present.writers import table_writer
from kdissect.wording import NotInstalledError

LINES = ("text", "tree")
FOLLOW = "follow"
"""The bytes of connections: :mod:`kdissect.cli.streams`."""

_FRUGAL = {"ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"}
"""Environment variables that are set before pyarrow is imported. Its own allocator keeps 45 MB more and is no
faster here. It imports numpy if that is installed, and numpy starts threads that only cost time."""


class TableFormat(NamedTuple):
    """A table and a format."""

    table: str
    format: str


def form_of(
    text: str, tables: tuple[str, ...] = tuple(TABLES), lines: tuple[str, ...] = LINES
) -> TableFormat:
    """Parse ``text``, ``csv``, ``records``, ``faults.csv`` … into table and format.

    :raises Wrong: there is no such form; the text names the nearest.
    """
    if text == FOLLOW:
        raise Wrong("-T follow works with kdissect read only, because it reads captures twice")
    table, dot, form = text.partition(".")
    if not dot and table in (*lines, *FORMATS):
        return TableFormat(tables[0], table)
    if table in tables and (not dot or form in FORMATS):
        return TableFormat(table, form or "ndjson")
    known = (*lines, *FORMATS, *tables, *(f"{name}.{each}" for name in tables for each in FORMATS))
    hint = (
        nearest(text, known) or f"; there are {', '.join((*lines, *FORMATS, *tables))} and {tables[0]}.csv …"
    )
    raise Wrong(f"-T {text or repr(text)}: there is no such format{hint}")


def names_of(fields: Iterable[str]) -> list[str]:
    """The names of ``-e``, which may be separated by commas.

    :raises Wrong: one of them is empty.
    """
    names = [name.strip() for each in fields for name in each.split(",")]
    if not all(names):
        raise Wrong(f"-e {' '.join(map(repr, fields))}: a name is empty (kdissect fields lists them)")
    return names


def columns_of(table: Table, names: list[str], embedded: bool, payloads: bool = False) -> Table:
    """A table with the columns of these names; without names, with all columns that can have a value.

    :param embedded: whether Kafka's own records are decoded.
    :param payloads: whether keys and values are decoded.
    :raises Wrong: there is no such column; the text names the nearest.
    """
    if not names and not payloads:
        left_out = "Format" if embedded else ("Decoded", "Format")
        return Table(table.name, tuple(each for each in table.columns if not each.name.endswith(left_out)))
    try:
        return table.select(names) if names else table
    except LookupError as error:
        from kdissect.settings.list_columns import OWN, has_field, printed

        own = next((name for name in names if name in OWN), None)
        if own is None and table is EXCHANGES:
            own = next((name for name in names if "." in name and not printed((name,))), None)
            own = own if own is not None and has_field(own) else None
        if own is not None:
            several = ",".join(printed((own,)))
            instead = f"; use -e {several}" if several else ""
            raise Wrong(f"-e: {own} is a column of the screens only{instead}") from None
        raise Wrong(f"-e: {error.args[0]} (kdissect fields lists them)") from None


def check_writable(form: str, path: str | None, *, needs_pandas: bool = False) -> None:
    """Check, before anything is read or opened, that a format can be written to a place.

    :param needs_pandas: whether this process exchanges values between pyarrow and pandas, as Spark does.

    :raises Wrong: it is binary and would go to a terminal, or needs an extra that is not installed.
    """
    if form not in BINARY:
        return
    refuse_terminal(form, path)
    for name, value in _FRUGAL.items():
        os.environ.setdefault(name, value)
    try:
        from kdissect.present.arrow import keep_pandas_out
    except NotInstalledError as error:
        raise Wrong(str(error)) from None
    if not needs_pandas:
        keep_pandas_out()


def writer_of(form: str, table: Table, file: BinaryIO, options: Options) -> Writer:
    """A writer of a format that can be written."""
    writer = table_writer(form, table, file, options)
    return WholeRows(cast(JoiningWriter, writer)) if form in BINARY else writer
