"""Dialogs over the screens, and the documentation under ``?``."""

from __future__ import annotations

import asyncio

import pytest
from textual.containers import VerticalScroll
from textual.events import Key

from kdissect.help import TOPICS, title
from kdissect.settings.screens import Settings
from kdissect.tui.app import Kdissect
from kdissect.tui.widgets.dialogs import KEYS_CELLS, Choose, Help, Pick
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, screen_text, settle, shown_after

pytest.importorskip("textual")


def test_what_a_key_does_goes_on_below_its_beginning() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng"), 80, 60) as pilot:
            lines = (await shown_after(pilot, "question_mark")).splitlines()
            at = next(at for at, line in enumerate(lines) if "mark all exchanges that are shown" in line)
            first, second = (line.partition("│")[2] for line in lines[at : at + 2])
            assert first.index("mark all") == second.index("their marks") == KEYS_CELLS + 2

    asyncio.run(run())


THEME = ("config.toml:2: theme nope: there is no such theme",)
MISTAKEN = Settings(mistakes=(THEME, ("config.toml:7: filters: slow", "latncy > 1s", "^~~~~~")))


@pytest.mark.parametrize(("width", "height"), [(40, 12), (80, 24), (120, 40)])
def test_mistakes_of_the_configuration_are_told_over_the_first_screen(width: int, height: int) -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng", settings=MISTAKEN), width, height) as pilot:
            text = await shown_after(pilot)
            assert THEME[0] in " ".join(text.replace("│", " ").split())
            if width > 40:
                assert "! Configuration: 2 settings are not used" in text
                assert "  latncy > 1s" in text
                assert "defaults are used instead. Correct this, and start kdissect again." in text
            assert "not used" not in await shown_after(pilot, "enter")

    asyncio.run(run())


def test_they_are_told_without_a_capture_too() -> None:
    async def run() -> None:
        app = Kdissect(None, settings=MISTAKEN)
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            assert THEME[0] in screen_text(app)
            await pilot.press("escape")
            assert THEME[0] not in screen_text(app)

    asyncio.run(run())


def test_a_second_key_that_comes_before_the_dialog_is_gone_costs_nothing() -> None:
    async def run() -> None:
        app = app_of(CAPTURES / "errors.pcapng")
        async with running(app) as pilot:
            await press(pilot, "y")
            dialog = app.screen
            assert isinstance(dialog, Choose)
            for key in "12":
                dialog.on_key(Key(key, key))
            await settle(pilot)
            assert app.name_of(app.screen) == "exchanges"
            assert "copied" in await shown_after(pilot)

    asyncio.run(run())


def test_help_leads_to_every_page_of_the_documentation_and_back() -> None:
    async def run() -> None:
        app = app_of(CAPTURES / "errors.pcapng")
        async with running(app, 140, 40) as pilot:
            assert "the pages of kdissect help" in await shown_after(pilot, "question_mark")
            assert isinstance(app.screen, Help)
            listed = await shown_after(pilot, "d")
            assert all(topic in listed and title(topic) in listed for topic in TOPICS)
            shown = await shown_after(pilot, "j", "enter")
            assert f"kdissect help {TOPICS[1]}" in shown
            assert title(TOPICS[1]) in shown
            text = app.screen.query_one(VerticalScroll)
            await press(pilot, "G")
            assert text.scroll_y == text.max_scroll_y > 0
            await press(pilot, "escape", "escape")
            assert isinstance(app.screen, Help)

    asyncio.run(run())


pytest.importorskip("textual")


def test_a_key_that_comes_before_the_dialog_is_put_up_costs_nothing() -> None:
    """As one does over a slow line, in one piece with that which opened it."""
    dialog = Pick("Columns", [("api", "API", True)])
    dialog.action_tick()
    assert dialog._ticked == {"api"}
