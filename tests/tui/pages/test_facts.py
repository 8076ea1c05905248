"""The screen of facts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kdissect.analysis.catalogue import STATISTICS
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.facts import FactsPage
from kdissect.tui.pages.statistics import StatisticsPage
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, settle

TRANSACTIONS = CAPTURES / "transactions-kafka39.pcapng"

Step = Callable[[Pilot[None]], Awaitable[None]]


def with_app(step: Step, width: int = 120, height: int = 40) -> None:
    """Run a step on the screens of a capture."""

    async def run() -> None:
        async with running(app_of(TRANSACTIONS), width, height) as pilot:
            await step(pilot)

    asyncio.run(run())


async def choose(pilot: Pilot[None], name: str) -> FactsPage:
    """Go to the rows of a statistic."""
    await press(pilot, "0")
    page = pilot.app.screen
    assert isinstance(page, FactsPage)
    names = [page.tables.row(at)["name"] for at in range(len(page.tables))]
    page.tables_pane.cursor = names.index(name)
    await settle(pilot)
    await press(pilot, "enter")
    return page


def test_every_statistic_is_on_some_screen() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, Kdissect)
        pages = [page for page in app.pages.values() if isinstance(page, StatisticsPage)]
        facts = app.pages["facts"]
        assert isinstance(facts, FactsPage)
        here = {facts.tables.row(at)["name"] for at in range(len(facts.tables))}
        elsewhere = {name for page in pages if page is not facts for name in page.names}
        assert here | elsewhere >= set(STATISTICS)
        assert not here & elsewhere
        assert {"transactions", "tcp", "rebalances"} <= here

    with_app(step)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
def test_rows_of_the_chosen_table_lead_to_exchanges_and_back(size: tuple[int, int]) -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = await choose(pilot, "assignments")
        assert page.list_pane.has_focus
        text = await press(pilot, "j")
        assert f"assignments: {len(page.rows)} rows" in text
        row = page.rows.row(1)
        text = await press(pilot, "enter")
        assert page.kdissect.screen is page.kdissect.pages["exchanges"]
        assert f'group == "{row["group"]}"' in text
        await press(pilot, "escape")
        assert page.kdissect.screen is page
        await press(pilot, "escape")
        assert page.tables_pane.has_focus

    with_app(step, *size)


def test_another_table_takes_the_place_of_the_first() -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = await choose(pilot, "transactions")
        first = {heading.title for heading in page.rows.headings(2_000)}
        page = await choose(pilot, "tcp")
        assert {heading.title for heading in page.rows.headings(2_000)} != first
        assert page.counted is not None
        assert list(page.counted.tables) == ["tcp"]

    with_app(step)


def test_a_table_is_sorted_and_saved_whole(tmp_path: Path) -> None:
    path = tmp_path / "transactions.ndjson"

    async def step(pilot: Pilot[None]) -> None:
        page = await choose(pilot, "transactions")
        assert "no room for" in await press(pilot, "w", "escape")
        assert "largest first" in await press(pilot, "s") or page.rows.sorted_by is not None
        await press(pilot, "w")
        pilot.app.screen.query_one(Input).value = str(path)
        await press(pilot, "enter")

    with_app(step)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows
    assert set(rows[0]) == {each.name for each in STATISTICS["transactions"].columns}
