"""A week of a cluster, night by night: ``python -m tests.spark.week [PART…] [--target KIND] [--kills N]``.

equal      in each target, ``spark batch --append`` of each night (:mod:`tests.spark.nights`) gives what one
           reading of all files gives; before night 4 the state is made one of an older release
kills      the same, with runs that are killed at random moments; the next run follows each
questions  the ten questions of ``kdissect help spark``, asked of the tables, have the answers of
           ``kdissect stats``

``--seed N`` repeats a failure: N was printed. Moments are times, so a repeat may hit another line.
"""

# ruff: noqa: T201

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from kdissect.cli import main as kdissect
from kdissect.spark.launch import session
from kdissect.spark.targets import target_of
from tests.spark.conftest import CHEAPER
from tests.spark.nights import NIGHTS, RULE, TABLES, Week, plain

KINDS = ("delta", "iceberg", "parquet")
UPGRADED = 4
"""Before this night the release changes."""
_FIRST_SECONDS = 8.0
"""How long a night takes, before one was measured."""
_SLOWER = 2.0
"""How much longer than ours the first run of a process takes."""


class Place(NamedTuple):
    """Where a week's captures and tables are."""

    folder: Path
    kind: str

    @property
    def spool(self) -> Path:
        """The captures."""
        return self.folder / "in"

    @property
    def out(self) -> Path:
        """The tables, of Parquet and Delta."""
        return self.folder / "out"

    @property
    def runs(self) -> Path:
        """What is kept of the runs."""
        return self.folder / "runs"

    @property
    def to(self) -> str:
        """What ``--to`` is given."""
        return f"iceberg:lake.{self.folder.name}" if self.kind == "iceberg" else f"{self.kind}:{self.out}"

    @property
    def arguments(self) -> list[str]:
        """The command of a night."""
        tables = [word for name in TABLES for word in ("--table", name)]
        where = [str(self.spool / "broker-*" / "*"), "--to", self.to, "--append", "--runs", str(self.runs)]
        more = ["--capture-point", RULE, "--partition-by", "date", "--master", "local[2]", "-q"]
        return ["spark", "batch", *where, *tables, *more]

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table."""
        import pyarrow.parquet as pq

        if self.kind == "parquet":
            files = sorted((self.out / name).glob("run=*/**/*.parquet"))
            return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
        if self.kind == "delta":
            import deltalake

            return deltalake.DeltaTable(str(self.out / name)).to_pyarrow_table().to_pylist()  # type: ignore[no-any-return]
        catalog = target_of(self.to)._known  # type: ignore[attr-defined]
        return catalog.load_table(f"{self.folder.name}.{name}").scan().to_arrow().to_pylist()  # type: ignore[no-any-return]

    def differences(self, expected: Mapping[str, Sequence[str]]) -> list[str]:
        """Rows that are lost, and rows that are there too often."""
        out = []
        for name, rows in expected.items():
            found = Counter(plain(name, self.rows(name)))
            for word, rest in (("lost", Counter(rows) - found), ("too often", found - Counter(rows))):
                out += [f"{name}: {word} {count}: {row[:200]}" for row, count in rest.items()]
        return out

    def upgrade(self) -> None:
        """Make the state one of another release, which this one cannot load."""
        for state in (self.runs / "state").glob("*/*.state"):
            head = json.loads(state.read_bytes().partition(b"\n")[0])
            state.write_bytes(json.dumps({**head, "kdissect": "0.0.1"}).encode() + b"\nnot for this one")


@contextmanager
def lake() -> Iterator[Path]:
    """A folder for weeks, with a catalog of Iceberg. pyiceberg reads its configuration once in a process."""
    with tempfile.TemporaryDirectory(prefix="kdissect-week-") as name:
        usual = "PYICEBERG_CATALOG__LAKE__"
        os.environ[f"{usual}TYPE"] = "sql"
        os.environ[f"{usual}URI"] = f"sqlite:///{name}/catalog.db"
        os.environ[f"{usual}WAREHOUSE"] = f"file://{name}/lake"
        yield Path(name)


def run(here: Place) -> None:
    """A night's run that comes to its end."""
    code = kdissect(here.arguments)
    assert code in (0, 3), f"exit code {code}"


class Killed(NamedTuple):
    """What became of a run that was to be killed."""

    was_over: bool
    state: str
    """How far it was."""


def killed(here: Place, is_time: Any) -> Killed:
    """A night's run as a process group of its own, which is killed when it is time.

    :param is_time: tells, given how many seconds the session has been there.
    """
    command = [sys.executable, "-m", "tests.spark.week", "--child", json.dumps(here.arguments)]
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    begun = time.monotonic()
    while not is_time(time.monotonic() - begun) and process.poll() is None:
        time.sleep(0.005)
    was_over = process.poll() is not None
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    return Killed(was_over, _how_far(here))


def _how_far(here: Place) -> str:
    plans, ended = (len(list(here.runs.glob(f"{word}-*.json"))) for word in ("plan", "run"))
    if plans == ended:
        return f"between runs {ended} and {ended + 1}"
    states = len(list((here.runs / "state").glob(f"{plans}/*.state")))
    tables = [] if here.kind == "iceberg" else [name for name in TABLES if _has(here, name, plans)]
    return f"in run {plans}: {states} states, tables: {' '.join(tables) or '-'}"


def _has(here: Place, name: str, number: int) -> bool:
    folder = here.out / name
    if here.kind == "parquet":
        return (folder / f"run={number}").exists()
    return any(f'"version":{number}' in log.read_text() for log in (folder / "_delta_log").glob("*.json"))


def nights(here: Place, kills: int, seed: int) -> None:
    """A week in a target."""
    random = Random(seed)
    chosen = Counter(random.randrange(NIGHTS) for _ in range(kills))
    week, took = Week(here.spool), _FIRST_SECONDS
    for night in week:
        if night == UPGRADED:
            here.upgrade()
        for _ in range(chosen[night]):
            moment = random.uniform(0, _SLOWER * took)
            told = killed(here, lambda seconds, moment=moment: seconds >= moment)
            word = "was over," if told.was_over else "killed"
            print(f"  {here.kind}, night {night}, {moment:.2f} s: {word} {told.state}", flush=True)
        begun = time.monotonic()
        run(here)
        took = min(took, time.monotonic() - begun)
    wrong = here.differences(week.expected())
    for line in wrong[:20]:
        print(f"  {line}")
    rows = sum(len(here.rows(name)) for name in TABLES)
    print(
        f"{here.kind}: {NIGHTS} nights, {len(week.paths())} files, {kills} kills (seed {seed}),"
        f" {rows} rows: {'NOT EQUAL' if wrong else 'equal'}",
        flush=True,
    )
    assert not wrong


def child(arguments: list[str]) -> None:
    """The process that is killed."""
    session("local[2]", CHEAPER, os.devnull)
    print("ready", flush=True)
    kdissect(arguments)


def main() -> None:
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--target", action="append", choices=KINDS)
    parser.add_argument("--kills", type=int, default=20, metavar="N", help="of each target")
    parser.add_argument("--seed", type=int, metavar="N")
    parser.add_argument("--child", help="a night's arguments, as JSON")
    given = parser.parse_args()
    if given.child is not None:
        child(json.loads(given.child))
        return
    parts = ("equal", "kills", "questions")
    if unknown := set(given.parts) - set(parts):
        parser.error(f"no part is {', '.join(unknown)}: {', '.join(parts)}")
    seed = Random().randrange(10**6) if given.seed is None else given.seed
    with lake() as folder:
        session("local[2]", CHEAPER, os.devnull)
        for part in given.parts or parts:
            for kind in given.target or KINDS:
                if part != "questions":
                    here = Place(folder / f"{part}_{kind}", kind)
                    nights(here, given.kills if part == "kills" else 0, seed)
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(each.ru_utime + each.ru_stime for each in spent)
    print(f"{seconds:.0f} s of CPU, without the JVM of this process")


if __name__ == "__main__":
    main()
