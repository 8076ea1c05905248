"""What is sent to be counted, and what comes of it."""

from __future__ import annotations

import time
from typing import Any
from unittest.mock import Mock

import pytest

from kdissect.analysis.catalogue import statistic
from kdissect.capture.files import read_packets
from kdissect.feed import statistics as module
from kdissect.feed.batches import FeedBatch
from kdissect.feed.counting import Grown
from kdissect.feed.filtering import Shown
from kdissect.feed.index import Index
from kdissect.feed.statistics import Statistics
from kdissect.feed.storage import PackedConnections
from kdissect.present.options import Options
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded
from tests.lab import dissected

KIP848 = CAPTURES / "consumer-group-kip848.pcapng"
ASKED = ("topics", "connections")


class Screens:
    """The index that fills, the filter, the statistics."""

    def __init__(self) -> None:
        self.feed = decoded(KIP848)
        self.batches = [each for each in self.feed.poll() if isinstance(each, FeedBatch)]
        self.index = Index()
        self.shown = Shown(self.index, self.feed, Options())
        self.statistics = Statistics(self.index, self.feed, self.shown)

    def fill(self) -> None:
        for batch in self.batches:
            self.index.add(batch)
        self.shown.index_grew()

    def tables(self, asked: tuple[str, ...] = ASKED) -> Any:
        until = time.monotonic() + 20
        while self.statistics.is_busy and time.monotonic() < until:
            self.statistics.poll()
            time.sleep(0.001)
        found = self.statistics.result(asked)
        assert found is not None
        return found.tables


def expected(only_connection: int | None = None, asked: tuple[str, ...] = ASKED) -> Any:
    found = dissected(read_packets([KIP848]))
    out = {}
    for text in asked:
        _, fold = statistic(text)
        for exchange in found.exchanges:
            if only_connection in (None, exchange.connection):
                fold.feed(exchange)
            else:
                fold.see(exchange)
        for connection in found.connections:
            if only_connection in (None, connection.connection):
                fold.feed(connection)
        out[text] = fold.result()
    return out


def test_everything_is_counted_also_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_AT_ONCE", 50)
    screens = Screens()
    screens.statistics.request(ASKED)
    screens.fill()
    assert screens.tables() == expected()
    screens.feed.close()


def test_a_filter_begins_anew_and_so_does_its_end() -> None:
    screens = Screens()
    screens.fill()
    screens.statistics.request(ASKED)
    assert screens.tables() == expected()
    screens.shown.push("connection == 6")
    screens.statistics.sync()
    assert screens.tables() == expected(only_connection=6)
    screens.shown.pop()
    screens.statistics.sync()
    assert screens.tables() == expected()
    screens.feed.close()


def test_exchanges_that_a_filter_hides_are_seen() -> None:
    asked = ("rebalances", "lag", "srt")
    screens = Screens()
    screens.fill()
    screens.shown.push("connection == 6")
    screens.statistics.request(asked)
    assert screens.tables(asked) == expected(6, asked)
    screens.feed.close()


def test_nothing_is_read_where_a_filter_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdissect.feed.counting.read_exchange", Mock(side_effect=AssertionError))
    screens = Screens()
    screens.fill()
    screens.shown.push("connection == 1000")
    screens.statistics.request(ASKED)
    assert screens.tables() == {"topics": [], "connections": []}
    screens.feed.close()


def test_names_that_other_exchanges_tell_name_the_topics_of_what_is_shown() -> None:
    screens = Screens()
    screens.fill()
    screens.shown.push("api == Fetch and connection == 6")
    screens.statistics.request(ASKED)
    assert {row["topic"] for row in screens.tables()["topics"]} == {"java43-kip848"}
    screens.feed.close()


def test_connections_go_out_as_they_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """To unpack those of a large capture takes ten times as long as a key may."""
    screens = Screens()
    screens.fill()
    screens.statistics.request(())
    screens.statistics._counter = counter = Mock()
    for name in ("packing", "storage"):
        monkeypatch.setattr(f"kdissect.feed.{name}.unpack", Mock(side_effect=AssertionError))
    monkeypatch.setattr(PackedConnections, "row", Mock(side_effect=AssertionError))
    screens.statistics.request(ASKED)
    monkeypatch.undo()
    (grown,) = (call.args[0] for call in counter.send.call_args_list if isinstance(call.args[0], Grown))
    rows = [row for piece in grown.connections for row in piece.rows()]
    assert rows == list(screens.index.connections.values())
    screens.feed.close()


def test_nothing_is_sent_where_nothing_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    screens = Screens()
    screens.fill()
    screens.statistics.request(ASKED)
    screens.tables()
    assert screens.statistics._counter is not None
    sent: list[object] = []
    monkeypatch.setattr(screens.statistics._counter, "send", sent.append)
    screens.statistics.sync()
    assert screens.statistics.poll() is False
    assert sent == []
    screens.feed.close()


def test_a_screen_that_is_left_late_does_not_stop_the_one_that_is_shown() -> None:
    screens = Screens()
    screens.fill()
    screens.statistics.request(("srt",))
    screens.statistics.request(ASKED)
    screens.statistics.release(("srt",))
    assert screens.tables() == expected()
    screens.statistics.release(ASKED)
    assert not screens.statistics.is_busy
    screens.fill()
    assert not screens.statistics.is_busy
    screens.feed.close()


def test_nothing_starts_before_something_is_asked_for() -> None:
    screens = Screens()
    screens.fill()
    screens.statistics.request(())
    screens.statistics.sync()
    assert screens.statistics._counter is None
    assert not screens.statistics.is_busy
    screens.feed.close()
