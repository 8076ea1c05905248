"""``kdissect spark report``."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from kdissect.cli.commands.spark.sessions import running, session_options, within_reach
from kdissect.cli.errors import Unreadable, complain
from kdissect.cli.exit_codes import DONE, FAULTS_SEEN
from kdissect.present.columns import Table, dict_column
from kdissect.present.form import Clock, plural
from kdissect.present.options import PLAIN
from kdissect.present.statistics_text import table_lines
from kdissect.present.tables import json_line
from kdissect.spark.quality import SECTION
from kdissect.spark.report import SECTIONS, Report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WORDS = {"string": "text", "bigint": "int64", "smallint": "int16", "boolean": "bool"}
"""Types of the report's columns, in the words of :mod:`kdissect.present.columns`."""


@click.command(
    "report", epilog="\b\n" + "\n".join(f"{name:9} {what}" for name, (what, _) in SECTIONS.items())
)
@click.argument("tables", metavar="DIR")
@click.option(
    "--section",
    "sections",
    multiple=True,
    type=click.Choice(SECTIONS),
    help="Section to print. May be given often. Default: all.",
)
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="Rows in each section.")
@click.option("-T", "form", type=click.Choice(("table", "ndjson")), default="table", help="Output format.")
@click.option("--strict", is_flag=True, help="Exit code 4 if there are faults.")
@session_options
def command(**given: Any) -> int:
    """Tables of batch or stream → what they say together.

    It needs the tables exchanges and connections, and for quality and --strict also faults. An exchange that
    several capture points saw counts once.
    """
    out = within_reach(given["tables"], given["master"]).rstrip("/")
    for name in ("exchanges", "connections"):
        if "://" not in out and not os.path.isdir(os.path.join(out, name)):
            raise Unreadable(
                f"{out}: has no table {name}; kdissect spark batch … --out {out} --table {name} makes it"
            )
    needs_faults = given["strict"] or SECTION in given["sections"]
    has_faults = needs_faults if "://" in out else os.path.isdir(os.path.join(out, "faults"))
    if needs_faults and not has_faults:
        raise Unreadable(f"{out}: has no table faults; kdissect spark batch … --table faults makes it")
    with running(given) as (spark, _):
        read = spark.read.parquet
        faults = read(f"{out}/faults") if has_faults else None
        made = Report(spark, read(f"{out}/exchanges"), read(f"{out}/connections"), faults)
        for name in given["sections"] or (each for each in SECTIONS if has_faults or each != SECTION):
            _print_section(name, made.section(name, given["top"] + 1), given["top"], given["form"])
            if made.left_out:
                complain(
                    f"{name}: too many clients and connections; {plural(made.left_out, 'count')} left out"
                )
        if faults is not None and given["strict"] and not faults.isEmpty():
            return FAULTS_SEEN
    return DONE


def _print_section(name: str, frame: DataFrame, most: int, form: str) -> None:
    """Print a section of the report, and that there is more of it."""
    rows = [row.asDict() for row in frame.collect()]
    more = f"{name} has more rows; --top {most} cuts them off" if len(rows) > most else ""
    del rows[most:]
    if form == "ndjson":
        if more:
            complain(more)
        for row in rows:
            sys.stdout.write(json_line({"section": name, **row}).decode("ascii"))
        return
    columns = [(column, "string" if kind.startswith("array") else kind) for column, kind in frame.dtypes]
    table = Table(name, tuple(dict_column(column, _WORDS[kind], "") for column, kind in columns))
    for row in rows:
        row |= {
            column: ", ".join(map(str, value)) for column, value in row.items() if isinstance(value, list)
        }
    sys.stdout.write(f"{SECTIONS[name][0]}\n")
    room = shutil.get_terminal_size().columns - 2 if sys.stdout.isatty() else None
    for line in table_lines(table, rows, PLAIN, Clock("u"), True, room) if rows else ["(none)"]:
        sys.stdout.write(f"  {line}\n")
    if more:
        sys.stdout.write(f"  ({more})\n")
    sys.stdout.write("\n")
