"""Bars between panes: those that stand above one another, and tree and bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot

from kdissect.settings.screens import Settings
from kdissect.settings.session import LastSession
from kdissect.tui.app import Kdissect
from kdissect.tui.keys import help_of, is_called
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.widgets.split_panes import LEAST_LINES, PanesScreen
from tests.amount import some
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, settle, shown_after

KILLED = CAPTURES / "incidents" / "member-killed.pcapng.gz"


def with_screen(
    home: str,
    step: Callable[[Pilot[None], PanesScreen], Awaitable[None]],
    before: LastSession = LastSession(),  # noqa: B008 - it cannot be changed
    size: tuple[int, int] = (120, 40),
) -> LastSession:
    """How the screens were left after a step on one of them."""
    app = app_of(KILLED, home=home, settings=Settings(before=before))

    async def run() -> None:
        async with running(app, *size) as pilot:
            assert isinstance(app.screen, PanesScreen)
            await step(pilot, app.screen)
            app.exit()

    asyncio.run(run())
    return app.session


def lines(screen: PanesScreen) -> list[int]:
    return [pane.outer_size.height for pane in screen.stacked()]


@pytest.mark.parametrize(
    ("home", "count"),
    some(
        [
            ("findings", 3),
            ("groups", 3),
            ("latency", 2),
            ("records", 2),
            ("facts", 2),
            ("cluster", 3),
            ("problems", 2),
            ("topics", 2),
        ],
        4,
        ("findings", 3),
        ("records", 2),
    ),
)
def test_every_bar_is_dragged(home: str, count: int) -> None:
    async def step(pilot: Pilot[None], screen: PanesScreen) -> None:
        panes = screen.stacked()
        assert len(panes) == count
        for at, pane in enumerate(panes[1:], 1):
            before, bar = lines(screen), pane.region.y
            by = 1 if before[at] > LEAST_LINES else -1
            await pilot.mouse_down(offset=(60, bar))
            assert pane.has_class("-held")
            await pilot.hover(offset=(60, bar + by))
            await pilot.mouse_up(offset=(60, bar + by))
            await settle(pilot)
            assert not pane.has_class("-held")
            assert pane.region.y == bar + by
            after = lines(screen)
            assert (after[at - 1], after[at]) == (before[at - 1] + by, before[at] - by)
            assert sum(after) == sum(before)

    with_screen(home, step)


def test_a_bar_pushes_panes_that_are_as_small_as_can_be() -> None:
    async def step(pilot: Pilot[None], screen: PanesScreen) -> None:
        async def drag(at: int, by: int) -> list[int]:
            bar = screen.stacked()[at].region.y
            to = max(0, min(screen.size.height - 1, bar + by))
            await pilot.mouse_down(offset=(60, bar))
            await pilot.hover(offset=(60, to))
            await pilot.mouse_up(offset=(60, to))
            await settle(pilot)
            return lines(screen)

        first = lines(screen)
        room = sum(first)
        small = await drag(1, first[1] - LEAST_LINES) if first[1] > LEAST_LINES else first
        assert small[1] == LEAST_LINES
        assert await drag(1, 2) == [small[0] + 2, LEAST_LINES, small[2] - 2]
        assert await drag(1, 40) == [room - 2 * LEAST_LINES, LEAST_LINES, LEAST_LINES]
        assert await drag(2, -2) == [room - 2 * LEAST_LINES - 2, LEAST_LINES, LEAST_LINES + 2]
        assert await drag(2, -40) == [LEAST_LINES, LEAST_LINES, room - 2 * LEAST_LINES]

    with_screen("findings", step)


SMALL = ("findings", "groups", "latency", "cluster")


@pytest.mark.parametrize(
    ("home", "height", "has_bars"),
    some(
        ((home, height, height > 23) for home in SMALL for height in (23, 24, 29)),
        6,
        *((home, 24, True) for home in SMALL),
        *((SMALL[0], 23, False), (SMALL[1], 29, True)),
    ),
)
def test_a_small_terminal_has_bars_too_and_a_tiny_one_the_lines(
    home: str, height: int, has_bars: bool
) -> None:
    async def step(pilot: Pilot[None], screen: PanesScreen) -> None:
        panes = screen.stacked()[1:]
        assert panes
        assert [bool(pane.styles.border_top[0]) for pane in panes] == [has_bars] * len(panes)
        if has_bars:
            before, bar = lines(screen), panes[-1].region.y
            by = 1 if before[-1] > LEAST_LINES else -1
            await pilot.mouse_down(offset=(60, bar))
            await pilot.hover(offset=(60, bar + by))
            await pilot.mouse_up(offset=(60, bar + by))
            await settle(pilot)
            assert lines(screen)[-1] == before[-1] - by

    with_screen(home, step, size=(80, height))


def test_keys_move_the_bar_beside_the_pane_with_the_focus() -> None:
    async def step(pilot: Pilot[None], screen: PanesScreen) -> None:
        before = lines(screen)  # the focus is in the list, the second of three
        await press(pilot, "plus")
        after = lines(screen)
        assert after[0] == before[0]
        assert after[1] > before[1]
        assert after[2] < before[2]
        await press(pilot, "tab", "plus", "plus")  # in the last
        assert lines(screen)[2] > after[2]
        await press(pilot, *["plus"] * 20)
        assert lines(screen)[1] == LEAST_LINES
        assert sum(lines(screen)) == sum(before)

    with_screen("findings", step)


def test_room_and_order_of_each_screen_come_back() -> None:
    found: list[int] = []

    async def leave(pilot: Pilot[None], screen: PanesScreen) -> None:
        await press(pilot, "s", "plus", "plus")
        found.extend(lines(screen))

    async def begin(pilot: Pilot[None], screen: PanesScreen) -> None:
        assert sum(lines(screen)) == sum(found) - 1, "the first words have a line for some seconds"
        await screen.query_one("#first").remove()
        await settle(pilot)
        assert lines(screen) == found
        app = pilot.app
        assert isinstance(app, Kdissect)
        assert "Group▴" in await shown_after(pilot, "r")

    left = with_screen("groups", leave)
    assert {page for page, _, _ in left.heights} == {"groups"}
    assert left.orders == (("groups", "Group", False),)
    with_screen("groups", begin, left)


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
