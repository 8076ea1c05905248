"""``kdissect spark``: the pipeline on Spark."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from kdissect.cli import DONE, FAULTS_SEEN
from kdissect.cli.errors import Complaints, Unreadable, Wrong, complain
from kdissect.cli.group import HelpfulGroup
from kdissect.cli.on_spark import conf_of, content_options, cores_of, running, session_options, settings_of
from kdissect.model import CaptureError, Fault
from kdissect.present.form import Clock, plural
from kdissect.present.nearest import nearest
from kdissect.spark.progress import Meter, done

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = ("exchanges", "records", "batches", "connections", "faults", "packets")
USUAL_TABLES = ("exchanges", "connections", "faults")
SECTIONS = ("topics", "hours", "errors", "latency", "groups", "versions", "kafka4")
_WORDS = {"string": "text", "bigint": "int64"}
"""Types of the report's columns, in the words of :mod:`kdissect.present.columns`."""
TIME_PARTS = ("date", "hour")
"""What a table can be partitioned by beside its columns."""
_TIMES = {
    "exchanges": ("request_time_ns", "response_time_ns"),
    "connections": ("start_ns",),
    "packets": ("time_ns",),
}
"""The columns of which that time is."""
_UNKNOWN_CORES = 8
"""Of a cluster, before it is asked."""


@click.group(cls=HelpfulGroup)
def command() -> None:
    """Many captures → tables, on Spark: on this machine or on a cluster."""


@command.command()
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT…")
@click.option("--out", required=True, metavar="DIR", help="A folder for each table is made in it.")
@click.option(
    "--table",
    "tables",
    multiple=True,
    type=click.Choice(TABLES),
    help=f"May be given often; {', '.join(USUAL_TABLES)} by default.",
)
@click.option("--overwrite", is_flag=True, help="Replace tables that are there.")
@click.option(
    "--partition-by",
    multiple=True,
    metavar="COLUMN",
    help=f"A column, or {' or '.join(TIME_PARTS)} of the time.",
)
@click.option("-Y", "filter", metavar="FILTER", help="Only what this display filter shows.")
@click.option("--two-pass", is_flag=True, help="Names of topic ids count from the start (reads twice).")
@content_options
@click.option(
    "--strategy",
    type=click.Choice(("auto", "replicas", "buckets", "shuffle")),
    default="auto",
    help="How tasks share the work of a capture.",
)
@click.option("--tasks", type=click.IntRange(1), metavar="N", help="Tasks for each capture point.")
@click.option(
    "--split-size",
    type=click.IntRange(1),
    default=256,
    show_default=True,
    metavar="MIB",
    help="Of large files.",
)
@click.option("--explain", is_flag=True, help="Print the plan, and do nothing.")
@click.option("--scratch", metavar="DIR", help="A folder that workers share with us, for progress.")
@click.option("--strict", is_flag=True, help="Exit code 4 if there are faults.")
@session_options
def batch(**given: Any) -> int:
    """Captures → Parquet.

    INPUTs are files, directories and globs; together they are one capture, as for kdissect read, unless
    --capture-point tells several apart ('directory', or a regular expression such as 'broker-(\\d+)').
    """
    return _Batch(given).run()


class _Batch:
    """One run of ``batch``."""

    def __init__(self, given: dict[str, Any]) -> None:
        from kdissect.spark.launch import NoSparkError, check
        from kdissect.spark.plan import plan
        from kdissect.spark.storage import refuse_unreadable

        self._given = given
        self._tables = tuple(dict.fromkeys(given["tables"])) or USUAL_TABLES
        self._settings = settings_of(given)
        conf_of(given)  # what is wrong there is told before anything is read
        refuse_parts(given["partition_by"], self._tables)
        self._cores = cores_of(given["master"])
        try:
            self._plan = plan(
                list(given["inputs"]), self._settings, self._cores or _UNKNOWN_CORES, given["strategy"]
            )
            if not given["explain"]:
                check(given["master"])
                refuse_unreadable([path for point in self._plan.points for path in point.paths])
        except CaptureError as error:
            raise Unreadable(str(error)) from None
        except (ValueError, LookupError, NoSparkError) as error:
            raise Wrong(str(error)) from None
        self._talks = sys.stderr.isatty() and not given["quiet"]

    def run(self) -> int:
        given = self._given
        if given["explain"]:
            for line in self._plan.lines():
                print(line)  # noqa: T201
            return DONE
        if not given["overwrite"]:
            refuse_existing(given["out"], self._tables)
        with running(given) as (spark, scratch):
            for name in self._tables:
                self._write(spark, name, scratch)
            return self._ending(spark, scratch)

    def _write(self, spark: SparkSession, name: str, scratch: str | None) -> None:
        given = self._given
        frame = self._frame(spark, name, progress=scratch)
        frame, parts = partitioned(frame, name, given["partition_by"])
        writer = frame.write.mode("overwrite" if given["overwrite"] else "errorifexists")
        writer = writer.option("compression", "zstd").partitionBy(*parts)
        path = f"{given['out'].rstrip('/')}/{name}"
        if scratch is None or not self._talks:
            writer.parquet(path)
        else:
            tasks = sum(point.size * n for point, n in zip(self._plan.points, self._plan.tasks, strict=True))
            with Meter(scratch, tasks, name):
                writer.parquet(path)
        if self._talks:
            complain(f"{path}: {plural(spark.read.parquet(path).count(), 'row')}")

    def _frame(self, spark: SparkSession, name: str, **more: Any) -> DataFrame:
        from kdissect.spark import table

        options = self._settings._asdict() | {"tasks": max(self._plan.tasks)} | more
        del options["table"], options["pushdown"]
        if self._cores is None and self._given["tasks"] is None:
            del options["tasks"]
        options["split_bytes"] = self._given["split_size"] << 20
        return table(spark, name, self._given["inputs"], strategy=self._plan.strategy, **options)

    def _ending(self, spark: SparkSession, scratch: str | None) -> int:
        """Tell what is damaged, and find the exit code: damage to a file is no failure of the whole."""
        written = "faults" in self._tables and self._given["filter"] is None
        if written:
            faults = spark.read.parquet(f"{self._given['out'].rstrip('/')}/faults")
            _tell_damage(faults.where("layer = 'file'"))
        elif scratch is None or done(scratch).damage:
            _tell_damage(self._frame(spark, "faults", layer="file", filter=None))
        if not self._given["strict"]:
            return DONE
        if not written:
            faults = self._frame(spark, "faults", filter=None)
        return DONE if faults.isEmpty() else FAULTS_SEEN


def _tell_damage(faults: DataFrame) -> None:
    """A line for each, as far as they are not many."""
    complaints = Complaints()
    for row in faults.select(*Fault._fields).toLocalIterator():
        complaints.tell(None, Fault(**row.asDict()))
    complaints.close()


@command.command()
@click.argument("folder", metavar="DIR")
@click.option("--out", required=True, metavar="DIR", help="A folder for each table is made in it.")
@click.option(
    "--table",
    "tables",
    multiple=True,
    type=click.Choice(TABLES[:-1]),
    help=f"May be given often; {', '.join(USUAL_TABLES)} by default.",
)
@click.option(
    "--checkpoint", metavar="DIR", help="Where is kept how far it is; your own. OUT/_checkpoint by default."
)
@click.option("--available-now", is_flag=True, help="Read what is there, and end.")
@click.option("--close", "closes", is_flag=True, help="With it: nothing more comes; write what is open too.")
@click.option(
    "--trigger", type=float, default=10.0, show_default=True, metavar="S", help="Seconds between looks."
)
@click.option(
    "--max-bytes-per-batch", type=click.IntRange(1), metavar="N", help="Of files, but at least one."
)
@content_options
@session_options
def stream(**given: Any) -> int:
    """A folder in which rotated captures appear → Parquet that grows, each row exactly once.

    Killed at any moment, it goes on where it was when it is started again with the same folders.
    """
    from kdissect.spark.carried import StateError, States

    if given["closes"] and not given["available_now"]:
        raise Wrong("--close goes with --available-now")
    if not os.path.isdir(given["folder"]):
        raise Unreadable(f"{given['folder']}: is no folder")
    settings = settings_of(given)
    checkpoint = os.path.abspath(given["checkpoint"] or os.path.join(given["out"], "_checkpoint"))
    states = os.path.join(checkpoint, "state")
    try:
        States(states).prepare()
    except (StateError, OSError) as error:
        raise Wrong(str(error)) from None
    with running(given) as (spark, _):
        from kdissect.spark.stream import Tables, start

        names = tuple(dict.fromkeys(given["tables"])) or USUAL_TABLES
        tables = Tables(given["out"], states, names, settings, _tell_damage)
        now = given["available_now"]
        trigger = {"availableNow": True} if now else {"processingTime": f"{given['trigger']} seconds"}
        most = given["max_bytes_per_batch"]
        folder = os.path.abspath(given["folder"])
        query = start(spark, folder, tables, os.path.join(checkpoint, "spark"), settings, most, trigger)
        try:
            query.awaitTermination()
        finally:
            query.stop()
        if given["closes"]:
            tables.end(spark)
    return DONE


@command.command()
@click.argument("tables", metavar="DIR")
@click.option(
    "--section",
    "sections",
    multiple=True,
    type=click.Choice(SECTIONS),
    help="May be given often; all by default.",
)
@click.option("--top", type=click.IntRange(1), default=20, show_default=True, help="Rows of a section.")
@click.option("-T", "form", type=click.Choice(("table", "ndjson")), default="table", help="How it prints.")
@session_options
def report(**given: Any) -> int:
    """Tables of batch or stream → what they say together.

    \b
    topics    top clients by topic
    hours     errors and latency of each hour
    errors    error codes
    latency   by API and broker
    groups    members, joins, commits
    versions  protocol versions in use, by client software
    kafka4    what would break on Kafka 4: versions and message formats it removed

    It needs the tables exchanges and connections; kafka4 needs batches too, to see message formats.
    """
    from kdissect.spark.report import Report

    out = given["tables"].rstrip("/")
    for name in ("exchanges", "connections"):
        if "://" not in out and not os.path.isdir(os.path.join(out, name)):
            raise Unreadable(f"{out}: has no table {name}; kdissect spark batch … --out {out} makes it")
    with running(given) as (spark, _):
        made = Report(spark, *(spark.read.parquet(f"{out}/{name}") for name in ("exchanges", "connections")))
        if "://" in out or os.path.isdir(os.path.join(out, "batches")):
            made.batches(spark.read.parquet(f"{out}/batches"))
        elif "kafka4" in (given["sections"] or SECTIONS) and not given["quiet"]:
            complain(f"{out}: has no table batches, so kafka4 says nothing of message formats")
        for name in given["sections"] or SECTIONS:
            _print_section(name, made.section(name, given["top"]), given["form"])
    return DONE


def _print_section(name: str, frame: DataFrame, form: str) -> None:
    """Print a section of the report."""
    from kdissect.present.columns import Table, dict_column
    from kdissect.present.options import PLAIN
    from kdissect.present.statistics_text import table_lines
    from kdissect.present.tables import json_line
    from kdissect.spark.report import SECTIONS as TITLES

    rows = [row.asDict() for row in frame.collect()]
    if form == "ndjson":
        for row in rows:
            sys.stdout.write(json_line({"section": name, **row}).decode("ascii"))
        return
    columns = [(column, "string" if kind.startswith("array") else kind) for column, kind in frame.dtypes]
    table = Table(name, tuple(dict_column(column, _WORDS[kind], "") for column, kind in columns))
    for row in rows:
        row |= {
            column: ", ".join(map(str, value)) for column, value in row.items() if isinstance(value, list)
        }
    sys.stdout.write(f"{TITLES[name][0]}\n")
    room = shutil.get_terminal_size().columns - 2 if sys.stdout.isatty() else None
    for line in table_lines(table, rows, PLAIN, Clock("u"), True, room) if rows else ["(none)"]:
        sys.stdout.write(f"  {line}\n")
    sys.stdout.write("\n")


def refuse_existing(out: str, tables: Sequence[str]) -> None:
    """:raises Wrong: one of the tables is there already."""
    for name in tables:
        if os.path.isdir(path := os.path.join(out, name)) and os.listdir(path):
            raise Wrong(f"{path} is there already: --overwrite replaces it")


def partitioned(frame: DataFrame, name: str, by: Sequence[str]) -> tuple[DataFrame, list[str]]:
    """A table, and the columns that it is partitioned by: those of ``by`` that it has."""
    from pyspark.sql import functions as f

    parts = []
    for part in by:
        if part in TIME_PARTS and name in _TIMES:
            nanoseconds = f.coalesce(*map(f.col, _TIMES[name]))
            moment = f.timestamp_seconds((nanoseconds / f.lit(1_000_000_000)).cast("long"))
            frame = frame.withColumn(part, f.date_format(moment, "yyyy-MM-dd" if part == "date" else "HH"))
        if part in frame.columns:
            parts.append(part)
    return frame, parts


def refuse_parts(by: Sequence[str], tables: Sequence[str]) -> None:
    """:raises Wrong: no table has such a column."""
    from kdissect.spark.tables import POINT
    from kdissect.spark.tables import TABLES as ALL

    known = {column.name for name in tables for column in ALL[name].columns}
    for part in by:
        if part not in (*known, *TIME_PARTS, POINT):
            raise Wrong(f"--partition-by: no column is named {part!r}{nearest(part, known)}")
