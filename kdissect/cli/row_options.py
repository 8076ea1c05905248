"""How rows are printed: the options that ``read``, ``live`` and ``client`` share for format, columns, times
and secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from kdissect.cli.completing import a_column_of
from kdissect.cli.config import Config
from kdissect.cli.errors import Wrong
from kdissect.cli.formats import TableFormat, check_writable, columns_of, form_of, names_of
from kdissect.cli.output import TextOutput, uses_colour
from kdissect.cli.printers import (
    ColumnsPrinter,
    FieldsPrinter,
    Keep,
    LinePrinter,
    Printer,
    RecordColumnsPrinter,
    RecordsPrinter,
    TablePrinter,
    TreePrinter,
    goes_in_pieces,
)
from kdissect.present.catalogue import TABLES
from kdissect.present.columns import EXCHANGES, Table
from kdissect.present.form import TIMES, Clock
from kdissect.present.options import BYTES_FORMS, Options

if TYPE_CHECKING:
    from kdissect.payload.decoder import PayloadDecoder

FIELDS = click.option(
    "-e",
    "fields",
    multiple=True,
    metavar="FIELD",
    shell_complete=a_column_of(TABLES),
    help="Print only this column. May be given often.",
)
AS_TREE = click.option("-V", "as_tree", is_flag=True, help="The same as -T tree.")
DUMP = click.option("-x", "dump", is_flag=True, help="Print the bytes too (text and tree).")
CLOCK = click.option(
    "-t",
    "clock",
    type=click.Choice(tuple(TIMES)),
    help=f"Times: {', '.join(f'{meaning} ({letter})' for letter, meaning in TIMES.items())}. In seconds.",
)
WITH_RECORDS = click.option(
    "--records", is_flag=True, help="Show decoded record batches inside requests and responses."
)
BYTES_FORM = click.option(
    "--bytes",
    "bytes_form",
    type=click.Choice(BYTES_FORMS),
    default="text",
    help="How keys and values are shown.",
)
EMBEDDED = click.option("--embedded", is_flag=True, help="Decode bytes inside messages and records too.")
SHOW_SECRETS = click.option("--show-secrets", is_flag=True, help="Show passwords, tokens and keys.")


def options_of(given: Mapping[str, Any], config: Config, payloads: PayloadDecoder | None = None) -> Options:
    """The choices for a whole output.

    :param payloads: the decoder of keys and values of records.
    """
    return Options(
        payloads=payloads,
        show_secrets=given["show_secrets"],
        records=given["records"],
        embedded=given["embedded"],
        bytes_form=given["bytes_form"],
        limits=config.limits,
        shown_fields=config.shown_fields,
        explain_errors=given.get("explain_errors", False),
    )


def chosen_form(
    given: Mapping[str, Any], default: str, tables: tuple[str, ...] = tuple(TABLES)
) -> TableFormat:
    """The format that ``-T``, ``-V`` and ``-x`` choose.

    :raises Wrong: they do not fit together, or the format cannot be written.
    """
    text = given["form"]
    if given["as_tree"]:
        if text not in (None, "tree"):
            raise Wrong(f"-V means -T tree, but -T {text} is given too: leave out one of them")
        text = "tree"
    form = form_of(default if text is None else text, tables)
    if given["dump"] and form.format not in ("text", "tree"):
        raise Wrong(f"-x works with -T text and -T tree, not with -T {default if text is None else text}")
    if given["dump"] and form.format == "text" and given["fields"]:
        raise Wrong("-x works with whole lines and trees, not with -e")
    check_writable(form.format, given["output"])
    return form


def chosen_columns(given: Mapping[str, Any], form: TableFormat, config: Config, options: Options) -> Table:
    """The table with the columns that ``-e`` or the configuration chooses.

    :raises Wrong: there is no such column, or the output is trees, which have none.
    """
    table = TABLES[form.table]
    names = names_of(given["fields"])
    if names and form.format == "tree":
        raise Wrong("-e works with tables, not with -T tree")
    if not names and table is EXCHANGES:
        names = list(config.columns)
    return columns_of(table, names, options.embedded, options.payloads is not None)


def printer_of(
    given: Mapping[str, Any],
    config: Config,
    form: str,
    table: Table,
    file: BinaryIO,
    clock: Clock,
    options: Options,
    flush: bool,
    keep: Keep | None,
    *,
    apart: bool = False,
) -> Printer:
    """The printer of rows of a table in a format.

    :param apart: whether another process writes the rows, which have a format in
        :data:`~kdissect.present.tables.BINARY`.
    :param flush: whether each row is needed at once.
    :param keep: whether a row is shown; None if all are.
    """
    output = TextOutput(file, given["output"], flush)
    if form == "tree":
        return TreePrinter(output, options, given["dump"])
    if form != "text":
        if not flush and keep is None and given.get("count") is None and goes_in_pieces(table, form, options):
            if apart:
                return RecordColumnsPrinter(table, file, options)
            return RecordsPrinter(table, form, file, options)
        kind = ColumnsPrinter if apart else TablePrinter
        return kind(table, form, file, options, flush, keep)
    if given["fields"]:
        return FieldsPrinter(table, form, file, options, flush, keep)
    colour = uses_colour(given["color"] or config.color, given["output"])
    return LinePrinter(output, clock, colour, options, given["dump"])
