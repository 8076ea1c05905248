"""Keys on all screens, while a capture is read and after that.

A capture may be read before enough keys are pressed. Then the screens are started again with the same
capture, and go on with the next screen. So each screen gets about as many keys, and all keys count together.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import cycle, islice
from operator import attrgetter
from typing import NamedTuple

from benchmarks.screens_figures import (
    FILL_SECONDS,
    Answer,
    Bench,
    Figure,
    benched,
    milliseconds,
    of_keys,
    percentile,
)
from kdissect.feed.batches import Feed
from kdissect.settings.places import PAGE_KEYS, PAGES

KEYS = (
    *("j", "j", "k", "pagedown", "pageup", "end", "home", "j", "pagedown"),
    *("j", "k", "end", "pageup", "k", "home", "j", "j", "pagedown", "end"),
)
"""Keys that are pressed on each screen."""
ROUNDS = 4
"""How often each screen is opened at most, and its keys are pressed."""
PAUSES = (0.02, 0.05, 0.01, 0.03, 0.07)
"""The pauses between these keys, in seconds: keys come at any moment of the news. With the time of their
answers they come about as often as a terminal repeats a key that is held down."""
LEAST_KEYS = 500
"""The least number of keys of which 99 % tell more than the slowest one."""
MOST_RUNS = 10
"""How often the screens are started at most to press so many keys."""
PERCENTS = 50, 95, 99, 100
LOOKED_AT_SECONDS = 4.0
"""The seconds for which people look at the first page before they open another one."""
OPENED_SECONDS = 0.3
"""The seconds for which people look at a screen before they press a key there."""
SLOWEST = 5
"""How many keys are reported one by one, the slowest first, and then those with the most processor time."""
LEAST_SECONDS = 0.0005
"""The least part of such a key's processor time that is reported."""


class Opened(NamedTuple):
    """A screen that a key opened."""

    name: str
    answer: Answer
    filled: float | None
    """The seconds until it had its figures. None if they did not come soon."""


class Pressed(NamedTuple):
    """Keys on some screens, one after another."""

    opened: Sequence[Opened]
    keys: Sequence[Answer]
    unmoved: int
    """The number of keys that had nothing to change."""
    screens: int
    """The number of screens on which all keys were pressed."""
    seconds: float
    """The time for all of it, without the looks at the screens."""

    @property
    def rate(self) -> float:
        """Keys per second."""
        return (len(self.keys) + self.unmoved) / self.seconds if self.seconds else 0.0


class Run(NamedTuple):
    """One start of the screens."""

    first_page: float
    """Seconds to the first page."""
    reading: Pressed
    """Keys while the capture was read, …"""
    rest: float
    """… the seconds until it was read after them, …"""
    after: Pressed | None
    """… and keys after that, if they were wanted."""


async def run(
    feed: Feed,
    since: float,
    first: int = 0,
    *,
    goes_on: bool = True,
    keys: Sequence[str] = KEYS,
    rounds: int = ROUNDS,
    wait: float = 3_600,
) -> Run:
    """Start the screens, and press keys on them.

    :param since: the time of the start, by :func:`time.time`.
    :param first: the place of the first screen among all of them.
    :param goes_on: whether to press keys after the capture is read, too.
    :param rounds: how often each screen is opened at most.
    :param wait: the most seconds that reading may take.
    """
    screens = rounds * len(PAGE_KEYS)
    async with benched(feed, since) as bench:
        app = bench.app
        await bench.until(lambda: app.first_page > 0, 60)
        await asyncio.sleep(LOOKED_AT_SECONDS)
        reading = await press(bench, keys, first, screens, lambda: app.ended is None)
        rest = await bench.until(lambda: app.ended is not None, wait)
        after = None
        if goes_on:
            await bench.pilot.pause(0.5)
            after = await press(bench, keys, 0, screens, lambda: True)
        return Run(app.first_page, reading, rest, after)


async def press(
    bench: Bench, keys: Sequence[str], first: int, screens: int, is_so: Callable[[], bool]
) -> Pressed:
    """Open screens one after another, and press keys on each.

    :param first: the place of the first screen among all of them.
    :param is_so: whether the capture is still in the wanted state. If not, the keys end.
    """
    opened: list[Opened] = []
    pressed: list[Answer] = []
    unmoved = done = 0
    seconds = 0.0
    start = first % len(PAGE_KEYS)
    for name, key in islice(cycle(PAGE_KEYS.items()), start, start + screens):
        answer = await bench.key_to_frame(key)
        if not is_so():
            break
        if answer is not None:
            opened.append(Opened(name, answer, await bench.until_filled()))
        await asyncio.sleep(OPENED_SECONDS)
        began = time.perf_counter()
        for each, pause in zip(keys, cycle(PAUSES), strict=False):
            answer = await bench.key_to_frame(each)
            if not is_so():
                break
            if answer is not None:
                pressed.append(answer)
            else:
                unmoved += 1
            await asyncio.sleep(pause)
        seconds += time.perf_counter() - began
        done += is_so()
    return Pressed(opened, pressed, unmoved, done, seconds)


# -- several runs -------------------------------------------------------------------------------------


def keys_while_reading(runs: Iterable[Run]) -> int:
    """The number of keys of all runs while the capture was read."""
    return sum(len(each.reading.keys) for each in runs)


def next_screen(runs: Iterable[Run]) -> int:
    """The place of the screen with which the next run goes on."""
    return sum(each.reading.screens for each in runs)


def figures_of(runs: Sequence[Run]) -> Iterator[Figure]:
    """The figures of all runs together."""
    yield milliseconds("start to first page", max(each.first_page for each in runs), 1_500)
    yield Figure("starts of the screens", len(runs), "")
    reading = together([each.reading for each in runs])
    yield from _figures(reading, "while reading")
    if len(reading.keys) < LEAST_KEYS:
        yield Figure("too few keys while reading: a larger capture", len(reading.keys), f"of {LEAST_KEYS}", 0)
    yield milliseconds("the rest of the reading", runs[-1].rest)
    for each in runs:
        if each.after is not None:
            yield from _figures(each.after, "when all is read")


def together(parts: Sequence[Pressed]) -> Pressed:
    """The keys of several runs as one."""
    return Pressed(
        [opened for part in parts for opened in part.opened],
        [key for part in parts for key in part.keys],
        sum(part.unmoved for part in parts),
        sum(part.screens for part in parts),
        sum(part.seconds for part in parts),
    )


def _figures(pressed: Pressed, when: str) -> Iterator[Figure]:
    if not pressed.keys:
        return
    opened = {each.name: each for each in reversed(pressed.opened)}  # the first time of each
    filled = [FILL_SECONDS if each.filled is None else each.filled for each in pressed.opened]
    yield from of_keys(f"key to another screen {when}", [each.answer for each in pressed.opened], PERCENTS)
    for name, each in reversed(opened.items()):
        yield milliseconds(f"  {PAGES[name]}", each.answer.waited)
        yield milliseconds("    filled after that", FILL_SECONDS if each.filled is None else each.filled)
    yield milliseconds(f"a screen is filled {when}, p50", percentile(filled or [FILL_SECONDS], 50))
    yield from of_keys(f"key on all screens {when}", pressed.keys, PERCENTS, 50)
    yield Figure("  keys", len(pressed.keys), "")
    yield Figure("  keys that had nothing to change", pressed.unmoved, "")
    yield Figure("  keys per second", pressed.rate, "")
    for screen, spent in _by_screen(pressed.keys):
        yield milliseconds(f"  on {screen}, p99 of processor time", spent)
    every = [*pressed.keys, *(each.answer for each in pressed.opened)]
    for kind, value in (("slow", attrgetter("waited")), ("dear", attrgetter("worked"))):
        for answer in sorted(every, key=value, reverse=True)[:SLOWEST]:
            yield from _figures_of(kind, answer)


def _by_screen(answers: Sequence[Answer]) -> Iterator[tuple[str, float]]:
    """The processor time of nearly all keys on each screen."""
    for screen in dict.fromkeys(each.screen for each in answers):
        yield screen, percentile((each.worked for each in answers if each.screen == screen), 99)


def _figures_of(kind: str, answer: Answer) -> Iterator[Figure]:
    """A key that took long, and where its time went."""
    yield milliseconds(f"  {kind}: {answer.key} on {answer.screen}", answer.waited)
    yield milliseconds("    dealt with after", answer.handled)
    yield milliseconds("    processor time of other threads", answer.beside)
    yield milliseconds("    of processor time", answer.worked)
    for what, seconds in answer.spent.seconds.items():
        count = answer.spent.counts.get(what, 0)
        if seconds >= LEAST_SECONDS:
            yield milliseconds(f"      {what}{f' ({count})' if count else ''}", seconds)
