"""The heat map: its bands and columns of time, its cursor, and the exchanges that it leads to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import numpy as np
import pytest
from textual.pilot import Pilot

from kdissect.analysis.fold import MILLISECOND, SECOND
from kdissect.analysis.histogram import BANDS_NS
from kdissect.feed.columns import FilterColumns
from kdissect.feed.filtering import span_text
from kdissect.filter.compiled import Filter, compile_filter
from kdissect.present.options import Options
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.heat_map import BEFORE, CROSS, EDGES_BY_ROOM, SHADES, Heat, HeatCell, HeatTable
from kdissect.tui.pages.latency import LatencyPage
from tests.cli.run import CAPTURES
from tests.feed.feeds import index_of_times, index_with
from tests.tui.snapshots import app_of, press, running, screen_text, settle, shown_after


def heat_of(count: int = 5, packets_ns: tuple[int, int] = (0, 10 * SECOND)) -> Heat:
    """Of the first rows.

    :param packets_ns: the times of the first packet and of the last.
    """
    index = index_of_times()
    index.first_ns, index.last_ns = packets_ns
    heat = Heat(str)
    heat.show(index, index.order()[:count], "all")
    return heat


def test_a_line_is_a_band_and_more_are_darker() -> None:
    heat = heat_of()
    lines = [heat.cells(row, 10 + 9 + 2 + 10) for row in range(len(heat))]
    assert len(lines) == len(BANDS_NS) + 1
    assert lines[0] == ["≥ 3.16 s", "1", "    " + lines[0][2][4] + "     "]
    assert lines[-1][1] == "2"
    (two,) = (line[2] for row, line in enumerate(lines) if heat.band(row)[0] == BANDS_NS[2])
    assert two[8] == SHADES[-1]
    assert SHADES.index(lines[0][2][4]) < SHADES.index(two[8])


def test_nothing_is_no_line() -> None:
    heat = Heat(str)
    assert len(heat) == 0
    assert heat.headings(80)[-1].title == "no response times"


def test_two_bands_share_a_line_where_there_is_little_room() -> None:
    heat = heat_of()
    heat.fit(len(BANDS_NS))
    bands = [heat.band(row) for row in range(len(heat))]
    assert bands[0] == (SECOND, None)
    assert bands[-1] == (None, SECOND // 10_000)
    assert all(low == ten for (low, _), (_, ten) in pairwise(bands))
    assert [heat.cells(row, 40)[1] for row in range(len(heat))] == ["1", "", "", "2", "", "2"]


@pytest.mark.parametrize("lines", [6, 11, 20, 29, 38, 47])
def test_bands_are_as_many_as_there_are_lines_for(lines: int) -> None:
    heat = heat_of()
    for room in (lines, lines + 1):
        heat.fit(room)
        assert len(heat) == lines
    bands = [heat.band(row) for row in range(lines)]
    assert all(low == ten for (low, _), (_, ten) in pairwise(bands))
    assert [heat.row_of(low) for low, _ in bands] == list(range(lines))
    assert {*BANDS_NS[::2]} <= {low for low, _ in bands[:-1]}
    assert sum(int(heat.cells(row, 40)[1] or 0) for row in range(lines)) == 5


def test_the_cells_are_all_exchanges_each_once() -> None:
    heat = heat_of()
    for columns in (1, 7, 10, 59, 219):
        cells = [heat.cell(row, at, columns) for row in range(len(heat)) for at in range(columns)]
        assert sum(cell.exchanges for cell in cells) == 5
        for row in range(len(heat)):
            of_row = [cell.exchanges for cell in cells if cell[:2] == heat.band(row)]
            assert sum(of_row) == heat.cell(row, None, columns).exchanges
            assert [at for at, count in enumerate(of_row) if count] == heat.columns_with_any(row, columns)


def test_what_began_before_the_first_packet_or_after_the_last_has_a_cell() -> None:
    heat = heat_of(packets_ns=(4 * SECOND, 6 * SECOND))
    cells = [heat.cell(row, at, 10) for row in range(len(heat)) for at in range(10)]
    assert sum(cell.exchanges for cell in cells) == 5


def test_a_chosen_range_of_time_has_all_columns() -> None:
    index = index_of_times()
    index.first_ns, index.last_ns = 0, 100 * SECOND
    heat = Heat(str)
    chosen = 4 * SECOND, 6 * SECOND
    times = index.column("time_ns")
    places = np.flatnonzero((times >= chosen[0]) & (times < chosen[1])).astype(np.uint32)
    assert len(places)
    heat.show(index, places, "all", chosen)
    assert heat.headings(80)[-1].title.startswith(f"{chosen[0]} to {chosen[1]}")
    assert heat.span(0, 50)[0] == chosen[0]
    assert heat.span(49, 50)[1] < chosen[1] + SECOND
    heat.show(index, index.order(), "all", (0, 200 * SECOND))  # it ends after the capture
    assert heat.headings(80)[-1].title.startswith(f"0 to {100 * SECOND}")


def test_no_cell_begins_before_the_capture() -> None:
    index = index_of_times()
    index.first_ns, index.last_ns = 3 * SECOND + 1, 10 * SECOND
    heat = Heat(str)
    heat.show(index, index.order()[1:5], "all")
    assert heat.span(0, 59)[0] < index.first_ns
    cell = heat.cell(0, 0, 59)
    assert cell.span is not None
    assert cell.span[0] == index.first_ns


def test_columns_follow_one_another_and_each_time_is_in_its_column() -> None:
    heat = heat_of()
    spans = [heat.span(at, 59) for at in range(59)]
    assert all(end == begin for (_, end), (begin, _) in pairwise(spans))
    assert spans[0][0] <= 0
    assert spans[-1][1] > 10 * SECOND
    assert all(heat.column_of(ns, 59) == at for at, span in enumerate(spans) for ns in (span[0], span[1] - 1))


def test_a_cell_knows_its_slowest() -> None:
    heat = heat_of()
    assert heat.slowest_row() == 0
    cell = heat.cell(0, None, 10)
    assert tuple(cell) == (3_162_277_660, None, None, 1, 10 * SECOND, 4)
    assert cell.words(str) == "≥ 3.16 s · 1 exchange, the slowest 10.0 s (No. 4)"
    at = heat.column_of(9 * SECOND, 10)
    cell = heat.cell(heat.row_of(2 * MILLISECOND), at, 10)
    assert cell.words(lambda ns: f"{ns / SECOND} s") == (
        "1.00 ms to 3.16 ms · 8.8 s to 9.9 s · 2 exchanges, the slowest 2.00 ms (No. 2)"
    )
    assert heat.cell(1, at, 10).words(str).endswith("0 exchanges")


@pytest.mark.parametrize("lines", [6, 11, 20, 29, 38, 47])
def test_the_filter_of_a_band_has_its_ends_to_the_nanosecond(lines: int) -> None:
    bands = [(None, *edges, None) for edges in (each.tolist() for each in EDGES_BY_ROOM)]
    (edges,) = (each for each in bands if len(each) == lines + 1)
    for lowest, below in pairwise(edges):
        cell = HeatCell(lowest, below, None, 0, None, None)
        chosen = compile_filter(cell.band, Options())
        assert chosen.hints == ()
        (low, high) = (0 if lowest is None else lowest), (10**12 if below is None else below)
        for ns, is_in in ((low - 1, False), (low, True), (high - 1, True), (high, False)):
            if 0 <= ns < 10**12:
                assert _shows(chosen, ns) is is_in


def _shows(chosen: Filter, latency_ns: int) -> bool:
    index = index_with([{"api": 1, "latency_ns": latency_ns}], ["Fetch"])
    return bool(FilterColumns(index, 0, 1).masks(chosen).certain[0])


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
