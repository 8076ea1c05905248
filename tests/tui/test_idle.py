"""Nothing changes: no timer runs and nothing is drawn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from unittest import mock

import pytest
from textual.dom import DOMNode
from textual.screen import Screen

from kdissect.settings.places import PAGE_KEYS, PAGES
from kdissect.tui.app import Kdissect
from kdissect.tui.host import ANSWER_SECONDS, MOST_WAIT_SECONDS
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, settle, shown_after


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


def test_a_screen_that_was_made_before_it_is_opened_shows_the_same() -> None:
    async def texts(is_prepared: bool) -> list[str]:
        app = app_of(CAPTURES / "errors.pcapng")
        async with running(app) as pilot:
            if is_prepared:
                app._begin_to_prepare()
                for _ in range(200):
                    app._prepare()
                    await settle(pilot)
                    if all(page.is_running for page in app.pages.values()):
                        break
                assert all(page.is_running for page in app.pages.values())
            return [await shown_after(pilot, key) for key in PAGE_KEYS.values()]

    assert asyncio.run(texts(True)) == asyncio.run(texts(False))


def test_no_screen_is_made_while_keys_come_or_a_dialog_is_open() -> None:
    async def run() -> None:
        app = app_of(CAPTURES / "errors.pcapng")
        async with running(app) as pilot:
            before = [page.is_running for page in app.pages.values()]
            app.touched_at = time.monotonic()
            app._prepare()
            await press(pilot, "question_mark")
            app.touched_at = 0.0
            app._prepare()
            assert [page.is_running for page in app.pages.values()] == before

    asyncio.run(run())


def test_lines_of_a_screen_are_looked_at_once_and_those_of_a_dialog_are_not_kept() -> None:
    async def run() -> None:
        app = app_of(CAPTURES / "errors.pcapng")
        async with running(app) as pilot:
            with (
                mock.patch("kdissect.tui.app.look_at_all", return_value=True) as looked,
                mock.patch("kdissect.tui.app.keep_what_there_is") as kept,
            ):
                app.touched_at = 0.0
                app._rested()
                assert kept.call_count == looked.call_count == 1
                looked.return_value = False  # there was too little to look at
                app._rested()
                looked.return_value = True
                await press(pilot, "question_mark")
                app.touched_at = 0.0
                app._rested()
                assert kept.call_count == 1
                await press(pilot, "escape")

    asyncio.run(run())


def test_news_wait_for_the_frame_of_a_key_but_not_for_long() -> None:
    app = app_of(CAPTURES / "errors.pcapng")
    app.ended = None
    with mock.patch.object(app, "_take_events") as taken:
        app._tick()
        assert taken.call_count == 1
        app.touched_at = time.monotonic()
        app._tick()
        assert taken.call_count == 1
        app._looked_at -= MOST_WAIT_SECONDS  # one key follows the other
        app.touched_at = time.monotonic()
        app._tick()
        assert taken.call_count == 2
        app.touched_at -= ANSWER_SECONDS
        app._tick()
        assert taken.call_count == 3
