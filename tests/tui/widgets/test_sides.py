"""The bar between tree and bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot

from kdissect.settings.screens import Settings
from kdissect.settings.session import LastSession
from kdissect.tui.keys import help_of, is_called
from kdissect.tui.pages.exchanges import ExchangesPage
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, settle, shown_after

ERRORS = CAPTURES / "errors.pcapng"

Step = Callable[[Pilot[None], ExchangesPage], Awaitable[None]]


def with_page(step: Step, width: int = 120, before: LastSession | None = None) -> LastSession:
    """How the screens were left after a step on the list of exchanges."""
    app = app_of(ERRORS, settings=Settings(before=before or LastSession()))

    async def run() -> None:
        async with running(app, width, 40) as pilot:
            page = app.screen
            assert isinstance(page, ExchangesPage)
            await step(pilot, page)
            app.exit()

    asyncio.run(run())
    return app.session


def cells(page: ExchangesPage) -> tuple[int, int]:
    """Of the tree, and of the bytes."""
    return page.panes.tree_pane.outer_size.width, page.panes.bytes_pane.outer_size.width


def test_the_mouse_drags_it_and_the_next_session_begins_so() -> None:
    found: list[tuple[int, int]] = []

    async def leave(pilot: Pilot[None], page: ExchangesPage) -> None:
        panes = page.panes
        bar, y = panes.bytes_pane.region.x, panes.bytes_pane.region.y + 2
        before = cells(page)
        await pilot.mouse_down(offset=(bar, y))
        assert panes.bytes_pane.has_class("-held")
        await pilot.hover(offset=(bar - 20, y + 1))
        await pilot.mouse_up(offset=(bar - 20, y + 1))
        await settle(pilot)
        assert not panes.bytes_pane.has_class("-held")
        assert abs(panes.bytes_pane.region.x - (bar - 20)) <= 1
        found.append(cells(page))
        assert sum(found[0]) == sum(before)
        assert panes.bytes_pane.bytes_a_line == 8
        await pilot.hover(offset=(bar, y))  # nobody holds it now
        await settle(pilot)
        assert cells(page) == found[0]

    async def begin(pilot: Pilot[None], page: ExchangesPage) -> None:
        assert cells(page) == found[0]

    left = with_page(leave)
    assert left.bytes_percent is not None
    with_page(begin, before=left)


@pytest.mark.parametrize("focus", ["list", "tree", "bytes"])
def test_keys_move_it_wherever_the_focus_is(focus: str) -> None:
    async def step(pilot: Pilot[None], page: ExchangesPage) -> None:
        page.query_one(f"#{focus}").focus()
        before = cells(page)
        await press(pilot, "less_than_sign")
        wider = cells(page)
        assert wider[1] > before[1]
        await press(pilot, "greater_than_sign", "greater_than_sign")
        assert cells(page)[1] < before[1]
        assert sum(cells(page)) == sum(before)
        await press(pilot, *["less_than_sign"] * 12)
        assert cells(page)[0] >= 20, "the tree can still be read"
        await press(pilot, *["greater_than_sign"] * 12)
        assert cells(page)[1] >= 30, "so can the bytes"
        assert page.panes.bytes_pane.bytes_a_line == 4

    with_page(step)


def test_one_pane_has_all_the_room_after_the_bar_was_moved() -> None:
    async def step(pilot: Pilot[None], page: ExchangesPage) -> None:
        for key in ("less_than_sign", "tab", "tab", "backslash"):
            await press(pilot, key)
        assert page.panes.bytes_pane.outer_size.width == 120
        for key in ("backslash", "x"):
            await press(pilot, key)
        assert page.panes.tree_pane.outer_size.width == 120

    with_page(step)


def test_without_a_bar_the_key_says_so() -> None:
    async def step(pilot: Pilot[None], page: ExchangesPage) -> None:
        text = await shown_after(pilot, "enter", "less_than_sign")
        assert "side by side" in text
        assert page.panes.sides.percent is None
        await press(pilot, "x")
        assert page.panes.bytes_pane.outer_size.width == 80

    with_page(step, 80)


def test_the_palette_and_the_help_know_it() -> None:
    async def step(pilot: Pilot[None], page: ExchangesPage) -> None:
        told = {what: keys for _, rows in help_of(page) for keys, what in rows}
        assert told["more room for the bytes"] == "<"
        assert told["less room for the bytes, more for the tree"] == ">"
        assert is_called("more-bytes", "resize hex")

    with_page(step)
