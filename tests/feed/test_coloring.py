"""Coloring rules: which rule each exchange matches."""

from __future__ import annotations

import pytest

from kdissect import read
from kdissect.exchange import Exchange
from kdissect.feed import frame_time as module
from kdissect.feed.batches import FeedBatch
from kdissect.feed.coloring import Coloring
from kdissect.feed.decoder import Decoded
from kdissect.feed.filtering import Shown
from kdissect.feed.frame_time import FrameTime
from kdissect.feed.index import Index
from kdissect.filter.compiled import compile_filter
from kdissect.filter.errors import FilterError
from kdissect.present.options import Options
from kdissect.settings.coloring import ColoringRule
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded, index_of, index_with, row

ERRORS = CAPTURES / "errors.pcapng"
PRODUCED = ColoringRule("produced", "api == Produce", "blue")
WITH_BODY = ColoringRule("with body", "createTopics.request.topics.name", "cyan")


class Given:
    """Exchanges of a capture, and how often one was read."""

    def __init__(self) -> None:
        self.feed: Decoded = decoded(ERRORS)
        self.index: Index = index_of(self.feed)
        self.reads = 0
        self.frame_time = FrameTime()

    def exchange(self, place: int) -> Exchange:
        self.reads += 1
        return self.feed.exchange(self.index.value("place", place), self.index.value("length", place))

    def coloring(self, *rules: ColoringRule) -> Coloring:
        shown = Shown(self.index, self.feed, Options())
        return Coloring(self.index, self.exchange, shown.compiled, rules, self.frame_time)

    def names(self, coloring: Coloring) -> list[str | None]:
        """The rule of each exchange, in the order of their numbers."""
        found = [coloring.rule_of(int(place)) for place in self.index.order()]
        return [None if rule is None else rule.name for rule in found]


def expected(*rules: ColoringRule) -> list[str | None]:
    filters = [(rule.name, compile_filter(rule.filter)) for rule in rules]
    exchanges = sorted(read(ERRORS), key=lambda each: each.number)
    return [next((name for name, chosen in filters if chosen.matches(each)), None) for each in exchanges]


def test_the_first_rule_that_matches_is_that_of_an_exchange() -> None:
    given = Given()
    rules = (PRODUCED, ColoringRule("wrong", "error", "magenta"), ColoringRule("all", "number > 0", "grey"))
    assert given.names(given.coloring(*rules)) == expected(*rules)
    assert given.reads == 0  # the columns know


@pytest.mark.parametrize("rules", [(WITH_BODY, PRODUCED), (PRODUCED, WITH_BODY)])
def test_what_the_columns_cannot_tell_the_exchange_tells_once(
    rules: tuple[ColoringRule, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SPENT_SECONDS", 3_600)
    given = Given()
    coloring = given.coloring(*rules)
    assert given.names(coloring) == expected(*rules)
    read_once = given.reads
    assert read_once > 0
    assert given.names(coloring) == expected(*rules)
    assert given.reads == read_once


def test_a_row_waits_for_the_next_frame_when_the_time_of_this_one_is_spent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = Given()
    told: list[bool] = []
    coloring = given.coloring(WITH_BODY)
    given.frame_time.when_behind = lambda: told.append(True)
    monkeypatch.setattr(module, "SPENT_SECONDS", -1)
    monkeypatch.setattr(module, "FRAME_SECONDS", 3_600)
    assert set(given.names(coloring)) == {None}
    assert told == [True]  # once for all rows that wait
    monkeypatch.setattr(module, "SPENT_SECONDS", 3_600)
    assert given.names(coloring) == expected(WITH_BODY)


def test_an_exchange_that_could_not_be_read_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SPENT_SECONDS", 3_600)
    given = Given()
    coloring, read_it = given.coloring(WITH_BODY), given.exchange

    def fails(_: int) -> Exchange:
        raise OSError("no")

    monkeypatch.setattr(coloring, "_exchange_at", fails)
    assert set(given.names(coloring)) == {None}
    monkeypatch.setattr(coloring, "_exchange_at", read_it)
    assert given.names(coloring) == expected(WITH_BODY)


def test_a_rule_that_is_added_comes_first_and_replaces_one_with_its_filter() -> None:
    given = Given()
    coloring = given.coloring(PRODUCED)
    coloring.add(ColoringRule("mine", "api == Produce", "green"))
    assert given.names(coloring) == expected(ColoringRule("mine", "api == Produce", "green"))
    coloring.add(ColoringRule("other", "api == Produce", "grey"))
    assert [rule.name for rule in coloring.rules] == ["other", "produced"]
    assert coloring.remove("api == Produce")
    assert given.names(coloring) == expected(PRODUCED)
    assert not coloring.remove("api == Produce")  # that of the configuration stays


def test_no_filter_is_no_rule() -> None:
    coloring = Given().coloring()
    with pytest.raises(FilterError):
        coloring.add(ColoringRule("x", "api ==", "green"))
    assert coloring.rules == ()


def test_rows_that_come_later_have_their_rules_too() -> None:
    index = index_with([{"api": 1, "number": 1}], ["Produce"])
    coloring = Coloring(index, lambda _: None, compile_filter, (PRODUCED,), FrameTime())
    assert coloring.rule_of(0) == PRODUCED
    index.add(FeedBatch(row(api=1, number=2) + row(api=2, number=3), ["Fetch"]))
    assert [coloring.rule_of(place) for place in range(3)] == [PRODUCED, PRODUCED, None]
