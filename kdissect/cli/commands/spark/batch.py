"""``kdissect spark batch``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import click

from kdissect.cli.commands.spark.sessions import (
    USUAL_TABLES,
    conf_of,
    content_options,
    cores_of,
    refuse_file,
    running,
    session_options,
    settings_of,
    tell_damage,
    within_reach,
)
from kdissect.cli.errors import Unreadable, Wrong, complain
from kdissect.cli.exit_codes import DONE, FAULTS_SEEN
from kdissect.model import CaptureError
from kdissect.present.form import plural
from kdissect.present.nearest import nearest
from kdissect.spark.copies import merged, of_exchanges
from kdissect.spark.plan import STRATEGIES
from kdissect.spark.progress import Meter, done
from kdissect.spark.tables import POINT, TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIME_PARTS = ("date", "hour")
"""What a table can be partitioned by beside its columns."""
_TIMES = {
    "exchanges": ("request_time_ns", "response_time_ns"),
    "connections": ("start_ns",),
    "packets": ("time_ns",),
}
"""The columns of which that time is."""
_ENDED = "_SUCCESS"
"""The file by which Spark says that a table is complete."""
_UNKNOWN_CORES = 8
"""Of a cluster, before it is asked."""


@click.command("batch")
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT…")
@click.option(
    "--out", required=True, metavar="DIR", help="Folder for the tables, each in a folder of its own."
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    type=click.Choice(TABLES),
    help=f"Table to write. May be given often. Default: {', '.join(USUAL_TABLES)}.",
)
@click.option("--overwrite", is_flag=True, help="Replace existing tables.")
@click.option(
    "--partition-by",
    multiple=True,
    metavar="COLUMN",
    help=f"Partition by a column, or by {' or '.join(TIME_PARTS)}.",
)
@click.option("-Y", "filter", metavar="FILTER", help="Only what this display filter selects.")
@click.option("--two-pass", is_flag=True, help="Read twice, so that topic names are known from the start.")
@click.option(
    "--merge-points",
    is_flag=True,
    help="With --capture-point: merge the copies of an exchange into one row.",
)
@content_options
@click.option(
    "--strategy",
    type=click.Choice(STRATEGIES),
    default="auto",
    help="How tasks share the work on a capture.",
)
@click.option("--tasks", type=click.IntRange(1), metavar="N", help="Number of tasks for each capture point.")
@click.option(
    "--split-size",
    type=click.IntRange(1),
    default=256,
    show_default=True,
    metavar="MIB",
    help="Size of the pieces of large files.",
)
@click.option("--plan", "plans", is_flag=True, help="Print what will be read by whom, and do nothing else.")
@click.option("--explain", is_flag=True, hidden=True)
@click.option("--scratch", metavar="DIR", help="Folder shared with the workers, for progress.")
@click.option("--strict", is_flag=True, help="Exit code 4 if there are faults.")
@session_options
def command(**given: Any) -> int:
    """Captures → Parquet.

    INPUTs are files, directories and globs. Together they are one capture, as for kdissect read. With
    --capture-point they are several: 'directory', or a regular expression such as 'broker-(\\d+)'.

    A connection may have been captured in several places. In one capture, the copies of its packets are put
    together. In several, --merge-points keeps the best copy of each exchange. The column seen_at then tells
    where and when the others were seen.
    """
    return _Batch(given).run()


class _Batch:
    """One run of ``batch``."""

    def __init__(self, given: dict[str, Any]) -> None:
        from kdissect.spark.launch import NoSparkError, check
        from kdissect.spark.plan import plan
        from kdissect.spark.storage import refuse_unreadable

        if given["explain"]:
            raise Wrong("--explain is --plan now; kdissect spark stats --findings says what is wrong")
        master = given["master"]
        given["inputs"] = [within_reach(each, master) for each in given["inputs"]]
        for secrets in ("keylog", "rsa_key"):
            given[secrets] = [within_reach(each, master) for each in given[secrets]]
        given["out"] = within_reach(given["out"], master).rstrip("/")
        self._given = given
        self._tables = tuple(dict.fromkeys(given["tables"])) or USUAL_TABLES
        self._settings = settings_of(given)
        if given["merge_points"] and self._settings.capture_point is None:
            raise Wrong("--merge-points goes with --capture-point, which tells captures apart")
        conf_of(given)  # what is wrong there is told before anything is read
        refuse_parts(given["partition_by"], self._tables)
        self._cores = cores_of(given["master"])
        try:
            self._plan = plan(
                list(given["inputs"]), self._settings, self._cores or _UNKNOWN_CORES, given["strategy"]
            )
            if not given["plans"]:
                check(given["master"])
            refuse_unreadable([path for point in self._plan.points for path in point.paths])
        except CaptureError as error:
            raise Unreadable(str(error)) from None
        except (ValueError, LookupError, NoSparkError) as error:
            raise Wrong(str(error)) from None
        self._talks = sys.stderr.isatty() and not given["quiet"]

    def run(self) -> int:
        given = self._given
        if given["plans"]:
            for line in self._plan.lines():
                print(line)  # noqa: T201
            return DONE
        refuse_file(given["out"])
        if not given["overwrite"]:
            refuse_existing(given["out"], self._tables)
        with running(given) as (spark, scratch):
            for name in self._tables:
                self._write(spark, name, scratch)
            return self._ending(spark, scratch)

    def _write(self, spark: SparkSession, name: str, scratch: str | None) -> None:
        given = self._given
        path = f"{given['out']}/{name}"
        shows = scratch is not None and self._talks
        with Meter(scratch or "", self._plan.bytes_to_read, name) if shows else nullcontext():
            frame = self._merged(spark, name, self._frame(spark, name, progress=scratch))
            frame, parts = partitioned(frame, name, given["partition_by"])
            writer = frame.write.mode("overwrite" if given["overwrite"] else "error")
            writer.option("compression", "zstd").partitionBy(*parts).parquet(path)
        if self._talks:
            complain(f"{path}: {plural(spark.read.parquet(path).count(), 'row')}")

    def _merged(self, spark: SparkSession, name: str, frame: DataFrame) -> DataFrame:
        """A table without what further capture points have of the same exchanges, if that is asked for."""
        if not self._given["merge_points"] or name not in ("exchanges", "records", "batches"):
            return frame
        if name == "exchanges":
            return merged(frame)
        kept = merged(self._frame(spark, "exchanges", payload="none"))
        return of_exchanges(frame, kept)

    def _frame(self, spark: SparkSession, name: str, **more: Any) -> DataFrame:
        from kdissect.spark import table

        # The filter is one of our own: nothing remains that Spark could hand down.
        options = self._settings._asdict() | {"tasks": max(self._plan.tasks), "pushdown": False} | more
        del options["table"]
        if self._cores is None and self._given["tasks"] is None:
            del options["tasks"]
        options["split_bytes"] = self._given["split_size"] << 20
        try:
            return table(spark, name, self._given["inputs"], strategy=self._plan.strategy, **options)
        except CaptureError as error:  # it was there when the plan was made
            raise Unreadable(str(error)) from None

    def _ending(self, spark: SparkSession, scratch: str | None) -> int:
        """Tell what is damaged, and find the exit code: damage to a file is no failure of the whole."""
        written = "faults" in self._tables and self._given["filter"] is None
        # A folder of our own takes all notes; who may write into another is not known.
        if scratch is None or self._given["scratch"] or done(scratch).damage:
            tell_damage(self._damage(spark, written))
        if not self._given["strict"]:
            return DONE
        faults = self._written_faults(spark) if written else self._frame(spark, "faults", filter=None)
        return DONE if faults.isEmpty() else FAULTS_SEEN

    def _damage(self, spark: SparkSession, written: bool) -> DataFrame:
        """The faults of files."""
        if written:
            return self._written_faults(spark).where("layer = 'file'")
        return self._frame(spark, "faults", layer="file", filter=None)

    def _written_faults(self, spark: SparkSession) -> DataFrame:
        return spark.read.parquet(f"{self._given['out']}/faults")


def refuse_existing(out: str, tables: Sequence[str]) -> None:
    """:raises Wrong: one of the tables is there already."""
    for name in tables:
        if os.path.isdir(path := os.path.join(out, name)):
            whose = "" if _ENDED in os.listdir(path) else ", of a run that did not end"
            raise Wrong(f"{path} is there already{whose}: --overwrite replaces it")


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
    known = {column.name for name in tables for column in TABLES[name].columns}
    for part in by:
        if part not in (*known, *TIME_PARTS, POINT):
            raise Wrong(f"--partition-by: no column is named {part!r}{nearest(part, known)}")
