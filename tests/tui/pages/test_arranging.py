"""The columns of the list: those that are chosen, and fields of the tree."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from kdissect import read
from kdissect.feed import frame_time
from kdissect.feed.field_values import text_of, values_of
from kdissect.filter.resolve import field_named
from kdissect.present.options import Options
from kdissect.present.secret_names import REDACTED
from kdissect.settings.screens import Settings
from kdissect.settings.session import LastSession
from kdissect.tui.app import Kdissect
from kdissect.tui.lists.exchange_columns import COLUMNS
from kdissect.tui.pages.exchanges import ExchangesPage
from tests.present.captures import SECRET, secret_talks, write_capture
from tests.tui.pages.test_exchanges import ERRORS, with_page
from tests.tui.snapshots import app_of, press, running, screen_text, settle, shown_after
from tests.tui.test_idle import at_rest

ACKS = "produce.request.acks"
NAME = "createTopics.request.topics.name"


async def go_to_field(pilot: Pilot[None], page: ExchangesPage, api: str, name: str) -> None:
    """Put the cursor of the tree on a field of the first exchange of an API."""
    page.go_to(next(e.number for e in read(ERRORS) if e.api == api) - 1)
    await settle(pilot)
    await press(pilot, "enter")
    tree = page.panes.tree_pane
    for _ in range(60):
        if tree.cursor_node is not None and str(tree.cursor_node.label).startswith(name):
            return
        await press(pilot, "down")
    raise AssertionError(name)


def cells_of(page: ExchangesPage, name: str) -> dict[int, str]:
    """What stands in a column, by the number of the exchange."""
    width = page.list_pane.columns or page.app.size.width - 2  # the tree may have all the room
    at = list(page.rows.names(width)).index(name)
    numbers = page.kdissect.index.column("number")[page.rows.view].tolist()
    return {number: page.rows.cells(row, width)[at] for row, number in enumerate(numbers)}


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (200, 60)])
def test_the_field_under_the_cursor_becomes_a_column_and_goes_again(
    width: int, height: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frame_time, "SPENT_SECONDS", 3_600)

    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        before = list(page.rows.names(width))
        await go_to_field(pilot, page, "Produce", "acks")
        await press(pilot, "a")
        assert f"{ACKS} is a column now; the same key removes it" in screen_text(app)
        assert list(app.columns) == [ACKS]
        field = field_named(ACKS)
        assert cells_of(page, ACKS) == {
            each.number: ",".join(text_of(field, value) for value in values_of(field, each, Options()))
            for each in read(ERRORS)
        }
        await press(pilot, "a")
        assert f"{ACKS} was removed from the columns" in screen_text(app)
        assert app.columns == ()
        assert list(page.rows.names(width)) == before

    with_page(step, width=width, height=height)


def test_a_field_that_is_a_column_of_exchanges_joins_those_that_are_shown() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        before = [name for name in page.rows.names(page.list_pane.columns) if name != "mark"]
        await go_to_field(pilot, page, "Produce", "requestApiVersion")
        await press(pilot, "a")
        assert app.columns == (*before[:-1], "api_version", "info")

    with_page(step, width=200, height=60)


def test_what_cannot_be_a_column_says_why() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        await press(pilot, "a")
        assert "Enter goes to the fields, where this key makes one a column" in screen_text(app)
        await go_to_field(pilot, page, "Produce", "topicData")
        await press(pilot, "a")
        assert "produce.request.topicData is a structure or records: choose a field" in screen_text(app)
        await press(pilot, "home", "a")
        assert "no column can show this line" in screen_text(app)
        assert app.columns == ()

    with_page(step)


def test_the_chosen_column_goes_filters_and_orders_nothing() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        table = page.list_pane
        page.go_to(next(e.number for e in read(ERRORS) if e.api == "Produce") - 1)
        await settle(pilot)
        table.column = list(page.rows.names(table.columns)).index(ACKS)
        await press(pilot, "s")
        assert "the list cannot be ordered by this column" in screen_text(app)
        await press(pilot, "=")
        assert app.shown.text.startswith(f"{ACKS} == ")
        assert {e.api for e in read(ERRORS) if e.number in cells_of(page, ACKS)} == {"Produce"}
        table.column = list(page.rows.names(table.columns)).index(ACKS)
        await press(pilot, "a")
        assert app.columns == ("number", "info")

    with_page(step, settings=Settings(columns=("number", ACKS, "info")))


def test_the_picker_of_columns_has_fields_too() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        await press(pilot, "c", "enter")
        assert list(app.columns) == [ACKS]  # nothing was changed
        await press(pilot, "c")
        lines = app.screen.query_one(OptionList)
        assert str(lines.get_option_at_index(len(COLUMNS) - 2).prompt) == f"✓ acks         {ACKS}"
        lines.highlighted = len(COLUMNS) - 2
        await press(pilot, "space", "enter")
        assert not app.columns
        assert page.rows.is_usual

    with_page(step, settings=Settings(columns=(ACKS,)))


def test_the_picker_keeps_columns_without_room() -> None:
    chosen = ("number", "who", "broker", "client", "topics", "error", ACKS, NAME, "info")

    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        assert len(page.rows.names(page.list_pane.columns)) < len(chosen) + 1
        await press(pilot, "c", "enter")
        assert set(app.columns) == set(chosen)

    with_page(step, settings=Settings(columns=chosen), width=70, height=24)


def test_rows_that_had_to_wait_get_their_values_and_then_no_timer_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frame_time, "SPENT_SECONDS", 0)  # one exchange in each frame
    monkeypatch.setattr(frame_time, "FRAME_SECONDS", 0.001)

    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        for _ in range(500):
            await asyncio.sleep(0.02)
            lines = screen_text(app).splitlines()[4:20]
            if all("2026-11-21T" in line for line in lines):
                break
        assert all("2026-11-21T" in line for line in lines)
        await at_rest(app)

    with_page(step, settings=Settings(columns=("number", "request_start_ns")), height=24)


def test_columns_come_back_in_the_next_session() -> None:
    left: list[LastSession] = []

    async def run(before: LastSession) -> tuple[str, ...]:
        app = app_of(ERRORS, settings=Settings(before=before))
        async with running(app) as pilot:
            assert isinstance(pilot.app, Kdissect)
            columns = pilot.app.columns
            page = app.pages["exchanges"]
            assert isinstance(page, ExchangesPage)
            if not columns:
                await go_to_field(pilot, page, "Produce", "acks")
                await press(pilot, "a")
            app.exit()
        left.append(app.session)
        return columns

    assert asyncio.run(run(LastSession())) == ()
    assert left[0].columns == (ACKS,)
    assert asyncio.run(run(left[0]._replace(columns=(ACKS, "produce.request.gone")))) == (ACKS,)


def test_a_column_shows_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_time, "SPENT_SECONDS", 3_600)
    name = "saslAuthenticate.request.authBytes"

    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        text = screen_text(app)
        assert SECRET not in text
        found = cells_of(page, name)
        assert REDACTED in found.values()
        row = list(found.values()).index(REDACTED)
        page.list_pane.cursor = row
        await settle(pilot)
        page.list_pane.column = list(page.rows.names(page.list_pane.columns)).index(name)
        await press(pilot, "=")
        assert "there is no filter for this" in screen_text(app)

    path = write_capture(tmp_path / "c.pcapng", *secret_talks())
    with_page(step, path, settings=Settings(columns=("number", name, "info")))


def test_chosen_columns_stand_in_their_order() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        heading = screen_text(app).splitlines()[2].split()
        assert heading == ["API", "Version", "Packet", "Error", "Latency"]
        assert "INVALID_TOPIC_EXCEPTION" in screen_text(app)

    columns = ("api", "api_version", "request_packet", "error", "latency_ns", "request")
    with_page(step, settings=Settings(columns=columns))


def test_the_choice_of_columns_names_each_once() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        text = await shown_after(pilot, "c")
        lines = [line.partition("▊")[2].partition("▎")[0] for line in text.splitlines() if "▊" in line]
        names = [line[3:16].strip() for line in lines if line[3:16].strip(" ▔▁")]
        assert {"API", "API alone", "Asked in", "Answered in", "Client", "Client id"} <= set(names)
        assert len(set(names)) == len(names)

    with_page(step)


def test_columns_are_chosen() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        heading = screen_text(app).splitlines()[2]
        assert heading.split() == ["No.", "Latency", "Error"]
        await press(pilot, "c", "space", "enter")
        assert screen_text(app).splitlines()[2].split() == ["Latency", "Error"]
        assert app.columns == ("latency_ns", "error")
        await press(pilot, "c", "escape")
        assert app.columns == ("latency_ns", "error")

    with_page(step, width=200, settings=Settings(columns=("number", "latency_ns", "error")))


def test_a_field_that_a_usual_column_shows_is_no_second_column() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        before = list(page.rows.names(page.list_pane.columns))
        page.column_choice.add_or_remove("api")
        assert "the column API shows it already" in await shown_after(pilot)
        assert list(page.rows.names(page.list_pane.columns)) == before

    with_page(step)
