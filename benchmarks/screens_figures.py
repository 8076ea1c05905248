"""The measurements of the screens, inside their process."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from textual.pilot import Pilot
from textual.screen import Screen

from kdissect.feed.batches import Feed
from kdissect.settings.places import PAGE_KEYS, PAGES
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.pages.findings import FindingsPage
from kdissect.tui.pages.records import RecordsPage
from kdissect.tui.pages.statistics import StatisticsPage
from kdissect.tui.widgets.table import VirtualTable

KEYS = ("j", "j", "k", "pagedown", "pagedown", "pageup", "end", "k", "home", "e", "e", "E")
"""Keys that are pressed again and again. Each changes the screen: a key that changes nothing would be
answered by the next frame of the reading."""
KEYS_OF_ALL = ("j", "j", "k", "pagedown", "pageup", "end", "home", "j")
"""Keys that are pressed on each screen."""
COLUMN_FILTERS = (
    "api == Fetch and latency > 5ms",
    "error",
    'client_id contains "producer"',
    'topic == "java43-basic" or connection in {5..50}',
    "not error and response_size > 1KiB and client.port > 40000",
)
DEEP_FILTER = "fetch.request.maxWaitMs == 500"
LOOKED_AT_SECONDS = 4.0
"""The seconds for which people look at the first page before they open another one."""
FRAME_SECONDS, FILL_SECONDS = 2.0, 2.0
"""The most seconds to wait for the frame of a key, and for the parts that a screen shows later."""
SLOWEST = 5
"""How many keys are reported one by one, the slowest first."""


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
    drawn_at = answered_at = worked = 0.0
    """The time of the last frame, the time of the frame with a key's change, and the processor time of its
    thread by then."""
    before: Seen | None = None
    """The state before the key."""
    drawn: asyncio.Event
    """Set when a frame with another state than before the key was drawn."""
    first_page = 0.0
    """Seconds from the start to the first frame with exchanges; 0 before."""

    def seen(self) -> Seen:
        """The current state."""
        tables = [each for each in self.screen.query(VirtualTable) if each.display]
        cursors = tuple(each.cursor for each in tables)
        return Seen(self.screen, cursors, tuple(each.scroll_offset.y for each in tables))

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        self.drawn_at, worked = time.perf_counter(), time.thread_time()
        if screen is self.screen and not self.drawn.is_set() and self.seen() != self.before:
            self.worked = worked
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
    where: str = ""
    """The screen and the key."""


class Bench:
    """A run of the application."""

    def __init__(self, app: Watched, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def key_to_frame(self, key: str) -> Answer | None:
        """The times of a key up to the frame that shows its change; None if it changed nothing."""
        app = self.app
        app.drawn.clear()
        app.before = before = app.seen()
        where = f"{type(app.screen).__name__} {key}"
        began, worked = time.perf_counter(), time.thread_time()
        app.simulate_key(key)
        await self._dealt_with()
        handled = time.perf_counter() - began
        if app.seen() == before:
            return None
        await asyncio.wait_for(app.drawn.wait(), FRAME_SECONDS)
        return Answer(app.answered_at - began, app.worked - worked, handled, where)

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
        return page.counted is not None or not page.asked()
    return not isinstance(page, ExchangesPage | RecordsPage) or page.is_at_rest


def memory() -> int:
    """The resident bytes of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _ms(name: str, seconds: float, limit: float | None = None) -> Figure:
    return Figure(name, seconds * 1_000, "ms", limit)


def _percentile(values: Iterable[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[max(1, -(-percent * len(ordered) // 100)) - 1]


def _of_keys(name: str, answers: Sequence[Answer], limit: float | None = None) -> Iterator[Figure]:
    """The times of keys: the median, and nearly all."""
    for percent in (50, 99):
        at_most = limit if percent == 99 else None
        waited = _percentile((each.waited for each in answers), percent)
        worked = _percentile((each.worked for each in answers), percent)
        yield _ms(f"{name}, p{percent}", waited, at_most)
        yield _ms("  of processor time", worked)


async def measure(
    feed: Feed, since: float, keys: int = 300, wait: float = 3_600, *, all_screens: bool = False
) -> list[Figure]:
    """All figures of one run over a capture.

    :param keys: how many keys are pressed; if all screens are opened, how many of :data:`KEYS_OF_ALL` on
        each.
    :param wait: the most seconds that reading may take.
    :param all_screens: whether to open each screen and press keys there, instead of everything else.
    """
    app = Watched(feed)
    app.since, app.drawn = since, asyncio.Event()
    try:
        async with app.run_test(size=(160, 48)) as pilot:
            bench = Bench(app, pilot)
            return await (
                _measure_all_screens(bench, keys, wait) if all_screens else _measure(bench, keys, wait)
            )
    finally:
        app.feed.close()


async def _measure(bench: Bench, keys: int, wait: float) -> list[Figure]:
    app = bench.app
    await bench.until(lambda: app.first_page > 0, 60)
    await bench.pilot.press("1")
    out = [_ms("start to first page", app.first_page, 1_500)]
    loading = await bench.keys(keys // 3, pause=0.05)
    if app.ended is None and loading:
        out += _of_keys("key to frame while reading", loading, 50)
    out.append(_ms("the rest of the reading", await bench.until(lambda: app.ended is not None, wait)))
    await bench.pilot.pause(0.5)
    rows = len(app.index)
    out.append(Figure("exchanges", rows, ""))
    out += _of_keys("key to frame", await bench.keys(keys), 50)
    out += await _filters(bench)
    out += await _deep_filter(bench)
    limit = 120 * 1024 + 120 * rows / 1024
    out.append(Figure("memory of the screens", memory() / 1024, "KiB", limit))
    return out


async def _measure_all_screens(bench: Bench, keys: int, wait: float) -> list[Figure]:
    """Each screen while the capture is read, after it was read, and once more."""
    app = bench.app
    await bench.until(lambda: app.first_page > 0, 60)
    out = [_ms("start to first page", app.first_page, 1_500)]
    await asyncio.sleep(LOOKED_AT_SECONDS)
    out += await _all_screens(bench, keys, "while reading")
    was_reading = app.ended is None
    out.append(_ms("the rest of the reading", await bench.until(lambda: app.ended is not None, wait)))
    if not was_reading:
        out.append(Figure("the capture was too small: it was read by then", 1, "", 0))
    await bench.pilot.pause(0.5)
    out += await _all_screens(bench, keys, "when all is read")
    return out


async def _all_screens(bench: Bench, keys: int, when: str) -> list[Figure]:
    """The time of each screen until it appears, until it has the parts that are made in the background, and
    until it answers keys."""
    opened, pressed, filled, out = [], [], [], []
    unmoved = 0
    for name, key in PAGE_KEYS.items():
        answer = await bench.key_to_frame(key)
        if answer is not None:
            opened.append(answer)
            out.append(_ms(f"  {PAGES[name]}", answer.waited))
            taken = await bench.until_filled()
            filled += [] if taken is None else [taken]
            out.append(_ms("    filled after that", FILL_SECONDS if taken is None else taken))
        await asyncio.sleep(0.3)
        for each in KEYS_OF_ALL[:keys]:
            answer = await bench.key_to_frame(each)
            if answer is not None:
                pressed.append(answer)
            else:
                unmoved += 1
            await asyncio.sleep(0.05)
    slowest = sorted(pressed, key=lambda each: -each.waited)[:SLOWEST]
    return [
        *_of_keys(f"key to another screen {when}", opened),
        *out,
        _ms(f"a screen is filled {when}, p50", _percentile(filled or [FILL_SECONDS], 50)),
        *_of_keys(f"key on all screens {when}", pressed, 50),
        Figure("  keys that had nothing to change", unmoved, ""),
        *(figure for each in slowest for figure in _told(each)),
    ]


def _told(answer: Answer) -> Iterator[Figure]:
    yield _ms(f"  {answer.where}", answer.waited)
    yield _ms("    dealt with after", answer.handled)
    yield _ms("    of processor time", answer.worked)


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
        out.append(_ms(f"columns: {text[:34]}", time.perf_counter() - began, 50))
        began = time.perf_counter()
        shown.push(text)
        await bench.until(lambda began=began: bench.app.drawn_at > began, 5)  # type: ignore[misc]
        out.append(_ms("  to its frame", bench.app.drawn_at - began))
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
    out = [_ms("deep filter, first results", time.perf_counter() - began, 500)]
    times = await bench.keys(50, pause=0.05)
    if times:
        out += _of_keys("key to frame while it goes on", times)
    began = time.perf_counter()
    shown.pop()
    await bench.until(lambda: shown.progress is None, 5)
    out.append(_ms("deep filter, left", time.perf_counter() - began))
    return out
