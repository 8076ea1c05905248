"""What the benchmark of the screens measures, inside the process of the screens."""

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
"""Pressed again and again. Each changes what is shown: one that changes nothing would be answered by the next
frame of the reading."""
KEYS_OF_ALL = ("j", "j", "k", "pagedown", "pageup", "end", "home", "j")
"""Pressed on each screen."""
COLUMN_FILTERS = (
    "api == Fetch and latency > 5ms",
    "error",
    'client_id contains "producer"',
    'topic == "java43-basic" or connection in {5..50}',
    "not error and response_size > 1KiB and client.port > 40000",
)
DEEP_FILTER = "fetch.request.maxWaitMs == 500"
LOOKED_AT_SECONDS = 4.0
"""How long people look at the first page before they open another."""
FRAME_SECONDS, FILL_SECONDS = 2.0, 2.0
"""How long is waited for the frame of a key, and for what a screen shows later."""
SLOWEST = 5
"""So many keys are told one by one, the slowest first."""


class Figure(NamedTuple):
    """What was measured."""

    name: str
    value: float
    unit: str
    limit: float | None = None
    """What it must not exceed."""

    def __str__(self) -> str:
        limit = "" if self.limit is None else f"  (at most {self.limit:,.0f})"
        return f"{self.name:<44} {self.value:>12,.1f} {self.unit}{limit}"

    @property
    def is_met(self) -> bool:
        """Whether it is within its limit."""
        return self.limit is None or self.value <= self.limit


class Seen(NamedTuple):
    """What keys change: which screen is shown, and where its lists stand."""

    screen: Screen[Any]
    cursors: tuple[int, ...]
    tops: tuple[int, ...]
    """The first rows that are on the screen."""


class Watched(Kdissect):
    """The application, which tells when it drew and what was in the frame."""

    since = 0.0
    """When everything began, by :func:`time.time`."""
    drawn_at = answered_at = worked = 0.0
    """When it drew last, when it drew what a key changed, and how much processor time its thread had taken by
    then."""
    before: Seen | None = None
    """What was to be seen before the key."""
    drawn: asyncio.Event
    """Set when it drew something else than what was to be seen before the key."""
    first_page = 0.0
    """Seconds from the start to the first frame with exchanges; 0 before."""

    def seen(self) -> Seen:
        """What keys change, as it is now."""
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
    """What a key took to its frame, in seconds."""

    waited: float
    worked: float
    """Processor time of the thread that draws: it is the same on a machine that is busy."""
    handled: float
    """How long it took until the key had been dealt with. Then the frame remains to be drawn."""
    where: str = ""
    """The screen and the key."""


class Bench:
    """A run of the application."""

    def __init__(self, app: Watched, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    async def key_to_frame(self, key: str) -> Answer | None:
        """What a key took to the frame that shows what it changed; None if it changed nothing."""
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
        """Wait until the key has gone the way of every key: the application, what has the focus, and all
        that this lies in."""
        app = self.app
        for node in (app, *(app.focused or app.screen).ancestors_with_self):
            passed = asyncio.Event()
            node.call_later(passed.set)
            await passed.wait()

    async def until_filled(self) -> float | None:
        """How long after the frame of a screen its figures are there too; None if they are not there soon:
        no row may come of what was read so far."""
        began = time.perf_counter()
        while not is_filled(self.app):
            if time.perf_counter() - began > FILL_SECONDS:
                return None
            await asyncio.sleep(0.005)
        return time.perf_counter() - began

    async def keys(self, count: int, pause: float = 0.02) -> list[Answer]:
        """What so many keys took."""
        out = []
        for number in range(count):
            taken = await self.key_to_frame(KEYS[number % len(KEYS)])
            if taken is not None:
                out.append(taken)
            await asyncio.sleep(pause)
        return out

    async def until(self, what: Callable[[], bool], seconds: float) -> float:
        """Wait; gives how long it took."""
        began = time.perf_counter()
        while not what():
            if time.perf_counter() - began > seconds:
                raise TimeoutError(f"nothing came of it in {seconds} s; {self.app.shown.hints}")
            await asyncio.sleep(0.005)
        return time.perf_counter() - began


def is_filled(app: Kdissect) -> bool:
    """Whether the screen that is shown has what is made beside it: figures, or the chosen exchange."""
    page = app.screen
    if isinstance(page, StatisticsPage):
        return page.counted is not None or not page.asked()
    return not isinstance(page, ExchangesPage | RecordsPage) or page.is_at_rest


def memory() -> int:
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _ms(name: str, seconds: float, limit: float | None = None) -> Figure:
    return Figure(name, seconds * 1_000, "ms", limit)


def _percentile(values: Iterable[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[max(1, -(-percent * len(ordered) // 100)) - 1]


def _of_keys(name: str, answers: Sequence[Answer], limit: float | None = None) -> Iterator[Figure]:
    """What keys took: half of them, and nearly all."""
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

    :param keys: how many keys are pressed; of :data:`KEYS_OF_ALL` on each screen, where each is opened.
    :param wait: seconds for which reading may go on.
    :param all_screens: whether each screen is opened, and keys are pressed there, instead of all else.
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
    """Each screen while the capture is read, when it was read, and once more."""
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
    """How soon each screen is there, how soon it has what is made beside it, and how soon it answers keys."""
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
    """Column filters: the time that the filter itself takes, and that to its frame."""
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
    """A filter of which the columns do not tell: its first results, and keys while it goes on."""
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
