"""Fuzz where bytes of others come in, guided by coverage, from kept corpora.

    pip install -e '.[fuzz]'
    python -m tests.fuzz --seconds 60                      # each of the targets, two at a time
    python -m tests.fuzz --runs 1000000 --keep records     # the long form: corpus and count of runs are kept

``--seed 1`` tries the same inputs in the same order each time, as CI does: two runs on one commit then agree.
``--keep`` adds what brought new coverage to ``corpus/TARGET.tar.xz`` and the runs to ``runs.tsv``. An input
that fails is written to ``failed/``; mended, it goes to ``found/TARGET/``, which the tests read.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import lzma
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.targets import SLOWEST_S, TARGETS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CORPORA = HERE / "corpus"
FAILED = HERE / "failed"
RUNS = HERE / "runs.tsv"
MOST_MIB = 512
LARGEST_KEPT = 8_192
"""Bytes of an input that is kept."""
HANGS_S = 300
"""Seconds by the clock after which an input hangs. What it is held to is CPU time: machines stand still."""
AT_A_TIME = 2
FEWEST_EDGES = 100
"""That any input comes through. With fewer, inputs stay empty, and a million runs a minute prove nothing."""


class Ran(NamedTuple):
    """What a target's fuzzing came to."""

    target: str
    runs: int
    seconds: float
    coverage: int
    corpus: int
    peak_mib: int
    failed: list[str]
    """The inputs that failed."""
    said: str
    """The end of what libFuzzer said."""


def packed(inputs: list[bytes]) -> bytes:
    """A corpus as it is kept: the same for the same inputs."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for data in sorted(set(inputs)):
            member = tarfile.TarInfo(sha256(data).hexdigest()[:16])
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return lzma.compress(out.getvalue(), preset=9)


def kept(target: str) -> list[bytes]:
    """The inputs that are kept for a target."""
    path = CORPORA / f"{target}.tar.xz"
    if not path.exists():
        return []
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress(path.read_bytes()))) as archive:
        return [file.read() for member in archive if (file := archive.extractfile(member)) is not None]


def fuzz(target: str, seconds: int, runs: int, keep: bool, seed: int) -> Ran:
    """Fuzz one target in a process of its own. A seed of 0 is another one each time."""
    with tempfile.TemporaryDirectory() as folder:
        corpus, artifacts = Path(folder, "corpus"), Path(folder, "artifacts")
        corpus.mkdir()
        artifacts.mkdir()
        for data in kept(target) or TARGETS[target].seeds():
            (corpus / sha256(data).hexdigest()[:16]).write_bytes(data)
        limits = [f"-max_total_time={seconds}"] if seconds else []
        limits += [f"-runs={runs}"] if runs else []
        limits += [f"-max_len={TARGETS[target].largest}", f"-seed={seed}"]
        begin = time.monotonic()
        said = _libfuzzer(
            target, *limits, f"-rss_limit_mb={MOST_MIB}",
            f"-timeout={HANGS_S}", f"-report_slow_units={HANGS_S}",
            "-print_final_stats=1", f"-artifact_prefix={artifacts}/", str(corpus),
        )  # fmt: skip
        spent = time.monotonic() - begin
        failed = []
        for path in sorted(artifacts.iterdir()):
            FAILED.mkdir(exist_ok=True)
            there = FAILED / f"{target}-{path.name}"
            there.write_bytes(path.read_bytes())
            failed.append(str(there.relative_to(ROOT)))
        if keep:
            _keep(target, corpus, Path(folder, "merged"))
        coverage = [int(number) for number in re.findall(r"cov: (\d+)", said)]
        return Ran(
            target,
            _stat(said, "number_of_executed_units"),
            spent,
            max(coverage, default=0),
            len(list(corpus.iterdir())),
            _stat(said, "peak_rss_mb"),
            failed,
            said[-2_000:],
        )


def _libfuzzer(target: str, *options: str) -> str:
    guides = ",".join(TARGETS[target].guides)
    command = [sys.executable, "-m", "tests.fuzz.one", target, guides, *options]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout.decode("utf-8", "replace")


def _stat(said: str, name: str) -> int:
    found = re.search(rf"stat::{name}:\s+(\d+)", said)
    return int(found[1]) if found else 0


def _keep(target: str, corpus: Path, merged: Path) -> None:
    """Keep the fewest inputs with the coverage of all."""
    merged.mkdir()
    largest = min(LARGEST_KEPT, TARGETS[target].largest)
    _libfuzzer(target, "-merge=1", f"-max_len={largest}", str(merged), str(corpus))
    inputs = [path.read_bytes() for path in merged.iterdir()]
    if inputs:
        CORPORA.mkdir(exist_ok=True)
        (CORPORA / f"{target}.tar.xz").write_bytes(packed(inputs))


def count(ran: list[Ran]) -> dict[str, tuple[int, int]]:
    """Add runs and seconds to the table; gives them all."""
    table: dict[str, tuple[int, int]] = {}
    if RUNS.exists():
        for line in RUNS.read_text(encoding="utf-8").splitlines()[1:]:
            target, *numbers = line.split("\t")
            table[target] = (int(numbers[0]), int(numbers[1]))
    for each in ran:
        runs, seconds = table.get(each.target, (0, 0))
        table[each.target] = (runs + each.runs, seconds + round(each.seconds))
    lines = ["target\truns\tseconds", *(f"{name}\t{runs}\t{s}" for name, (runs, s) in sorted(table.items()))]
    RUNS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return table


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=0, help="of each target")
    parser.add_argument("--runs", type=int, default=0, help="of each target")
    parser.add_argument(
        "--seed", type=int, default=0, help="try the same inputs as another run with this number"
    )
    parser.add_argument("--keep", action="store_true", help="keep what brought new coverage, and count runs")
    options = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        sys.stderr.write("atheris is not installed: pip install -e '.[fuzz]'\n")
        return 2
    if not options.seconds and not options.runs:
        options.seconds = 60
    names = options.targets or list(TARGETS)
    limits = {"seconds": options.seconds, "runs": options.runs, "keep": options.keep, "seed": options.seed}
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        ran = list(pool.map(partial(fuzz, **limits), names))
    for each in ran:
        sys.stdout.write(
            f"{each.target:9} {each.runs:>9,} runs in {each.seconds:4.0f} s, {each.coverage:>6,} edges, "
            f"{each.corpus:>5,} inputs, {each.peak_mib:>4} MiB, {len(each.failed)} failed\n"
        )
        if each.failed or not each.runs:
            sys.stdout.write(f"{each.said}\n{' '.join(each.failed)}\n")
    if options.keep:
        for name, (runs, seconds) in count(ran).items():
            sys.stdout.write(f"{name:9} {runs:>11,} runs in all, {seconds:,} s\n")
    sys.stdout.write(f"0 uncaught, none over {SLOWEST_S:.0f} s, none over {MOST_MIB} MiB is what has to be\n")
    blind = [each.target for each in ran if each.coverage < FEWEST_EDGES]
    if blind:
        sys.stdout.write(f"nothing guided {', '.join(blind)}: kdissect was imported without instruments\n")
    return 1 if blind or any(each.failed or not each.runs for each in ran) else 0


if __name__ == "__main__":
    sys.exit(main())
