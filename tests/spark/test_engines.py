"""One fold, every engine: whoever feeds and merges the statistics, the rows are those of one process."""

from __future__ import annotations

import io
import pickle
import random
from array import array
from collections.abc import Callable, Iterable

import pytest

from kdissect.analysis.catalogue import statistic
from kdissect.analysis.fold import Row
from kdissect.analysis.together import Together
from kdissect.dissect import Event
from kdissect.feed.counting import AskTables, Begin, Counting, Grown
from kdissect.limits import DEFAULTS
from kdissect.present.statistics import STATISTICS as TABLES
from kdissect.present.writers import table_writer
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded, index_of
from tests.jobs.same import said, small_batches
from tests.spark.test_stats import ALL, CASES, events_of

CAPTURE = CAPTURES / CASES[0]
ASKED = [word for text in ALL for word in ("-z", text)]


def line_by_line(tables: Iterable[tuple[str, list[Row]]]) -> list[str]:
    """The rows of some statistics in NDJSON, as ``stats`` writes several."""
    out = []
    for text, rows in tables:
        name, lines = text.partition(",")[0], io.BytesIO()
        writer = table_writer("ndjson", TABLES[name], lines)
        for row in rows:
            writer.write(row)
        writer.close()
        out += [f'{{"table":"{name}",{line[1:]}' for line in lines.getvalue().decode().splitlines()]
    return out


def of(events: Iterable[Event]) -> Together:
    """Every statistic of some events."""
    together = Together(statistic(text, DEFAULTS)[1] for text in ALL)
    for event in events:
        together.feed(event)
    return together


def lines_of(together: Together) -> list[str]:
    return line_by_line((text, fold.result()) for text, fold in zip(ALL, together.statistics, strict=True))


def one_process() -> list[str]:
    return lines_of(of(events_of(CAPTURE)))


def parts() -> list[str]:
    """Split at any events into any number of parts, each sent on as bytes, merged in order."""
    events = events_of(CAPTURE)
    dice = random.Random(19)
    ends = [*sorted(dice.choices(range(len(events)), k=dice.randrange(2, 12))), len(events)]
    whole = of(())
    for begin, end in zip([0, *ends], ends, strict=False):
        whole.merge(pickle.loads(pickle.dumps(of(events[begin:end]))))
    return lines_of(whole)


def two_jobs() -> list[str]:
    with small_batches(7):
        ran = said("stats", CAPTURE, *ASKED, "-T", "ndjson", "--jobs", 2)
    assert ran.code == 0
    return ran.out.decode().splitlines()


def live_replay() -> list[str]:
    """What the screens show at the end, where exchanges come a few at a time and figures stand meanwhile."""
    feed = decoded(CAPTURE)
    index = index_of(feed)
    counting = Counting(feed.descriptor)
    counting.take(Begin(1))
    counting.take(AskTables(ALL))
    places, lengths = (index.column(name).tolist() for name in ("place", "length"))
    tables: dict[str, list[Row]] = {}
    for at in range(0, len(places), 40):
        is_last = at + 40 >= len(places)
        connections = tuple(index.connections.values()) if is_last else ()
        grown = array("q", places[at : at + 40]).tobytes(), array("I", lengths[at : at + 40]).tobytes()
        counting.take(Grown(*grown, connections, tuple(index.names)))
        while counting.wait is not None if is_last else counting.wait == 0:
            for piece in counting.step():
                if piece.number == 0:
                    tables.clear()
                tables.setdefault(piece.table, []).extend(piece.rows)
    feed.close()
    return line_by_line((text, tables[text]) for text in ALL)


def spark_tasks() -> list[str]:
    tasks = ("--tasks", 7, "--master", "local[2]", "-q")
    ran = said("spark", "stats", CAPTURE, *ASKED, "-T", "ndjson", *tasks)
    assert ran.code == 0
    return ran.out.decode().splitlines()


@pytest.mark.parametrize("engine", [parts, two_jobs, live_replay, spark_tasks])
def test_every_statistic_is_that_of_one_process(
    engine: Callable[[], list[str]], request: pytest.FixtureRequest
) -> None:
    if engine is spark_tasks:
        request.getfixturevalue("spark")  # skips where there is no Java
    expected, found = one_process(), engine()
    assert len(expected) > 100
    assert found == expected
