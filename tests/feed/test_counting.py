from __future__ import annotations

import time
from array import array
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from kdissect.analysis.catalogue import STATISTICS, statistic
from kdissect.analysis.fold import Row
from kdissect.capture.files import read_packets
from kdissect.feed import counting
from kdissect.feed.batches import read_exchange
from kdissect.feed.counting import AskTables, Begin, CountedRows, Counting, Grown
from kdissect.feed.decoder import Decoded
from kdissect.feed.index import Index
from kdissect.limits import DEFAULTS, Limits
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded, index_of
from tests.lab import dissected

CAPTURE = CAPTURES / "errors.pcapng"
ASKED = tuple(STATISTICS)


def everything(index: Index, start: int = 0, end: int | None = None) -> Grown:
    """An order to count all there is, or the exchanges from one place to another."""
    places = array("q", index.column("place")[start:end].tolist())
    lengths = array("I", index.column("length")[start:end].tolist())
    connections = tuple(index.connections.packed(range(index.connections.rows))) if end is None else ()
    return Grown(places.tobytes(), lengths.tobytes(), connections, tuple(index.names))


def at_once(machine: Counting) -> list[CountedRows]:
    """What it gives until it has nothing more to do."""
    out: list[CountedRows] = []
    while machine.wait == 0:
        out += machine.step()
    return out


def to_the_end(machine: Counting) -> list[CountedRows]:
    """What it gives until all is counted. On a slow machine it gives a part first, and more after a while."""
    out: list[CountedRows] = []
    while (seconds := machine.wait) is not None:
        time.sleep(seconds)
        out += machine.step()
    return out


def tables(pieces: Iterable[CountedRows]) -> dict[str, list[Row]]:
    """The rows of the last count that is whole: on a slow machine there are some of a part before."""
    found: dict[str, list[Row]] = {}
    for piece in pieces:
        if piece.number == 0:
            found.clear()
        found.setdefault(piece.table, []).extend(piece.rows)
    return found


def counting_of(feed: Decoded, limits: Limits = DEFAULTS) -> tuple[Counting, Index]:
    machine = Counting(feed.descriptor, limits)
    machine.take(Begin(1))
    return machine, index_of(feed)


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcap*")), ids=lambda path: path.stem)
def test_the_figures_are_those_of_the_capture_itself(path: Path) -> None:
    feed = decoded(path)
    machine, index = counting_of(feed)
    machine.take(everything(index))
    machine.take(AskTables(ASKED))
    found = tables(to_the_end(machine))
    expected = dissected(read_packets([path]))
    for text in ASKED:
        _, fold = statistic(text)
        for exchange in expected.exchanges:
            fold.feed(exchange)
        for connection in expected.connections:
            fold.feed(connection)
        assert found[text] == fold.result()
    feed.close()


def test_what_nothing_is_told_of_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exchange that does not count is read only for statistics that it tells something of others."""
    feed = decoded(CAPTURE)
    machine, index = counting_of(feed)
    order = everything(index)
    chosen = bytes(at % 10 == 3 for at in range(len(index)))
    machine.take(order._replace(chosen=chosen))
    read = Mock(side_effect=read_exchange)
    monkeypatch.setattr(counting, "read_exchange", read)
    machine.take(AskTables(("srt",)))
    found = to_the_end(machine)
    assert (found[-1].counted, found[-1].of) == (len(index), len(index))
    assert [call.args[1] for call in read.call_args_list] == index.column("place")[3::10].tolist()
    read.reset_mock()
    machine.take(AskTables(("transactions",)))
    to_the_end(machine)
    assert read.call_count == len(index)
    feed.close()


def test_what_comes_later_is_counted_on(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=1_000.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(counting, "time", clock)
    feed = decoded(CAPTURE)
    machine, index = counting_of(feed)
    machine.take(AskTables(("srt", "errors")))
    machine.take(everything(index, 0, 20))
    first = at_once(machine)
    assert first[-1].is_last
    assert (first[-1].counted, first[-1].of) == (20, 20)
    machine.take(everything(index, 20))
    assert at_once(machine) == []  # not before it is time again
    assert machine.wait is not None
    assert 0 < machine.wait <= counting.FIRST_SECONDS
    clock.now += machine.wait
    second = at_once(machine)
    assert (second[-1].counted, second[-1].of) == (len(index), len(index))
    assert sum(row["count"] for row in tables(second)["srt"]) == 52
    assert machine.wait is None
    feed.close()


def test_a_beginning_forgets() -> None:
    feed = decoded(CAPTURE)
    machine, index = counting_of(feed)
    machine.take(everything(index))
    machine.take(AskTables(("srt",)))
    at_once(machine)
    machine.take(Begin(2))
    machine.take(everything(index, 0, 5))
    found = at_once(machine)
    assert {each.serial for each in found} == {2}
    assert sum(row["count"] for row in tables(found)["srt"]) == 5
    feed.close()


def test_counts_of_other_screens_are_kept() -> None:
    feed = decoded(CAPTURE)
    machine, index = counting_of(feed)
    machine.take(everything(index))
    machine.take(AskTables(("srt",)))
    at_once(machine)
    machine.take(AskTables(()))
    assert machine.wait is None
    assert list(machine.step()) == []
    machine.take(AskTables(("srt",)))
    assert [each.counted for each in at_once(machine)] == [len(index)]
    feed.close()


def test_rows_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "PIECE_ROWS", 4)
    feed = decoded(CAPTURE)
    machine, index = counting_of(feed)
    machine.take(everything(index))
    machine.take(AskTables(("srt", "stays", "errors")))
    found = at_once(machine)
    assert [each.number for each in found] == list(range(len(found)))
    assert [each.is_last for each in found] == [False] * (len(found) - 1) + [True]
    assert max(len(each.rows) for each in found) == 4
    feed.close()


def test_memory_is_bounded_and_what_is_left_out_is_told() -> None:
    feed = decoded(CAPTURE)
    machine, index = counting_of(feed, DEFAULTS._replace(rows=3))
    machine.take(everything(index))
    machine.take(AskTables(("srt", "errors")))
    for piece in at_once(machine):
        assert len(piece.rows) == 3
        assert piece.left_out > 0
    feed.close()
