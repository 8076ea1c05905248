"""Terminals of any size, and those that change it, with a dialog open too."""

from __future__ import annotations

import asyncio
from itertools import product

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from tests.amount import some
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, screen_text, settle

KILLED = CAPTURES / "incidents" / "member-killed.pcapng.gz"
SIZES = ((240, 70), (80, 24), (60, 15), (40, 10), (20, 5), (7, 2), (1, 1))
PAGES = "9123456780TCLi"
DIALOGS = {
    "copy": ("1", "y"),
    "save": ("1", "w"),
    "path": ("1", "w", "enter"),
    "order": ("1", "O"),
    "columns": ("1", "c"),
    "comment": ("1", "semicolon"),
    "search": ("5", "ctrl+f"),
    "help": ("1", "question_mark"),
    "page of help": ("1", "question_mark", "d", "enter"),
    "palette": ("1", "colon"),
    "filter": ("3", "slash"),
}


async def resized(pilot: Pilot[None], width: int, height: int) -> str:
    """What stands on the screen when the terminal has another size."""
    await pilot.resize_terminal(width, height)
    await settle(pilot)
    lines = screen_text(pilot.app).rstrip("\n").split("\n")
    assert len(lines) <= height
    assert max(map(cell_len, lines)) <= width
    return "\n".join(lines)


@pytest.mark.parametrize("name", some(DIALOGS, 4, "copy", "path", "filter"))
def test_a_dialog_stays_when_the_terminal_changes_its_size(name: str) -> None:
    async def run() -> None:
        async with running(app_of(KILLED), drawn=True) as pilot:
            keys = DIALOGS[name]
            await press(pilot, keys[0])
            page = screen_text(pilot.app)
            await press(pilot, *keys[1:])
            dialog = screen_text(pilot.app)
            screen, focused = pilot.app.screen, pilot.app.focused
            for size in (*SIZES, (120, 40)):
                await resized(pilot, *size)
                assert (pilot.app.screen, pilot.app.focused) == (screen, focused)
            assert screen_text(pilot.app).split() == dialog.split()
            await press(pilot, *["escape"] * (3 if name == "page of help" else 1))
            assert screen_text(pilot.app).splitlines()[1:-2] == page.splitlines()[1:-2]

    asyncio.run(run())


@pytest.mark.parametrize("page", some(PAGES, 3, "9", "4"))
def test_a_page_is_there_on_any_terminal_and_the_same_when_there_is_room_again(page: str) -> None:
    async def run() -> None:
        async with running(app_of(KILLED, home=None), drawn=True) as pilot:
            await press(pilot, page)
            before = screen_text(pilot.app)
            for size in SIZES:
                await resized(pilot, *size)
                await press(pilot, "down", "up")
            await resized(pilot, 120, 40)
            assert screen_text(pilot.app) == before

    asyncio.run(run())


@pytest.mark.parametrize(
    ("key", "size"),
    some(
        product(("colon", "O", "slash"), ((1, 1), (10, 4))),
        3,
        *(("colon", (1, 1)), ("O", (1, 1)), ("slash", (10, 4))),
    ),
)
def test_a_key_to_the_next_page_of_a_list_that_has_no_line_harms_nothing(
    key: str, size: tuple[int, int]
) -> None:
    async def run() -> None:
        async with running(app_of(KILLED), drawn=True) as pilot:
            await pilot.resize_terminal(*size)
            await press(pilot, key, "pagedown", "pageup", "end", "home")
            await resized(pilot, 120, 40)
            await press(pilot, "escape")
            assert "Exchanges" in screen_text(pilot.app)

    asyncio.run(run())
