"""The measurements of the screens, inside their process."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from textual.pilot import Pilot
from textual.screen import Screen

from benchmarks.screens_spent import Spent, SpentTime
from kdissect.feed.batches import Feed
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.pages.findings import FindingsPage
from kdissect.tui.pages.records import RecordsPage
from kdissect.tui.pages.statistics import StatisticsPage
from kdissect.tui.widgets.table import VirtualTable

KEYS = ("j", "j", "k", "pagedown", "pagedown", "pageup", "end", "k", "home", "e", "e", "E")
"""Keys that are pressed again and again. Each changes the screen: a key that changes nothing would be
answered by the next frame of the reading."""
COLUMN_FILTERS = (
    "api == Fetch and latency > 5ms",
    "error",
    'client_id contains "producer"',
    'topic == "java43-basic" or connection in {5..50}',
    "not error and response_size > 1KiB and client.port > 40000",
)
DEEP_FILTER = "fetch.request.maxWaitMs == 500"
FRAME_SECONDS, FILL_SECONDS = 2.0, 2.0
"""The most seconds to wait for the frame of a key, and for the parts that a screen shows later."""


class Figure(NamedTuple):
    """A measured value."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    """The limit that it must not exceed."""

    def __str__(self) -> str:
        limit = "" if self.limit is None else f"  (at most {self.limit:,.0f})"
        return f"{self.name:<44} {self.value:>12,.1f} {self.unit}{limit}"

    @property
    def is_met(self) -> bool:
        """Whether it is within its limit."""
        return self.limit is None or self.value <= self.limit


class Seen(NamedTuple):
    """The state that keys change: the screen, and the positions of its lists."""

    screen: Screen[Any]
    cursors: tuple[int, ...]
    tops: tuple[int, ...]
    """The first visible rows."""


class Watched(Kdissect):
    """The application, which notes when it drew a frame and what was in it."""

    since = 0.0
    """The start of the measurement, by :func:`time.time`."""
    drawn_at = answered_at = worked = beside = 0.0
    """The time of the last frame, the time of the frame with a key's change, and by then the processor time
    of its thread and of all threads."""
    spent: Spent
    """What the thread spends its time on."""
    spent_then: SpentTime
    """The same by the frame with a key's change."""
    _tables: tuple[Screen[Any] | None, Sequence[VirtualTable]] = None, ()
    """The last screen whose tables were looked up, and these."""
    before: Seen | None = None
    """The state before the key."""
    drawn: asyncio.Event
    """Set when a frame with another state than before the key was drawn."""
    first_page = 0.0
    """Seconds from the start to the first frame with exchanges; 0 before."""

    def seen(self) -> Seen:
        """The current state."""
        tables = self.tables_of(self.screen)
        cursors = tuple(each.cursor for each in tables)
        return Seen(self.screen, cursors, tuple(each.scroll_offset.y for each in tables))

    def tables_of(self, screen: Screen[Any]) -> Sequence[VirtualTable]:
        """The shown tables of a screen, looked up once: each time would take a part of a key's time."""
        if screen is not self._tables[0]:
            self._tables = screen, [each for each in screen.query(VirtualTable) if each.display]
        return self._tables[1]

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        self.drawn_at, worked = time.perf_counter(), time.thread_time()
        if screen is self.screen and not self.drawn.is_set() and self.seen() != self.before:
            self.worked, self.beside = worked, time.process_time()
            self.spent_then = self.spent.so_far()
            self.answered_at = self.drawn_at
            self.drawn.set()
        if (
            not self.first_page
            and isinstance(screen, FindingsPage)
            and screen.time_line.over_time is not None
        ):
            self.first_page = time.time() - self.since


class Answer(NamedTuple):
    """The seconds from a key to its frame."""

    waited: float
    worked: float
    """Processor time of the thread that draws, which does not depend on how busy the machine is."""
    handled: float
    """The seconds until the key was handled. After that the frame still has to be drawn."""
    beside: float
    """Processor time of other threads of the process, for which the thread may have had to wait."""
    spent: SpentTime
    """What the thread spent its processor time on."""
    screen: str
    key: str


class Bench:
    """A run of the application."""

    def __init__(self, app: Watched, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def key_to_frame(self, key: str) -> Answer | None:
        """The times of a key up to the frame that shows its change; None if it changed nothing."""
        app = self.app
        app.drawn.clear()
        app.before = before = app.seen()
        name = type(app.screen).__name__.removesuffix("Page")
        spent, beside = app.spent.so_far(), time.process_time()
        began, worked = time.perf_counter(), time.thread_time()
        app.simulate_key(key)
        await self._dealt_with()
        handled = time.perf_counter() - began
        if app.seen() == before:
            return None
        await asyncio.wait_for(app.drawn.wait(), FRAME_SECONDS)
        worked = app.worked - worked
        beside = app.beside - beside - worked
        parts = app.spent_then.after(spent)
        return Answer(app.answered_at - began, worked, handled, beside, parts, name, key)

    async def _dealt_with(self) -> None:
        """Wait until the key was handled by the application, by the focused widget and by all its
        ancestors."""
        app = self.app
        for node in (app, *(app.focused or app.screen).ancestors_with_self):
            passed = asyncio.Event()
            node.call_later(passed.set)
            await passed.wait()

    async def until_filled(self) -> float | None:
        """The seconds from the frame of a screen until it has its figures. None if they do not come soon: the
        part that was read so far may give no rows."""
        began = time.perf_counter()
        while not is_filled(self.app):
            if time.perf_counter() - began > FILL_SECONDS:
                return None
            await asyncio.sleep(0.005)
        return time.perf_counter() - began

    async def keys(self, count: int, pause: float = 0.02) -> list[Answer]:
        """The times of ``count`` keys."""
        out = []
        for number in range(count):
            taken = await self.key_to_frame(KEYS[number % len(KEYS)])
            if taken is not None:
                out.append(taken)
            await asyncio.sleep(pause)
        return out

    async def until(self, what: Callable[[], bool], seconds: float) -> float:
        """Wait for a condition; return how long it took."""
        began = time.perf_counter()
        while not what():
            if time.perf_counter() - began > seconds:
                raise TimeoutError(f"nothing came of it in {seconds} s; {self.app.shown.hints}")
            await asyncio.sleep(0.005)
        return time.perf_counter() - began


def is_filled(app: Kdissect) -> bool:
    """Whether the current screen has the parts that are made in the background: figures, or the chosen
    exchange."""
    page = app.screen
    if isinstance(page, StatisticsPage):
        return page.counted is not None or not page.needed_statistics()
    return not isinstance(page, ExchangesPage | RecordsPage) or page.is_at_rest


def memory() -> int:
    """The resident bytes of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def milliseconds(name: str, seconds: float, limit: float | None = None) -> Figure:
    """A time."""
    return Figure(name, seconds * 1_000, "ms", limit)


def percentile(values: Iterable[float], percent: int) -> float:
    """The value that this part of all values does not exceed."""
    ordered = sorted(values)
    return ordered[max(1, -(-percent * len(ordered) // 100)) - 1]


def of_keys(
    name: str, answers: Sequence[Answer], percents: Sequence[int] = (50, 99), limit: float | None = None
) -> Iterator[Figure]:
    """The times of keys, by percentiles; 100 is the slowest one.

    :param limit: of the 99th percentile.
    """
    for percent in percents:
        at_most = limit if percent == 99 else None
        what = "max" if percent == 100 else f"p{percent}"
        waited = percentile((each.waited for each in answers), percent)
        worked = percentile((each.worked for each in answers), percent)
        yield milliseconds(f"{name}, {what}", waited, at_most)
        yield milliseconds("  of processor time", worked)


@asynccontextmanager
async def benched(feed: Feed, since: float) -> AsyncIterator[Bench]:
    """The application over a feed, without a terminal.

    :param since: the start of the measurement, by :func:`time.time`.
    """
    app = Watched(feed)
    app.since, app.drawn, app.spent = since, asyncio.Event(), Spent()
    try:
        with app.spent.watching():
            async with app.run_test(size=(160, 48)) as pilot:
                yield Bench(app, pilot)
    finally:
        app.feed.close()


async def measure(feed: Feed, since: float, keys: int = 300, wait: float = 3_600) -> list[Figure]:
    """All figures of one run over a capture.

    :param keys: how many keys are pressed.
    :param wait: the most seconds that reading may take.
    """
    async with benched(feed, since) as bench:
        return await _measure(bench, keys, wait)


async def _measure(bench: Bench, keys: int, wait: float) -> list[Figure]:
    app = bench.app
    await bench.until(lambda: app.first_page > 0, 60)
    await bench.pilot.press("1")
    out = [milliseconds("start to first page", app.first_page, 1_500)]
    loading = await bench.keys(keys // 3, pause=0.05)
    if app.ended is None and loading:
        out += of_keys("key to frame while reading", loading, limit=50)
    out.append(
        milliseconds("the rest of the reading", await bench.until(lambda: app.ended is not None, wait))
    )
    await bench.pilot.pause(0.5)
    rows = len(app.index)
    out.append(Figure("exchanges", rows, ""))
    out += of_keys("key to frame", await bench.keys(keys), limit=50)
    out += await _filters(bench)
    out += await _deep_filter(bench)
    limit = 120 * 1024 + 120 * rows / 1024
    out.append(Figure("memory of the screens", memory() / 1024, "KiB", limit))
    return out


async def _filters(bench: Bench) -> list[Figure]:
    """Column filters: the time of the filter itself, and the time to its frame."""
    shown, out = bench.app.shown, []
    for text in COLUMN_FILTERS:
        shown.push("")
        await bench.pilot.pause(0.3)
        chosen = shown.compiled(text)
        assert chosen is not None
        began = time.perf_counter()
        shown.count(chosen)
        out.append(milliseconds(f"columns: {text[:34]}", time.perf_counter() - began, 50))
        began = time.perf_counter()
        shown.push(text)
        await bench.until(lambda began=began: bench.app.drawn_at > began, 5)  # type: ignore[misc]
        out.append(milliseconds("  to its frame", bench.app.drawn_at - began))
    shown.push("")
    await bench.pilot.pause(0.3)
    return out


async def _deep_filter(bench: Bench) -> list[Figure]:
    """A filter that columns alone cannot decide: its first results, and keys while it runs."""
    shown = bench.app.shown
    shown.prepare()  # as the filter line does when it is opened
    await bench.pilot.pause(1.5)
    began = time.perf_counter()
    shown.push(DEEP_FILTER)
    await bench.until(lambda: len(shown.places) > 0, 10)
    out = [milliseconds("deep filter, first results", time.perf_counter() - began, 500)]
    times = await bench.keys(50, pause=0.05)
    if times:
        out += of_keys("key to frame while it goes on", times)
    began = time.perf_counter()
    shown.pop()
    await bench.until(lambda: shown.progress is None, 5)
    out.append(milliseconds("deep filter, left", time.perf_counter() - began))
    return out
