"""How much faster several processes are than one: ``python -m benchmarks.jobs [CAPTURE]``.

Commands run in alternation, with one job and with more, on the same capture. Without a capture, real client
traffic is repeated until it has ``--exchanges`` on many connections. The medians of the seconds count. They
mean nothing on a busy machine, so the load is printed. Beside their ratio is the ratio that the processors
allow. That is the CPU seconds of one job, divided by those of the busiest process or by an equal share of all
CPU seconds, whichever is more. Peaks are of one process.

``many`` assumes ``--cores`` processors, and a run with as many jobs. The processes with the parts are spread
over the processors, the longest first. The first process, which joins and writes, works beside them. The
figure says how many times faster than one job the longest of these is.

``--parts`` measures the cost of cutting. It compares one job with a run in which the capture has this many
parts, each in another process. The ratio is that of all processor time.
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
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
    many: float
    """The seconds with many processors, if each process did the same work."""
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


def run(command: tuple[str, ...], capture: Path, jobs: int, cores: int, size: int | None = None) -> Figures:
    """Run a command once. CPU seconds of all processes are the system's count, which includes every process.

    :param size: bytes of a part; None to let kdissect choose.
    """
    words = [*command, str(capture), "--jobs", str(jobs), "-q", "-o", os.devnull]
    before = _children()
    program = ["-m", "kdissect"] if size is None else ["-c", _IN_PARTS.format(size=size)]
    seconds, used = measure([sys.executable, *program, *words])
    cpus = [used[number].cpu for number in sorted(used)]
    cpu = _children() - before
    first, *others = cpus
    # CPU seconds that only the system counted belong to processes that had ended before the next look.
    missed = (cpu - first) / sum(others) if sum(others) else 1.0
    many = max(first, spread([missed * each for each in others], cores))
    return Figures(seconds, cpu, max(cpus), many, max(each.peak for each in used.values()))


def spread(times: list[float], cores: int) -> float:
    """The seconds that these take on ``cores`` processors, the longest first."""
    loads = [0.0] * cores
    for each in sorted(times, reverse=True):
        heapreplace(loads, loads[0] + each)
    return max(loads)


def _children() -> float:
    """CPU seconds of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def middle(runs: list[Figures]) -> Figures:
    """The medians; for peaks the maximum."""
    seconds, cpu, busiest, many = (median(run[at] for run in runs) for at in range(4))
    return Figures(seconds, cpu, busiest, many, max(run.peak for run in runs))


def cost_of_parts(capture: Path, parts: int, rounds: int, only: str) -> None:
    """Print the CPU seconds of one job, and of all parts together."""
    size = capture.stat().st_size // parts + 1
    print(f"{parts} parts of {size / 1e6:,.0f} MB, load {os.getloadavg()[0]:.1f}")
    for command in COMMANDS:
        if only not in " ".join(command):
            continue
        ones, others = [], []
        for _ in range(rounds):
            ones.append(run(command, capture, 1, 1).cpu)
            others.append(run(command, capture, 2, 1, size).cpu)
        one, other = min(ones), min(others)
        print(f"{' '.join(command):44} {one:6.2f} s {other:6.2f} s {other / one:5.2f}", flush=True)


def compare(capture: Path, jobs: int, rounds: int, cores: int, only: str) -> None:
    """Print the table."""
    size = capture.stat().st_size / 1e6
    print(f"{size:,.0f} MB, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    titles = f"{f'{jobs} jobs':>8} {'ratio':>6} {'by CPU':>6} {'CPU':>11} {'many':>5} {'peak':>6}"
    print(f"{'':44} {'1 job':>8} {titles}")
    for command in COMMANDS:
        if only not in " ".join(command):
            continue
        ones, others, every = [], [], []
        for _ in range(rounds):
            ones.append(run(command, capture, 1, cores))
            others.append(run(command, capture, jobs, cores))
            every.append(run(command, capture, cores, cores))
        one, other, many = middle(ones), middle(others), middle(every)
        print(
            f"{' '.join(command):44} {one.seconds:6.2f} s {other.seconds:6.2f} s"
            f" {one.seconds / other.seconds:6.2f} {one.cpu / max(other.busiest, other.cpu / jobs):6.2f}"
            f" {one.cpu:5.1f}→{other.cpu:<5.1f} {one.cpu / many.many:5.1f} {other.peak >> 20:3} MiB",
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
