"""The cursor of the heat map, and the exchanges that it leads to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot

from kdissect.feed.filtering import span_text
from kdissect.tui.app import Kdissect
from kdissect.tui.lists.heat import BEFORE, HeatCell
from kdissect.tui.pages.heat_map import CROSS, HeatTable
from kdissect.tui.pages.latency import LatencyPage
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, screen_text, settle, shown_after

KILLED = CAPTURES / "incidents" / "leader-killed.pcapng.gz"
ERRORS = CAPTURES / "errors.pcapng"


def page_of(pilot: Pilot[None]) -> LatencyPage:
    page = pilot.app.screen
    assert isinstance(page, LatencyPage)
    return page


def cell_of(pilot: Pilot[None]) -> HeatCell:
    cell = page_of(pilot).heat_pane.cell
    assert cell is not None
    return cell


Step = Callable[[Pilot[None], Kdissect], Awaitable[None]]


def in_heat(step: Step, *keys: str, size: tuple[int, int] = (80, 24)) -> None:
    """Do something in the heat map, after these keys."""

    async def run() -> None:
        app = app_of(KILLED)
        async with running(app, *size) as pilot:
            await press(pilot, *keys, "5", "tab")
            await step(pilot, app)

    asyncio.run(run())


def test_when_the_terminal_grows_the_cursor_stays_at_its_time() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng"), 80, 24) as pilot:
            await press(pilot, "5", "tab", "down")
            table = pilot.app.screen.query_one("#heat", HeatTable)
            before = table.rows.band(table.cursor)[0]
            await pilot.resize_terminal(80, 60)
            await settle(pilot)
            assert len(table.rows) == 29
            assert table.rows.band(table.cursor)[0] == before

    asyncio.run(run())


def test_enter_shows_the_slowest_band_at_once() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        cell = cell_of(pilot)
        assert cell.exchanges
        assert cell.below_ns is None or not page_of(pilot).heat.cell(0, None, 1).exchanges
        await press(pilot, "enter")
        assert app.screen is app.pages["exchanges"]
        assert len(app.shown.places) == cell.exchanges
        assert "latency >= " in app.shown.text
        assert app.shown.hints == ()
        await press(pilot, "escape")
        assert app.screen is app.pages["latency"]
        assert app.shown.text == ""

    in_heat(step)


@pytest.mark.parametrize("key", ["right", "l", "left", "h"])
def test_arrow_keys_go_to_a_moment_in_which_the_band_has_exchanges(key: str) -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        band = cell_of(pilot)
        await press(pilot, key)
        cell = cell_of(pilot)
        assert cell.span is not None
        assert 0 < cell.exchanges < band.exchanges
        text = screen_text(app)
        assert CROSS in text
        assert cell.words(page_of(pilot).clock.text) in text

    in_heat(step)


def test_a_moment_is_left_before_the_screen_is() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        table = page_of(pilot).heat_pane
        await press(pilot, "right", "right")
        assert table.moment is not None
        await press(pilot, "escape")
        assert table.moment is None
        assert app.screen is app.pages["latency"]
        assert CROSS not in screen_text(app)
        await press(pilot, "right")
        await press(pilot, *["left"] * ((table.moment_column or 0) + 1))
        assert table.moment is None  # before the first moment is the whole band

    in_heat(step)


def test_what_a_cell_shows_is_taken_back_one_thing_at_a_time() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        band = cell_of(pilot)
        await press(pilot, "right")
        cell = cell_of(pilot)
        await press(pilot, "enter")
        assert len(app.shown.places) == cell.exchanges
        assert app.shown.span == cell.span
        await press(pilot, "escape")
        assert len(app.shown.places) == band.exchanges
        assert app.screen is app.pages["exchanges"]
        await press(pilot, "escape")
        assert app.shown.text == ""
        assert cell_of(pilot) == cell

    in_heat(step)


def test_a_cell_stays_within_the_range_and_the_filter_that_were_set() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        app.shown.push('client_id matches "^[a-t]"')
        start = app.index.first_ns or 0
        app.shown.narrow_to(start, start + 11 * 10**9)
        before = app.shown.text
        await settle(pilot)
        await press(pilot, "5", "tab", "right")
        cell = cell_of(pilot)
        assert cell.exchanges
        await press(pilot, "enter")
        assert len(app.shown.places) == cell.exchanges
        await press(pilot, "escape", "escape")
        assert app.shown.text == before

    async def run() -> None:
        app = app_of(KILLED)
        async with running(app, 80, 24) as pilot:
            await step(pilot, app)

    asyncio.run(run())


@pytest.mark.parametrize("size", [(80, 24), (120, 60)])
def test_the_filter_of_every_cell_shows_its_exchanges_and_no_others(size: tuple[int, int]) -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        page = page_of(pilot)
        row, heat, room = page.chosen_row(), page.heat, page.heat_pane.room
        assert row is not None
        for at in range(len(heat)):
            for column in (None, *heat.columns_with_any(at, room)):
                cell = heat.cell(at, column, room)
                text = page._filter_of_band(row, cell) or ""
                if cell.span is not None:
                    text += f" and {span_text(*cell.span)}"
                chosen = app.shown.compiled(text)
                assert chosen is not None
                assert chosen.hints == ()
                assert app.shown.count(chosen) == (cell.exchanges, cell.exchanges)

    in_heat(step, size=size)


def test_a_click_chooses_a_cell_and_a_click_on_its_label_the_band() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        table = page_of(pilot).heat_pane
        row = table.cursor + 1
        (column, *_) = table.rows.columns_with_any(row, table.room)
        top = 1 + row + (table.size.height != table.outer_size.height)
        await pilot.click("#heat", offset=(BEFORE + column, top))
        await settle(pilot)
        assert (table.cursor, table.moment_column) == (row, column)
        await pilot.click("#heat", offset=(2, top))
        await settle(pilot)
        assert (table.cursor, table.moment_column) == (row, None)

    in_heat(step)


def test_another_row_begins_at_its_slowest_band() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        page = page_of(pilot)
        await press(pilot, "down", "down", "right")
        for _ in range(3):
            await press(pilot, "tab", "down", "tab")
            assert page.heat_pane.moment is None
            assert page.heat_pane.cursor == page.heat.slowest_row()

    in_heat(step)


def test_a_filter_that_leaves_no_row_leaves_no_map() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        app.shown.push('client_id == "nobody"')
        await settle(pilot)
        assert page_of(pilot).heat_pane.cell is None
        await press(pilot, "right", "enter")
        assert app.screen is app.pages["latency"]

    in_heat(step)


def test_an_empty_cell_leads_nowhere_and_says_so() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        table = page_of(pilot).heat_pane
        row, column = next(
            (row, column)
            for row in range(len(table.rows))
            for column in range(table.room)
            if not table.rows.cell(row, column, table.room).exchanges
        )
        table.cursor = row
        table._go_to_column(column)
        await settle(pilot)
        assert "nothing is in this cell" in await shown_after(pilot, "enter")
        assert app.screen is app.pages["latency"]

    in_heat(step)
