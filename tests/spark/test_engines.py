"""One fold, every engine: whoever feeds and merges the folds, the rows are those of one process."""

from __future__ import annotations

import pickle
import random
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kdissect.feed.counting
from kdissect.analysis.catalogue import FOLDS
from kdissect.analysis.fold import Row, Statistic
from kdissect.analysis.fold_set import Together
from kdissect.cli.commands.stats import command
from kdissect.cli.folding import TableFolding
from kdissect.dissect import Event
from kdissect.feed.counting import AskTables, Begin, Counting, Grown
from kdissect.insight.judge import of_captures
from kdissect.limits import DEFAULTS, Limits
from kdissect.present.columns import Table
from kdissect.present.statistics import table_of
from kdissect.source import Input, Pass
from kdissect.spark.fold_question import FoldRows
from kdissect.spark.folds import found
from kdissect.spark.settings import TableSettings
from tests.analysis.folds import told_apart
from tests.feed.feeds import decoded, index_of
from tests.jobs.same import small_batches
from tests.lab import DATA
from tests.spark.paused import paused
from tests.spark.same import CAPTURES
from tests.spark.test_stats import events_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = (*map(told_apart, FOLDS.values()), "traffic,topic")
"""Every fold of the registry, as it tells most apart; and one whose rows then have few exchanges each."""
OFFICIAL = DATA / "official" / "frames-3.9.2.pcap.zst"
"""It has every API."""


def statistic(text: str, limits: Limits = DEFAULTS) -> tuple[str, Statistic]:
    """As :func:`kdissect.analysis.catalogue.statistic`, of every fold."""
    name, *how = text.split(",")
    return name, FOLDS[name].from_option(limits, tuple(how))


def every_fold(limits: Limits = DEFAULTS) -> list[Statistic]:
    return [statistic(text, limits)[1] for text in ALL]


def of(events: Iterable[Event]) -> Together:
    """What every fold says of some events."""
    out = Together(every_fold())
    for event in events:
        out.feed(event)
    return out


Found = Mapping[str, list[dict[str, Any]]]
"""Rows by what was asked for, as Arrow has them."""


def arrow_rows(made: Iterable[tuple[str, list[Row]]]) -> Found:
    return {text: rows_of(table_of(FOLDS[text.partition(",")[0]]), rows) for text, rows in made}


def rows(counted: Together) -> Found:
    return arrow_rows((text, fold.result()) for text, fold in zip(ALL, counted.statistics, strict=True))


def one_process(capture: Path, embedded: bool = False) -> Found:
    reading = Pass(Input((str(capture),), embedded=embedded))
    return rows(of(chain.from_iterable(reading.events())))


def parts(capture: Path) -> Found:
    """Split at any events into any number of parts, each sent on as bytes, merged in order."""
    events = events_of(capture)
    dice = random.Random(19)
    ends = [*sorted(dice.choices(range(len(events)), k=dice.randrange(2, 12))), len(events)]
    whole = of(())
    for begin, end in zip([0, *ends], ends, strict=False):
        whole.merge(pickle.loads(pickle.dumps(of(events[begin:end]))))
    return rows(whole)


def two_jobs(capture: Path) -> Found:
    words = [str(capture), "-z", "srt", "--jobs", "2", "-q"]
    folding = TableFolding(command.make_context("stats", words).params, every_fold)
    with small_batches(7):
        folding.count()
    return rows(folding.counted)


def live_replay(capture: Path) -> Found:
    """What the screens show at the end, where exchanges come a few at a time and figures stand meanwhile."""
    feed = decoded(capture)
    index = index_of(feed)
    with pytest.MonkeyPatch.context() as every:
        every.setattr(kdissect.feed.counting, "statistic", statistic)
        counting = Counting(feed.descriptor)
        counting.take(Begin(1))
        counting.take(AskTables(ALL))
    places, lengths = (index.column(name).tolist() for name in ("place", "length"))
    tables: dict[str, list[Row]] = {}
    for at in range(0, len(places), 40):
        is_last = at + 40 >= len(places)
        connections = tuple(index.connections.packed(range(index.connections.rows))) if is_last else ()
        grown = array("q", places[at : at + 40]).tobytes(), array("I", lengths[at : at + 40]).tobytes()
        counting.take(Grown(*grown, connections, tuple(index.names)))
        while counting.wait is not None if is_last else counting.wait == 0:
            for piece in counting.step():
                if piece.number == 0:
                    tables.clear()
                tables.setdefault(piece.table, []).extend(piece.rows)
    feed.close()
    return arrow_rows((text, tables[text]) for text in ALL)


@dataclass(frozen=True)
class _EveryFold:
    """All of them as a question for Spark."""

    @property
    def tables(self) -> Sequence[Table]:
        return [table_of(FOLDS[text.partition(",")[0]]) for text in ALL]

    def new(self) -> Together:
        return Together(every_fold())

    def rows(self, whole: Together) -> Sequence[FoldRows]:
        return [FoldRows(each.result(), each.left_out) for each in whole.statistics]


def spark_tasks(spark: SparkSession, capture: Path) -> Found:
    made = found(spark, TableSettings(tasks=7), [str(capture)], _EveryFold())
    assert set(made.left_out) == {0}
    return {text: table.to_pylist() for text, table in zip(ALL, made.tables, strict=True)}


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Captures that have rows for every fold, all of them together."""
    path = tmp_path_factory.mktemp("paused") / "paused.pcap"
    path.write_bytes(paused())
    return {"damage": CAPTURES / "broker-0.9.pcap", "every API": OFFICIAL, "a broker that pauses": path}


def test_the_registry_has_every_fold_that_rules_read() -> None:
    read = {need for rule in of_captures(deep=True) for need in rule.needs}
    assert read <= set(FOLDS.values())
    assert [each.name for each in FOLDS.values()] == list(FOLDS)


@pytest.fixture(scope="module")
def expected(captures: dict[str, Path]) -> Callable[..., Found]:
    """What one process finds in a capture, found once."""
    return cache(lambda case, embedded=False: one_process(captures[case], embedded))


def test_there_is_something_to_compare_of_every_fold(
    captures: dict[str, Path], expected: Callable[..., Found]
) -> None:
    made = [expected(case) for case in captures]
    assert [text for text in ALL if not any(found[text] for found in made)] == []


@pytest.mark.parametrize("case", ["damage", "every API", "a broker that pauses"])
@pytest.mark.parametrize("engine", [parts, two_jobs, live_replay, spark_tasks])
def test_every_fold_is_that_of_one_process(
    engine: Callable[..., Found],
    case: str,
    captures: dict[str, Path],
    expected: Callable[..., Found],
    request: pytest.FixtureRequest,
) -> None:
    alone = expected(case, embedded=engine is live_replay)  # screens look into bytes
    # The session is asked for here, as it skips where there is no Java.
    session = (request.getfixturevalue("spark"),) if engine is spark_tasks else ()
    made = engine(*session, captures[case])
    for text in ALL:
        assert made[text] == alone[text], text
