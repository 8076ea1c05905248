"""How much faster several processes are than one: ``python -m benchmarks.jobs [CAPTURE]``.

Commands run in alternation, with one job and with more, on the same capture. Without a capture, real client
traffic is repeated until it has ``--exchanges`` on many connections. The medians of the seconds count. They
mean nothing on a busy machine, so the load is printed. Beside their ratio is the ratio that the processors
allow. That is the CPU seconds of one job, divided by those of the busiest process or by an equal share of all
CPU seconds, whichever is more. Peaks are of one process.

Two figures assume ``--cores`` processors and as many jobs. The parts and their processes are those of such a
run, but each part is done alone, so that no process takes a processor or a cache from another. Then the CPU
seconds of the parts are spread over the processors, the longest first. ``parts`` says how many times faster
than one job they are. ``all`` also counts the first process. Its start comes before all parts; the rest of
its work (cutting, stitching, writing) is done beside them, and may take longer than they do. ``first`` shows
the CPU milliseconds of both. No figure counts time in which a process waits for another one.

``--parts`` measures the cost of cutting. It compares one job with a run in which the capture has this many
parts, each in another process. The ratio is that of all processor time.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
from heapq import heapreplace
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.processes import measure
from benchmarks.traffic import multiply

EXCHANGES = 100_000
COMMANDS = (
    ("read", "-T", "text"),
    ("read", "-T", "ndjson"),
    ("read", "-T", "ndjson", "--records"),
    ("read", "-T", "records"),
    ("read", "-T", "parquet"),
    ("read", "-T", "records.parquet"),
    ("read", "-T", "csv"),
    ("read", "-Y", "api == Fetch and latency > 5ms"),
    ("stats", "-z", "srt"),
    ("stats", "-z", "topics", "-z", "positions"),
    ("explain", "--all", "-T", "ndjson"),
)


class Figures(NamedTuple):
    """One run."""

    seconds: float
    cpu: float
    """CPU seconds of all processes."""
    busiest: float
    """CPU seconds of the busiest process."""
    peak: int
    """The peak of memory in bytes, of the largest process."""


_IN_PARTS = """
import sys
import kdissect.jobs.cutting as cutting
cutting.FIRST_BYTES, cutting.PART_BYTES, cutting.LAST_BYTES = 262144, {size}, {size}
cutting.MOST_WITH_OWN, cutting.GROWTH = 0, {size}
from kdissect.cli import main
sys.exit(main())
"""

_ONE_BY_ONE = """
import json, sys
from pathlib import Path
from time import process_time
import kdissect.jobs.cutting as cutting
import kdissect.jobs.workers as workers
parts, start = [], []

class OneByOne(workers.Workers):
    resting = ()

    def may_begin(self, spare=0):
        return not self._running

    def begin_part(self, task):
        start[:] = start or [process_time()]
        if len(self._idle) < {cores}:
            self.resting, self._idle = self._idle, []
        else:
            self._idle.append(self._idle.pop(0))
        try:
            return super().begin_part(task)
        finally:
            self._idle[:0] = self.resting
            self.resting = ()

    def submit_part(self, part, seam, before=None):
        super().submit_part(part, seam, before)
        self.finish()
        parts.append(part.seconds)

    def _descriptors(self):
        yield from super()._descriptors()
        for process, _ in self.resting:
            yield from (process.answers, process.asks)

workers.Workers = OneByOne
from kdissect.cli import main
try:
    code = main()
except SystemExit as error:
    code = error.code
used = process_time()
begun = start[0] if start else used
Path({told!r}).write_text(json.dumps([begun, used - begun, parts]))
sys.exit(code)
"""
"""A run as with ``cores`` jobs, with the same parts and processes. Only one part is done at a time, each in
the process that has rested longest."""


class Simulated(NamedTuple):
    """The CPU seconds of a run with many processes."""

    start: float
    """Of the first process until it begins the first part of another process."""
    rest: float
    """Of the first process after that."""
    parts: list[float]
    """Of each part."""

    def spread(self, cores: int) -> float:
        """The seconds that the parts take on ``cores`` processors, the longest first."""
        loads = [0.0] * cores
        for each in sorted(self.parts, reverse=True):
            heapreplace(loads, loads[0] + each)
        return max(loads)

    def all(self, cores: int) -> float:
        """The seconds of everything, with the first process beside these processors."""
        return self.start + max(self.rest, self.spread(cores))


def simulate(command: tuple[str, ...], capture: Path, cores: int) -> Simulated:
    """Run a command once, with the processes of ``cores`` jobs, but one part at a time."""
    with tempfile.TemporaryDirectory(prefix="kdissect-bench-") as folder:
        told = Path(folder) / "seconds"
        words = [*command, str(capture), "--jobs", str(cores), "-q", "-o", os.devnull]
        measure([sys.executable, "-c", _ONE_BY_ONE.format(cores=cores, told=str(told)), *words])
        return Simulated(*json.loads(told.read_text()))


def run(command: tuple[str, ...], capture: Path, jobs: int, size: int | None = None) -> Figures:
    """Run a command once. CPU seconds of all processes are the system's count, which includes every process.

    :param size: bytes of a part; None to let kdissect choose.
    """
    words = [*command, str(capture), "--jobs", str(jobs), "-q", "-o", os.devnull]
    before = _children()
    program = ["-m", "kdissect"] if size is None else ["-c", _IN_PARTS.format(size=size)]
    seconds, used = measure([sys.executable, *program, *words])
    cpus = [used[number].cpu for number in sorted(used)]
    cpu = _children() - before
    return Figures(seconds, cpu, max(cpus), max(each.peak for each in used.values()))


def _children() -> float:
    """CPU seconds of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def middle(runs: list[Figures]) -> Figures:
    """The medians; for peaks the maximum."""
    seconds, cpu, busiest = (median(run[at] for run in runs) for at in range(3))
    return Figures(seconds, cpu, busiest, max(run.peak for run in runs))


def cost_of_parts(capture: Path, parts: int, rounds: int, only: str) -> None:
    """Print the CPU seconds of one job, and of all parts together."""
    size = capture.stat().st_size // parts + 1
    print(f"{parts} parts of {size / 1e6:,.0f} MB, load {os.getloadavg()[0]:.1f}")
    for command in COMMANDS:
        if only not in " ".join(command):
            continue
        ones, others = [], []
        for _ in range(rounds):
            ones.append(run(command, capture, 1).cpu)
            others.append(run(command, capture, 2, size).cpu)
        one, other = min(ones), min(others)
        print(f"{' '.join(command):44} {one:6.2f} s {other:6.2f} s {other / one:5.2f}", flush=True)


def compare(capture: Path, jobs: int, rounds: int, cores: int, only: str) -> None:
    """Print the table."""
    size = capture.stat().st_size / 1e6
    print(f"{size:,.0f} MB, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    titles = f"{f'{jobs} jobs':>8} {'ratio':>6} {'by CPU':>6} {'CPU':>11} {'peak':>7}"
    titles += f" {'parts':>5} {'all':>5} {'first':>9}"
    print(f"{'':44} {'1 job':>8} {titles}")
    for command in COMMANDS:
        if only not in " ".join(command):
            continue
        ones, others, many = [], [], []
        for _ in range(rounds):
            ones.append(run(command, capture, 1))
            others.append(run(command, capture, jobs))
            many.append(simulate(command, capture, cores))
        one, other = middle(ones), middle(others)
        parts, everything = (
            median(how(each, cores) for each in many) for how in (Simulated.spread, Simulated.all)
        )
        start = 1_000 * median(each.start for each in many)
        rest = 1_000 * median(each.rest for each in many)
        print(
            f"{' '.join(command):44} {one.seconds:6.2f} s {other.seconds:6.2f} s"
            f" {one.seconds / other.seconds:6.2f} {one.cpu / max(other.busiest, other.cpu / jobs):6.2f}"
            f" {one.cpu:5.1f}→{other.cpu:<5.1f} {other.peak >> 20:3} MiB"
            f" {one.cpu / parts:5.1f} {one.cpu / everything:5.1f} {start:4.0f}+{rest:<4.0f}",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("capture", nargs="?", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cores", type=int, default=16, help="processors that are supposed")
    parser.add_argument("--parts", type=int, help="show what so many parts cost, and nothing else")
    parser.add_argument("--only", default="", help="commands with this text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--exchanges", type=int, default=EXCHANGES)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kdissect-bench-") as folder:
        capture = given.capture
        if capture is None:
            capture = Path(folder) / "traffic.pcap"
            multiply(capture, given.exchanges)
        if given.parts:
            cost_of_parts(capture, given.parts, given.rounds, given.only)
            return 0
        compare(capture, given.jobs, given.rounds, given.cores, given.only)
    return 0


if __name__ == "__main__":
    sys.exit(main())
