"""``kdissect spark batch``."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from kdissect.cli.errors import Unreadable, Wrong, complain
from kdissect.cli.exit_codes import DONE, FAULTS_SEEN, STRICT
from kdissect.cli.output import shown
from kdissect.cli.spark_sessions import (
    USUAL_TABLES,
    FaultPrinter,
    RunSummary,
    conf_of,
    content_options,
    refuse_unwritable,
    running,
    session_options,
    settings_of,
    within_reach,
)
from kdissect.model import CaptureError
from kdissect.present.form import plural
from kdissect.present.nearest import nearest
from kdissect.spark.launch import is_connect
from kdissect.spark.progress import Meter
from kdissect.spark.provenance import KNOWN, TableOrigin, kept_in, origin_of, stranger, tables_in
from kdissect.spark.runs import FOLDER as RUNS_FOLDER
from kdissect.spark.runs import Runs, RunsError
from kdissect.spark.spool import CHECKPOINT
from kdissect.spark.states import StateError
from kdissect.spark.storage import found_file, is_folder, is_remote, join
from kdissect.spark.table_layout import BROKER, TIME_PARTS, needs_places, parts_of
from kdissect.spark.tables import POINT, TABLES
from kdissect.spark.target_files import TargetError
from kdissect.spark.targets import Catalog, Delta, Iceberg, ParquetFolder, Target, target_of
from kdissect.spark.writing import ENDED
from kdissect.wording import NotInstalledError

if TYPE_CHECKING:
    from kdissect.spark.settings import TableSettings
    from kdissect.spark.table_set import MadeTables


@click.command("batch")
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT…")
@click.option("--out", metavar="DIR", help="Folder for the tables, each in a folder of its own.")
@click.option(
    "--to",
    metavar="KIND:PLACE",
    help="In place of --out: delta:PATH, iceberg:CATALOG.NAMESPACE, table:NAMESPACE or parquet:DIR.",
)
@click.option(
    "--append", is_flag=True, help="Add what is new since the last run with --append. A repeat adds nothing."
)
@click.option(
    "--close",
    "closes",
    is_flag=True,
    help="With --append: no run comes after this one, so write what is still open.",
)
@click.option(
    "--drain",
    "drains",
    is_flag=True,
    help="With --append: write what is open, or end the state of another release.",
)
@click.option(
    "--runs",
    "runs_folder",
    metavar="DIR",
    help="With --append: folder that keeps what was read. Default: _runs beside the tables.",
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
    help=f"Partition all tables by {', '.join(TIME_PARTS)}, broker, or another column. May be given often.",
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
    "--tasks",
    type=click.IntRange(1),
    metavar="N",
    help="Tasks that make the rows of each capture point. Default: by its size and the cores.",
)
@click.option("--plan", "plans", is_flag=True, help="Print which task will read what, and do nothing else.")
@click.option("--explain", is_flag=True, hidden=True)
@click.option("--scratch", metavar="DIR", help="Folder shared with the workers, for events and progress.")
@STRICT
@session_options
def command(**given: Any) -> int:
    """Captures → Parquet, Delta or Iceberg.

    INPUTs are files, directories and globs. Together they are one capture, as for kdissect read. With
    --capture-point they are several: 'directory', or a regular expression such as 'broker-(\\d+)'. If a file
    is damaged or cannot be read, the others are read, and the exit code is 3.

    A connection may have been captured in several places. Without --capture-point, kdissect joins the copies
    of its packets. With it, --merge-points keeps the best copy of each exchange. The column seen_at then says
    where and when the other copies were seen.

    With --append, kdissect reads only files and bytes that are new. Connections go on from run to run. A run
    that died is done again, and each row is there once.
    """
    return _SparkBatchCommand(given).run()


class _SparkBatchCommand:
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
        self._began = time.monotonic()
        self._target = _target(given)
        self._given = given
        self._tables = tuple(dict.fromkeys(given["tables"])) or USUAL_TABLES
        self._settings = settings_of(given)
        if given["merge_points"] and self._settings.capture_point is None:
            raise Wrong("--merge-points needs --capture-point, which says how capture points are named")
        self._refuse_append()
        conf_of(given)  # errors in it are reported before anything is read
        check_parts(given["partition_by"], self._tables, self._settings)
        try:
            self._plan = plan(list(given["inputs"]), self._settings)
            if not given["plans"]:
                check(given["master"])
            refuse_unreadable([path for point in self._plan.points for path in point.paths])
        except CaptureError as error:
            raise Unreadable(str(error)) from None
        except (ValueError, LookupError, NoSparkError) as error:
            raise Wrong(_as_option(str(error))) from None
        files = [file for point in self._plan.points for file in point.files]
        self._origin = origin_of(files, self._settings)
        self._shows_progress = sys.stderr.isatty() and not given["quiet"]
        self._fault_printer = FaultPrinter()

    def run(self) -> int:
        given = self._given
        if given["plans"]:
            for line in self._plan.lines():
                print(line)  # noqa: T201
            return DONE
        if isinstance(self._target, ParquetFolder | Delta):
            named = f"--to {given['to']}" if given["out"] is None else f"--out {given['out']}"
            refuse_unwritable(self._target.where, given["master"], named)
        if given["append"]:
            return self._append()
        self._refuse_existing()
        from kdissect.spark.table_set import BatchOptions, make_tables

        with running(given) as (spark, scratch, *_), _target_errors():
            if isinstance(self._target, Catalog):
                self._refuse_others(self._target.origins(spark))
            settings = self._settings._replace(progress=scratch)
            asked = BatchOptions(self._tables, tuple(given["partition_by"]), settings, given["merge_points"])
            with self._meter(scratch, self._plan.bytes_to_read):
                made = make_tables(spark, self._plan, asked, self._target, given["strict"])
            made.write(given["overwrite"], origin=self._origin.text())
        return self._ending(made)

    def _meter(self, scratch: str | None, total: int) -> AbstractContextManager[object]:
        """A line that shows the progress of the tasks.

        :param total: the bytes that they read.
        """
        if scratch is None or not self._shows_progress:
            return nullcontext()
        return Meter(scratch, total, "tables")

    def _refuse_existing(self) -> None:
        """:raises Wrong: a table exists and ``--overwrite`` is not given, or all existing tables would stay
        although they are of other captures."""
        self._refuse_makers()
        with _target_errors():
            if isinstance(self._target, ParquetFolder) and not self._given["overwrite"]:
                refuse_existing(self._target.where, self._tables, self._way)
            self._refuse_others(self._existing_tables())

    def _existing_tables(self) -> dict[str, TableOrigin | None]:
        """The existing tables, with their notes on their captures. Spark's catalog is asked later.

        :raises TargetError: a catalog does not answer.
        :raises CaptureError: another file system does not answer, and ``--overwrite`` is not given.
        """
        target = self._target
        if isinstance(target, Iceberg):
            return {name: target.origin(name) for name in KNOWN if target.has(name)}
        if not isinstance(target, ParquetFolder | Delta):
            return {}
        try:
            return {name: kept_in(join(target.where, name)) for name in tables_in(target.where)}
        except CaptureError:
            if self._given["overwrite"]:
                return {}  # only Spark may be able to read the place
            raise

    @property
    def _way(self) -> str:
        """The advice for a table that exists."""
        if self._given["append"]:
            return "made without --append: give another place"
        return f"{REPLACED}; to add to tables later, make them with --append in another place"

    def _refuse_others(self, there: Mapping[str, TableOrigin | None]) -> None:
        """Refuse tables of other captures, or report them. A user who replaces tables can make the other
        tables again with another command, so they are only reported.

        :raises Wrong: as for :meth:`_refuse_existing`.
        """
        where, given = self._target.where, self._given
        if not given["overwrite"]:
            # Later runs read other captures.
            wanted = KNOWN if given["append"] else self._tables
            for name in there:
                if name in wanted:
                    raise Wrong(f"{where}: {name} is there already: {self._way}")
        stays = [name for name in there if name not in self._tables]
        if not given["append"] and (why := stranger(stays, there.get, self._origin, may_grow=False)):
            if len(stays) == len(there):
                raise Wrong(f"{where}: {why}")
            complain(f"{where}: {why}")

    def _refuse_makers(self) -> None:
        """:raises Wrong: ``--append`` or a stream made the existing tables, perhaps from other captures."""
        where = self._target.where
        if not isinstance(self._target, ParquetFolder | Delta) or is_remote(where):
            return
        if not self._given["append"] and Runs(os.path.join(where, RUNS_FOLDER)).has_begun():
            raise Wrong(f"{where}: --append made the tables there: give another place, or --append")
        if os.path.isdir(os.path.join(where, CHECKPOINT)):
            raise Wrong(f"{where}: a stream made the tables there: give another place")

    def _refuse_append(self) -> None:
        """:raises Wrong: an option does not fit ``--append``."""
        given = self._given
        if not given["append"]:
            if given["runs_folder"] is not None:
                raise Wrong("--runs needs --append")
            for option in ("close", "drain"):
                if given[f"{option}s"]:
                    raise Wrong(f"--{option} needs --append")
            return
        if given["closes"] and given["drains"]:
            raise Wrong(
                "--close says that this is the last run, --drain that another one follows: give one of them"
            )
        for option in ("overwrite", "merge_points", "two_pass", "filter"):
            if given[option]:
                letter = "-Y" if option == "filter" else "--" + option.replace("_", "-")
                raise Wrong(f"{letter} cannot be combined with --append, which adds to earlier runs")
        if "packets" in self._tables:
            raise Wrong("--table packets cannot be combined with --append")
        if is_connect(given["master"]):
            raise Wrong(
                "--append keeps its state on this machine: give it a master, not a Spark Connect server"
            )
        if isinstance(self._target, Catalog):
            raise Wrong("--append works with parquet, delta and iceberg only: a Spark catalog keeps no runs")
        self._runs_folder()

    def _runs_folder(self) -> str:
        """The folder that keeps the record of what was read.

        :raises Wrong: the user must name it.
        """
        named = self._given["runs_folder"]
        if named is not None and is_remote(named):
            raise Wrong(f"--runs {named}: must be a folder on this machine")
        if named is not None:
            return os.path.abspath(str(named))
        if isinstance(self._target, Iceberg) or is_remote(self._target.where):
            raise Wrong("--append: --runs names the folder on this machine that keeps what was read")
        return os.path.abspath(os.path.join(self._target.where, RUNS_FOLDER))

    def _append(self) -> int:
        """Add what is new."""
        folder = self._runs_folder()
        if self._given["runs_folder"] is not None:
            # The folder is on this machine, whatever the master is.
            refuse_unwritable(folder, "local", f"--runs {folder}")
        runs = Runs(folder)
        if not runs.has_begun():
            self._refuse_existing()
        try:
            with runs.held():
                return self._add(runs)
        except (RunsError, StateError) as error:
            raise Wrong(str(error)) from None

    def _add(self, runs: Runs) -> int:
        from kdissect.spark.nightly import NightlyOptions as Night
        from kdissect.spark.nightly import add_new

        given = self._given
        with running(given) as (spark, scratch, *_), _target_errors():
            settings = self._settings._replace(progress=scratch)
            asked = Night(self._tables, tuple(given["partition_by"]), settings)
            try:
                outcomes = add_new(
                    spark,
                    given["inputs"],
                    self._target,
                    asked,
                    runs,
                    self._fault_printer.print_faults,
                    _report_duplicate,
                    given["closes"],
                    given["drains"],
                    partial(self._meter, scratch),
                )
            except CaptureError as error:
                raise Unreadable(str(error)) from None
        for row, is_repeated, reads in outcomes:
            again = " (a repeat, because the first try did not finish)" if is_repeated else ""
            read = plural(row["files"], "file") if reads else "open exchanges and connections"
            faults = f", {plural(row['faults'], 'fault')}" if row["faults"] else ""
            _print_line(given, f"run {row['run']}{again}: {read}, {plural(row['rows'], 'row')}{faults}")
        if not outcomes:
            _print_line(given, "nothing new: no file is new or longer")
        return self._exit_code(sum(each.row["faults"] for each in outcomes))

    def _ending(self, made: MadeTables) -> int:
        """Report damage, and return the exit code."""
        self._fault_printer.print_faults(made.damage)
        read = sum(each.read for each in made.outcomes)
        counted = (made.tally.faults, made.rows_of("faults")) if self._given["filter"] is None else (0,)
        done = RunSummary(
            *(len(self._tables), made.rows, read, self._plan.size, len(made.damage)), max(counted)
        )
        _print_line(self._given, f"{self._target.where}: {done.line(time.monotonic() - self._began)}")
        return self._exit_code(made.tally.faults)

    def _exit_code(self, faults: int) -> int:
        """The exit code. As for ``read``, damage to files counts before other faults."""
        if self._fault_printer.exit_code == DONE and self._given["strict"] and faults:
            return FAULTS_SEEN
        return self._fault_printer.exit_code


def _as_option(words: str) -> str:
    """A message about a setting, with the name of its option."""
    return re.sub("^capture_point: ", "--capture-point: ", words)


def _target(given: dict[str, Any]) -> Target:
    """The place for the tables.

    :raises Wrong: it is not given, or cannot be used.
    """
    if given["plans"] and given["out"] is given["to"] is None:
        return target_of("parquet:.")  # nothing is written
    if (given["out"] is None) == (given["to"] is None):
        raise Wrong("--out DIR or --to KIND:PLACE says where the tables go: give one of them")
    text = f"parquet:{given['out']}" if given["to"] is None else given["to"]
    kind, colon, place = text.partition(":")
    if kind in ("parquet", "delta"):
        place = within_reach(place, given["master"])
    try:
        return target_of(f"{kind}{colon}{place}")
    except (ValueError, NotInstalledError) as error:
        raise Wrong(str(error)) from None


@contextmanager
def _target_errors() -> Iterator[None]:
    """:raises Wrong: a target cannot be used.
    :raises Unreadable: another file system does not answer."""
    try:
        yield
    except TargetError as error:
        raise Wrong(str(error)) from None
    except CaptureError as error:
        raise Unreadable(str(error)) from None


def _report_duplicate(path: str, other: str) -> None:
    complain(f"{shown(path)}: has the same bytes as {shown(other)}, which was read; it is left out")


def _print_line(given: dict[str, Any], line: str) -> None:
    if not given["quiet"]:
        complain(line)


REPLACED = "--overwrite replaces it"


def refuse_existing(out: str, tables: Sequence[str], way: str = REPLACED) -> None:
    """Check that none of the tables exists.

    :param way: the advice for a table that exists.
    :raises Wrong: one exists.
    """
    for name in tables:
        if is_folder(path := join(out, name)):
            whose = "" if found_file(join(path, ENDED)) else ", from a run that did not end"
            raise Wrong(f"{path} is there already{whose}: {way}")


def check_parts(by: Sequence[str], tables: Sequence[str], settings: TableSettings) -> None:
    """Report tables that are not partitioned by all of these columns.

    :raises Wrong: no table has such a column.
    """
    known = {column.name for name in tables for column in TABLES[name].columns}
    for part in by:
        if part not in (*known, *TIME_PARTS, BROKER, POINT):
            hint = nearest(part, (*known, *TIME_PARTS, BROKER))
            raise Wrong(f"--partition-by: no column is named {part!r}{hint}")
    for name in tables:
        columns = settings._replace(places=needs_places(by)).full_table(name).columns
        done = parts_of([column.name for column in columns], name, by)
        if missing := [part for part in dict.fromkeys(by) if part not in done]:
            complain(f"--partition-by {', '.join(missing)}: the table {name} has no such column")
