"""What tables of facts and findings cost: CPU seconds beside those of a few tables, and memory.

    python -m benchmarks.facts [--megabytes 30] [--runs 3] [--captures cluster43-combined] [--tree FOLDER]

Captures are multiples of real ones (:mod:`benchmarks.speed`). The first program, ``basis``, makes five
tables. All tables together may take 1.8 of its CPU, and ``explain`` 2.0. ``its tables`` makes the tables that
the rules of ``explain`` read and ``-z`` has a name for: ``explain`` may take 1.15 of its CPU. None may use
more than 300 MB for a gigabyte. An exclamation mark shows a figure above its limit. Runs alternate, and the
medians count. Without ``--tree`` a compiled copy of this checkout is made.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.speed import CALM, Program, Run, capture_of, compiled_copy, run
from kdissect.analysis.catalogue import STATISTICS
from kdissect.insight.judge import of_captures

CAPTURES = ("java44-on-44", "cluster43-combined", "streams-protocol-2", "librdkafka-new")
BASIS = ("srt", "topics", "positions", "groups", "connections")
MOST_RATIOS = {"all tables": 1.8, "explain": 2.0}
"""The most CPU time of each, as a multiple of the basis."""
MOST_OF_ITS_TABLES = 1.15
"""The most CPU time of ``explain``, as a multiple of ``its tables``."""
MOST_MEGABYTES = 300


def programs(tree: Path) -> list[Program]:
    """The programs to measure; the basis first."""
    variables = {name: value for name, value in os.environ.items() if name not in CALM}
    variables["PYTHONPATH"] = str(tree)
    start = (sys.executable, "-P", "-m", "kdissect")
    every = [name for name, found in STATISTICS.items() if not found.is_deep]
    return [
        Program("basis", (*start, "stats", "-q", "--jobs", "1", *_tables(BASIS)), variables),
        Program("all tables", (*start, "stats", "-q", "--jobs", "1", *_tables(every)), variables),
        Program("its tables", (*start, "stats", "-q", "--jobs", "1", *_tables(read_by_rules())), variables),
        Program("explain", (*start, "explain", "-q", "--jobs", "1", "--all", "-T", "ndjson"), variables),
    ]


def read_by_rules() -> list[str]:
    """The tables that rules on captures read, by their names for ``-z``."""
    needs = dict.fromkeys(need.name for rule in of_captures() for need in rule.needs)
    return [name for name in needs if name in STATISTICS]


def _tables(names: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return tuple(word for name in names for word in ("-z", name))


def measure(capture: Path, chosen: list[Program], runs: int) -> Iterator[str]:
    """The lines of a table about one capture."""
    found: dict[str, list[Run]] = {}
    for _ in range(runs):
        for program in chosen:
            found.setdefault(program.name, []).append(run(program, capture))
    took = {name: statistics.median(one.cpu for one in each) for name, each in found.items()}
    basis, kind = took[chosen[0].name], capture.stem.rsplit("-", 2)[0]
    for name, each in found.items():
        cpu = took[name]
        resident = max(one.resident for one in each) / 1e6
        most = MOST_RATIOS.get(name)
        goal = "" if most is None else f"of {most:.1f}"
        size = f"{resident:6.0f}{'!' if resident > MOST_MEGABYTES else ' '}"
        yield f"{kind:<20} {name:<12} {cpu:8.2f} {cpu / basis:6.2f} {goal:<7} {size}"
    ratio, goal = took["explain"] / took["its tables"], f"of {MOST_OF_ITS_TABLES}"
    yield f"{kind:<20} {'explain / its tables':<21} {ratio:6.2f} {goal}"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=30)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--captures", default=",".join(CAPTURES))
    parser.add_argument("--tree", type=Path, metavar="FOLDER", help="a checkout, instead of this one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kdissect-facts-") as folder:
        tree = compiled_copy(Path(folder)) if given.tree is None else given.tree.resolve()
        sys.stdout.write(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors\n")
        sys.stdout.write("capture              program         CPU s  ratio goal        MB\n")
        for kind in given.captures.split(","):
            for line in measure(capture_of(kind, given.megabytes), programs(tree), given.runs):
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
