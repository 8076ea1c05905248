"""CPU of ``kdissect spark batch`` against that of the same decoder without Spark, on one capture.

    python -m benchmarks.spark --make CAPTURE --gigabytes 1 [--skew 0.9]
    python -m benchmarks.spark CAPTURE [--strategy replicas|buckets|shuffle] [--tasks 2]
    python -m benchmarks.spark --start CAPTURE

Both make the table of exchanges and write it as Parquet. CPU seconds are summed over all processes of a
run, the JVM among them; sizes are the most that a Python worker had resident, and the driver's heap is
kdissect's usual 1 GB. ``--make`` makes a capture of any size from real client traffic
(:mod:`benchmarks.traffic`); with ``--skew`` one connection has that share of its bytes. ``--start`` compares
the whole command, with its usual tables, with the start of a plain session of PySpark that counts to ten,
in turns; for a small capture.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.traffic import grow

_TICK = os.sysconf("SC_CLK_TCK")
_EVERY = 0.1
_STARTS = 5
_STOCK = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
SparkSession.builder.master("local[2]").getOrCreate().range(10).count()
"""


class Process(NamedTuple):
    """What a process used."""

    name: str
    cpu: float
    """Seconds."""
    peak: int
    """Bytes resident."""


def measure(command: list[str], variables: dict[str, str] | None = None) -> tuple[float, dict[int, Process]]:
    """Run a command; the seconds it took and what each of its processes used.

    :param variables: its environment, if that is not this process's with this checkout before all.
    :raises RuntimeError: it fails.
    """
    used: dict[int, Process] = {}
    start = time.monotonic()
    if variables is None:
        variables = {**os.environ, "PYTHONPATH": os.getcwd()}
    running = subprocess.Popen(command, start_new_session=True, env=variables)
    while running.poll() is None:
        used |= _processes(running.pid)
        time.sleep(_EVERY)
    if running.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {running.returncode}")
    return time.monotonic() - start, used


def compare_starts(capture: str) -> None:
    """Print what ``kdissect spark batch`` takes for a capture, and what a session of PySpark does alone."""
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


def _processes(session: int) -> dict[int, Process]:
    """The processes of a session."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            fields = rest.split()
            if int(fields[3]) != session:
                continue
            status = (folder / "status").read_text()
        except OSError:
            continue  # it has ended
        peak = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)
        cpu = (int(fields[11]) + int(fields[12])) / _TICK
        found[int(folder.name)] = Process(name, cpu, peak * 1024)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("capture")
    parser.add_argument("--strategy", default="replicas")
    parser.add_argument("--tasks", default="2")
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--skew", type=float, default=0.0)
    parser.add_argument("--start", action="store_true")
    given = parser.parse_args()
    if given.make:
        grow(Path(given.capture), int(given.gigabytes * 1e9), given.skew)
        return
    if given.start:
        compare_starts(given.capture)
        return
    gigabytes = os.path.getsize(given.capture) / 1e9
    python = [sys.executable, "-m", "kdissect"]
    with tempfile.TemporaryDirectory() as folder:
        plain = [
            *python,
            "read",
            given.capture,
            "-T",
            "exchanges.parquet",
            "-o",
            f"{folder}/plain.parquet",
            "-q",
        ]
        seconds, used = measure(plain)
        alone = sum(process.cpu for process in used.values())
        print(f"without Spark: {alone / gigabytes:.1f} CPU s/GB, {seconds:.0f} s")
        batch = [
            *python,
            "spark",
            "batch",
            given.capture,
            "--out",
            f"{folder}/out",
            "--table",
            "exchanges",
            "-q",
        ]
        batch += ["--master", "local[2]", "--strategy", given.strategy, "--tasks", given.tasks]
        seconds, used = measure(batch)
    total = sum(process.cpu for process in used.values())
    workers = [process for process in used.values() if process.name.startswith("python")]
    busiest = sorted(workers, key=lambda process: process.cpu)[-int(given.tasks) :]
    java = sum(process.cpu for process in used.values() if process.name == "java")
    print(f"with Spark: {total / gigabytes:.1f} CPU s/GB, {seconds:.0f} s; {total / alone:.2f} times as much")
    print(f"JVM {java:.0f} CPU s; workers {', '.join(f'{process.cpu:.0f}' for process in busiest)} CPU s")
    share = max(process.cpu for process in busiest) / sum(process.cpu for process in busiest)
    print(f"largest worker {share:.0%}")
    print(f"most resident in a worker {max(process.peak for process in workers) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
