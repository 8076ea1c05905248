"""The screen of findings."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kdissect import explain, read
from kdissect.filter.compiled import compile_filter
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.findings import FindingsPage
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, settle

INCIDENTS = CAPTURES / "incidents"
KILLED = INCIDENTS / "member-killed.pcapng.gz"

Step = Callable[[Pilot[None]], Awaitable[None]]


def with_app(step: Step, path: Path = KILLED, width: int = 120, height: int = 40) -> None:
    """Run a step on the screens of a capture."""

    async def run() -> None:
        async with running(app_of(path), width, height) as pilot:
            await step(pilot)

    asyncio.run(run())


async def filtered(pilot: Pilot[None]) -> Kdissect:
    """The application when the filter is done, with its second stage."""
    app = pilot.app
    assert isinstance(app, Kdissect)
    for _ in range(200):
        await settle(pilot)
        if app.shown.progress is None:
            break
    return app


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
def test_the_worst_is_first_and_all_of_it_is_said_below(size: tuple[int, int]) -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await press(pilot, "9")
        lines = text.splitlines()
        cause = next(at for at, line in enumerate(lines) if "session-timeout" in line)
        assert lines[cause].startswith("critical session-timeout")
        assert lines[cause + 1].startswith("critical └ rebalance-long")
        assert "fraud-2 was removed from the group" in text
        assert "why   It sent no heartbeat" in text
        text = await press(pilot, "j")
        assert "explained by session-timeout" in text
        assert "2 findings" in text

    with_app(step, width=size[0], height=size[1])


def test_enter_leads_to_its_exchanges_and_escape_back_to_it() -> None:
    finding = explain(KILLED).findings[1]
    chosen = compile_filter(finding.filter)
    numbers = [each.number for each in read(KILLED) if chosen.matches(each)]

    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "9", "j", "enter")
        app = await filtered(pilot)
        assert app.screen is app.pages["exchanges"]
        assert sorted(app.index.column("number")[app.shown.places].tolist()) == sorted(numbers)
        text = await press(pilot, "escape")
        page = app.screen
        assert isinstance(page, FindingsPage)
        assert page.list_pane.cursor == 1
        assert "explained by session-timeout" in text
        await press(pilot, "tab", "enter")  # from its text too
        assert (await filtered(pilot)).screen is app.pages["exchanges"]

    with_app(step)


def test_a_filter_takes_no_finding_away() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, Kdissect)
        app.shown.push("api == Metadata")
        await filtered(pilot)
        text = await press(pilot, "9")
        assert "2 findings" in text
        assert "of all, not of what the filter shows" in text

    with_app(step)


def test_with_nothing_found_it_says_what_was_looked_at() -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await press(pilot, "9")
        assert "Nothing is found." in text
        assert "348 exchanges, 5 connections with Kafka" in text
        assert "judged " in text
        assert "there is nothing to save" in await press(pilot, "enter", "w")

    with_app(step, INCIDENTS / "healthy.pcapng.gz")


def test_the_table_is_saved_in_the_columns_of_explain(tmp_path: Path) -> None:
    path = tmp_path / "findings.ndjson"

    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "9", "w")
        pilot.app.screen.query_one(Input).value = str(path)
        assert "2 rows" in await press(pilot, "enter")

    with_app(step)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["finding"] for row in rows] == ["session-timeout", "rebalance-long"]
    assert rows[1]["because"] == rows[0]["key"]
