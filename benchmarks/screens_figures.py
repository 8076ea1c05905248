"""The measurements of the screens, inside their process."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle
from typing import Any, NamedTuple

from textual.pilot import Pilot
from textual.screen import Screen

from benchmarks.screens_spent import Spent, SpentTime
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
KEYS_OF_ALL = (
    *("j", "j", "k", "pagedown", "pageup", "end", "home", "j", "pagedown"),
    *("j", "k", "end", "pageup", "k", "home", "j", "j", "pagedown", "end"),
)
"""Keys that are pressed on each screen."""
ROUNDS = 4
"""How often each screen is opened, and its keys are pressed."""
PAUSES = (0.02, 0.05, 0.01, 0.03, 0.07)
"""The pauses between these keys, in seconds: keys come at any moment of the news."""
LEAST_KEYS = 500
"""The least number of keys of which 99 % tell more than the slowest one."""
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
"""How many keys are reported one by one, the slowest first, and then those with the most processor time."""
LEAST_SECONDS = 0.0005
"""The least part of such a key's processor time that is reported."""
OPENED_SECONDS = 0.3
"""The seconds for which people look at a screen before they press a key there."""


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
    feed: Feed,
    since: float,
    keys: int = 300,
    wait: float = 3_600,
    *,
    all_screens: bool = False,
    rounds: int = ROUNDS,
) -> list[Figure]:
    """All figures of one run over a capture.

    :param keys: how many keys are pressed; if all screens are opened, how many of :data:`KEYS_OF_ALL` on
        each.
    :param wait: the most seconds that reading may take.
    :param all_screens: whether to open each screen and press keys there, instead of everything else.
    :param rounds: how often that is done.
    """
    app = Watched(feed)
    app.since, app.drawn, app.spent = since, asyncio.Event(), Spent()
    try:
        with app.spent.watching():
            async with app.run_test(size=(160, 48)) as pilot:
                bench = Bench(app, pilot)
                if all_screens:
                    return await _measure_all_screens(bench, keys, rounds, wait)
                return await _measure(bench, keys, wait)
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


async def _measure_all_screens(bench: Bench, keys: int, rounds: int, wait: float) -> list[Figure]:
    """Each screen while the capture is read, after it was read, and once more."""
    app = bench.app
    await bench.until(lambda: app.first_page > 0, 60)
    out = [_ms("start to first page", app.first_page, 1_500)]
    await asyncio.sleep(LOOKED_AT_SECONDS)
    out += await _all_screens(bench, keys, rounds, "while reading", lambda: app.ended is None)
    out.append(_ms("the rest of the reading", await bench.until(lambda: app.ended is not None, wait)))
    await bench.pilot.pause(0.5)
    out += await _all_screens(bench, keys, rounds, "when all is read", lambda: True)
    return out


async def _all_screens(
    bench: Bench, keys: int, rounds: int, when: str, is_so: Callable[[], bool]
) -> list[Figure]:
    """The time of each screen until it appears, until it has the parts that are made in the background, and
    until it answers keys.

    :param when: the state of the capture.
    :param is_so: whether it still is in that state; if not, no more keys are pressed after the first round.
    """
    opened, pressed, filled, out = [], [], [], []
    unmoved = 0
    places = [(number, *place) for number in range(rounds) for place in PAGE_KEYS.items()]
    for number, name, key in places:
        if number and not is_so():
            break
        answer = await bench.key_to_frame(key)
        if answer is not None:
            opened.append(answer)
        if answer is not None and not number:
            out.append(_ms(f"  {PAGES[name]}", answer.waited))
            taken = await bench.until_filled()
            filled += [] if taken is None else [taken]
            out.append(_ms("    filled after that", FILL_SECONDS if taken is None else taken))
        await asyncio.sleep(OPENED_SECONDS)
        for each, pause in zip(KEYS_OF_ALL[:keys], cycle(PAUSES), strict=False):
            answer = await bench.key_to_frame(each)
            if answer is not None and (is_so() or not number):
                pressed.append(answer)
            else:
                unmoved += 1
            await asyncio.sleep(pause)
    return [
        *_of_keys(f"key to another screen {when}", opened),
        *out,
        _ms(f"a screen is filled {when}, p50", _percentile(filled or [FILL_SECONDS], 50)),
        *_of_keys(f"key on all screens {when}", pressed, 50),
        Figure("  keys", len(pressed), ""),
        Figure("  keys that had nothing to change", unmoved, ""),
        *_of_too_few(len(pressed), when),
        *(_ms(f"  on {screen}, p99 of processor time", spent) for screen, spent in _by_screen(pressed)),
        *(
            figure
            for each in _most(pressed, lambda each: each.waited)
            for figure in _figures_of("slow", each)
        ),
        *(
            figure
            for each in _most(pressed, lambda each: each.worked)
            for figure in _figures_of("dear", each)
        ),
    ]


def _of_too_few(keys: int, when: str) -> Iterator[Figure]:
    if keys < LEAST_KEYS:
        yield Figure(f"too few keys {when}: a larger capture", keys, f"of {LEAST_KEYS}", 0)


def _by_screen(answers: Sequence[Answer]) -> Iterator[tuple[str, float]]:
    """The processor time of nearly all keys on each screen."""
    for screen in dict.fromkeys(each.screen for each in answers):
        yield screen, _percentile((each.worked for each in answers if each.screen == screen), 99)


def _most(answers: Sequence[Answer], value: Callable[[Answer], float]) -> list[Answer]:
    return sorted(answers, key=value, reverse=True)[:SLOWEST]


def _figures_of(kind: str, answer: Answer) -> Iterator[Figure]:
    """A key that took long, and where its time went."""
    yield _ms(f"  {kind}: {answer.key} on {answer.screen}", answer.waited)
    yield _ms("    dealt with after", answer.handled)
    yield _ms("    processor time of other threads", answer.beside)
    yield _ms("    of processor time", answer.worked)
    for what, seconds in answer.spent.seconds.items():
        count = answer.spent.counts.get(what, 0)
        if seconds >= LEAST_SECONDS:
            yield _ms(f"      {what}{f' ({count})' if count else ''}", seconds)


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
