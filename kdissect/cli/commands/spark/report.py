"""``kdissect spark report``."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from kdissect.cli.commands.spark.stats import REPORT, folder_of, for_people, of_rows
from kdissect.cli.errors import Unreadable, Wrong, complain
from kdissect.cli.exit_codes import DONE, FAULTS_SEEN, STRICT
from kdissect.cli.output import open_output
from kdissect.cli.spark_sessions import refuse_no_tables, running, session_options, within_reach
from kdissect.insight.report_data import TABLES as OF_REPORT
from kdissect.model import CaptureError
from kdissect.present.columns import Column, Table, dict_column
from kdissect.present.findings import FINDINGS
from kdissect.present.form import Clock, plural
from kdissect.present.nearest import nearest
from kdissect.present.options import PLAIN
from kdissect.present.statistics import STATISTICS
from kdissect.present.statistics_text import table_lines
from kdissect.present.tables import json_line
from kdissect.spark.provenance import STATISTICS as FOLDER
from kdissect.spark.quality import SECTION
from kdissect.spark.report import SECTIONS, ReportViews
from kdissect.spark.storage import join, without_query
from kdissect.spark.stored import StoredTables, is_named
from kdissect.spark.tables import POINT, TABLES, with_point
from kdissect.spark.target_files import TargetError
from kdissect.wording import NotInstalledError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WORDS = {"string": "text", "bigint": "int64", "smallint": "int16", "boolean": "bool"}
"""Types of the report's columns, by the names of :mod:`kdissect.present.columns`."""
_MOMENTS = ("first_ns", "last_ns")
"""The columns of sections that are points in time. Other columns in nanoseconds are durations."""
_OF_BATCH = ("exchanges", "connections")
"""The tables that the sections are made from."""
_STORED = {
    FINDINGS.name: FINDINGS,
    **{folder_of(text): STATISTICS[text.partition(",")[0]] for text in OF_REPORT},
    **STATISTICS,
}
"""The tables that ``spark stats --out`` may have written, by folder."""


@click.command(
    "report",
    epilog="\b\n"
    + "\n".join(f"{name:9} {what}" for name, (what, _) in SECTIONS.items())
    + "\n\nThen come the tables of spark stats --out.",
)
@click.argument("tables", metavar="PLACE")
@click.option(
    "--section",
    "sections",
    multiple=True,
    type=click.Choice(SECTIONS),
    help="Section to print. May be given often. Default: all.",
)
@click.option(
    "-z",
    "statistics",
    multiple=True,
    metavar="TABLE",
    help="Table of spark stats --out to print: findings, rebalances, … May be given often. Default: all.",
)
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="Rows in each section.")
@click.option(
    "-T", "form", type=click.Choice(("table", "ndjson", "html")), default="table", help="Output format."
)
@click.option("-o", "output", metavar="FILE", help="With -T html: write the page to this file.")
@click.option("--point", metavar="NAME", help="With -T html: the capture point, if there are several.")
@STRICT
@session_options
def command(**given: Any) -> int:
    """Summarise tables that batch, stream or stats wrote.

    PLACE is a folder, or a target as in spark batch --to: iceberg:CATALOG.NAMESPACE.

    The sections need the tables exchanges and connections. The section quality and --strict also need
    the table faults. An exchange that several capture points saw counts once.

    Findings, rebalances, transactions and other statistics follow if kdissect spark stats --out wrote them.
    After spark stats --all, -T html gives the page of kdissect report.
    """
    return _SparkReportCommand(given).run()


class _SparkReportCommand:
    """One run of the command."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given
        out = given["tables"]
        self._place = _place(out, given["master"])
        self._out = self._place.folder
        if self._out is not None and self._place.is_seen:
            refuse_no_tables(self._out, out)
        self._wanted = tuple(map(folder_of, given["statistics"]))
        if given["form"] == "html" and (given["sections"] or given["statistics"]):
            raise Wrong("-T html is one page: give it without --section and -z")
        if self._out is None and (given["form"] == "html" or given["statistics"]):
            raise Wrong(f"{out}: has no statistics; kdissect spark stats … --out DIR writes them to a folder")
        for text, name in zip(given["statistics"], self._wanted, strict=True):
            if name not in _STORED:
                raise Wrong(f"-z {text}: there is no such table{nearest(text, _STORED)}")
            if not self._has(f"{FOLDER}/{name}"):
                raise Unreadable(f"{out}: has no table {name}; kdissect spark stats … -z {text} makes it")
        if given["output"] is not None and given["form"] != "html":
            raise Wrong("-o needs -T html")
        if given["form"] == "html":
            if not self._has(f"{FOLDER}/{REPORT}"):
                raise Unreadable(f"{out}: has no page; kdissect spark stats … --all --out {out} makes it")
            return
        has_some = bool(self._wanted) or (not given["sections"] and bool(self._stored()))
        self._has_sections = all(map(self._has, _OF_BATCH)) or not has_some
        needs_faults = given["strict"] or SECTION in given["sections"]
        if given["sections"] or needs_faults or not has_some:
            for name in _OF_BATCH:
                if not self._has(name):
                    how = (
                        f"kdissect spark batch … {'--to' if is_named(out) else '--out'} {out} --table {name}"
                    )
                    raise Unreadable(f"{out}: has no table {name}; {how} makes it")
        self._has_faults = self._has("faults") if self._place.is_seen else needs_faults
        if needs_faults and not self._has_faults:
            raise Unreadable(f"{out}: has no table faults; kdissect spark batch … --table faults makes it")

    def _has(self, name: str) -> bool:
        """Whether a table exists. In other places Spark finds out when it reads the table.

        :raises Wrong: a catalog does not answer.
        """
        if self._out is None and name not in TABLES:
            return False  # a catalog has no statistics
        try:
            return self._place.has(name)
        except TargetError as error:
            raise Wrong(str(error)) from None

    def _stored(self) -> list[str]:
        """The existing tables of statistics; in other places the requested ones."""
        if not self._place.is_seen:
            return list(self._wanted)
        return [name for name in _STORED if self._has(f"{FOLDER}/{name}")]

    def run(self) -> int:
        given = self._given
        with running(given) as (spark, *_):
            if given["form"] == "html":
                self._write_page(spark)
                return DONE
            code = self._sections(spark) if self._has_sections else DONE
            if self._wanted or not given["sections"]:
                for name in self._wanted or self._stored():
                    self._print_stored(spark, name)
        return code

    def _sections(self, spark: SparkSession) -> int:
        given = self._given
        names = given["sections"] or tuple(each for each in SECTIONS if self._has_faults or each != SECTION)
        if self._wanted and not given["sections"]:
            names = ()

        def read(name: str) -> DataFrame:
            try:
                return self._place.frame(spark, name)
            except (TargetError, CaptureError) as error:
                raise Unreadable(str(error)) from None

        faults = read("faults") if self._has_faults else None
        if names:
            made = ReportViews(spark, read("exchanges"), read("connections"), faults, wanted=names)
        for name in names:
            _print_section(name, made.section(name, given["top"] + 1), given["top"], given["form"])
            if made.left_out:
                complain(
                    f"{name}: there are more rows than the limit; {plural(made.left_out, 'count')} left out"
                )
        is_damaged = faults is not None and given["strict"] and not faults.isEmpty()
        return FAULTS_SEEN if is_damaged else DONE

    def _print_stored(self, spark: SparkSession, name: str) -> None:
        """Print a table of statistics, in the order in which it was written."""
        given = self._given
        frame = spark.read.parquet(without_query(join(self._out or "", f"{FOLDER}/{name}")))
        table = of_rows(with_point(_STORED[name], POINT in frame.columns))
        known = [column.name for column in table.columns if column.name in frame.columns]
        rows = [row.asDict() for row in frame.select(*known).limit(given["top"] + 1).collect()]
        if given["form"] == "table" and name == FINDINGS.name:
            table = for_people(table)
        _print_rows(name, name, table, rows, given["top"], given["form"], "table")

    def _write_page(self, spark: SparkSession) -> None:
        """Write the page of a capture point.

        :raises Wrong: it is not there, or there are several and none is named.
        """
        frame = spark.read.parquet(without_query(join(self._out or "", f"{FOLDER}/{REPORT}")))
        wanted = self._given["point"]
        if POINT not in frame.columns:
            if wanted is not None:
                raise Wrong(f"--point {wanted}: these tables have no capture points")
        else:
            points = sorted(row[0] or "" for row in frame.select(POINT).collect())
            if wanted not in points and (wanted is not None or len(points) > 1):
                name = "several capture points are there" if wanted is None else f"there is no {wanted!r}"
                raise Wrong(f"--point: {name}; name one of {', '.join(points)}")
            if wanted is not None:
                frame = frame.where(frame[POINT] == wanted)
        (row,) = frame.select("page").collect()
        with open_output(self._given["output"]) as file:
            file.write(row.page.encode())


def _place(text: str, master: str) -> StoredTables:
    """The place of the tables.

    :raises Wrong: no place has such a name, or a library is missing that it needs.
    """
    kind, colon, where = text.partition(":") if is_named(text) else ("", "", text.rstrip("/") or "/")
    if kind in ("", "parquet", "delta"):
        where = within_reach(where, master)
    try:
        return StoredTables(f"{kind}{colon}{where}")
    except (ValueError, NotInstalledError) as error:
        raise Wrong(str(error).removeprefix("--to ")) from None


def _print_section(name: str, frame: DataFrame, most: int, form: str) -> None:
    """Print a section of the report, and a note if it has more rows."""
    rows = [row.asDict() for row in frame.collect()]
    columns = [(column, "string" if kind.startswith("array") else kind) for column, kind in frame.dtypes]
    table = Table(name, tuple(_column(column, _WORDS[kind]) for column, kind in columns))
    _print_rows(name, SECTIONS[name][0], table, rows, most, form, "section")


def _column(name: str, kind: str) -> Column:
    column = dict_column(name, kind, "")
    return column._replace(unit="time") if name in _MOMENTS else column


def _print_rows(
    name: str, title: str, table: Table, rows: list[dict[str, Any]], most: int, form: str, kind: str
) -> None:
    """Print at most ``most`` rows, and a note if there are more."""
    more = f"{name} has more rows; --top {most} cuts them off" if len(rows) > most else ""
    del rows[most:]
    if form == "ndjson":
        if more:
            complain(more)
        for row in rows:
            sys.stdout.write(json_line({kind: name, **row}).decode("ascii"))
        return
    rows = [
        {
            column: ", ".join(map(str, value)) if isinstance(value, list) and kind == "section" else value
            for column, value in row.items()
        }
        for row in rows
    ]
    sys.stdout.write(f"{title}\n")
    room = shutil.get_terminal_size().columns - 2 if sys.stdout.isatty() else None
    whole = kind == "section"
    for line in table_lines(table, rows, PLAIN, Clock("u"), whole, room) if rows else ["(none)"]:
        sys.stdout.write(f"  {line}\n")
    if more:
        sys.stdout.write(f"  ({more})\n")
    sys.stdout.write("\n")
