"""``kdissect spark stats``."""

from __future__ import annotations

import os
import sys
import time
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kdissect.cli.commands.spark.batch import refuse_existing
from kdissect.cli.completing import a_filter, a_statistic
from kdissect.cli.config import load_config
from kdissect.cli.errors import Unreadable, Wrong, complain
from kdissect.cli.formats import check_writable
from kdissect.cli.output import open_output
from kdissect.cli.spark_sessions import (
    FaultPrinter,
    RunSummary,
    conf_of,
    reading_options,
    refuse_unwritable,
    running,
    session_options,
    settings_of,
    within_reach,
)
from kdissect.cli.statistics_output import TablesOutput, refuse_several
from kdissect.model import CaptureError
from kdissect.present.columns import Source, Table
from kdissect.present.findings import FINDINGS, plain_number
from kdissect.present.form import Clock
from kdissect.present.html.sheet import ReportOptions
from kdissect.present.options import PLAIN, Options
from kdissect.present.statistics_text import left_out_text
from kdissect.present.tables import FORMATS
from kdissect.spark.frames import frame_of
from kdissect.spark.progress import Meter
from kdissect.spark.provenance import STATISTICS as FOLDER
from kdissect.spark.provenance import is_of_runs, keep, kept_in, origin_of, stranger, tables_in
from kdissect.spark.runs import FOLDER as RUNS_FOLDER
from kdissect.spark.runs import Runs, RunsError
from kdissect.spark.storage import join, without_query
from kdissect.spark.table_layout import epochs, with_moments
from kdissect.spark.tables import POINT, with_point

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kdissect.spark.fold_question import FoldQuestion
    from kdissect.spark.folds import CountedPoints
    from kdissect.spark.plan import CapturePoint

REPORT = "report"
"""The table that holds the page of ``kdissect report``."""
_FOR_PEOPLE = ("severity", "finding", "subject", "count", "message")
"""The columns of findings in the text output."""


@click.command("stats")
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT…")
@click.option(
    "-z",
    "tables",
    multiple=True,
    metavar="TABLE",
    shell_complete=a_statistic,
    help="A table of kdissect stats, or its grouping: srt; srt,broker; errors,group; io,100ms. Or findings, "
    "as kdissect explain --all has them. May be given often.",
)
@click.option("--findings", is_flag=True, help="The same as -z findings.")
@click.option(
    "--all",
    "all_of_them",
    is_flag=True,
    help="All tables of kdissect report, and findings. With --out also its page, for spark report -T html.",
)
@click.option(
    "-T",
    "form",
    type=click.Choice(("table", *FORMATS)),
    help="Output format, table by default. Several tables need table or ndjson.",
)
@click.option("--out", metavar="DIR", help="Write Parquet to DIR/stats/TABLE instead of printing.")
@click.option("--overwrite", is_flag=True, help="Replace existing tables.")
@click.option(
    "-Y",
    "filter",
    metavar="FILTER",
    shell_complete=a_filter,
    help="Only what this display filter selects.",
)
@reading_options
@click.option("--tasks", type=click.IntRange(1), metavar="N", help="Number of tasks for each capture point.")
@click.option("--scratch", metavar="DIR", help="Folder shared with the workers, for events and progress.")
@session_options
def command(**given: Any) -> int:
    """Captures → statistics and findings.

    The rows are those of kdissect stats and kdissect explain. INPUTs are files, directories and globs.
    Together they are one capture; with --capture-point they are several, and each is counted separately.

    One task reads each capture point, several tasks decode and count, and one adds the counts. If they share
    no folder, each task reads everything: see kdissect help spark. More than four tasks help only with
    several capture points.
    """
    return _SparkStatsCommand(given).run()


class _SparkStatsCommand:
    """One run of the command."""

    def __init__(self, given: dict[str, Any]) -> None:
        from kdissect.spark.launch import NoSparkError, check
        from kdissect.spark.plan import capture_points
        from kdissect.spark.storage import list_files, refuse_unreadable

        master = given["master"]
        for paths in ("inputs", "keylog", "rsa_key"):
            given[paths] = [within_reach(each, master) for each in given[paths]]
        self._given = given
        self._form: str = given["form"] or "table"
        self._config = load_config()
        self._settings = settings_of(given)
        self._began = time.monotonic()
        self._question, self._titles = self._question_and_tables()
        self._names = [folder_of(title) for title in self._titles]
        conf_of(given)  # errors in it are reported before anything is read
        out = None if given["out"] is None else within_reach(given["out"], master)
        self._out = None if out is None else self._place(out)
        if self._out is None:
            refuse_several(self._form, len(self._names))
            check_writable(self._form, None, needs_pandas=True)
        try:
            self._points = capture_points(list_files(given["inputs"]), self._settings.capture_point)
            self._files = [file for point in self._points for file in point.files]
            self._origin = origin_of(self._files, self._settings)
            if out is not None:
                self._refuse_others(out)
            check(master)
            refuse_unreadable([file.path for file in self._files])
        except CaptureError as error:
            raise Unreadable(str(error)) from None
        except (ValueError, NoSparkError) as error:
            raise Wrong(str(error)) from None

    def _question_and_tables(self) -> tuple[FoldQuestion[Any], tuple[str, ...]]:
        """The question, and the name of each of its tables. The name of a folder has no grouping."""
        from kdissect.spark.questions import Judgement, WholeReport, asked_tables

        given, config, limits = self._given, self._config, self._settings.limits
        texts = (*given["tables"], *((FINDINGS.name,) if given["findings"] else ()))
        if given["all_of_them"]:
            if texts:
                raise Wrong("--all has every table: give it without -z and --findings")
            files = tuple(os.path.basename(each.rstrip("/")) for each in given["inputs"])
            made = ReportOptions(files, self._arguments())
            report = WholeReport(limits, config.thresholds, tuple(config.ignored), made)
            return report, report.titles
        if not texts:
            raise click.UsageError("nothing to do: give -z TABLE, --findings or --all")
        try:
            question, titles = asked_tables(
                texts, Judgement(limits, config.thresholds, tuple(config.ignored))
            )
        except (LookupError, ValueError) as error:
            raise Wrong(f"-z {error.args[0]}") from None
        return question, titles if given["out"] is None else tuple(map(_name_of, titles))

    def _arguments(self) -> tuple[str, ...]:
        """The arguments of a command that reads the same input."""
        options = (("-d", "decode_as"), ("--keylog", "keylog"), ("--rsa-key", "rsa_key"))
        given = [word for option, name in options for value in self._given[name] for word in (option, value)]
        return (*self._given["inputs"], *given)

    def _place(self, out: str) -> str:
        """The folder for the tables.

        :raises Wrong: they cannot be written there.
        """
        if self._given["form"] is not None:
            raise Wrong("-T prints, --out writes Parquet: give one of them")
        if twice := next((name for name in self._names if self._names.count(name) > 1), None):
            raise Wrong(
                f"-z: {twice} is given twice, but has one folder: run it twice, each time with another --out"
            )
        folder = join(out, FOLDER)
        refuse_unwritable(folder, self._given["master"], f"--out {out}")
        if not self._given["overwrite"]:
            refuse_existing(folder, self._names)
        return folder

    def _refuse_others(self, out: str) -> None:
        """Refuse tables of other captures, or report them. A user who replaces tables can make the other
        tables again with another command, so they are only reported.

        :raises Wrong: tables of other captures would stay in the folder. Growing tables have no statistics of
            their own, but must be of these captures.
        """
        own = [f"{FOLDER}/{name}" for name in self._names]
        try:
            there = tables_in(out)
        except CaptureError:
            if self._given["overwrite"]:
                return  # only Spark may be able to read the place
            raise
        stays = [name for name in there if name not in own]
        why = stranger(stays, lambda name: kept_in(join(out, name)), self._origin, may_grow=True)
        runs = Runs(os.path.join(out, RUNS_FOLDER))
        try:
            if why is None and not is_of_runs(runs, self._files):
                words = "--append made the tables there, and has read none of these captures"
                why = f"{words}; let spark batch --append read them first, or give another place"
        except RunsError as error:
            raise Wrong(str(error)) from None
        if why is not None and len(stays) == len(there):
            raise Wrong(f"{out}: {why}")
        if why is not None:
            complain(f"{out}: {why}")

    def run(self) -> int:
        with running(self._given) as (spark, scratch, *_):
            found = self._found(spark, scratch)
            if self._out is not None:
                self._write(spark, found, self._out)
        if self._out is None:
            self._print(found)
        return self._complain(found)

    def _found(self, spark: SparkSession, scratch: str | None) -> CountedPoints:
        from kdissect.spark.folds import found

        shows = scratch is not None and self._shows_progress
        with Meter(scratch or "", sum(map(self._bytes_of, self._points)), FOLDER) if shows else nullcontext():
            settings = self._settings._replace(progress=scratch)
            try:
                return found(spark, settings, self._given["inputs"], self._question)
            except CaptureError as error:  # it existed at the check
                raise Unreadable(str(error)) from None

    @property
    def _shows_progress(self) -> bool:
        return sys.stderr.isatty() and not self._given["quiet"]

    def _bytes_of(self, point: CapturePoint) -> int:
        """The bytes that all tasks together read of a capture point."""
        from kdissect.spark.plan import replicas_of

        return point.size * replicas_of(point, self._settings)

    def _write(self, spark: SparkSession, found: CountedPoints, folder: str) -> None:
        for name, declared, table in zip(self._names, self._question.tables, found.tables, strict=True):
            path = join(folder, name)
            writer = with_moments(frame_of(spark, table), epochs(declared)).coalesce(1).write
            writer.mode("overwrite" if self._given["overwrite"] else "error")
            writer.option("compression", "zstd").parquet(without_query(path))
            keep(path, self._origin.text())

    def _print(self, found: CountedPoints) -> None:
        points = self._settings.capture_point is not None
        with open_output(None) as file:
            out = TablesOutput(file, None, self._form, len(self._titles), PLAIN, Clock("u"))
            for title, table, rows in zip(self._titles, self._question.tables, found.tables, strict=True):
                if table.name != REPORT:  # the page is for a file
                    shown = of_rows(with_point(table, points))
                    if self._form == "table" and table.name == FINDINGS.name:
                        shown = for_people(shown)
                    is_whole = self._given["all_of_them"]  # tables of one name differ by the request
                    out.write(title, shown._replace(name=title) if is_whole else shown, rows.to_pylist())

    def _complain(self, found: CountedPoints) -> int:
        """Report what was not counted and what is damaged; return the exit code."""
        for name, left_out in zip(self._names, found.left_out, strict=True):
            if left_out:
                complain(left_out_text(name, left_out, self._settings.limits))
        told = FaultPrinter()
        told.print_faults(found.damage)
        if not self._given["quiet"]:
            place = "" if self._given["out"] is None else f"{self._given['out']}: "
            size = sum(file.size for file in self._files)
            done = RunSummary(len(self._names), found.rows, found.read, size, len(found.damage))
            complain(place + done.line(time.monotonic() - self._began))
        return told.exit_code


def folder_of(title: str) -> str:
    """The folder of a table: ``latency,broker`` is in ``latency_broker``."""
    return title.replace(",", "_")


def _name_of(text: str) -> str:
    return text.partition(",")[0]


def for_people(table: Table) -> Table:
    """Findings, with the columns of the text output."""
    names = {column.name for column in table.columns}
    return table.select([name for name in (POINT, *_FOR_PEOPLE) if name in names])


def of_rows(table: Table) -> Table:
    """The same table for rows with ready values. Missing columns are null."""
    numbers = ("float64",) if table.name == FINDINGS.name else ()
    columns = (
        each._replace(value=partial(_number if each.type in numbers else _value, each.name))
        for each in table.columns
    )
    return Table(table.name, tuple(columns))


def _number(name: str, row: Source, _: Options) -> Any:
    return plain_number(row.get(name))


def _value(name: str, row: Source, _: Options) -> Any:
    return row.get(name)
