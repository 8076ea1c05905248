"""What takes too long for every change: ``python -m tests.spark.long [PART…] [--only GLOB] [--seconds N]``.

captures   every capture in ``captures/`` and of the lab: all tables equal those without Spark, made in one
           pass by 1, 2 and 7 tasks. ``--only`` takes those whose name matches; after ``--seconds`` no further
           one is begun, and it is said how many were left out
kills      a stream that is killed at 10 random moments gives what a batch gives
cluster    a standalone master and two workers, started from the installed pyspark: equal tables, also where
           a worker is killed; and what ``kdissect doctor spark --cluster`` says of it
archive    the same cluster, whose workers find kdissect in the archive of ``kdissect spark pack`` only
"""

# ruff: noqa: T201

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import kdissect.spark
from benchmarks.traffic import grow
from kdissect.cli import main as main_of_kdissect
from kdissect.spark.launch import session
from kdissect.spark.plan import plan as planned
from kdissect.spark.settings import TableSettings
from kdissect.spark.table_set import BatchOptions, make_tables
from kdissect.spark.targets import ParquetFolder
from tests.shared import SHARED, shared
from tests.spark.cuts import cut
from tests.spark.same import CAPTURES, TABLES, read_rows, spark_rows, written_rows
from tests.spark.standalone import CONF, Cluster, compare_packed, standalone
from tests.spark.test_stream import SMALL, kill, rows, run
from tests.spark.test_stream import TABLES as STREAMED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def captures(only: str, seconds: float) -> None:
    """Every capture, every table."""
    end = time.monotonic() + seconds
    paths = sorted(CAPTURES.glob("*.pcap*"))
    if SHARED is not None:
        paths += sorted(shared("testdata/captures/lab").glob("*/*.pcap*"))
    paths = [path for path in paths if fnmatch(path.name, only)]
    done = compared = 0
    for path in paths:
        if time.monotonic() > end:
            break
        expected = {name: read_rows(name, [path]) for name in TABLES}
        for tasks in (1, 2, 7):
            with tempfile.TemporaryDirectory() as folder:
                command = ["spark", "batch", str(path), "--out", folder, "--tasks", str(tasks), "-q"]
                more = [word for name in TABLES for word in ("--table", name)]
                main_of_kdissect([*command, *more, "--overwrite", "--master", "local[2]"])
                for name in TABLES:
                    assert written_rows(Path(folder) / name) == expected[name], (path, name, tasks)
                    compared += 1
        done += 1
        print(f"{path.name} of {path.parent.name}: equal", flush=True)
    print(f"captures: {done} of {len(paths)}, {compared} tables equal")


def kills() -> None:
    """Ten random moments."""
    random = Random()
    with tempfile.TemporaryDirectory() as name:
        folder, out = Path(name) / "folder", Path(name) / "out"
        folder.mkdir()
        cut(CAPTURES / "basic-kafka43.pcapng", folder, 20)
        moments = [random.uniform(4.0, 25.0) for _ in range(10)]
        for moment in moments:
            end = time.monotonic() + moment
            kill(folder, out, lambda end=end: time.monotonic() > end)  # type: ignore[misc]
        assert run(folder, out, *SMALL) == 0
        for table in STREAMED:
            assert rows(out, table) == read_rows(table, sorted(folder.iterdir())), (table, moments)
    print(f"kills: at {', '.join(f'{moment:.1f}' for moment in moments)} s; equal")


def cluster() -> None:
    """Workers that have what this process has."""
    with standalone(2) as used:
        _doctor(used)
        spark = session(used.url, CONF, os.devnull)
        _compare(spark)
        for tasks, written in ((None, "*/*.parquet"), (3, "_kept/*.events"), (3, "exchanges/*.parquet")):
            _killed(spark, used.workers, tasks, written)
        spark.stop()


def archive() -> None:
    """Workers that have only Python."""
    with standalone(2) as used:
        compare_packed(used, CAPTURES / "basic-kafka43.pcapng", TABLES)
    print("archive: equal")


def _doctor(cluster: Cluster) -> None:
    """What is said of these workers; and what is missing if settings do not fit them."""
    capture = str(CAPTURES / "errors.pcapng")
    cases: tuple[tuple[dict[str, str], str], ...] = (
        ({}, "all workers can write, and this machine sees it"),
        ({"spark.pyspark.python": "/usr/bin/false"}, "kdissect doctor spark says how"),
        ({"spark.pyspark.python": "/nowhere/python"}, "name the Python of the workers with --conf"),
        ({"spark.executor.extraJavaOptions": "-agentlib:nowhere"}, "executors end before they take a task"),
        ({"spark.executor.memory": "900g"}, "900g of free memory (spark.executor.memory)"),
    )
    for more, words in cases:
        code = 3 if more else 0
        pairs = [f"--conf={key}={value}" for key, value in {**CONF, **more}.items()]
        command = [sys.executable, "-m", "kdissect", "doctor", "spark", "--cluster", cluster.url, *pairs]
        done = subprocess.run(
            [*command, "--path", capture, "--path", str(cluster.folder)], check=False, stdout=subprocess.PIPE
        )
        told = done.stdout.decode()
        print(told, end="", flush=True)
        assert done.returncode == code, code
        assert words in told, words
        assert "stopped SparkContext" not in told
    print("doctor: as it is")


def _compare(spark: SparkSession) -> None:
    path = CAPTURES / "basic-kafka43.pcapng"
    for name in TABLES:
        frame = kdissect.spark.table(spark, path, name, tasks=2)
        assert spark_rows(frame) == read_rows(name, [path]), name
    plan = planned([str(path)], TableSettings(tasks=3))
    with tempfile.TemporaryDirectory() as folder:
        asked = BatchOptions(TABLES, (), TableSettings(tasks=3))
        made = make_tables(spark, plan, asked, ParquetFolder(folder), tallies=False)
        assert made.folder is not None
        made.write(overwrite=True)
        for name in TABLES:
            assert written_rows(Path(folder) / name) == read_rows(name, [path]), name
    print("cluster: equal")


def _killed(spark: SparkSession, pids: Sequence[int], tasks: int | None, written: str) -> None:
    """A worker that writes is killed; the task is done again.

    :param written: the files by which it is known that it writes.
    """
    with tempfile.TemporaryDirectory() as name:
        capture, out = Path(name) / "large.pcap", Path(name) / "out"
        grow(capture, 4_000_000)
        killed: list[int] = []

        def kill() -> None:
            while not killed and time.monotonic() < end:
                if any(path.stat().st_size > 100_000 for path in out.glob(f"_staged-*/{written}")):
                    killed.extend(_tasks_of(pids))
                    for pid in killed:
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.05)

        end = time.monotonic() + 600
        killing = threading.Thread(target=kill, daemon=True)
        killing.start()
        settings = TableSettings(tasks=tasks)
        asked = BatchOptions(TABLES, (), settings)
        made = make_tables(spark, planned([str(capture)], settings), asked, ParquetFolder(str(out)), False)
        killing.join(1)
        assert killed
        # The file of the killed attempt is there still, and does not count.
        if tasks is None:
            assert len(list(out.glob("_staged-*/exchanges/*.parquet"))) == 2
        assert sum(each.read for each in made.outcomes) == capture.stat().st_size
        made.write(overwrite=False)
        for table in TABLES:
            assert written_rows(out / table) == read_rows(table, [capture]), table
    print(f"cluster, a worker killed that wrote {written}: equal")


def _tasks_of(pids: Sequence[int]) -> list[int]:
    """The Python processes that do tasks below these processes: those below ``pyspark.daemon``."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    below, found = set(pids), []
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    for pid in below:
        with suppress(OSError, KeyError):
            commands = [Path(f"/proc/{each}/cmdline").read_bytes() for each in (pid, parents[pid])]
            if all(b"pyspark.daemon" in command for command in commands):
                found.append(pid)
    return found


PARTS = ("captures", "kills", "cluster", "archive")


def main() -> None:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--only", default="*", metavar="GLOB")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="N")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no part is {', '.join(unknown)}: {', '.join(PARTS)}")
    for part in given.parts or PARTS:
        if part == "captures":
            captures(given.only, given.seconds)
        elif part == "kills":
            kills()
        elif part == "archive":
            archive()
        else:
            cluster()


if __name__ == "__main__":
    main()
