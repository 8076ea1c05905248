"""The screens begin as they were left."""

from __future__ import annotations

import asyncio
from pathlib import Path

from textual.widgets import Input

from kdissect.settings.remembered import Remembered
from kdissect.settings.screens import Settings
from kdissect.settings.session import LastSession
from kdissect.settings.words import LEFT_FILTERED, LEFT_SO
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, screen_text, shown_after

ERRORS = CAPTURES / "errors.pcapng"


NOTHING_LEFT = LastSession()


def left_after(
    *keys: str, typed: str = "", before: LastSession = NOTHING_LEFT, used: Path | None = None
) -> LastSession:
    app = app_of(ERRORS, settings=Settings(before=before), remembered=Remembered(used))

    async def run() -> None:
        async with running(app) as pilot:
            if typed:
                await press(pilot, "slash")
                pilot.app.screen.query_one(Input).value = typed
                await press(pilot, "enter")
            await press(pilot, *keys)
            app.exit()

    asyncio.run(run())
    return app.session


def test_page_order_room_and_a_filter_that_was_written_are_kept() -> None:
    left = left_after("s", "s", "plus", "3", typed="api == Metadata")
    assert left == LastSession("topics", "api == Metadata", (), ("latency_ns", True), 6)


def test_the_order_is_kept_where_another_screen_led_to_a_list_in_order_of_time() -> None:
    by_latency = ("latency_ns", True)
    assert left_after("s", "s", "9", "enter").sort == by_latency
    assert left_after("s", "s", "9", "enter", "9").sort == by_latency
    assert left_after("s", "s", "9", "enter", "6", "enter").sort == by_latency
    assert left_after("s", "s", "9", "enter", "6", "enter", "escape").sort == by_latency
    assert left_after("s", "s", "9", "enter", "s", "s", "S").sort == ("latency_ns", False)


def test_a_filter_that_follows_from_the_capture_is_not() -> None:
    assert left_after("f").filter == ""  # of this connection
    assert left_after(typed='saslauthenticate.request.authBytes == "x"').filter == ""  # may tell a secret


def test_they_begin_so_and_say_it() -> None:
    before = LastSession("problems", "api == Metadata", ("number", "api", "gone"), ("latency_ns", True), 7)
    app = app_of(ERRORS, home=None, settings=Settings(before=before))

    async def run() -> None:
        async with running(app) as pilot:
            assert isinstance(app, Kdissect)
            assert app.screen is app.pages["problems"]
            assert app.shown.text == "api == Metadata"
            text = screen_text(app)
            assert "api == Metadata" in text
            text = await shown_after(pilot, "1")
            page = app.screen
            assert isinstance(page, ExchangesPage)
            assert page.order_of_list == ("latency_ns", True)
            assert page.share == 7
            assert app.columns == ("number", "api")
            assert "by Latency, largest first" in text

    asyncio.run(run())


GROUPED = (("topics", "client"), ("latency", "broker"), ("cluster", "settings"), ("connections", "client"))


def test_the_ways_in_which_rows_were_put_together_come_back() -> None:
    keys = ("3", "g", "g", "g", "5", "g", "C", "g", "g", "2", "g")
    left = left_after(*keys)
    assert sorted(left.groupings) == sorted(GROUPED)
    assert left_after("1", before=left).groupings == left.groupings
    assert left_after("3", "g", before=left).groupings == left.groupings[:1] + left.groupings[2:]


def test_rows_are_put_together_so_from_the_start() -> None:
    before = LastSession(groupings=(*GROUPED, ("topics", "gone"), ("records", "x"), ("gone", "y")))
    app = app_of(ERRORS, settings=Settings(before=before))

    async def run() -> None:
        async with running(app, 160) as pilot:
            assert "by client (g: topic, partition, group)" in await shown_after(pilot, "3")
            assert "Broker" in await shown_after(pilot, "5")
            assert "g: partitions, topics" in await shown_after(pilot, "C")

    asyncio.run(run())


def test_what_is_asked_for_now_wins() -> None:
    settings = Settings(before=LastSession("problems", "api == Fetch"), filter="api == Metadata")
    app = app_of(ERRORS, home=None, settings=settings)

    async def run() -> None:
        async with running(app):
            assert app.shown.text == "api == Metadata"
            assert app.home == "exchanges"

    asyncio.run(run())


def first_screen(before: LastSession, width: int = 120, page: str | None = None) -> str:
    app = app_of(ERRORS, home=page, settings=Settings(before=before))

    async def run() -> str:
        async with running(app, width):
            return screen_text(app)

    return asyncio.run(run())


def test_it_is_only_said_where_something_that_is_shown_came_back() -> None:
    assert f" {LEFT_FILTERED}\n" in first_screen(LastSession(filter="api == Metadata"))
    for before in (
        LastSession("problems"),
        LastSession("exchanges", sort=("latency_ns", True)),
        LastSession("topics", groupings=GROUPED),
    ):
        assert f" {LEFT_SO}\n" in first_screen(before)
    assert LEFT_SO in first_screen(LastSession(groupings=GROUPED), page="topics")
    for before in (
        LastSession(),
        LastSession("findings"),
        LastSession("findings", sort=("latency_ns", True), share=7, groupings=GROUPED),
        LastSession(filter="gone == (", bytes_percent=30),
    ):
        assert "As you left it" not in first_screen(before)


def test_a_filter_that_came_back_is_called_so_until_there_is_another() -> None:
    app = app_of(ERRORS, settings=Settings(before=LastSession(filter="api == Metadata")))

    async def run() -> None:
        async with running(app, 100) as pilot:
            for key in ("1", "3", "9"):
                text = await shown_after(pilot, key)
                assert "Esc removes the filter of the last session" in text
            text = await shown_after(pilot, "1", "f")
            assert "last session" not in text.replace(LEFT_FILTERED, "")
            assert app.shown.text.startswith("connection")

    asyncio.run(run())


def test_a_filter_that_came_back_and_matches_nothing_here_is_told_with_the_key_that_removes_it() -> None:
    app = app_of(ERRORS, home=None, settings=Settings(before=LastSession(filter="topic == elsewhere")))

    async def run() -> None:
        async with running(app, 100) as pilot:
            assert "✓ 0  Esc removes the filter of the last session" in screen_text(app)
            for key in ("1", "3"):
                text = await shown_after(pilot, key)
                assert "no exchange matches the filter of the last session: Esc removes it" in text
            text = await shown_after(pilot, "1", "escape")
            assert app.shown.text == ""
            assert "no exchange matches" not in text

    asyncio.run(run())


def test_on_80_columns_a_long_filter_leaves_room_for_the_key_that_removes_it() -> None:
    text = "topic == elsewhere or topic == anywhere or topic == somewhere or topic == nowhere"
    app = app_of(ERRORS, home=None, settings=Settings(before=LastSession(filter=text)))

    async def run() -> None:
        async with running(app, 80, 24) as pilot:
            assert "As you left it" in screen_text(app)
            line = next(each for each in screen_text(app).splitlines() if each.startswith(" / topic"))
            assert line.endswith("…  ✓ 0  Esc removes the filter of the last session")
            assert "broker time" not in screen_text(app)  # of nothing
            text = await shown_after(pilot, "escape")
            assert app.shown.text == ""
            assert "As you left it" not in text

    asyncio.run(run())
