"""The story of an exchange: what led to it and what followed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kdissect import read
from kdissect.analysis.neighbours import keys_of
from kdissect.feed.stories import (
    PRODUCER,
    StoryCollector,
    is_story,
    offset_subject,
    producers_of,
    subjects_of,
)
from kdissect.limits import DEFAULTS
from kdissect.record.sets import read_record_set
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.story import HERE, StoryPage
from tests.amount import some
from tests.cli.run import CAPTURES
from tests.shared import requires_shared, shared
from tests.tui.snapshots import app_of, press, running, screen_text, settle, shown_after

TRANSACTIONS = CAPTURES / "transactions-kafka39.pcapng"
Step = Callable[[Pilot[None], Kdissect], Awaitable[None]]


def with_app(step: Step, path: Path = TRANSACTIONS, width: int = 120, height: int = 40) -> None:
    async def run() -> None:
        app = app_of(path)
        async with running(app, width, height) as pilot:
            await step(pilot, app)

    asyncio.run(run())


def test_a_story_has_every_exchange_that_shares_something_and_no_other() -> None:
    exchanges = list(read(TRANSACTIONS))
    end = next(each for each in exchanges if each.api == "EndTxn")
    subjects = list(subjects_of(end))
    assert all(is_story(each.asked) for each in subjects)
    assert subjects[0].title.startswith("transactional id ")
    assert "producer " in subjects[0].title
    telling = StoryCollector(subjects[0].asked, DEFAULTS)
    for each in exchanges:
        telling.feed(each)
    first = [each.number for each in exchanges if set(keys_of(each)) & set(keys_of(end))]
    rows = telling.rows()
    assert {row["line"].exchange for row in rows} <= set(first)
    assert min(first) == rows[0]["line"].exchange
    assert {"InitProducerId", "EndTxn"} <= {each.api for each in exchanges if each.number in first}


def test_the_story_of_a_producer_has_what_it_wrote() -> None:
    exchanges = list(read(TRANSACTIONS))
    written = next(each for each in exchanges if each.api == "Produce" and list(producers_of(each)))
    (producer,) = producers_of(written)
    found = next(each for each in subjects_of(written) if each.kind == PRODUCER)
    assert found.title == f"producer {producer}"
    telling = StoryCollector(found.asked, DEFAULTS)
    for each in exchanges:
        telling.feed(each)
    numbers = {row["line"].exchange for row in telling.rows()}
    told = [each for each in exchanges if each.number in numbers]
    assert {"InitProducerId", "Produce"} <= {each.api for each in told}
    assert all(producer in producers_of(each) for each in told)


def test_no_story_is_offered_twice() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        fetch = next(each.number for each in read(TRANSACTIONS) if each.api == "Produce")
        app.go_to_number(fetch)
        await settle(pilot)
        await press(pilot, "i")
        page = app.screen
        assert isinstance(page, StoryPage)
        titles = [each.title for each in page._subjects]
        assert len(set(titles)) == len(titles) > 1

    with_app(step)


@pytest.mark.parametrize("size", some([(80, 24), (120, 40), (240, 70)], 2, (80, 24), (120, 40)))
def test_one_key_tells_it_and_the_cursor_is_on_the_exchange(size: tuple[int, int]) -> None:
    number = next(each.number for each in read(TRANSACTIONS) if each.api == "EndTxn")

    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        app.go_to_number(number)
        await settle(pilot)
        text = await shown_after(pilot, "i")
        page = app.screen
        assert isinstance(page, StoryPage)
        assert f"#{number} EndTxn" in text
        assert "the story of transactional id" in text
        row = page.rows.row(page.list_pane.cursor)
        assert row["is_here"]
        assert HERE in text
        await press(pilot, "j", "enter")
        after = page.rows.row(page.list_pane.cursor)["line"].exchange
        assert app.screen is app.pages["exchanges"]
        assert app.index.value("number", app.pages["exchanges"].chosen_place() or 0) == after
        await press(pilot, "escape")
        assert app.screen is page
        await press(pilot, "escape")
        assert app.screen is app.pages["exchanges"]
        assert app.index.value("number", app.pages["exchanges"].chosen_place() or 0) == number

    with_app(step, width=size[0], height=size[1])


def test_the_key_goes_through_its_stories_and_the_error_is_explained() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        text = await shown_after(pilot, "e", "i")
        page = app.screen
        assert isinstance(page, StoryPage)
        exchange = next(each for each in read(CAPTURES / "errors.pcapng") if each.error)
        assert f"→ {exchange.error}" in text
        titles = list(dict.fromkeys(each.title for each in subjects_of(exchange)))
        assert len(titles) > 1
        for title in [*titles[1:], titles[0]]:
            text = " ".join((await shown_after(pilot, "n")).split())  # a long name is broken
            assert f"the story of {title[:30]}" in text
            assert len(page.rows)

    with_app(step, CAPTURES / "errors.pcapng")


def test_it_is_saved_in_the_columns_of_explain(tmp_path: Path) -> None:
    path = tmp_path / "story.ndjson"

    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        await press(pilot, "i", "w")
        app.screen.query_one(Input).value = str(path)
        assert "written to" in await shown_after(pilot, "enter")

    with_app(step)
    assert json.loads(path.read_text().partition("\n")[0])["exchange"] == 1


@requires_shared
def test_keys_lead_from_story_to_story_and_escape_leads_back() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        await press(pilot, "6", "i")
        page = app.screen
        assert isinstance(page, StoryPage)
        told = [page._subject.title if page._subject else ""]
        cursors = []
        jumps = (
            (3, "t", "transactional id eos-app-0"),
            (1, "g", "group eos-app"),  # its line commits offsets
            (2, "c", "client eos"),
        )
        for moves, key, kind in jumps:
            await press(pilot, *["j"] * moves)
            cursors.append(page.rows.row(page.list_pane.cursor)["line"].exchange)
            text = await shown_after(pilot, key)
            assert f"the story of {kind}\n" in text
            assert page.rows.row(page.list_pane.cursor)["line"].exchange <= cursors[-1]
            told.append(kind)
        for kind, cursor in zip(told[-2::-1], cursors[::-1], strict=True):
            await press(pilot, "escape")
            assert page._subject is not None
            assert page._subject.title == kind
            assert page.rows.row(page.list_pane.cursor)["line"].exchange == cursor
        await press(pilot, "escape")
        assert app.screen is app.pages["problems"]

    with_app(step, shared("testdata/incidents/exactly-once-v2/capture.pcapng.gz"))


@requires_shared
@pytest.mark.parametrize("width", [80, 120])
def test_the_keys_of_the_jumps_stand_at_the_foot_and_all_of_a_line_above_them(width: int) -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        *above, foot = (await shown_after(pilot, "6", "i")).splitlines()
        for each in ("t Transaction", "p Producer", "c Client"):
            assert each in foot
        assert ("? All keys" if width == 80 else "? Help") in foot
        page = app.screen
        assert isinstance(page, StoryPage)
        line = page.rows.row(page.list_pane.cursor)["line"].whole
        assert line in " ".join(part.strip() for part in above[-3:])

    with_app(step, shared("testdata/incidents/exactly-once-v2/capture.pcapng.gz"), width, 24)


def test_the_footer_has_only_keys_that_lead_somewhere_from_the_line() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        exchanges = {each.number: each for each in read(TRANSACTIONS)}
        await press(pilot, "T", "i")
        page = app.screen
        assert isinstance(page, StoryPage)
        words = {"transactional id": "t Transaction", "producer": "p Producer", "offset": "o Fetched by"}
        feet = set()
        for _ in range(len(page.rows)):
            foot = (await shown_after(pilot, "down")).splitlines()[-1]
            feet.add(foot)
            number = page.rows.row(page.list_pane.cursor)["line"].exchange
            led = {each.kind for each in subjects_of(exchanges[number]) if each != page._subject}
            assert {kind for kind, word in words.items() if word in foot} == led & set(words)
            assert "? Help" in foot
        assert len(feet) > 1
        assert "names no group" in await shown_after(pilot, "g")  # the key still says why

    with_app(step, width=160)


def test_a_control_record_was_fetched_too() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        app.open_story(offset_subject(*_control_record()))
        await press(pilot)
        page = app.screen
        assert isinstance(page, StoryPage)
        assert len(page.rows)
        assert "read it, offset " in screen_text(app)

    with_app(step, CAPTURES / "transactions-kafka39.pcapng")


def _control_record() -> tuple[str, int, int]:
    """The place of a record that ended a transaction."""
    for exchange in read(CAPTURES / "transactions-kafka39.pcapng"):
        for place in exchange.record_sets():
            for batch in read_record_set(place.data).batches:
                if batch.is_control and exchange.api == "Fetch" and batch.base_offset is not None:
                    assert place.topic is not None
                    assert place.partition is not None
                    return place.topic, place.partition, batch.base_offset
    raise AssertionError("no control record")


def test_the_key_to_the_next_story_says_where_there_is_no_other() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        app.open_story(offset_subject(*_control_record()))
        await press(pilot)
        assert "there is no other story of this" in await shown_after(pilot, "n")

    with_app(step, CAPTURES / "transactions-kafka39.pcapng")


def test_the_screen_shows_what_followed_too() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        text = await shown_after(pilot, "6", "i")
        page = app.screen
        assert isinstance(page, StoryPage)
        pane, lines = page.list_pane, text.splitlines()
        here = next(at for at, line in enumerate(lines) if line.startswith(HERE))
        assert "NOT_COORDINATOR" in text
        assert pane.cursor > pane.page  # it had to scroll
        after = [page.rows.row(pane.cursor + 1 + at)["line"].exchange for at in range(2)]
        for line, number in zip(lines[here + 1 :], after, strict=False):
            assert line.split()[1] == str(number)

    with_app(step, CAPTURES / "incidents" / "leader-killed.pcapng.gz", 160, 30)


def test_the_story_of_a_member_has_how_it_got_its_id_and_how_it_left() -> None:
    exchanges = list(read(CAPTURES / "basic-kafka43.pcapng"))
    asked = next(each for each in exchanges if each.error == "MEMBER_ID_REQUIRED")
    telling = StoryCollector(next(iter(subjects_of(asked))).asked, DEFAULTS)
    for each in exchanges:
        telling.feed(each)
    numbers = {row["line"].exchange for row in telling.rows()}
    apis = [each.api for each in sorted(exchanges, key=lambda each: each.number) if each.number in numbers]
    assert apis[:2] == ["JoinGroup", "JoinGroup"]
    assert {"SyncGroup", "LeaveGroup"} <= set(apis)


def test_the_line_below_says_to_which_story_the_key_leads() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        text = await shown_after(pilot, "e", "i")
        page = app.screen
        assert isinstance(page, StoryPage)
        exchange = next(each for each in read(CAPTURES / "errors.pcapng") if each.error)
        titles = list(dict.fromkeys(each.title for each in subjects_of(exchange)))
        for title in [*titles[1:], titles[0]]:
            assert f"   n: {title[:30]}" in text.splitlines()[-2]
            text = await shown_after(pilot, "n")

    with_app(step, CAPTURES / "errors.pcapng")


def test_another_story_shows_all_its_lines_and_escape_first_shows_all_of_this() -> None:
    async def step(pilot: Pilot[None], app: Kdissect) -> None:
        await press(pilot, "e", "i")
        page = app.screen
        assert isinstance(page, StoryPage)
        rows = page.rows
        await press(pilot, "!", "c")
        assert not rows.is_narrow
        await press(pilot, "!", "escape")
        assert pilot.app.screen is page
        assert not rows.is_narrow

    with_app(step, CAPTURES / "errors.pcapng")
