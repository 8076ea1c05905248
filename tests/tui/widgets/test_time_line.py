"""The words before the time lines."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from kdissect.feed.summary import NONE, OverTime
from kdissect.tui.widgets.time_line import GUTTER, TimeLine, _levels, _most_of
from tests.cli.run import CAPTURES
from tests.kafka import Talk, request
from tests.present.captures import port as client
from tests.present.captures import write_capture
from tests.tui.snapshots import app_of, running, screen_text


@pytest.mark.parametrize("name", ["requests", "errors"])
@pytest.mark.parametrize("rate", [0.4, 2.8, 99.0, 1_508.0, 98_765.0, 1_234_567.0, 987_654_321.0])
def test_a_rate_keeps_its_unit(name: str, rate: float) -> None:
    text = _most_of(name, rate)
    assert len(text) < GUTTER - 1  # a blank stands before it and behind it
    assert text.endswith("/s") or text.endswith(f"/s {name}")


def test_what_took_no_time_has_counts_and_no_rates(tmp_path: Path) -> None:
    talks = [Talk(client=client(at)).ask(request("Metadata", 1, 1, topics=[])).close() for at in range(8)]
    path = write_capture(tmp_path / "at-once.pcapng", *talks)

    async def run() -> None:
        async with running(app_of(path, home="findings")) as pilot:
            text = screen_text(pilot.app)
            assert "requests" in text
            assert "/s" not in text.partition("since the start")[0]

    asyncio.run(run())


def test_the_signs_of_bars_have_the_colours_of_the_bars() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng", home="findings"), 120, 40) as pilot:
            line = pilot.app.screen.query_one(TimeLine)
            label = line.render_line(1).crop(0, GUTTER)
            for sign, bars in (("█", "time--half"), ("▒", "time--most")):
                (style,) = (each.style for each in label if sign in each.text)
                assert style == line.get_component_rich_style(bars)

    asyncio.run(run())


@pytest.mark.parametrize("most", [0, -300])
def test_brokers_that_took_no_time_are_drawn_as_low_as_can_be(most: int) -> None:
    found = _levels(np.array([NONE, most, most]), 1, most, 4)
    assert found.tolist() == [0, 1, 1]


def test_times_are_drawn_between_the_least_and_the_most() -> None:
    assert _levels(np.array([10, 100, 1_000, 0]), 10, 1_000, 2).tolist() == [1, 8, 16, 1]


def line_over(length_ns: int, requests: list[int], errors: list[int]) -> TimeLine:
    """A time line with spans of a length, with so many requests and errors each."""
    none = np.full(len(requests), NONE)
    counts = np.array(requests), np.array(errors), np.array(requests)
    line = TimeLine()
    line.over_time = OverTime(0, 0, length_ns, *counts, none, none)
    return line


@pytest.mark.parametrize(
    ("column", "said"),
    [(0, "1 request · 1 error"), (1, "2 requests · 0 errors"), (2, "1,000 requests · 2 errors")],
)
def test_one_is_not_said_to_be_many(column: int, said: str) -> None:
    line = line_over(10**8, [1, 2, 1_000], [1, 0, 2])
    assert said in line.words((column, column))


@pytest.mark.parametrize(("most", "label"), [(1, "≤ 1 error"), (3, "≤ 3 errors")])
def test_the_most_in_a_short_time_is_a_count(most: int, label: str) -> None:
    assert line_over(1_000, [3], [most])._bars(0, 1, "error")[0] == label


def filtered(requests: list[int], shown: list[int], errors: list[int], bad: list[int]) -> TimeLine:
    """A time line of which a filter shows some."""
    line = line_over(10**8, requests, errors)
    line.shown = line_over(10**8, shown, bad).over_time
    return line


def test_with_a_filter_the_words_say_how_many_of_all() -> None:
    line = filtered([32, 1], [3, 0], [2, 1], [1, 0])
    assert "3 of 32 requests · 1 of 2 errors" in line.words((0, 0))
    assert "0 of 1 request · 0 of 1 error" in line.words((1, 1))
    assert "3 of 33 requests · 1 of 3 errors" in line.words((0, 1))


def test_with_a_filter_bars_are_of_what_it_shows_and_dots_of_what_it_does_not() -> None:
    line = filtered([32, 1, 0], [4, 0, 0], [2, 1, 0], [0, 0, 0])
    label, cells = line._bars(0, 1, "requests")
    assert "".join(each for each, _ in cells) == "█· "
    assert label == "requests ≤ 40/s"
    label, cells = line._bars(0, 1, "error")
    assert "".join(each for each, _ in cells) == "·· "
    assert label == "no error shown"
    label, cells = line._all_requests()
    assert "".join(each for each, _ in cells) == "█▁ "
    assert label == "all ≤ 320/s"


@pytest.mark.parametrize("text", ["no request shown", "no error shown"])
def test_that_nothing_is_shown_has_room(text: str) -> None:
    assert len(text) < GUTTER - 1
