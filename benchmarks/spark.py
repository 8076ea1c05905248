"""CPU of ``kdissect spark batch``, compared with a single process that makes the same rows, on one capture.

    python -m benchmarks.spark --make CAPTURE --gigabytes 1 [--skew 0.9]
    python -m benchmarks.spark CAPTURE [--rounds 3] [--tasks 1] [--kdissect FOLDER]
    python -m benchmarks.spark --start CAPTURE
    python -m benchmarks.spark --many CAPTURE [--counts 100 20000]

Both sides make six tables as Parquet: exchanges, records, batches, connections, faults, packets. The single
process dissects once, and uses the writers of ``kdissect read``. CPU seconds are summed over all processes of
a run, the JVM among them. CPU seconds of a run over a capture of some packets are the start, and are given
separately. Both sides run in turns, and the lowest figure of each counts. The closing line of ``spark batch``
says how many bytes of captures it read. ``--kdissect`` names the checkout whose ``spark batch`` is measured.

``--make`` makes a capture of any size from real client traffic (:mod:`benchmarks.traffic`); with ``--skew``
one connection has that share of its bytes. ``--start`` compares two runs in turns, for a small capture: the
whole command with its usual tables, and a plain PySpark session that counts to ten. ``--many`` cuts a classic
pcap file into many files, and prints the memory of the driver for each number of files.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pyarrow.parquet as pq

from benchmarks.processes import measure
from benchmarks.traffic import CAPTURES, grow
from kdissect.capture.files import read_packets
from kdissect.capture.segments import SegmentReader
from kdissect.collector import rarely_collected
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.model import Packet, Segment
from kdissect.present.arrow import ParquetWriter
from kdissect.present.options import PLAIN
from kdissect.present.record_columns import ColumnsWriter
from kdissect.present.sources import sources_of
from kdissect.source import Input, Pass
from kdissect.spark.rows import packet_row
from kdissect.spark.tables import full_table

TABLES = ("exchanges", "records", "batches", "connections", "faults", "packets")

_STARTS = 5
_STOCK = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
SparkSession.builder.master("local[2]").getOrCreate().range(10).count()
"""


def compare_starts(capture: str) -> None:
    """Print the time of ``kdissect spark batch`` for a capture, and of a PySpark session alone."""
    taken: dict[str, list[tuple[float, float]]] = {"stock PySpark": [], "kdissect spark batch": []}
    for _ in range(_STARTS):
        with tempfile.TemporaryDirectory() as folder:
            batch = [sys.executable, "-m", "kdissect", "spark", "batch", capture, "--out", f"{folder}/out"]
            commands = ([sys.executable, "-c", _STOCK], [*batch, "--master", "local[2]", "-q"])
            for runs, command in zip(taken.values(), commands, strict=True):
                seconds, used = measure(command)
                runs.append((seconds, sum(process.cpu for process in used.values())))
    for name, runs in taken.items():
        seconds, cpu = (median(figures) for figures in zip(*runs, strict=True))
        print(f"{name}: {seconds:.1f} s, {cpu:.1f} CPU s (medians of {_STARTS})")


def compare_counts(capture: str, counts: Iterable[int]) -> None:
    """Print the driver's memory for the packets of a capture in few files and in many."""
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            (captures := Path(folder, "captures")).mkdir()
            _cut(Path(capture).read_bytes(), captures, count)
            batch = [
                sys.executable,
                "-m",
                "kdissect",
                "spark",
                "batch",
                str(captures),
                "--out",
                f"{folder}/out",
            ]
            seconds, used = measure([*batch, "--master", "local[2]"])
            driver = next(iter(used.values()))  # it starts before the others
            java = max(each.peak for each in used.values() if each.name == "java")
            workers = max(each.peak for each in used.values() if each.name.startswith("python"))
        print(
            f"{count:,} files: the driver's Python {driver.peak / 1e6:.0f} MB, its JVM {java / 1e6:.0f} MB, "
            f"the largest Python {workers / 1e6:.0f} MB; {seconds:.0f} s"
        )


def _cut(data: bytes, folder: Path, count: int) -> None:
    """Write the packets of a classic pcap file, little-endian, into ``count`` files.

    :raises ValueError: it has fewer packets.
    """
    starts, at = [], 24
    while at < len(data):
        starts.append(at)
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    if len(starts) < count:
        raise ValueError(f"there are {len(starts):,} packets")
    ends = [*(starts[len(starts) * number // count] for number in range(count)), len(data)]
    for number, (start, end) in enumerate(pairwise(ends)):
        (folder / f"{number:06}.pcap").write_bytes(data[:24] + data[start:end])


def alone(capture: str, folder: str) -> None:
    """All tables, made by this process in one pass."""
    files = {name: open(f"{folder}/{name}.parquet", "wb") for name in TABLES}  # noqa: SIM115 - closed below
    records = ColumnsWriter("parquet", full_table("records", False, False), files["records"], PLAIN)
    writers = {
        name: ParquetWriter(full_table(name, False, False), files[name])
        for name in TABLES
        if name != "records"
    }
    segments, rows = SegmentReader(), writers["packets"]
    with rarely_collected():
        reading = Pass(Input((capture,)))
        # One by one, as Spark's tasks read them, because a run of packets has no rows.
        for items in read_packets([capture]).blocks():
            for item in items:
                if isinstance(item, Packet):
                    found = segments.feed(item)
                    rows.write(packet_row(item, found if isinstance(found, Segment) else None))
            for events in reading.feed_all(items):
                _write(events, records, writers)
        _write(reading.end(), records, writers)
        records.close()
        for writer in writers.values():
            writer.close()
    for file in files.values():
        file.close()


def _write(events: Iterable[Event], records: ColumnsWriter, writers: Mapping[str, ParquetWriter]) -> None:
    for event in events:
        for name, writer in writers.items():
            if name != "packets":
                for source in sources_of(name, event, PLAIN):
                    writer.write(source)
        if isinstance(event, Exchange) and any(each.may_have_records() for each in event.messages):
            for _ in records.write(event):
                pass


class Run(NamedTuple):
    """The time and memory of a run."""

    cpu: float
    seconds: float
    worker_peak: int
    java: float


def _run(command: list[str], home: str | None = None) -> Run:
    variables = None if home is None else {**os.environ, "PYTHONPATH": home}
    seconds, used = measure(command, variables, home)
    peaks = [each.peak for each in used.values() if each.name.startswith("python")]
    java = sum(each.cpu for each in used.values() if each.name == "java")
    return Run(sum(each.cpu for each in used.values()), seconds, max(peaks), java)


def compare(capture: str, rounds: int, more: list[str], home: str | None) -> None:
    """Print the figures of both, with the start separate."""
    with tempfile.TemporaryDirectory() as folder:
        small = str(CAPTURES / "broker-0.9.pcap")
        least: dict[tuple[str, str], Run] = {}
        for _ in range(rounds):
            for path in (small, capture):
                out = tempfile.mkdtemp(dir=folder)
                plain = [sys.executable, "-m", "benchmarks.spark", "--alone", path, "--out", out]
                batch = [sys.executable, "-m", "kdissect", "spark", "batch", path, "--out", out, *more]
                batch += [word for name in TABLES for word in ("--table", name)]
                batch += ["--master", "local[2]"]
                for kind, command, where in (("alone", plain, None), ("spark", batch, home)):
                    run = _run(command, where)
                    known = least.get((kind, path), run)
                    least[kind, path] = min(run, known)
                if path == capture:
                    _refuse_other_rows(out)
                shutil.rmtree(out)
    one, start = least["alone", capture], least["alone", small]
    spark, spark_start = least["spark", capture], least["spark", small]
    megabytes = os.path.getsize(capture) / 1e6
    own, others = one.cpu - start.cpu, spark.cpu - spark_start.cpu
    print(f"{megabytes:.0f} MB, {len(TABLES)} tables, least of {rounds}")
    print(f"one process: {own:.1f} CPU s beside {start.cpu:.1f} to start; {one.seconds:.0f} s in all")
    print(
        f"with Spark: {others:.1f} CPU s beside {spark_start.cpu:.1f} to start; {spark.seconds:.0f} s in all"
    )
    print(f"{others / own:.2f} times as much; the JVM has {spark.java - spark_start.java:.1f} of it")
    print(
        f"most resident in one Python: {spark.worker_peak / 1e6:.0f} MB; alone {one.worker_peak / 1e6:.0f} MB"
    )


def _refuse_other_rows(folder: str) -> None:
    """Check that both sides made the same rows.

    :raises RuntimeError: the two sides made different numbers of rows.
    """
    for name in TABLES:
        counts = [pq.read_metadata(f"{folder}/{name}.parquet").num_rows]
        counts.append(sum(pq.read_metadata(each).num_rows for each in Path(folder, name).glob("*.parquet")))
        if len(set(counts)) > 1:
            raise RuntimeError(f"{name}: {counts} rows")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("capture")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks")
    parser.add_argument("--kdissect", metavar="FOLDER")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--skew", type=float, default=0.0)
    parser.add_argument("--start", action="store_true")
    parser.add_argument("--many", action="store_true")
    parser.add_argument("--counts", type=int, nargs="+", default=[100, 20_000], metavar="N")
    given = parser.parse_args()
    if given.many:
        compare_counts(given.capture, given.counts)
    elif given.make:
        grow(Path(given.capture), int(given.gigabytes * 1e9), given.skew)
    elif given.start:
        compare_starts(given.capture)
    elif given.alone:
        alone(given.capture, given.out)
    else:
        more = [] if given.tasks is None else ["--tasks", given.tasks]
        compare(given.capture, given.rounds, more, given.kdissect)


if __name__ == "__main__":
    main()
