"""The way back from exchanges that the screen of differences opened: it leads there, whatever was done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kdissect.settings.screens import WENT_BACK, Settings
from kdissect.tui.app import Kdissect
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, screen_text, settle, shown_after

OPENED = Settings(filter="api == Metadata", compared_as="AFTER monday/errors.pcapng")
Step = Callable[[Pilot[None]], Awaitable[None]]


def opened(step: Step, settings: Settings = OPENED, width: int = 120) -> Kdissect:
    """The screens as that one opens them, after some keys."""
    app = app_of(CAPTURES / "errors.pcapng", settings=settings)

    async def run() -> None:
        async with running(app, width) as pilot:
            await step(pilot)

    asyncio.run(run())
    return app


async def write_filter(pilot: Pilot[None], text: str) -> None:
    await press(pilot, "slash")
    pilot.app.screen.query_one(Input).value = text
    await press(pilot, "enter")


async def nothing(pilot: Pilot[None]) -> None:
    """The user looks at what is there."""


async def other_page(pilot: Pilot[None]) -> None:
    await press(pilot, "2", "escape")


async def own_filter(pilot: Pilot[None]) -> None:
    await write_filter(pilot, "api == Fetch")
    assert "q Undo filter" in screen_text(pilot.app)
    await press(pilot, "escape")


async def rows_of_a_page(pilot: Pilot[None]) -> None:
    await press(pilot, "2", "enter", "escape", "escape")


async def tree(pilot: Pilot[None]) -> None:
    await press(pilot, "enter", "escape")


@pytest.mark.parametrize(
    ("before", "key"),
    [(nothing, "escape"), (other_page, "q"), (own_filter, "escape"), (rows_of_a_page, "q"), (tree, "escape")],
)
def test_each_step_is_taken_back_and_the_last_one_leads_to_the_differences(before: Step, key: str) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await before(pilot)
        text = screen_text(pilot.app)
        assert "q Back to Differences" in text
        assert "AFTER monday/errors.pcapng" in text.splitlines()[0]
        assert pilot.app.is_running
        await pilot.press(key)

    assert opened(step).return_code == WENT_BACK


@pytest.mark.parametrize(("key", "code"), [("ctrl+q", 0), ("ctrl+c", 130)])
def test_who_ends_kdissect_does_not_go_back(key: str, code: int) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await pilot.press(key)

    assert opened(step).return_code == code


def test_the_palette_and_the_mouse_lead_back_too() -> None:
    async def click(pilot: Pilot[None]) -> None:
        keys = screen_text(pilot.app).splitlines()[-1]
        await pilot.click("KeysFooter", offset=(keys.index("Back to Differences"), 0))

    async def choose(pilot: Pilot[None]) -> None:
        await press(pilot, "colon")
        pilot.app.screen.query_one(Input).value = "back to differences"
        await settle(pilot)
        await pilot.press("enter")
        await pilot.pause(0.1)

    assert opened(click).return_code == opened(choose).return_code == WENT_BACK


def test_a_comment_that_is_lost_is_told_first() -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "semicolon", "a", "enter")
        assert "1 comment is not saved: w saves, q goes back without saving" in await shown_after(
            pilot, "escape"
        )
        assert "again goes back" not in await shown_after(pilot, "down")
        await press(pilot, "q")
        assert pilot.app.is_running
        await pilot.press("escape")

    assert opened(step).return_code == WENT_BACK


def test_a_small_terminal_says_back_not_quit() -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = screen_text(pilot.app)
        assert "q Back" in text
        assert "Quit" not in text
        await pilot.press("escape")

    assert opened(step, width=80).return_code == WENT_BACK


def test_without_that_screen_escape_ends_nothing() -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "escape", "escape")
        assert "q Quit" in screen_text(pilot.app)
        await press(pilot, "q")

    app = opened(step, Settings(filter="api == Metadata"))
    assert app.return_code == 0
