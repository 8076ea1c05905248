"""The mouse: rows, headings, titles of the screens, tree, bytes and footer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from textual.pilot import Pilot

from kdissect import read
from kdissect.settings.places import PAGE_KEYS, PAGES, SHORT_TITLES
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.widgets.bars import KeysFooter, Tabs
from kdissect.tui.widgets.bytes_pane import BytesPane
from kdissect.tui.widgets.field_tree import FieldTree
from kdissect.tui.widgets.table import VirtualTable
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, screen_text, settle

ERRORS = CAPTURES / "errors.pcapng"


def with_page(step: Callable[[Pilot[None], ExchangesPage], Awaitable[None]], width: int = 120) -> None:
    """Run a step on the list of exchanges."""

    async def run() -> None:
        async with running(app_of(ERRORS), width, 40) as pilot:
            assert isinstance(pilot.app, Kdissect)
            page = pilot.app.pages["exchanges"]
            assert isinstance(page, ExchangesPage)
            await step(pilot, page)

    asyncio.run(run())


async def click(pilot: Pilot[None], word: str, times: int = 1) -> None:
    """Click on a word on the screen."""
    assert isinstance(pilot.app, Kdissect)
    lines = screen_text(pilot.app).splitlines()
    y, line = next((y, line) for y, line in enumerate(lines) if word in line)
    await pilot.click(offset=(line.index(word), y), times=times)
    await settle(pilot)


def test_a_click_chooses_a_row_and_a_second_goes_in() -> None:
    async def step(pilot: Pilot[None], page: ExchangesPage) -> None:
        await click(pilot, "CreateTopics v7")
        assert page.chosen_number == 4
        assert page.list_pane.has_focus
        await click(pilot, "InitProducerId", times=2)
        assert page.chosen_number == 8
        assert page.query_one(FieldTree).has_focus

    with_page(step)


def test_a_click_on_a_heading_orders_the_list_and_another_turns_it() -> None:
    async def step(pilot: Pilot[None], page: ExchangesPage) -> None:
        latencies = {each.number: each.latency_ns or 0 for each in read(ERRORS)}
        await click(pilot, "Latency Bytes")
        await press(pilot, "g")
        assert page.chosen_number == max(latencies, key=lambda number: latencies[number])
        await click(pilot, "Latency Bytes")
        await press(pilot, "g")
        assert page.chosen_number == min(latencies, key=lambda number: latencies[number])

    with_page(step)


def test_a_click_on_a_title_shows_the_screen() -> None:
    async def step(pilot: Pilot[None], page: ExchangesPage) -> None:
        for name in [*PAGES][::-1]:
            await click(pilot, f" {PAGE_KEYS[name]} {SHORT_TITLES.get(PAGES[name], PAGES[name])[:4]}")
            assert page.kdissect.screen is page.kdissect.pages[name], name

    with_page(step)


def test_where_titles_have_no_room_their_numbers_are_clicked() -> None:
    async def step(pilot: Pilot[None], page: ExchangesPage) -> None:
        line = screen_text(page.kdissect).splitlines()[1]
        assert line.split() == ["1", "Exchanges", "2", "3", "4", "5", "6", "7", "8", "9", "0", "T", "C"]
        await pilot.click(Tabs, offset=(line.index("6"), 0))
        await settle(pilot)
        assert page.kdissect.screen is page.kdissect.pages["problems"]

    with_page(step, width=80)


def test_clicks_in_tree_and_bytes_lead_to_each_other() -> None:
    async def step(pilot: Pilot[None], page: ExchangesPage) -> None:
        await click(pilot, "clientId:")
        pane = page.query_one(BytesPane)
        assert pane.range == (8, 16)
        y = next(y for y in range(pane.size.height) if "00000010" in pane.render_line(y).text)
        await pilot.click(BytesPane, offset=(pane.size.width - pane.columns + 11 + 3, y))
        await settle(pilot)
        assert pane.cursor == 0x11
        assert page.panes.chosen()[-1].text.startswith("clientSoftwareName")

    with_page(step)


def test_a_click_on_the_footer_does_what_the_key_does() -> None:
    async def step(pilot: Pilot[None], page: ExchangesPage) -> None:
        y = page.query_one(KeysFooter).region.y
        line = screen_text(page.kdissect).splitlines()[y]
        await pilot.click(offset=(line.index("Next error"), y))
        await settle(pilot)
        assert page.chosen_number == 5
        await pilot.click(offset=(line.index("Help"), y))
        await settle(pilot)
        assert "In the list" in screen_text(page.kdissect)

    with_page(step)


def test_the_wheel_scrolls_without_moving_the_cursor() -> None:
    async def step(pilot: Pilot[None], page: ExchangesPage) -> None:
        table = page.query_one("#list", VirtualTable)
        table.scroll_down(animate=False)
        await settle(pilot)
        assert table.scroll_offset.y > 0
        assert table.cursor == 0

    with_page(step)


def test_the_bar_between_list_and_panes_is_dragged() -> None:
    async def step(pilot: Pilot[None], page: ExchangesPage) -> None:
        bar = page.panes.region.y
        before = page.list_pane.region.height
        await pilot.mouse_down(offset=(60, bar))
        assert page.panes.has_class("-held")
        await pilot.hover(offset=(60, bar - 7))
        await pilot.mouse_up(offset=(60, bar - 7))
        await settle(pilot)
        assert page.share == 3
        assert page.list_pane.region.height < before
        assert not page.panes.has_class("-held")
        await pilot.hover(offset=(60, bar))  # nobody holds it now
        await settle(pilot)
        assert page.share == 3
        await pilot.mouse_down(offset=(10, page.panes.region.y + 4))
        assert not page.panes.has_class("-held")

    with_page(step)


def test_a_click_on_the_hint_shows_columns_that_have_no_room() -> None:
    async def step(pilot: Pilot[None], page: ExchangesPage) -> None:
        first = page.rows.names(page.list_pane.columns)
        hint = page.list_pane.hint
        await click(pilot, hint)
        assert page.rows.names(page.list_pane.columns)[2] not in first
        for _ in range(5):
            if page.list_pane.hint == hint:
                break
            await click(pilot, page.list_pane.hint)
        assert page.rows.names(page.list_pane.columns) == first

    with_page(step)


def test_the_arrow_key_goes_on_from_the_last_column_to_those_without_room() -> None:
    async def step(pilot: Pilot[None], page: ExchangesPage) -> None:
        first = page.rows.names(page.list_pane.columns)
        await press(pilot, *["right"] * (len(first) + 1))
        other = page.rows.names(page.list_pane.columns)
        assert other[2] not in first
        await press(pilot, "left")
        assert page.rows.names(page.list_pane.columns) == first

    with_page(step)


def test_a_click_on_the_first_line_shows_all_commands_and_one_beside_them_leaves() -> None:
    async def step(pilot: Pilot[None], page: ExchangesPage) -> None:
        await click(pilot, "errors.pcapng")
        await click(pilot, "Show Groups: ")
        assert page.app.screen is page.kdissect.pages["groups"]
        await press(pilot, "1")
        await click(pilot, "errors.pcapng")
        assert page.app.screen is not page
        await pilot.click(offset=(0, 39))
        await settle(pilot)
        assert page.app.screen is page

    with_page(step)


def test_dialogs_are_left_and_confirmed_with_the_mouse() -> None:
    async def step(pilot: Pilot[None], page: ExchangesPage) -> None:
        for key in ("w", "question_mark", "c", "semicolon"):
            await press(pilot, key)
            assert page.app.screen is not page
            await pilot.click(offset=(0, 20))
            await settle(pilot)
            assert page.app.screen is page, key
        await press(pilot, "c")
        await click(pilot, "  broker")
        await click(pilot, "Enter confirms")
        assert page.app.screen is page
        assert "broker" in page.kdissect.columns

    with_page(step)
