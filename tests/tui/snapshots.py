"""What stands on the screen, as text; and running the application without a terminal.

Nobody sees the frames that an application without a terminal draws. They were more than a third of what these
tests took. So nothing is drawn until a test looks, and at the end of each that did not. ``test_terminal.py``,
``test_screens.py`` and ``test_drawing.py`` draw every frame.
"""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock
from weakref import WeakSet

from rich.console import Console
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot
from textual.screen import Screen
from textual.worker import WorkerCancelled

from kdissect.settings.screens import Settings
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage
from tests.feed.feeds import CountedOnce, decoded
from tests.feed.forked import forked_processes

_seen: WeakSet[App[None]] = WeakSet()
"""Applications on whose screens nothing changed since a test looked."""


def screen_text(app: App[None]) -> str:
    """The screen line by line, without colours."""
    width, height = app.size
    console = Console(
        width=width,
        height=height,
        file=io.StringIO(),
        force_terminal=True,
        color_system=None,
        record=True,
        legacy_windows=False,
    )
    console.print(app.screen._compositor.render_update(full=True))
    _seen.add(app)
    return "\n".join(line.rstrip() for line in console.export_text(styles=False).splitlines()) + "\n"


_draw = Screen._compositor_refresh


def _leave_undrawn(screen: Screen[Any]) -> None:
    """What changed counts as drawn. A screen below another hands that on to it, as ever."""
    _seen.discard(screen.app)
    if screen is not screen.app.screen:
        _draw(screen)
        return
    screen._compositor._dirty_regions.clear()
    screen._dirty_widgets.clear()
    screen.app._update_mouse_over(screen)


_parse = Stylesheet._parse_rules
_parsed: dict[Any, list[RuleSet]] = {}


def _parse_once(sheet: Stylesheet, css: str, *read_from: Any, **given: Any) -> list[RuleSet]:
    """Textual parses the styles of all widgets three times for each application."""
    key = (css, read_from, *sorted(given.items()), *sorted(sheet._variables.items()))
    if key not in _parsed:
        _parsed[key] = _parse(sheet, css, *read_from, **given)
    return _parsed[key]


@contextmanager
def among_others() -> Iterator[None]:
    """What an application does in a process that has many others after it.

    In its own it keeps its screens from the collector of cycles, for ever: all tests together left two
    gigabytes. At rest it looks for cycles among all objects: here these are those of all tests before.
    """
    with (
        mock.patch("kdissect.tui.app.keep_what_there_is"),
        mock.patch("kdissect.tui.pages.page.keep_what_there_is"),
        mock.patch("kdissect.tui.app.look_at_all", return_value=False),
        mock.patch.object(Kdissect, "prepares_pages", False),
    ):
        yield


@contextmanager
def undrawn() -> Iterator[None]:
    """Draw only what a test looks at. Parse styles, and count figures of a capture, once for all tests.

    Textual looks up all rules for each widget. Their hash is what Python's own would be, in Python.
    """
    with (
        among_others(),
        forked_processes(),
        mock.patch.object(RuleSet, "__hash__", object.__hash__),
        mock.patch("kdissect.feed.statistics.Counting", CountedOnce),
        mock.patch.object(Screen, "_compositor_refresh", _leave_undrawn),
        mock.patch.object(Stylesheet, "_parse_rules", _parse_once),
    ):
        yield


HASTE = 8
"""How many times faster time passes while nobody has anything to do."""


@contextmanager
def _in_haste() -> Iterator[None]:
    """Shorten the times in which the event loop of an application waits.

    Screens rest between keys and look for news every tenth of a second: these tests waited for half of their
    time. Time passes faster only while nothing is ready. What takes time to do takes as much as ever.
    """
    loop: Any = asyncio.get_running_loop()
    real, select = time.monotonic, loop._selector.select
    skipped = 0.0

    def waited(seconds: float | None) -> Any:
        nonlocal skipped
        if seconds is None or seconds <= 0:
            return select(seconds)
        begin = real()
        found = select(seconds / HASTE)
        skipped += (real() - begin) * (HASTE - 1)
        return found

    def now() -> float:
        return real() + skipped

    with (
        mock.patch.object(loop._selector, "select", waited),
        mock.patch("time.monotonic", now),
        mock.patch("textual._time.get_time", now),
    ):
        yield


LOOK_SECONDS = 0.004
"""How often it is looked whether the application has come to rest."""
DUE_SECONDS = 0.04
"""How soon nothing may be due when it has."""


async def _wait_for_rest(app: Kdissect, min_sleep: float = 0, max_sleep: float = 1) -> None:
    """Wait until nobody has something to do, nor will have soon.

    Textual waits at least 20 ms, twice for each key and once for each pause, and looks how little the process
    does: tests of screens waited for most of their time. The event loop knows, however busy the machine is.
    """
    loop: Any = asyncio.get_running_loop()
    end, quiet = loop.time() + max_sleep * HASTE, 0
    await asyncio.sleep(min_sleep)
    while quiet < 2 and loop.time() < end:
        await asyncio.sleep(LOOK_SECONDS)
        soon = loop.time() + DUE_SECONDS
        due = any(timer.when() < soon for timer in loop._scheduled if not timer.cancelled())
        quiet = 0 if loop._ready or due or _has_messages(app) else quiet + 1


async def _deal_with_messages(app: Kdissect) -> None:
    """Wait until everybody has dealt with what was sent so far. A handler may wait for a process.

    Textual sends a message to every widget and waits until each had it: half of all messages of these tests.
    """
    loop: Any = asyncio.get_running_loop()
    end, quiet, pause = loop.time() + 30 * HASTE, 0, 0.0
    while quiet < 2 and loop.time() < end:
        await asyncio.sleep(pause)
        has_messages = not loop._ready and _has_messages(app)
        quiet = 0 if loop._ready or has_messages else quiet + 1
        pause = LOOK_SECONDS if has_messages else 0
        if app._exception is not None:
            raise app._exception


@contextmanager
def _impatient(app: Kdissect) -> Iterator[None]:
    """Wait no longer than needed."""
    wait = partial(_wait_for_rest, app)

    async def wait_for_screen(_: Pilot[None]) -> bool:
        await _deal_with_messages(app)
        return True

    with (
        mock.patch("textual.app.wait_for_idle", wait),
        mock.patch("textual.pilot.wait_for_idle", wait),
        mock.patch.object(Pilot, "_wait_for_screen", wait_for_screen),
    ):
        yield


@asynccontextmanager
async def running(
    app: Kdissect, width: int = 120, height: int = 40, *, drawn: bool = False
) -> AsyncIterator[Pilot[None]]:
    """The application on a screen of this size, when everything has come to rest.

    :param drawn: whether every frame is drawn.
    """
    try:
        with (
            among_others() if drawn else undrawn(),
            nullcontext() if drawn else _in_haste(),
            nullcontext() if drawn else _impatient(app),
        ):
            async with app.run_test(size=(width, height)) as pilot:
                await settle(pilot)
                yield pilot
                if app.is_running and app not in _seen:
                    screen_text(app)
    finally:
        app.feed.close()


async def settle(pilot: Pilot[None]) -> None:
    """Wait until timers and workers have done what they were asked for."""
    app = pilot.app
    assert isinstance(app, Kdissect)
    page = app.pages["exchanges"]
    assert isinstance(page, ExchangesPage)
    for _ in range(3_000 * HASTE):  # a minute, on a machine that is busy
        await pilot.pause(0.02)
        await _work_done(app)
        # A page below a dialog too: what is saved or copied is what it shows.
        # A key that comes before a dialog is up is lost.
        screens = all(each.is_mounted and getattr(each, "is_at_rest", True) for each in app.screen_stack)
        at_rest = screens and (not page.is_mounted or (page.is_at_rest and not page.finder.is_counting))
        if at_rest and not _has_messages(app):
            break
    # A pause of Textual's sends a message to every widget, which is most of what a test does.
    await _wait_for_rest(app, 0.02)
    await _work_done(app)
    await _wait_for_rest(app)
    app.screen._on_timer_update()


async def _work_done(app: Kdissect) -> None:
    """Wait for workers; one may be taken off by the next of its kind."""
    with suppress(WorkerCancelled):
        await app.workers.wait_for_complete()


def _has_messages(app: Kdissect) -> bool:
    """Whether anybody has something to deal with. Textual tells by how little the process does, which is as
    little where others have the processor."""
    screens = app.screen_stack[-1:]  # none at the end
    widgets = (each for screen in screens for each in screen.walk_children(with_self=True))
    return any(each.message_queue_size for each in (app, *widgets))


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys, and wait. A key waits for figures that its screen still counts, as people do: it is about
    their rows."""
    for key in keys:
        screen = pilot.app.screen
        if not isinstance(screen, ExchangesPage) and not getattr(screen, "is_at_rest", True):
            await settle(pilot)
        await pilot.press(key)
    await settle(pilot)


async def shown_after(pilot: Pilot[None], *keys: str) -> str:
    """What stands on the screen after keys."""
    await press(pilot, *keys)
    return screen_text(pilot.app)


EXCHANGES = Settings(page="exchanges")
"""Begin with the exchanges."""


def app_of(*paths: Path, **given: object) -> Kdissect:
    """The application over captures that are decoded already. It begins with the exchanges, or the screen
    that ``home`` names; None for the usual one."""
    home, settings = given.pop("home", "exchanges"), given.pop("settings", Settings())
    assert home is None or isinstance(home, str)
    assert isinstance(settings, Settings)
    return Kdissect(decoded(*paths), settings=settings._replace(page=home), **given)  # type: ignore[arg-type]
