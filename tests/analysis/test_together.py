"""Statistics that are fed together share what they are views of."""

from __future__ import annotations

import pickle

import pytest

from kdissect.analysis.catalogue import statistic
from kdissect.analysis.offers import Offers
from kdissect.analysis.together import Together
from kdissect.exchange import Exchange
from tests.analysis.folds import SPEC, events_of, fold, made

CASE = "java43-groups"


def together() -> Together:
    return Together(statistic(text)[1] for text in SPEC)


def test_rows_are_those_of_each_alone() -> None:
    counted = together()
    for event in events_of(CASE):
        counted.feed(event)
    for text, each in zip(SPEC, counted.statistics, strict=True):
        assert each.result() == fold(text, events_of(CASE)).result(), text


@pytest.mark.parametrize("at", [0, 100, 300])
def test_parts_that_were_sent_from_elsewhere_are_merged_once(at: int) -> None:
    first, second = together(), together()
    for number, event in enumerate(events_of(CASE)):
        (first if number < at else second).feed(event)
    first.merge(pickle.loads(pickle.dumps(second)))
    for text, each in zip(SPEC, first.statistics, strict=True):
        assert each.result() == fold(text, events_of(CASE)).result(), text


def test_views_of_one_fold_are_fed_once() -> None:
    groups, members = (statistic(name)[1] for name in ("groups", "members"))
    counted = Together((groups, members))
    for event in events_of(CASE):
        counted.feed(event)
    (row,) = (each for each in groups.result() if each["group"] == "java43-groups-coop")
    (alone,) = (each for each in fold("groups", events_of(CASE)).result() if each["group"] == row["group"])
    assert row["heartbeats"] == alone["heartbeats"] > 0


class Noted(Offers):
    """Notes what comes to it."""

    def __init__(self) -> None:
        super().__init__()
        self.came: list[Exchange] = []

    def _exchange(self, exchange: Exchange) -> None:
        self.came.append(exchange)


def test_exchanges_come_to_those_that_take_in_their_api() -> None:
    """Those of which something is missing come to all: it may be lost of any API."""
    noted = Noted()
    counted = Together((noted,))
    exchanges = [each for each in events_of(CASE) if isinstance(each, Exchange) and each.missing is None]
    lost = made("Heartbeat", 0, {"groupId": "g", "generationId": 1, "memberId": "m"}, None)
    lost.missing = "not captured"
    for each in (*exchanges, lost):
        counted.feed(each)
    assert noted.came == [*(each for each in exchanges if each.api == "ApiVersions"), lost]
