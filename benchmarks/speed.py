"""Every path over every capture, and tshark if it is installed: CPU seconds, ratios, memory.

    python -m benchmarks.speed [--megabytes 100] [--runs 5] [--captures dense,bulk-none]
                               [--paths text,records] [--tree FOLDER …] [--profile FOLDER]

Captures are made once and kept in a folder of the system's for temporary files. For each path the runs
alternate: this checkout compiled and not (or each ``--tree``, other checkouts), then tshark. The medians of
user and system time count. The time of a run on a capture without packets is its start, and is given
separately.

The first captures are multiples of real ones. tshark gets the ports of their brokers. For each capture the
table has the share of packets with Kafka in which tshark gives up, so that it does less work there.
``--tshark "chroot FOLDER tshark"`` measures another tshark, which must see the captures under the same paths:
FOLDER/tmp/kdissect-benchmarks may be the folder that /tmp/kdissect-benchmarks links to.

The last table is that of ``kdissect help speed``: tshark's time divided by that of the first program.

The Spark batch runs if Spark and Java are installed. The times of all its processes are added, and the memory
is that of the largest. :mod:`benchmarks.spark` and :mod:`benchmarks.jobs` measure several processes in
detail.

It makes a compiled copy of this checkout, so that the sources stay unchanged.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import processes
from benchmarks.traffic import REAL, lab_ports

TOP = Path(__file__).resolve().parents[1]
CACHE = Path(tempfile.gettempdir()) / "kdissect-benchmarks"
KDISSECT = ("-m", "kdissect", "read", "-q")
PATHS: dict[str, tuple[str, ...]] = {
    "packets": (str(TOP / "benchmarks" / "paths.py"), "packets"),
    "frames": (str(TOP / "benchmarks" / "paths.py"), "frames"),
    "whole": (str(TOP / "benchmarks" / "paths.py"), "whole"),
    "columns": (str(TOP / "benchmarks" / "paths.py"), "columns"),
    "index": (str(TOP / "benchmarks" / "paths.py"), "index"),
    "messages": (str(TOP / "benchmarks" / "paths.py"), "messages"),
    "text": (*KDISSECT, "-T", "text"),
    "ndjson": (*KDISSECT, "-T", "ndjson", "--records"),
    "records": (*KDISSECT, "-T", "records"),
    "parquet": (*KDISSECT, "-T", "records.parquet"),
    "stats": ("-m", "kdissect", "stats", "-z", "srt"),
    "spark": ("-m", "kdissect", "spark", "batch", "-q", "--master", "local[2]", "--table", "exchanges"),
}
"""The arguments of Python before the capture, by path."""

_MADE_PORTS = (9_092, 29_401, 29_402)
TSHARK: dict[str, tuple[tuple[str, ...], ...]] = {
    "text": (("-Y", "kafka"),),
    "ndjson": (("-T", "ek", "-J", "kafka"), ("-T", "json", "-J", "kafka")),
    "records": (("-V", "-O", "kafka"),),
    "stats": (("-q", "-z", "io,stat,0"),),
}
"""The arguments of tshark for about the same work, by path."""

KINDS = (*REAL, "dense", "bulk-none", "bulk-gzip", "bulk-snappy", "bulk-lz4", "bulk-zstd", "jumbo")
MORE_KINDS = ("connections", "metadata")
CALM = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONPATH", "KDISSECT_PURE")
"""Variables that change how Python runs. They are not passed on."""


class Run(NamedTuple):
    """One run of a program."""

    cpu: float
    """Seconds of user and system time."""
    resident: int
    """The most resident bytes."""


class Program(NamedTuple):
    """A program to measure."""

    name: str
    command: tuple[str, ...]
    variables: dict[str, str]


def run(program: Program, capture: Path) -> Run:
    """Run a program to its end, and discard its output.

    :raises RuntimeError: it fails.
    """
    if "spark" in program.command:
        with tempfile.TemporaryDirectory() as folder:
            command = [*program.command, "--out", f"{folder}/out", str(capture)]
            _, ran = processes.measure(command, program.variables)
        return Run(sum(each.cpu for each in ran.values()), max(each.peak for each in ran.values()))
    with open(os.devnull, "wb") as nowhere:
        command = [*program.command, str(capture)]
        running = subprocess.Popen(command, stdout=nowhere, stderr=nowhere, env=program.variables)
        _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {running.returncode}")
    return Run(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def capture_of(kind: str, megabytes: float) -> Path:
    """A capture of this kind, which is made if it is missing."""
    made_by = hashlib.sha256((TOP / "benchmarks/captures.py").read_bytes()).hexdigest()[:8]
    path = CACHE / f"{kind}-{megabytes:g}-{made_by}.pcap"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        part = path.with_suffix(".part")
        command = [sys.executable, "-m", "benchmarks.captures", kind, str(part), str(int(megabytes * 1e6))]
        subprocess.run(command, cwd=TOP, check=True)  # in a separate process, so that this one stays small
        part.rename(path)
    return path


def compiled_copy(folder: Path) -> Path:
    """A copy of this checkout with compiled leaves."""
    for name in ("kdissect", "benchmarks"):
        shutil.copytree(TOP / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    subprocess.run([sys.executable, str(TOP / ".build/compile.py"), str(folder)], cwd=TOP, check=True)
    return folder


def programs(
    path: str, trees: dict[str, Path], tshark: tuple[str, ...], ports: Sequence[int]
) -> Iterator[Program]:
    """The programs to measure on a path."""
    calm = {name: value for name, value in os.environ.items() if name not in CALM}
    for name, tree in trees.items():
        variables = calm | {"PYTHONPATH": str(tree)}
        has_jobs = {"read", "stats"} & {*PATHS[path]} and _has_jobs(tree)
        one_job = ("--jobs", "1") if has_jobs else ()
        yield Program(name, (sys.executable, "-P", *PATHS[path], *one_job), variables)
    if shutil.which(tshark[0]):
        for options in TSHARK.get(path, ()):
            command = (*tshark, "-n", *_decode_as(ports), *options, "-r")
            yield Program(f"tshark {' '.join(options)}", command, calm)


def _decode_as(ports: Sequence[int]) -> tuple[str, ...]:
    return tuple(word for port in ports for word in ("-d", f"tcp.port=={port},kafka"))


def ports_of(kind: str) -> Sequence[int]:
    """The ports of the brokers of a capture."""
    return lab_ports(kind) if kind in REAL else _MADE_PORTS


def tshark_version(tshark: tuple[str, ...]) -> str:
    """The version of tshark: the first line of its output."""
    run = subprocess.run([*tshark, "--version"], capture_output=True, text=True, check=True)
    return run.stdout.partition("\n")[0]


def given_up(tshark: tuple[str, ...], capture: Path, ports: Sequence[int]) -> float:
    """The share of a capture's packets with Kafka in which tshark gives up inside a message."""
    command = [*tshark, "-n", *_decode_as(ports), "-Y", "kafka", "-T", "fields", "-e", "_ws.malformed"]
    run = subprocess.run([*command, "-r", str(capture)], capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    return sum(line != "" for line in lines) / max(len(lines), 1)


def _has_jobs(tree: Path) -> bool:
    """Whether a checkout, which may be an older one, has the option for a single process."""
    return (tree / "kdissect/cli/jobs.py").exists()


class Figure(NamedTuple):
    """The figures of one program on one path over one capture."""

    name: str
    cpu: float
    """Seconds without the start; the median."""
    resident: int
    """The most resident bytes."""


def measure(path: str, capture: Path, chosen: Sequence[Program], runs: int) -> list[Figure]:
    """The figures of one path over one capture. They are also printed as lines of a table."""
    empty = CACHE / "empty.pcap"
    with open(capture, "rb") as file:
        empty.write_bytes(file.read(24))  # the header of the file
    found: dict[str, list[Run]] = {}
    starts: dict[str, list[float]] = {}
    for program in chosen:
        run(program, empty)  # compiling to bytecode on first use does not count
    for _ in range(runs):
        for program in chosen:
            found.setdefault(program.name, []).append(run(program, capture))
            starts.setdefault(program.name, []).append(run(program, empty).cpu)
    gigabytes = capture.stat().st_size / 1e9
    first = statistics.median(each.cpu for each in found[chosen[0].name])
    figures = []
    for name, each in found.items():
        cpu = statistics.median(one.cpu for one in each)
        start = statistics.median(starts[name])
        resident = max(one.resident for one in each)
        sys.stdout.write(
            f"{capture.stem.rsplit('-', 2)[0]:<18} {path:<8} {cpu:8.2f} {start:6.2f} "
            f"{(cpu - start) / gigabytes:9.1f} {resident / 1e6:6.0f} {cpu / first:6.2f}  {name}\n"
        )
        sys.stdout.flush()
        figures.append(Figure(name, cpu - start, resident))
    return figures


def table(figures: dict[str, dict[str, list[Figure]]], shares: dict[str, float]) -> Iterator[str]:
    """The lines of the table of ``kdissect help speed``, in Markdown.

    :param figures: by capture and path; those of tshark come last.
    :param shares: by capture, in what share of its packets with Kafka tshark gives up.
    """
    paths = [path for path in TSHARK if any(path in each for each in figures.values())]
    yield f"| capture | {' | '.join(paths)} | memory, ours and tshark's | tshark gives up |"
    yield "|---" * (len(paths) + 3) + "|"
    for kind, by_path in figures.items():
        cells, ours, theirs = [], [0], [0]
        for path in paths:
            own, *others = by_path[path]
            rivals = [each for each in others if each.name.startswith("tshark ")]
            cells.append(" · ".join(f"{each.cpu / max(own.cpu, 0.001):.1f}" for each in rivals))
            ours.append(own.resident)
            theirs += [each.resident for each in rivals]
        memory = f"{max(ours) / 1e6:.0f}, {max(theirs) / 1e6:.0f} MB"
        yield f"| {REAL.get(kind, kind)} | {' | '.join(cells)} | {memory} | {shares[kind]:.0%} |"


def profile(path: str, capture: Path, tree: Path, folder: Path) -> None:
    """Store as text where the time goes: by Python's own profiler and, if it is installed, by ``perf``."""
    folder.mkdir(parents=True, exist_ok=True)
    variables = {**os.environ, "PYTHONPATH": str(tree)}
    into = folder / f"{capture.stem}-{path}"
    options = ["-P", "-m", "cProfile", "-s", "tottime", *PATHS[path], str(capture)]
    with open(into.with_suffix(".txt"), "wb") as file:
        subprocess.run([sys.executable, *options], env=variables, stdout=file, check=False)
    if shutil.which("perf"):
        data = into.with_suffix(".data")
        command = ["perf", "record", "-q", "-o", str(data), sys.executable, "-P", *PATHS[path], str(capture)]
        with open(os.devnull, "wb") as nowhere:
            subprocess.run(command, env=variables, stdout=nowhere, stderr=nowhere, check=False)
        with open(into.with_suffix(".perf.txt"), "wb") as file:
            report = ["perf", "report", "-i", str(data), "--stdio", "--percent-limit", "0.5"]
            subprocess.run(report, stdout=file, stderr=subprocess.DEVNULL, check=False)
        data.unlink(missing_ok=True)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--captures", default=",".join((*KINDS, *MORE_KINDS)))
    parser.add_argument("--paths", default=",".join(PATHS))
    parser.add_argument("--tshark", default="tshark", metavar="COMMAND", help="another tshark")
    parser.add_argument("--tree", action="append", type=Path, help="a checkout, instead of this one")
    parser.add_argument("--profile", type=Path, metavar="FOLDER", help="keep profiles there as text")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kdissect-speed-") as folder:
        if given.tree:
            trees = {str(tree): tree.resolve() for tree in given.tree}
        else:
            trees = {"compiled": compiled_copy(Path(folder)), "pure Python": TOP}
        sys.stdout.write(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors\n")
        sys.stdout.write("capture            path      CPU s  start  CPU s/GB    MB  ratio  program\n")
        tshark = tuple(given.tshark.split())
        has_tshark = shutil.which(tshark[0]) is not None
        if has_tshark:
            sys.stdout.write(f"{tshark_version(tshark)}\n")
        figures: dict[str, dict[str, list[Figure]]] = {}
        shares: dict[str, float] = {}
        for kind in given.captures.split(","):
            capture, ports = capture_of(kind, given.megabytes), ports_of(kind)
            figures[kind] = {}
            if has_tshark:
                share = shares[kind] = given_up(tshark, capture_of(kind, 2), ports)
                sys.stdout.write(f"{kind}: tshark gives up in {share:.1%} of its packets with Kafka\n")
            for path in given.paths.split(","):
                if path == "spark" and not (importlib.util.find_spec("pyspark") and shutil.which("java")):
                    continue
                chosen = list(programs(path, trees, tshark, ports))
                figures[kind][path] = measure(path, capture, chosen, given.runs)
                if given.profile is not None:
                    profile(path, capture, next(iter(trees.values())), given.profile)
        if has_tshark:
            sys.stdout.writelines(f"{line}\n" for line in table(figures, shares))
    return 0


if __name__ == "__main__":
    sys.exit(main())
