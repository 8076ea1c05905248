"""A range of time that was chosen is a filter on all screens, until it is taken back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kdissect.tui.app import Kdissect
from tests.amount import some
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, settle

KILLED = CAPTURES / "incidents" / "member-killed.pcapng.gz"
FIRST_THIRD = ("left", "home", "r", *["right"] * 20, "enter")


def with_range(step: Callable[[Pilot[None], Kdissect, tuple[int, int]], Awaitable[None]]) -> None:
    async def run() -> None:
        app = app_of(KILLED, home=None)
        async with running(app, 80, 24) as pilot:
            await press(pilot, *FIRST_THIRD)
            span = app.shown.span
            assert span is not None
            await step(pilot, app, span)

    asyncio.run(run())


async def write(pilot: Pilot[None], text: str) -> None:
    await press(pilot, "slash")
    pilot.app.screen.query_one(Input).value = text
    await settle(pilot)
    await press(pilot, "enter")


def all_within(app: Kdissect, span: tuple[int, int]) -> bool:
    times = app.index.column("time_ns")[app.shown.places]
    return len(times) > 0 and bool((times >= span[0]).all() and (times < span[1]).all())


@pytest.mark.parametrize("page", some(["1", "3", "7", "9"], 2, "1", "7"))
def test_a_filter_that_is_written_stays_in_it(page: str) -> None:
    async def step(pilot: Pilot[None], app: Kdissect, span: tuple[int, int]) -> None:
        await press(pilot, page, "slash")
        assert pilot.app.screen.query_one(Input).value == ""
        await press(pilot, "escape")
        await write(pilot, "api == Produce or api == Fetch")
        assert app.shown.span == span
        assert all_within(app, span)
        await press(pilot, "slash")
        assert pilot.app.screen.query_one(Input).value == "api == Produce or api == Fetch"
        await press(pilot, "escape")
        await write(pilot, "")
        assert app.shown.span == span
        assert app.shown.written == ""

    with_range(step)


@pytest.mark.parametrize(
    "keys", [("f",), ("j", "equals_sign"), ("exclamation_mark",), ("f", "vertical_line")]
)
def test_what_filters_by_the_cursor_stays_in_it(keys: tuple[str, ...]) -> None:
    async def step(pilot: Pilot[None], app: Kdissect, span: tuple[int, int]) -> None:
        await press(pilot, "1", *keys)
        assert app.shown.written
        assert app.shown.span == span
        assert all_within(app, span)

    with_range(step)


def test_another_range_takes_its_place_and_leaves_the_filter() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, span: tuple[int, int]) -> None:
        await press(pilot, "3")
        await write(pilot, "api == Fetch")
        end = app.index.last_ns
        assert end is not None
        app.shown.narrow_to(span[1], end)
        assert app.shown.span == (span[1], end)
        assert app.shown.written == "api == Fetch"
        await press(pilot, "escape")
        assert app.shown.text == "api == Fetch"
        await press(pilot, "escape")
        assert app.shown.text == ""

    with_range(step)
