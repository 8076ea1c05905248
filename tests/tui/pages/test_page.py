"""Opening a page: nothing is done then that could be done before, and nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from unittest import mock

import pytest
from textual._compositor import Compositor
from textual.command import CommandPalette
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot
from textual.screen import Screen

from kdissect.settings.places import PAGE_KEYS
from kdissect.settings.screens import Settings
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.pages.page import TEXTUALS_OWN, Page, share_of
from kdissect.tui.widgets.bars import StatusLine
from kdissect.tui.widgets.table import VirtualTable
from tests.amount import some
from tests.cli.run import CAPTURES
from tests.feed.feeds import decoded
from tests.tui.snapshots import app_of, press, running, screen_text, settle, shown_after

CAPTURE = CAPTURES / "errors.pcapng"
OTHER = "2"
PAGES = [key for key in PAGE_KEYS.values() if key != OTHER]


def with_app(step: Callable[[Kdissect, Pilot[None]], Awaitable[None]], home: str, **how: Any) -> None:
    async def run() -> None:
        async with running(app_of(CAPTURE, home=home), **how) as pilot:
            assert isinstance(pilot.app, Kdissect)
            await step(pilot.app, pilot)

    asyncio.run(run())


class Later:
    """A feed that gives nothing until it is asked to."""

    def __init__(self) -> None:
        self._whole = decoded(CAPTURE)
        self.source, self.descriptor = self._whole.source, self._whole.descriptor
        self.capture, self.silence, self.gives = None, None, False

    def poll(self) -> list[Any]:
        return list(self._whole.poll()) if self.gives else []

    def close(self) -> None:
        self._whole.close()


def test_the_list_of_exchanges_keeps_up_while_another_page_is_shown() -> None:
    async def run() -> None:
        feed = Later()
        app = Kdissect(feed, settings=Settings(page="findings"))  # type: ignore[arg-type]
        async with running(app) as pilot:
            exchanges = app.pages["exchanges"]
            assert isinstance(exchanges, ExchangesPage)
            assert not exchanges.rows.needs.of("number")
            feed.gives = True
            while not len(app.index):
                await pilot.pause(0.05)
            assert app.screen is app.pages["findings"]
            assert exchanges.rows.needs.of("number")

    asyncio.run(run())


@pytest.mark.parametrize("key", some(PAGES, 3, "1", "4"))
def test_a_page_that_was_shown_keeps_its_styles(key: str) -> None:
    async def step(app: Kdissect, pilot: Pilot[None]) -> None:
        await press(pilot, key, OTHER)
        apply = Stylesheet.apply
        with mock.patch.object(Stylesheet, "apply", autospec=True, side_effect=apply) as applied:
            await press(pilot, key)
        assert app.screen not in [call.args[1] for call in applied.call_args_list]

    with_app(step, "exchanges")


def test_a_page_that_was_shown_has_the_colours_of_a_theme_that_was_chosen_on_another() -> None:
    async def step(app: Kdissect, pilot: Pilot[None]) -> None:
        await press(pilot, "1", OTHER)
        before = app.screen.query_one(StatusLine).styles.background
        app.theme = "textual-light"
        await settle(pilot)
        after = app.screen.query_one(StatusLine).styles.background
        await press(pilot, "1")
        assert app.screen.query_one(StatusLine).styles.background == after != before
        await press(pilot, "3")  # which was not shown before
        assert app.screen.query_one(StatusLine).styles.background == after

    with_app(step, "exchanges")


def test_the_footer_does_not_say_the_key_of_a_row_where_there_is_none() -> None:
    async def step(app: Kdissect, pilot: Pilot[None]) -> None:
        for key in PAGE_KEYS.values():
            footer = (await shown_after(pilot, key)).splitlines()[-1]
            table = app.screen.focused
            assert isinstance(table, VirtualTable)
            assert ("⏎" in footer) == (len(table.rows) > 0 and key != "8"), (key, footer)
        assert "⏎" not in (await shown_after(pilot, "T")).splitlines()[-1]
        app.shown.push("number < 0")
        assert "⏎" not in (await shown_after(pilot, "1")).splitlines()[-1]
        app.shown.pop()
        await settle(pilot)
        assert "⏎ Fields" in (await shown_after(pilot)).splitlines()[-1]

    with_app(step, "exchanges")


def test_the_footer_says_the_key_of_the_story_only_where_there_may_be_one() -> None:
    async def step(app: Kdissect, pilot: Pilot[None]) -> None:
        for key, has_story in (("1", True), ("6", True), ("T", False), ("8", False)):
            footer = (await shown_after(pilot, key)).splitlines()[-1]
            assert ("i Story" in footer) == has_story, (key, footer)
        app.shown.push("number < 0")
        assert "i Story" not in (await shown_after(pilot, "6")).splitlines()[-1]
        app.shown.pop()
        await settle(pilot)
        assert "i Story" in (await shown_after(pilot)).splitlines()[-1]

    with_app(step, "exchanges")


def test_textual_still_has_what_the_drawing_of_a_page_relies_on() -> None:
    async def step(app: Kdissect, pilot: Pilot[None]) -> None:
        gone = [name for name in TEXTUALS_OWN if not hasattr(app.screen, name)]
        gone += [name for name in ("_on_timer_update",) if name not in vars(Screen)]
        assert not gone, f"Textual changed; see whether Page._on_timer_update is still needed: {gone}"

    with_app(step, "exchanges")


@pytest.mark.parametrize(("by", "frames"), [(Page, 1), (Screen, 2)], ids=["here", "by Textual itself"])
def test_a_layout_and_a_whole_frame_are_drawn_in_one(by: type[Screen[Any]], frames: int) -> None:
    async def step(app: Kdissect, pilot: Pilot[None]) -> None:
        screen = app.screen
        drawn = Compositor.render_update
        with mock.patch.object(Compositor, "render_update", autospec=True, side_effect=drawn) as done:
            screen._layout_required = screen._repaint_required = True
            by._on_timer_update(screen)
        told = "Textual itself draws once: Page._on_timer_update can go"
        assert done.call_count == frames, told if by is Screen else done.call_args_list

    with_app(step, "exchanges", drawn=True)


def test_a_textual_without_these_names_draws_as_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdissect.tui.pages.page.TEXTUALS_OWN", ("_of_another_version",))

    async def step(app: Kdissect, pilot: Pilot[None]) -> None:
        assert "exchanges" in await shown_after(pilot, "2", "1")

    with_app(step, "exchanges", drawn=True)


def test_filters_that_were_used_can_be_chosen_again() -> None:
    async def step(app: Kdissect, pilot: Pilot[None]) -> None:
        assert "no filter was used yet" in await shown_after(pilot, "ctrl+r")
        app.remembered.used = ["api == Produce", 'client_id == "[/x]"', "error"]
        text = await shown_after(pilot, "ctrl+r")
        assert text.index("1 error") < text.index('2 client_id == "[/x]"') < text.index("3 api == Produce")
        await press(pilot, "3", "enter")
        assert app.shown.text == "api == Produce"
        assert app.remembered.used[-1] == "api == Produce"  # the newest now
        app.remembered.used = ["api =="]  # of another version
        await press(pilot, "slash", "x", "ctrl+r", "1", "enter")
        assert app.shown.text == "api == Produce"

    with_app(step, "exchanges")


def test_a_right_click_offers_what_can_be_done_with_the_row_and_column() -> None:
    async def step(app: Kdissect, pilot: Pilot[None]) -> None:
        page = app.pages["exchanges"]
        assert isinstance(page, ExchangesPage)
        table = page.list_pane
        client = page.rows.names(table.columns).index("who")
        at = sum(heading.width + 1 for heading in page.rows.headings(table.columns)[:client])
        await pilot.click(VirtualTable, offset=(at + 1, 4), button=3)
        await settle(pilot)
        assert table.cursor == 3
        text = screen_text(app)
        assert "This row" in text
        assert "Only this: filter by the field or column" in text
        await press(pilot, "2")
        assert app.shown.text == 'client_id == "errors"'

    with_app(step, "exchanges", width=160, height=40)


def test_help_leads_to_the_search_for_commands() -> None:
    async def step(app: Kdissect, pilot: Pilot[None]) -> None:
        await press(pilot, "?")
        await pilot.press("slash")
        await pilot.pause()
        assert isinstance(app.screen, CommandPalette)

    with_app(step, "exchanges")


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [(0, 0, "0 % of all"), (0, 9, "0 % of all"), (1, 1_000, "<1 % of all"), (999, 1_000, "99 % of all")],
)
def test_the_share_of_what_is_shown(part: int, whole: int, said: str) -> None:
    assert share_of(part, whole) == said
