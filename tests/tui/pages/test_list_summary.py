"""Figures of what the list of exchanges shows."""

from __future__ import annotations

from textual.pilot import Pilot

from kdissect import read
from kdissect.analysis.waits import split
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage
from tests.tui.pages.test_exchanges import ERRORS, with_page
from tests.tui.snapshots import screen_text, shown_after


def test_long_polls_are_not_in_the_times_that_brokers_worked() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        app.filter_by("api == Fetch and latency > 100ms")
        text = await shown_after(pilot)
        assert "shown" in text
        assert "work p99" not in text

    with_page(step, width=200)


def test_figures_are_those_of_what_is_shown() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        known = [split(each).broker_ns for each in read(ERRORS)]
        worked = sorted(ns for ns in known if ns is not None)
        assert page.summary.figures.p50_ns == worked[-(-len(worked) // 2) - 1]
        assert "exchanges over time ▃·▆█▁·▂···▅▁·▁···▂·▇ 12/s" in screen_text(app)
        app.filter_by("api == CreateTopics")
        text = await shown_after(pilot)
        assert "work p99 33.3 ms  p50 4.95 ms" in text
        assert "✗ 1 of them" in text

    with_page(step, width=200)
