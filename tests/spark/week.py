"""A week of a cluster, night by night: ``python -m tests.spark.week [PART…] [--target KIND] [--kills N]``.

equal      in each target, ``spark batch --append`` of each night (:mod:`tests.spark.nights`) gives what one
           reading of all files gives; before night 4 the state is made one of an older release
kills      the same, with runs that are killed at random moments; the next run follows each of them
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
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kdissect.cli import main as kdissect
from kdissect.spark import views
from kdissect.spark.launch import session
from kdissect.spark.targets import target_of
from tests.spark import answers
from tests.spark.conftest import CHEAPER
from tests.spark.nights import NIGHTS, POINTS, RULE, TABLES, Week, plain
from tests.spark.test_stats import events_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = ("delta", "iceberg", "parquet")
UPGRADED = 4
"""Before this night the release changes."""
STAGES = ("start", "plan", "state", *TABLES)
"""What a run comes by, in this order."""
_AFTER_SECONDS = dict.fromkeys(TABLES, 0.5) | {"start": 6.0, "plan": 4.0, "state": 2.0}
"""How long after each of those a run is killed, at most."""


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
        return self.table(name).to_pylist()  # type: ignore[no-any-return]

    def table(self, name: str) -> pa.Table:
        """The same as Arrow has it."""
        if self.kind == "parquet":
            files = sorted((self.out / name).glob("run=*/**/*.parquet"))
            read = [pq.ParquetFile(file).read() for file in files]
            return pa.concat_tables(read, promote_options="default")
        if self.kind == "delta":
            import deltalake

            return deltalake.DeltaTable(str(self.out / name)).to_pyarrow_table()
        catalog = target_of(self.to)._known  # type: ignore[attr-defined]
        return catalog.load_table(f"{self.folder.name}.{name}").scan().to_arrow()

    def differences(self, expected: Mapping[str, Sequence[str]]) -> list[str]:
        """Rows that are lost, and rows that are there too often."""
        out = []
        for name, rows in expected.items():
            found = Counter(plain(name, self.rows(name)))
            for word, rest in (("lost", Counter(rows) - found), ("too often", found - Counter(rows))):
                out += [f"{name}: {word} {count}: {row[:200]}" for row, count in rest.items()]
        return out

    def reached(self, stage: str, number: int) -> bool:
        """Whether a run is so far, or farther."""
        if stage == "start" or (self.runs / f"run-{number}.json").exists():
            return True
        if stage == "plan":
            return (self.runs / f"plan-{number}.json").exists()
        if stage == "state":
            return any((self.runs / "state").glob(f"{number}/*.state"))
        folders = {
            "parquet": (f"out/_staged/{stage}", f"out/{stage}/run={number}"),
            "delta": (f"out/{stage}/run={number}",),
            "iceberg": (f"../lake/{self.folder.name}*/{stage}/data/{number}",),
        }
        return any(list(self.folder.glob(f"{folder}/_SUCCESS")) for folder in folders[self.kind])

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


def killed(here: Place, number: int, stage: str, seconds: float) -> str:
    """A night's run as a process group of its own, which is killed; gives how far it was.

    :param stage: ``start``, when the session is there; ``plan``; ``state``; or the table that is written.
    :param seconds: how long after that it is killed.
    """
    command = [sys.executable, "-m", "tests.spark.week", "--child", json.dumps(here.arguments)]
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    while process.poll() is None and not here.reached(stage, number):
        time.sleep(0.01)
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    word = "killed" if process.poll() is None else "was over"
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    reached = [each for each in STAGES if here.reached(each, number)]
    return f"{word} after {reached[-1]}"


def nights(here: Place, kills: int, seed: int) -> None:
    """A week in a target."""
    random = Random(seed)
    chosen = Counter(random.randrange(NIGHTS) for _ in range(kills))
    week, died = Week(here.spool), 0
    for night in week:
        if night == UPGRADED:
            here.upgrade()
        for _ in range(chosen[night]):
            stage, seconds = random.choice(STAGES), random.random()
            seconds *= _AFTER_SECONDS[stage]
            word = killed(here, night + 1, stage, seconds)
            died += word.startswith("killed")
            print(f"  {here.kind}, night {night}, {stage} + {seconds:.2f} s: {word}", flush=True)
        run(here)
    wrong = here.differences(week.expected())
    for line in wrong[:20]:
        print(f"  {line}")
    rows = sum(len(here.rows(name)) for name in TABLES)
    print(
        f"{here.kind}: {NIGHTS} nights, {len(week.paths())} files, {died} kills (seed {seed}),"
        f" {rows} rows: {'NOT EQUAL' if wrong else 'equal'}",
        flush=True,
    )
    assert not wrong


def questions(here: Place, spark: SparkSession) -> None:
    """The ten questions, of a week that is there."""
    week = Week(here.spool)
    arguments = here.arguments
    inputs = [arguments[2], "--capture-point", RULE, "--master", "local[2]", "-q"]
    assert kdissect(["spark", "stats", *inputs, "--all", "--out", str(here.out)]) == 0
    made = views(spark, here.out)  # statistics are here, also beside tables of Iceberg
    if here.kind == "iceberg":
        made += views(spark, here.to)
    # Numbers count in each capture point.
    asked = {
        question: query.replace("e.number", "e.number and r.capture_point = e.capture_point")
        for question, query in answers.questions().items()
    }
    found = {
        question: [row.asDict() for row in spark.sql(query).collect()] for question, query in asked.items()
    }
    for name in made:
        spark.catalog.dropTempView(name)
    tables = [list(week.events(point)) for point in POINTS]
    whole = [events_of(*week.paths(point)) for point in POINTS]
    answers.check(found, tables, whole)
    rows = sum(map(len, found.values()))
    print(f"{here.kind}: {len(found)} questions, {rows} rows: as kdissect stats", flush=True)


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
    wanted = given.parts or parts
    seed = Random().randrange(10**6) if given.seed is None else given.seed
    with lake() as folder:
        spark = session("local[2]", CHEAPER, os.devnull)
        for kind in given.target or KINDS:
            if "kills" in wanted:
                nights(Place(folder / f"killed_{kind}", kind), given.kills, seed)
            if "equal" in wanted or "questions" in wanted:
                here = Place(folder / f"whole_{kind}", kind)
                nights(here, 0, seed)
                if "questions" in wanted:
                    questions(here, spark)
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(each.ru_utime + each.ru_stime for each in spent)
    print(f"{seconds:.0f} s of CPU, without the JVM of this process")


if __name__ == "__main__":
    main()
