"""The ladder: what each key changes on it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot

from kdissect import read
from kdissect.present.form import size
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.ladder import LadderPage
from kdissect.tui.pages.story import StoryPage
from tests.cli.run import CAPTURES
from tests.present.captures import write_capture
from tests.tui.snapshots import app_of, press, running, screen_text, shown_after

BASIC = CAPTURES / "basic-kafka43.pcapng"
ERRORS = CAPTURES / "errors.pcapng"
Step = Callable[[Pilot[None]], Awaitable[None]]


def with_app(step: Step, path: Path = ERRORS, width: int = 120, height: int = 40) -> None:
    async def run() -> None:
        async with running(app_of(path), width, height) as pilot:
            await step(pilot)

    asyncio.run(run())


def ladder_of(pilot: Pilot[None]) -> LadderPage:
    page = pilot.app.screen
    assert isinstance(page, LadderPage)
    return page


def number(pilot: Pilot[None]) -> int:
    """Of the exchange under the cursor."""
    page = ladder_of(pilot)
    place = page.chosen_place()
    assert place is not None
    return page.kdissect.index.value("number", place)


def test_the_ladder_has_the_messages_of_the_client_with_the_cursor_on_the_exchange() -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await shown_after(pilot, "j", "j", "j", "L")
        page = ladder_of(pilot)
        chosen = next(each for each in read(BASIC) if each.number == 4)
        same = {each.connection for each in read(BASIC) if each.client_id == chosen.client_id}
        messages = [m for each in read(BASIC) if each.connection in same for m in each.messages]
        assert len(page.rows) == len(messages)
        assert number(pilot) == 4
        assert f"all connections of {chosen.client_id}, 1 broker, {len(messages)} messages" in text
        assert f"─{chosen.api} v{chosen.api_version} #{chosen.number}─" in text
        assert f"◀╌{size(chosen.response_size or 0)} #{chosen.number}╌" in text

    with_app(step, BASIC)


def test_enter_leads_to_the_exchange() -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "L", "G")
        wanted = number(pilot)
        await press(pilot, "enter")
        page = pilot.app.screen
        assert page is pilot.app.pages["exchanges"]  # type: ignore[attr-defined]
        place = page.chosen_place()
        assert page.kdissect.index.value("number", place) == wanted

    with_app(step)


def test_what_is_marked_is_shown_instead_and_the_key_turns_between() -> None:
    async def step(pilot: Pilot[None]) -> None:
        marks = pilot.app.marks  # type: ignore[attr-defined]
        marks.toggle(2)
        marks.toggle(5)
        text = await shown_after(pilot, "L")
        assert "2 marked, 1 broker, 4 messages" in text
        assert len(ladder_of(pilot).rows) == 4
        text = await shown_after(pilot, "L")
        assert "all connections of" in text
        everything = await shown_after(pilot, "L")
        count = len(list(read(ERRORS)))
        assert f"all {count} that are shown" in everything
        assert "L draws the 2 marked" in everything
        assert "2 marked" in await shown_after(pilot, "L")

    with_app(step)


def test_all_that_a_filter_shows_is_drawn() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, Kdissect)
        app.filter_by("api == Metadata")
        shown = [each for each in read(ERRORS) if each.api == "Metadata"]
        text = await shown_after(pilot, "L", "L")
        assert f"all {len(shown)} that are shown" in text
        page = ladder_of(pilot)
        assert len(page.rows) == sum(len(each.messages) for each in shown)
        app.filter_by("api == Produce")
        await press(pilot, "L", "L")
        assert len(page.rows) == sum(len(each.messages) for each in read(ERRORS) if each.api == "Produce")

    with_app(step)


def test_a_story_is_drawn_across_clients_and_brokers() -> None:
    path = CAPTURES / "incidents" / "member-killed.pcapng.gz"
    number = next(each.number for each in read(path) if each.api == "JoinGroup" and each.error is None)

    async def step(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, Kdissect)
        app.go_to_number(number)
        await press(pilot, "i", "g")
        story = app.screen
        assert isinstance(story, StoryPage)
        told = {row["line"].exchange for row in map(story.rows.row, range(len(story.rows)))}
        text = await shown_after(pilot, "L")
        assert "the story of group" in text
        page = ladder_of(pilot)
        drawn = {page.kdissect.index.value("number", page.rows.place(row)) for row in range(len(page.rows))}
        assert drawn == told
        assert len(page.rows.lanes.clients) > 1
        arrows = [page.rows.cells(row, 240)[1] for row in range(len(page.rows))]
        assert any("JoinGroup" in each and "fraud" in each for each in arrows)
        assert any("generation 2" in each for each in arrows)

    with_app(step, path, 240, 70)


def test_errors_are_gone_through() -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "L", "e")
        page = ladder_of(pilot)
        first = page.table.cursor
        assert "✗" in page.rows.cells(first, 120)[1]
        await press(pilot, "e")
        assert page.table.cursor > first
        await press(pilot, "E")
        assert page.table.cursor == first
        assert "no error before this; e goes to the next one" in await shown_after(pilot, "E")

    with_app(step)


def test_times() -> None:
    async def step(pilot: Pilot[None]) -> None:
        before = await shown_after(pilot, "L")
        after = await shown_after(pilot, "t")
        assert before.splitlines()[4] != after.splitlines()[4]
        assert (await shown_after(pilot, "t")).splitlines()[4] == before.splitlines()[4]

    with_app(step)


def test_escape_goes_back_to_the_exchanges() -> None:
    async def step(pilot: Pilot[None]) -> None:
        assert "Latency" in await shown_after(pilot, "L", "escape")
        assert pilot.app.screen is pilot.app.pages["exchanges"]  # type: ignore[attr-defined]

    with_app(step)


def test_a_capture_without_exchanges_has_a_ladder_without_lines(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        assert "there is no exchange to show" in await shown_after(pilot, "L")
        assert "no error after this" in await shown_after(pilot, "j", "enter", "G", "e")
        assert screen_text(pilot.app)

    with_app(step, write_capture(tmp_path / "c.pcapng"))
