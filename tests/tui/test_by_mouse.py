"""All screens by mouse alone: no key is pressed here, not even once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from unittest import mock

import pytest
from textual.command import CommandPalette
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from kdissect import read
from kdissect.settings.places import PAGE_KEYS, PAGES
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.pages.page import Page
from kdissect.tui.pages.statistics import GroupedScreen
from kdissect.tui.widgets.bars import KeysFooter
from kdissect.tui.widgets.dialogs import Dialog, HelpPage, HelpTopics
from kdissect.tui.widgets.filter_line import FilterLine
from kdissect.tui.widgets.split_panes import PanesScreen
from kdissect.tui.widgets.table import VirtualTable
from kdissect.tui.widgets.time_line import GUTTER
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, running, screen_text, settle

INCIDENT = CAPTURES / "incidents" / "leader-killed.pcapng.gz"
GROUP = CAPTURES / "incidents" / "member-killed.pcapng.gz"


class Mouse:
    """What a mouse can do."""

    def __init__(self, pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, Kdissect)
        self.pilot, self.app = pilot, pilot.app

    @property
    def page(self) -> Page:
        assert isinstance(self.app.screen, Page)
        return self.app.screen

    async def click_at(self, x: int, y: int, times: int = 1) -> None:
        await self.pilot.click(offset=(x, y), times=times)
        await settle(self.pilot)

    async def click(self, word: str, times: int = 1) -> None:
        """Click on a word on the screen."""
        lines = screen_text(self.app).splitlines()
        y, line = next((y, line) for y, line in enumerate(lines) if word in line)
        await self.click_at(line.index(word), y, times)

    async def key_of(self, what: str) -> None:
        """Click on a key of the footer."""
        y = self.app.screen.query_one(KeysFooter).region.y
        line = screen_text(self.app).splitlines()[y]
        assert what in line, line
        await self.click_at(line.index(what), y)

    async def tab(self, name: str) -> None:
        line = screen_text(self.app).splitlines()[1]
        await self.click_at(line.index(f" {PAGE_KEYS[name]} {PAGES[name][:1]}") + 1, 1)
        assert self.app.screen is self.app.pages[name], name

    async def drag(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        await self.pilot.mouse_down(offset=start)
        await self.pilot.hover(offset=end)
        await self.pilot.mouse_up(offset=end)
        await settle(self.pilot)

    async def command(self, words: str) -> None:
        """Choose a command of the palette, which a click on the first line shows."""
        await self.click_at(2, 0)
        palette = self.app.screen
        assert isinstance(palette, CommandPalette)
        options = palette.query_one(OptionList)
        wanted = next(at for at in range(options.option_count) if words in _words(options, at))
        options.scroll_to(y=options._index_to_line[wanted], animate=False)  # as the wheel does
        await settle(self.pilot)
        await self.click(words)


def _words(options: OptionList, at: int) -> str:
    hit = getattr(options.get_option_at_index(at), "hit", None)
    return "" if hit is None else str(hit.text)


def by_mouse(
    step: Callable[[Mouse], Awaitable[None]], path: Path = INCIDENT, size: tuple[int, int] = (132, 44)
) -> None:
    async def run() -> None:
        never = mock.patch.object(Pilot, "press", side_effect=AssertionError("a key"))
        async with running(app_of(path, home=None), *size) as pilot:
            with never:
                await step(Mouse(pilot))

    asyncio.run(run())


def test_every_screen_its_rows_heads_groupings_and_bars() -> None:
    async def step(mouse: Mouse) -> None:
        for name in PAGES:
            await mouse.tab(name)
            page = mouse.page
            table = next(each for each in page.query(VirtualTable) if each.display)
            if len(table.rows) > 1:
                await mouse.click_at(table.region.x + 3, table.content_region.y + 2)
                assert table.cursor == 1, name
            if isinstance(page, GroupedScreen):
                before = page.grouping
                await mouse.key_of("g Group")
                assert page.grouping != before
            if isinstance(page, PanesScreen):
                await _drag_a_bar(mouse, page)
            if name in ("connections", "topics", "problems", "transactions"):
                await _turn_by_a_head(mouse, table)
            if name == "findings":
                continue  # from the first screen q ends everything
            await mouse.key_of("q ")
            if mouse.app.screen is page:  # the pane below the bar had the focus
                await mouse.key_of("q ")
            assert mouse.app.screen is not page, name

    by_mouse(step)


async def _drag_a_bar(mouse: Mouse, page: PanesScreen) -> None:
    for pane in page.stacked()[1:]:
        if pane.styles.border_top[0]:
            before, y = pane.outer_size.height, pane.region.y
            step = -3 if page.stacked()[page.stacked().index(pane) - 1].outer_size.height > 6 else 3
            await mouse.drag((20, y), (20, y + step))
            assert pane.outer_size.height != before, (page, pane)
            return


async def _turn_by_a_head(mouse: Mouse, table: VirtualTable) -> None:
    titles = [each.title for each in table.rows.headings(table.columns)]
    if len(table.rows):
        await mouse.click_at(table.region.x + 1, table.content_region.y)
        after = [each.title for each in table.rows.headings(table.columns)]
        assert after != titles  # one has the mark of the order


def test_a_range_of_time_is_drawn_and_taken_back() -> None:
    async def step(mouse: Mouse) -> None:
        y = mouse.page.query_one("#time").region.y + 2
        await mouse.drag((GUTTER + 10, y), (GUTTER + 40, y))
        assert mouse.app.shown.is_filtered
        await mouse.tab("latency")
        assert mouse.app.shown.is_filtered
        await mouse.key_of("q ")
        assert not mouse.app.shown.is_filtered
        assert mouse.page is mouse.app.pages["latency"]
        await mouse.key_of("q ")
        assert mouse.page is mouse.app.pages["findings"]

    by_mouse(step)


def test_a_finding_leads_to_its_exchanges_its_story_a_ladder_and_back() -> None:
    async def step(mouse: Mouse) -> None:
        page = mouse.page
        table = page.query_one("#list", VirtualTable)
        await mouse.click_at(table.region.x + 10, table.region.y + 3, times=2)
        assert mouse.page is mouse.app.pages["exchanges"]
        await mouse.key_of("q ")
        assert mouse.page is page
        await mouse.key_of("All of it")
        assert page.has_class("-whole")
        await mouse.key_of("q ")
        assert not page.has_class("-whole")
        await mouse.key_of("Story")
        assert mouse.page is mouse.app.pages["story"]
        await mouse.command("Ladder")
        assert mouse.page is mouse.app.pages["ladder"]
        for wanted in ("story", "findings"):
            await mouse.key_of("q ")
            assert mouse.page is mouse.app.pages[wanted]

    by_mouse(step)


def test_from_rebalance_to_rebalance() -> None:
    async def step(mouse: Mouse) -> None:
        await mouse.tab("groups")
        before = screen_text(mouse.app)
        await mouse.key_of("Next rebalance")
        assert screen_text(mouse.app) != before
        await mouse.command("The previous rebalance")
        await mouse.key_of("q ")
        assert mouse.page is mouse.app.pages["groups"]

    by_mouse(step, GROUP)


def test_help_and_its_pages() -> None:
    async def step(mouse: Mouse) -> None:
        await mouse.key_of("Help")
        await mouse.click("the pages of kdissect help")
        assert isinstance(mouse.app.screen, HelpTopics)
        await mouse.click("filter  ")
        assert isinstance(mouse.app.screen, HelpPage)
        for _ in range(3):
            assert isinstance(mouse.app.screen, Dialog)
            await mouse.click_at(0, 43)
        assert isinstance(mouse.app.screen, Page)

    by_mouse(step)


@pytest.mark.parametrize("leaves", [False, True])
def test_a_filter_is_offered_applied_or_left(leaves: bool) -> None:
    async def step(mouse: Mouse) -> None:
        await mouse.tab("exchanges")
        await mouse.key_of("/ Filter")
        line = mouse.page.query_one(FilterLine)
        assert line.is_open
        await mouse.click("number of the exchange")  # offered
        assert line.input.value == "number"
        line.input.value = "error"  # what is written needs a keyboard
        await settle(mouse.pilot)
        await mouse.click("Esc leaves" if leaves else "Enter applies")
        assert not line.is_open
        assert mouse.app.shown.text == ("" if leaves else "error")
        if not leaves:
            await mouse.click("/ error")
            assert line.is_open

    by_mouse(step)


def test_a_column_is_chosen_by_a_second_click_and_filters() -> None:
    async def step(mouse: Mouse) -> None:
        await mouse.tab("exchanges")
        page = mouse.page
        assert isinstance(page, ExchangesPage)
        await mouse.click("Fetch v18")
        assert page.list_pane.column is None
        await mouse.click("Fetch v18")
        assert page.list_pane.column is not None
        await mouse.command("only this value")
        assert mouse.app.shown.text == "api == Fetch"

    by_mouse(step)


def test_what_is_shown_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"

    async def step(mouse: Mouse) -> None:
        await mouse.tab("exchanges")
        await mouse.key_of("w Save")
        await mouse.click("shown: ")
        mouse.app.screen.query_one(Input).value = str(path)  # a name needs a keyboard
        await mouse.click("Enter confirms")
        assert isinstance(mouse.app.screen, Page)

    by_mouse(step)
    assert len(path.read_text().splitlines()) == 1 + len(list(read(INCIDENT)))
