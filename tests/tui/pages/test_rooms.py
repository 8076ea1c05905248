from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot

from kdissect.settings.screens import Settings
from kdissect.settings.session import LastSession
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.rooms import LEAST_LINES, PanesScreen
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


@pytest.mark.parametrize("home", ["findings", "groups", "latency", "cluster"])
@pytest.mark.parametrize(("height", "has_bars"), [(24, True), (29, True), (23, False)])
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
