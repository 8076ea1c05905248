"""The keys of the screen of exchanges that filter, search, order and hold still."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from kdissect import read
from kdissect.feed.batches import Ended
from kdissect.tui.app import Kdissect
from kdissect.tui.lists.exchange_columns import SLOW_SIGN
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.widgets.bytes_pane import BytesPane
from tests.cli.run import CAPTURES
from tests.cli.test_filters import beats
from tests.present.captures import write_capture
from tests.tui.snapshots import EXCHANGES, app_of, press, running, screen_text, settle, shown_after
from tests.tui.test_app import Slow

ERRORS = CAPTURES / "errors.pcapng"
Step = Callable[[Pilot[None], Kdissect, ExchangesPage], Awaitable[None]]


def with_page(step: Step, path: Path = ERRORS, width: int = 120, height: int = 40, **given: object) -> None:
    """Run a step on the screen of a capture."""

    async def run() -> None:
        app = app_of(path, **given)
        async with running(app, width, height) as pilot:
            page = app.pages["exchanges"]
            assert isinstance(page, ExchangesPage)
            await step(pilot, app, page)

    asyncio.run(run())


def listed(page: ExchangesPage) -> list[int]:
    """The numbers of the list, from top to bottom."""
    return [int(number) for number in page.kdissect.index.column("number")[page.rows.view]]


def numbers(**wanted: object) -> list[int]:
    """The numbers of exchanges that have these values."""
    each = list(read(ERRORS))
    return sorted(e.number for e in each if all(getattr(e, name) == value for name, value in wanted.items()))


def test_filtering_by_the_api_of_the_row_and_the_way_back() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        everything = listed(page)
        await press(pilot, "j", "j", "j", "=")
        assert app.shown.text == "api == CreateTopics"
        assert listed(page) == numbers(api="CreateTopics")
        assert page.list_pane.cursor == 0  # still on No. 4
        await press(pilot, "escape", "!")
        assert listed(page) == [each for each in everything if each not in numbers(api="CreateTopics")]
        await press(pilot, "escape")
        assert listed(page) == everything

    with_page(step)


def test_a_filter_by_connection_is_a_filter_like_others() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        text = await shown_after(pilot, "j", "j", "j", "f")
        assert "/ connection == 1  ✓ 11" in text
        assert listed(page) == numbers(connection=1)
        text = await shown_after(pilot, "ctrl+t")
        assert "off; Ctrl-t turns it on" in text
        assert len(listed(page)) == len(app.index)
        await press(pilot, "ctrl+t")
        assert listed(page) == numbers(connection=1)

    with_page(step)


def test_a_filter_that_nothing_matches_leaves_nothing_of_the_exchange_before() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        app.filter_by("api == Envelope")
        text = await shown_after(pilot)
        assert "no exchange matches" in text
        assert "RequestHeader" not in text
        assert "RequestHeader" in await shown_after(pilot, "escape")

    with_page(step)


def test_an_exchange_that_the_filter_hides_can_be_gone_to() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        app.filter_by("api == Fetch")
        await press(pilot)
        app.show_exchange(0)
        await press(pilot)
        assert page.chosen_number == 1
        await press(pilot, "escape")
        assert app.shown.text == "api == Fetch"

    with_page(step)


def test_from_the_request_to_the_response_and_back() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        pane = page.query_one(BytesPane)
        assert len(pane.data) == 42
        await press(pilot, "o")
        assert len(pane.data) == 895
        await press(pilot, "o")
        assert len(pane.data) == 42

    with_page(step)


def test_one_side_alone_has_no_other() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        app.filter_by("no_request or no_response")
        await press(pilot)
        assert "there is no re" in await shown_after(pilot, "o")

    with_page(step, CAPTURES / "loss.pcapng")


def test_ordering_by_a_column_that_is_chosen_or_clicked() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        assert "by Latency, largest first" in await shown_after(pilot, *["right"] * 6, "s")
        slowest = max(read(ERRORS), key=lambda each: each.latency_ns or 0)
        assert listed(page)[0] == slowest.number
        assert "by Latency, smallest first" in await shown_after(pilot, "s")
        await pilot.click("#list", offset=(7, 0))
        await settle(pilot)
        assert listed(page) == sorted(listed(page))
        assert "cannot be ordered" in await shown_after(pilot, *["left"] * 5, "s")

    with_page(step)


def test_pausing_holds_the_list_still_and_following_lets_it_go() -> None:
    async def run() -> None:
        feed = Slow()
        app = Kdissect(feed, settings=EXCHANGES)
        async with running(app) as pilot:
            page = app.pages["exchanges"]
            assert isinstance(page, ExchangesPage)
            feed.waiting.append(feed.part(0, 10, texts=True))
            await pilot.pause(0.3)
            await press(pilot, "space")
            feed.waiting.append(feed.part(10, 30))
            await pilot.pause(0.3)
            assert "paused, 20 more" in await shown_after(pilot)
            assert len(listed(page)) == 10
            text = await shown_after(pilot, "space")
            assert "paused" not in text
            assert len(listed(page)) == 30
            await press(pilot, "space", "F")
            feed.waiting += [feed.part(30, 40), Ended()]
            await pilot.pause(0.3)
            await settle(pilot)
            assert "following" in screen_text(app)
            assert page.chosen_number == listed(page)[-1]
            assert len(listed(page)) == 40

    asyncio.run(run())


def test_a_filter_that_another_screen_sets_ends_the_pause() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        await press(pilot, "space")
        assert "paused" in screen_text(app)
        await press(pilot, "9")
        app.filter_by("api == Metadata")
        await settle(pilot)
        assert listed(page) == [each.number for each in read(ERRORS) if each.api == "Metadata"]
        assert "paused" not in screen_text(app)

    with_page(step)


def test_following_begins_again_at_the_end_of_what_still_grows() -> None:
    async def run() -> None:
        feed = Slow()
        app = Kdissect(feed, settings=EXCHANGES)
        async with running(app) as pilot:
            page = app.pages["exchanges"]
            assert isinstance(page, ExchangesPage)
            feed.waiting.append(feed.part(0, 10, texts=True))
            await pilot.pause(0.3)
            await press(pilot, "j")
            assert not page.follow
            assert "following" in await shown_after(pilot, "G")
            feed.waiting.append(Ended())
            await pilot.pause(0.3)
            await press(pilot, "k", "G")
            assert not page.follow

    asyncio.run(run())


def test_marks_stand_before_the_row() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        app.marks.toggle(5)
        app.marks.set_comment(2, "look")
        page.marks_changed()
        lines = (await shown_after(pilot)).splitlines()
        assert any(line.startswith("✗★") and " 5 " in line for line in lines)
        assert any(line.startswith(" ✎") and " 2 " in line for line in lines)

    with_page(step)


def test_times_since_the_row_above() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        page.rows.clock.letter = "a"
        text = await shown_after(pilot, "t")
        assert "since the line before" in text
        first, second = (line.replace(SLOW_SIGN, " ").split() for line in text.splitlines()[3:5])
        assert first[1] == "0.000000"
        assert second[1] == "0.079850"
        app.filter_by("number in {1, 3}")
        lines = (await shown_after(pilot)).splitlines()
        assert lines[5].replace(SLOW_SIGN, " ").split()[1] == "0.087895"

    with_page(step)


def test_where_nothing_is_slow_every_screen_says_why(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        app.filter_by("slow")
        why = "nothing is slow: no exchange took longer than 99 % of its API"
        assert why in await shown_after(pilot)
        for key in "235":
            assert why in await shown_after(pilot, key), key

    with_page(step, write_capture(tmp_path / "beats.pcapng", beats(6, slow=set())), width=160)


def test_where_something_is_slow_but_not_what_is_asked_for_nothing_else_is_said(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        app.filter_by("slow and number == 1")
        assert "no exchange matches" in await shown_after(pilot)

    with_page(step, write_capture(tmp_path / "beats.pcapng", beats(6, slow={3})))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 20)])
def test_there_is_a_filter_line_where_there_is_little_room(width: int, height: int) -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        app.filter_by("api == Metadata")
        text = await shown_after(pilot)
        assert "/ api == Metadata  ✓" in text
        assert "Metadata v13" in text

    with_page(step, width=width, height=height)
