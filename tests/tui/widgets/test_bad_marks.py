"""Marks beside the scroll bar of the exchanges."""

from __future__ import annotations

import asyncio

from textual.pilot import Pilot

from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.widgets.bad_marks import PARTS, SIGN
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, screen_text

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
