"""Nothing changes: no timer runs and nothing is drawn."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from textual.dom import DOMNode
from textual.screen import Screen

from kdissect.settings.actions import PAGES
from kdissect.tui.app import Kdissect
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, settle


def running_timers(app: Kdissect) -> Iterator[str]:
    """The names of timers that will go off without anything happening first."""
    nodes: list[DOMNode] = [app]
    for screen in [*app.screen_stack, *app.pages.values()]:
        nodes += [screen, *screen.query("*")]
    for node in nodes:
        for timer in node._timers:
            if timer._task is not None and not timer._task.done() and timer._active.is_set():
                yield f"{node}: {timer.name}"


async def at_rest(app: Kdissect) -> None:
    """Wait until the timers of what was done last have gone off."""
    for _ in range(100):
        if not list(running_timers(app)):
            return
        await asyncio.sleep(0.02)
    assert list(running_timers(app)) == []


def test_an_idle_screen_runs_no_timer_and_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    refresh, frames = Screen._on_timer_update, 0

    def counted(screen: Screen[object]) -> None:
        nonlocal frames
        frames += 1
        refresh(screen)

    monkeypatch.setattr(Screen, "_on_timer_update", counted)

    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng")) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            for name in PAGES:
                app.action_page(name)
                await settle(pilot)
                await at_rest(app)
                before = frames
                await asyncio.sleep(0.2)
                assert list(running_timers(app)) == [], name
                assert frames == before > 0, name

    asyncio.run(run())


def test_so_does_an_idle_dialog() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng")) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            for keys in (("w", "enter"), ("semicolon",), ("question_mark",), ("slash",)):
                await press(pilot, *keys)
                assert app.focused is not app.pages["exchanges"].query_one("#list")
                await at_rest(app)
                await press(pilot, "escape", "escape")

    asyncio.run(run())
