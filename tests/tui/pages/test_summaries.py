"""Figures of what the list of exchanges shows, and marks beside its scroll bar."""

from __future__ import annotations

import asyncio

from textual.pilot import Pilot

from kdissect import read
from kdissect.analysis.waits import split
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.pages.summaries import PARTS, SIGN
from tests.cli.run import CAPTURES
from tests.tui.pages.test_exchanges import ERRORS, with_page
from tests.tui.snapshots import app_of, press, running, screen_text, shown_after

LONG = CAPTURES / "incidents" / "leader-killed.pcapng.gz"


def marked(pilot: Pilot[None]) -> list[int]:
    """The lines of the list with a mark beside it."""
    app = pilot.app
    assert isinstance(app, Kdissect)
    page = app.screen
    assert isinstance(page, ExchangesPage)
    region = page.list_pane.region
    lines = screen_text(app).splitlines()[region.y : region.bottom]
    return [at for at, line in enumerate(lines) if SIGN in line[region.right - 2 : region.right]]


def test_they_stand_where_the_errors_are_in_the_whole_list() -> None:
    async def run() -> None:
        async with running(app_of(LONG)) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            page = app.pages["exchanges"]
            assert isinstance(page, ExchangesPage)
            bad = app.index.is_bad()[page.rows.view].nonzero()[0].tolist()
            assert bad
            height, count = page.list_pane.region.height, len(page.rows)
            wanted = {(at * PARTS // count) * height // PARTS for at in bad}
            assert marked(pilot) == sorted(wanted)
            await press(pilot, "S")
            turned = {((count - 1 - at) * PARTS // count) * height // PARTS for at in bad}
            assert marked(pilot) == sorted(turned)

    asyncio.run(run())


def test_a_list_that_is_whole_on_the_screen_has_none() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng"), 120, 40) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            app.filter_by("number in {4..6}")
            await press(pilot)
            assert marked(pilot) == []

    asyncio.run(run())


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
