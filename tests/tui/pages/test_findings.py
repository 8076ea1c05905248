"""The screen of findings."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kdissect import explain, read
from kdissect.filter.compiled import compile_filter
from kdissect.insight.finding import Finding
from kdissect.settings.screens import Settings
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.pages.findings import FindingsPage
from kdissect.tui.widgets.time_line import GUTTER, TimeLine
from tests.amount import some
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, screen_text, settle, shown_after

INCIDENTS = CAPTURES / "incidents"
KILLED = INCIDENTS / "member-killed.pcapng.gz"


@cache
def killed() -> tuple[Finding, ...]:
    """What is found in it."""
    return tuple(explain(KILLED).findings)


Pressing = Callable[[Pilot[None]], Awaitable[None]]


def with_app(step: Pressing, path: Path = KILLED, width: int = 120, height: int = 40) -> None:
    """Run a step on the screens of a capture."""

    async def run() -> None:
        async with running(app_of(path), width, height) as pilot:
            await step(pilot)

    asyncio.run(run())


async def filtered(pilot: Pilot[None]) -> Kdissect:
    """The application when the filter is done, with its second stage."""
    app = pilot.app
    assert isinstance(app, Kdissect)
    for _ in range(200):
        await settle(pilot)
        if app.shown.progress is None:
            break
    return app


def test_enter_leads_to_where_it_was_found() -> None:
    """Its filter may show what was long before."""

    async def step(pilot: Pilot[None]) -> None:
        row, wanted = next(
            (row, each.exchanges[0])
            for row, each in enumerate(killed())
            if each.exchanges and each.shown_by and f"number == {each.exchanges[0]}" not in each.shown_by
        )
        await press(pilot, "9", *["down"] * row, "enter")
        app = await filtered(pilot)
        page = app.screen
        assert isinstance(page, ExchangesPage)
        numbers = [app.index.value("number", place) for place in app.shown.places]
        place = page.chosen_place()
        assert place is not None
        assert app.index.value("number", place) == min(each for each in numbers if each >= wanted)
        assert min(numbers) < wanted  # else the first row would do
        assert page.list_pane.cursor - page.list_pane.scroll_offset.y < page.list_pane.page - 1

    with_app(step)


def test_who_leaves_the_exchange_that_was_sought_is_not_led_back_to_it() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, Kdissect)
        page = app.pages["exchanges"]
        assert isinstance(page, ExchangesPage)
        place = app.place_of(400)
        assert place is not None
        await press(pilot, "1", "9")
        app.filter_by("number > 10", place)
        await settle(pilot)
        assert page.chosen_place() == place
        await press(pilot, "home")
        page.reorder()
        assert page.list_pane.cursor == 0

    with_app(step)


def test_what_was_sought_with_a_filter_that_was_taken_back_is_sought_no_more() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, Kdissect)
        page = app.pages["exchanges"]
        assert isinstance(page, ExchangesPage)
        await press(pilot, "1", "home", "9")
        app.filter_by("number > 1000000", app.place_of(400))
        await settle(pilot)
        assert len(page.rows) == 0
        await press(pilot, "escape", "1")
        assert page.list_pane.cursor == 0

    with_app(step)


def test_the_list_does_not_follow_what_comes_where_an_exchange_is_sought() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, Kdissect)
        page = app.pages["exchanges"]
        assert isinstance(page, ExchangesPage)
        place = app.place_of(400)
        await press(pilot, "1", "F")
        assert page.follow
        await press(pilot, "9")
        app.filter_by("number > 10", place)
        await settle(pilot)
        assert page.chosen_place() == place
        assert not page.follow

    with_app(step)


@pytest.mark.parametrize(
    ("height", "wanted"),
    some(
        [(24, False), (35, False), (36, True), (40, True), (60, True)],
        3,
        *((24, False), (35, False), (36, True)),
    ),
)
def test_the_time_line_shows_bytes_where_there_is_room(height: int, wanted: bool) -> None:
    async def run() -> None:
        async with running(app_of(KILLED, home=None), 100, height) as pilot:
            text = await shown_after(pilot)
            assert re.search(r"^ ≤ .*B/s", text, re.M) is not None if wanted else "B/s" not in text
            for each in ("requests ≤", "no errors", "▲", "since" if wanted else "B shows bytes"):
                assert f" {each}" in text
            broker = r"^ broker ≤ .*\n p50 █ p99 ▒ " if height >= 30 else r"^ broker p99≤\S+ \S+ "
            assert re.search(broker, text, re.M)
            text = await shown_after(pilot, "B")
            assert ("has room for requests and bytes" in text) == wanted
            if not wanted:
                assert re.search(r"^ ≤ .*B/s", text, re.M)
                assert "requests ≤" not in text
                assert " B shows requests" in text
                assert "requests ≤" in await shown_after(pilot, "B")

    asyncio.run(run())


def test_until_something_is_judged_it_says_what_it_is_for() -> None:
    async def run() -> None:
        app = app_of(KILLED, home=None)
        async with running(app, 80, 24) as pilot:
            page = app.pages["findings"]
            assert isinstance(page, FindingsPage)
            app.judging.result = lambda asked: None  # type: ignore[method-assign]
            page.counted, app.ended = None, None
            page.rows.show([])
            page.index_grew()
            text = await shown_after(pilot)
            assert "Reading; findings come as they are known" in text
            assert "a time line of all" in text
            assert "No finding so far." in text

    asyncio.run(run())


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
def test_the_worst_is_first_and_all_of_it_is_said_below(size: tuple[int, int]) -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await shown_after(pilot, "9")
        lines = text.splitlines()
        cause = next(at for at, line in enumerate(lines) if "session-timeout" in line)
        assert lines[cause].startswith("critical session-timeout")
        assert lines[cause + 1].startswith("critical └ rebalance-long")
        assert "fraud-2 was removed from the group" in text
        assert "why   It sent no heartbeat" in text
        text = await shown_after(pilot, "j")
        assert "explained by session-timeout" in text
        assert f"{len(killed())} findings" in text

    with_app(step, width=size[0], height=size[1])


def test_enter_leads_to_its_exchanges_and_escape_back_to_it() -> None:
    finding = killed()[1]
    chosen = compile_filter(finding.filter)
    numbers = [each.number for each in read(KILLED) if chosen.matches(each)]

    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "9")
        await press(pilot, "j", "enter")
        app = await filtered(pilot)
        assert app.screen is app.pages["exchanges"]
        assert sorted(app.index.column("number")[app.shown.places].tolist()) == sorted(numbers)
        text = await shown_after(pilot, "escape")
        page = app.screen
        assert isinstance(page, FindingsPage)
        assert page.list_pane.cursor == 1
        assert "explained by session-timeout" in text
        await press(pilot, "tab", "enter")  # from its text too
        assert (await filtered(pilot)).screen is app.pages["exchanges"]

    with_app(step)


def test_a_filter_that_is_written_here_shows_the_exchanges() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, Kdissect)
        await press(pilot, "9", "slash")
        pilot.app.screen.query_one(Input).value = "api == Metadata"
        await press(pilot, "enter")
        assert app.screen is app.pages["exchanges"]
        assert app.shown.text == "api == Metadata"
        await press(pilot, "escape")
        assert app.screen is app.pages["findings"]
        assert app.shown.text == ""

    with_app(step)


def test_a_filter_takes_no_finding_away() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, Kdissect)
        app.shown.push("api == Metadata")
        await filtered(pilot)
        text = await shown_after(pilot, "9")
        assert f"{len(killed())} findings" in text
        assert "filtered time line, all findings" in text

    with_app(step)


def test_a_filter_within_a_range_of_time_takes_no_finding_away_either() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, Kdissect)
        await press(pilot, "9", "right", "G", "r", "home", "enter")
        app.shown.write("api == Metadata")
        await filtered(pilot)
        text = screen_text(app)
        assert "filtered time line, findings of this range" in text

    with_app(step)


def drawn(app: Kdissect) -> tuple[int, int, int]:
    """What the time line draws: requests and errors of what is shown, and all requests; -1 without a
    filter."""
    line = app.screen.query_one(TimeLine)
    assert line.over_time is not None
    everything = int(line.over_time.requests.sum())
    if line.shown is None:
        return -1, -1, everything
    return int(line.shown.requests.sum()), int(line.shown.errors.sum()), everything


FILTERS = ("api == Heartbeat", "error", "request.generation_id > 1", 'client_id == "nobody"')
USUAL = (120, 40)
"""Every filter is tried in this size, and one of them in a small terminal."""


@pytest.mark.parametrize(
    ("text", "size"),
    some(
        product(FILTERS, [(80, 24), USUAL, (240, 70)]),
        5,
        *((text, USUAL) for text in FILTERS),
        (FILTERS[0], (80, 24)),
    ),
)
def test_the_time_line_draws_what_the_filter_shows(text: str, size: tuple[int, int]) -> None:
    width, height = size

    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "9")
        app = await filtered(pilot)
        everything = len(app.index)
        assert drawn(app) == (-1, -1, everything)
        assert "not shown" not in screen_text(app)
        app.shown.push(text)
        await filtered(pilot)
        places = app.shown.places
        assert drawn(app) == (len(places), int(app.index.has_errors()[places].sum()), everything)
        said = screen_text(app)
        assert "filtered time line, all findings" in said
        assert ("· not shown" if height >= 36 else "· hidden B: bytes") in said
        assert ("all ≤" in said) is (height > 24)
        app.shown.toggle()  # the filter is off
        await filtered(pilot)
        assert drawn(app) == (-1, -1, everything)
        app.shown.toggle()
        await filtered(pilot)
        assert drawn(app)[0] == len(places)
        await press(pilot, "1")
        app.shown.push("api == Fetch")  # on another screen
        await press(pilot, "9")
        assert drawn(app)[0] == len(app.shown.places) != len(places)
        app.shown.push("")
        await filtered(pilot)
        assert drawn(app) == (-1, -1, everything)

    with_app(step, width=width, height=height)


def test_a_range_of_time_alone_leaves_the_time_line_whole() -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "9", "right", "G", "r", "home", "enter")
        app = await filtered(pilot)
        assert app.shown.span is not None
        assert drawn(app) == (-1, -1, len(app.index))

    with_app(step)


def test_with_nothing_found_it_says_what_was_looked_at() -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await shown_after(pilot, "9")
        assert "There are no findings." in text
        assert "348 exchanges, 5 connections with Kafka" in text
        assert "judged " in text
        assert "there is nothing to save" in await shown_after(pilot, "enter", "w")

    with_app(step, INCIDENTS / "healthy.pcapng.gz")


def test_with_nothing_found_the_same_keys_lead_to_the_time_line() -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = await on_first(pilot)
        assert page.text_pane.has_focus
        await press(pilot, "right")
        assert page.time_line.has_focus
        await press(pilot, "r", *("right",) * 5, "enter")
        assert page.kdissect.shown.span is not None

    with_home(step, INCIDENTS / "healthy.pcapng.gz")


def test_all_of_a_finding_has_no_time_line_to_go_to() -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = await on_first(pilot)
        await press(pilot, "x", "right")
        assert page.text_pane.has_focus

    with_home(step)


def test_the_table_is_saved_in_the_columns_of_explain(tmp_path: Path) -> None:
    path = tmp_path / "findings.ndjson"

    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "9", "w")
        pilot.app.screen.query_one(Input).value = str(path)
        assert f"{len(killed())} rows" in await shown_after(pilot, "enter")

    with_app(step)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["finding"] for row in rows] == [each.id for each in killed()]
    assert rows[1]["because"] == rows[0]["key"]


async def on_first(pilot: Pilot[None]) -> FindingsPage:
    page = pilot.app.screen
    assert isinstance(page, FindingsPage)
    return page


def with_home(step: Pressing, path: Path = KILLED, width: int = 120, height: int = 40) -> None:
    """Run a step on the screens as they begin."""

    async def run() -> None:
        async with running(app_of(path, home=None), width, height) as pilot:
            await step(pilot)

    asyncio.run(run())


@pytest.mark.parametrize("size", [(80, 24), (240, 70)])
def test_the_screens_begin_with_what_happened(size: tuple[int, int]) -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = await on_first(pilot)
        text = screen_text(page.kdissect)
        assert "session-timeout" in text
        assert "requests ≤" in text
        assert "▲" in text
        over = page.time_line.over_time
        assert over is not None
        assert int(over.requests.sum()) == len(page.kdissect.index)
        assert page.way_out == "Quit"

    with_home(step, width=size[0], height=size[1])


def test_with_a_filter_they_begin_with_the_exchanges() -> None:
    app = app_of(KILLED, home=None, settings=Settings(filter="api == Metadata"))
    assert app.home == "exchanges"
    app.feed.close()


def test_a_range_of_time_is_a_filter_on_all_screens_until_it_is_taken_back() -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = await on_first(pilot)
        app = page.kdissect
        whole = len(app.index)
        text = await shown_after(pilot, "right", "G", "r", *("left",) * 60, "enter")
        assert "all screens show only this" in text
        over, span = page.time_line.over_time, app.shown.span
        assert over is not None
        assert span == over.span(len(over) - 61, len(over) - 1)
        times = app.index.column("time_ns")
        wanted = int(((times >= span[0]) & (times < span[1])).sum())
        assert 0 < wanted < whole
        assert len(app.shown.places) == wanted
        await press(pilot, "2")
        assert app.shown.span == span
        text = await shown_after(pilot, "9")
        assert "in this range of time, judged from all exchanges" in text
        assert "filtered" not in text
        assert page.list_pane.has_focus
        await press(pilot, "enter")  # the exchanges of a finding
        assert app.screen is app.pages["exchanges"]
        assert app.shown.span == span
        assert len(app.shown.places) <= wanted
        await press(pilot, "escape")
        assert app.screen is page
        await press(pilot, "escape")
        assert app.shown.span is None
        assert len(app.shown.places) == whole

    with_home(step)


def test_findings_of_another_time_are_left_out_and_that_is_said() -> None:
    findings = killed()
    first = min(each.first_ns for each in findings if each.first_ns is not None)

    async def step(pilot: Pilot[None]) -> None:
        page = await on_first(pilot)
        over = page.time_line.over_time
        assert over is not None
        last = over.at(first) - 1
        assert last > 0
        page.kdissect.shown.narrow_to(*over.span(0, last))
        await filtered(pilot)
        text = screen_text(page.kdissect)
        assert f"0 of {len(killed())} findings in this range of time" in text
        assert f"None of {len(killed())} findings is in this range" in text
        text = await shown_after(pilot, "escape")
        assert f"{len(killed())} findings" in text

    with_home(step)


def test_another_range_takes_the_place_of_the_one_before() -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = await on_first(pilot)
        shown = page.kdissect.shown
        shown.push("api == Metadata or api == Heartbeat")
        await press(pilot, "left", "home", "enter", "right", "enter")
        over = page.time_line.over_time
        assert over is not None
        assert shown.span == over.span(1, 1)
        assert shown.text.count("time >=") == 1
        assert "Metadata" in shown.text
        await press(pilot, "escape")
        assert shown.text == "api == Metadata or api == Heartbeat"

    with_home(step)


def test_one_key_shows_all_that_is_said_of_a_finding() -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = await on_first(pilot)
        text = await shown_after(pilot, "x")
        assert "why   It sent no heartbeat" in text
        assert "do    " in text
        assert "requests ≤" not in text
        assert page.way_out == "Back"
        assert "requests ≤" in await shown_after(pilot, "escape")
        assert page.way_out == "Quit"

    with_home(step, width=80, height=24)


@pytest.mark.parametrize("width", some([117, 118, 119, 120, 121], 3, 117, 119, 120))
def test_what_was_judged_ends_before_the_edge(width: int) -> None:
    async def step(pilot: Pilot[None]) -> None:
        line = (await shown_after(pilot, "9")).splitlines()[-2]
        assert len(line) < width
        assert line.endswith(("(needs 60 s)", "rules judged, 2 not"))

    with_app(step, width=width)


@pytest.mark.parametrize(("name", "is_told"), [("healthy", False), ("member-killed", True)])
def test_the_footer_has_the_key_for_all_of_a_finding_where_there_is_one(name: str, is_told: bool) -> None:
    async def step(pilot: Pilot[None]) -> None:
        shown = await shown_after(pilot, "9")
        assert ("x All of it" in shown.splitlines()[-1]) is is_told

    with_app(step, INCIDENTS / f"{name}.pcapng.gz")


def test_the_mouse_chooses_a_range() -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = await on_first(pilot)
        await pilot.mouse_down(TimeLine, offset=(GUTTER + 5, 1))
        await pilot.hover(TimeLine, offset=(GUTTER + 9, 1))
        await pilot.mouse_up(TimeLine, offset=(GUTTER + 9, 1))
        await settle(pilot)
        over = page.time_line.over_time
        assert over is not None
        assert page.kdissect.shown.span == over.span(5, 9)
        assert not page.time_line.has_focus

    with_home(step)
