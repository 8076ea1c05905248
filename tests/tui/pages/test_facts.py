"""The screen of facts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kdissect.analysis.catalogue import STATISTICS
from kdissect.analysis.declared import BANDS, EXCHANGE, Declared
from kdissect.analysis.fold import Row
from kdissect.present.form import Clock
from kdissect.tui.app import Kdissect
from kdissect.tui.lists.figures import Figures
from kdissect.tui.pages import facts
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.pages.facts import FactsPage, exchange_of
from kdissect.tui.pages.statistics import StatisticsPage
from tests.amount import some
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, settle, shown_after

HOSTILE = "a\x1b[2J\u202eb[red]\r\n"


def value_of(column: Declared) -> Any:
    """Something that may stand in a column."""
    many = {"texts": [HOSTILE], "int64s": [3, 4], "json": [{"topic": HOSTILE}, {"topic": HOSTILE}]}
    if column.type in many:
        return many[column.type]
    return {"text": HOSTILE, "bool": True, "float64": 1.5}.get(column.type, 7)


def row_of(name: str, **given: Any) -> Row:
    return {**{each.name: value_of(each) for each in STATISTICS[name].columns}, **given}


def shown(name: str, *rows: Row) -> Figures:
    figures = facts.figures()
    figures.show(facts.numbered(name, rows), facts.columns_of(name, Clock()))
    return figures


@pytest.mark.parametrize("name", STATISTICS)
def test_every_statistic_is_shown_sorted_and_sanitised(name: str) -> None:
    empty = dict.fromkeys(each.name for each in STATISTICS[name].columns if each.unit != BANDS)
    figures = shown(name, row_of(name), {**row_of(name), **empty})
    for room in (40, 80, 120, 1_000):
        assert figures.headings(room)
        cells = [cell for row in range(2) for cell in figures.cells(row, room)]
        assert all(cell.isprintable() for cell in cells)
    assert len(figures.headings(5_000)) == len(STATISTICS[name].columns)
    assert figures.columns_hint(5_000) == ""
    for column in figures.columns:
        figures.sort_by(column.title)
        figures.turn()
    assert len(figures) == 2


def test_columns_without_room_are_counted_and_a_key_leads_to_them() -> None:
    figures = shown("tcp", row_of("tcp"))
    first = [each.title for each in figures.headings(80)]
    hidden = len(STATISTICS["tcp"].columns) - len(first)
    assert figures.columns_hint(80) == f"+{hidden} →"
    seen = set(first)
    while figures.turn_columns(1, 80):
        titles = [each.title for each in figures.headings(80)]
        assert titles[0] == first[0]
        assert len(titles) > 1
        seen |= set(titles)
        assert figures.columns_hint(80).startswith("← ")
        assert all(len(figures.cells(row, 80)) == len(titles) for row in range(len(figures)))
    assert seen == {each.title for each in figures.columns}
    assert "→" not in figures.columns_hint(80)
    while figures.turn_columns(-1, 80):
        pass
    assert [each.title for each in figures.headings(80)] == first


@pytest.mark.parametrize("name", ["slowest", "repeats", "versions", "traffic"])
def test_names_of_apis_are_whole_in_80_columns(name: str) -> None:
    names = ["ApiVersions", "AlterPartitionReassignments", "DescribeUserScramCredentials"]
    figures = shown(name, *(row_of(name, api=each, client_id="client-1") for each in names))
    while "api" not in (titles := [each.title for each in figures.headings(80)]):
        assert figures.turn_columns(1, 80)
    at = titles.index("api")
    assert figures.headings(80)[at].width >= len(names[-1])
    assert [figures.cells(row, 80)[at] for row in range(len(names))] == names


def test_no_table_has_two_columns_with_one_title() -> None:
    for name in STATISTICS:
        titles = [each.title for each in facts.columns_of(name, Clock())]
        assert len(set(titles)) == len(titles), name
    titles = [each.title for each in facts.columns_of("repeats", Clock())]
    assert {"soon", "soon_time"} <= set(titles)
    every = (each.title for name in STATISTICS for each in facts.columns_of(name, Clock()))
    assert not [title for title in every if title.endswith("_ns")]


def test_what_is_rare_is_not_said_where_it_is_0() -> None:
    (column,) = (each for each in facts.columns_of("srt", Clock()) if each.title == "unanswered")
    assert column.text(row_of("srt", **{"unanswered": 0})) == ""
    assert column.text(row_of("srt", **{"unanswered": 2})) == "2"


def test_rows_about_the_same_are_told_apart() -> None:
    figures = shown("tcp", row_of("tcp"), row_of("tcp"))
    assert figures.identity(0) != figures.identity(1)


def test_the_filter_of_a_row_is_made_of_what_it_is_about() -> None:
    row = row_of("lag", group="g", topic='a"b', partition=3)
    assert facts.filter_of("lag", row) == 'group == "g" and topic == "a\\"b" and partition == 3'
    assert facts.filter_of("io", row_of("io")) is None


def test_the_list_says_what_each_tells() -> None:
    figures = facts.list_of(["tcp", "lag"])
    assert [list(figures.cells(at, 120)) for at in range(2)] == [
        [name, STATISTICS[name].about] for name in ("tcp", "lag")
    ]


TRANSACTIONS = CAPTURES / "transactions-kafka39.pcapng"

Step = Callable[[Pilot[None]], Awaitable[None]]


def with_app(step: Step, width: int = 120, height: int = 40) -> None:
    """Run a step on the screens of a capture."""

    async def run() -> None:
        async with running(app_of(TRANSACTIONS), width, height) as pilot:
            await step(pilot)

    asyncio.run(run())


async def choose(pilot: Pilot[None], name: str) -> FactsPage:
    """Go to the rows of a statistic."""
    await press(pilot, "0")
    page = pilot.app.screen
    assert isinstance(page, FactsPage)
    names = [page.tables.row(at)["name"] for at in range(len(page.tables))]
    page.tables_pane.cursor = names.index(name)
    await settle(pilot)
    await press(pilot, "enter")
    return page


def test_every_statistic_is_on_some_screen() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, Kdissect)
        pages = [page for page in app.pages.values() if isinstance(page, StatisticsPage)]
        facts = app.pages["facts"]
        assert isinstance(facts, FactsPage)
        here = {facts.tables.row(at)["name"] for at in range(len(facts.tables))}
        elsewhere = {name for page in pages if page is not facts for name in page.names}
        assert here | elsewhere >= set(STATISTICS)
        assert not here & elsewhere
        assert {"producers", "tcp", "share"} <= here

    with_app(step)


@pytest.mark.parametrize("size", some([(80, 24), (120, 40), (200, 50)], 1, (120, 40)))
def test_rows_of_the_chosen_table_lead_to_exchanges_and_back(size: tuple[int, int]) -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = await choose(pilot, "producers")
        assert page.list_pane.has_focus
        text = await shown_after(pilot, "j")
        assert f"producers: {len(page.rows)} rows" in text
        row = page.rows.row(1)
        text = await shown_after(pilot, "enter")
        assert page.kdissect.screen is page.kdissect.pages["exchanges"]
        assert f'topic == "{row["topic"]}"' in text
        await press(pilot, "escape")
        assert page.kdissect.screen is page
        await press(pilot, "escape")
        assert page.tables_pane.has_focus

    with_app(step, *size)


@pytest.mark.parametrize(("width", "is_cut"), [(80, True), (160, False)])
def test_what_the_list_has_no_room_for_is_said_whole(width: int, is_cut: bool) -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await shown_after(pilot, "0", "j")
        page = pilot.app.screen
        assert isinstance(page, FactsPage)
        about = STATISTICS[page.chosen].about
        assert about in " ".join(text.split())
        assert (about in text) is not is_cut

    with_app(step, width, 24)


def test_another_table_takes_the_place_of_the_first() -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = await choose(pilot, "producers")
        first = {heading.title for heading in page.rows.headings(2_000)}
        page = await choose(pilot, "tcp")
        assert {heading.title for heading in page.rows.headings(2_000)} != first
        assert page.counted is not None
        assert list(page.counted.tables) == ["tcp"]

    with_app(step)


def test_a_table_is_sorted_and_saved_whole(tmp_path: Path) -> None:
    path = tmp_path / "producers.ndjson"

    async def step(pilot: Pilot[None]) -> None:
        page = await choose(pilot, "producers")
        assert " →\n" in await shown_after(pilot, "w", "escape")  # more columns to the right
        assert "← 1/" in await shown_after(pilot, "right")
        assert " →\n" in await shown_after(pilot, "left")
        assert "largest first" in await shown_after(pilot, "s") or page.rows.sorted_by is not None
        await press(pilot, "w")
        pilot.app.screen.query_one(Input).value = str(path)
        await press(pilot, "enter")

    with_app(step)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows
    assert set(rows[0]) == {each.name for each in STATISTICS["producers"].columns}


def test_a_row_that_names_an_exchange_leads_to_it_and_to_its_story() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "incidents" / "leader-killed.pcapng.gz")) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            assert "i Story" in (await shown_after(pilot, "0", "enter")).splitlines()[-1]
            page = app.screen
            assert isinstance(page, FactsPage)
            row = page.chosen_row()
            assert page.chosen == "slowest"
            assert row is not None
            number = row["number"]
            assert f"#{number} " in await shown_after(pilot, "i")
            await press(pilot, "q", "enter")
            exchanges = app.screen
            assert isinstance(exchanges, ExchangesPage)
            assert exchanges.chosen_number == number

    asyncio.run(run())


def test_a_count_of_exchanges_is_the_number_of_none() -> None:
    empty: dict[str, dict[str, Any]] = {
        name: dict.fromkeys(each.name for each in STATISTICS[name].columns) for name in ("traffic", "tcp")
    }
    assert exchange_of("traffic", {**empty["traffic"], "exchanges": 7}) is None
    assert exchange_of("tcp", {**empty["tcp"], "exchanges": 7, "hit_exchanges": []}) is None
    assert exchange_of("tcp", {**empty["tcp"], "hit_exchanges": [], "last_exchange": 9}) == 9
    assert exchange_of("tcp", {**empty["tcp"], "hit_exchanges": [5, 6]}) == 5


@pytest.mark.parametrize("name", STATISTICS)
def test_columns_of_exchanges_say_so(name: str) -> None:
    """A name in the plural of a list, or in the singular of a number, is one of them."""
    for column in STATISTICS[name].columns:
        word = "exchanges" if column.type == "int64s" else "exchange"
        named = column.type.startswith("int64") and f"_{column.name}".endswith(f"_{word}")
        assert not named or column.unit == EXCHANGE, column.name
        assert column.unit != EXCHANGE or column.type in ("int64", "int64s"), column.name


def test_another_table_shows_all_its_rows_and_escape_first_shows_all_of_this() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "basic-kafka43.pcapng"), 140, 40) as pilot:
            await press(pilot, "0", "enter", "F")
            page = pilot.app.screen_stack[-2]
            assert isinstance(page, FactsPage)
            pilot.app.screen.query_one(Input).value = "zzz"
            await press(pilot, "enter")
            assert len(page.rows) == 0
            assert page.list_pane.has_focus
            await press(pilot, "escape")
            assert page.list_pane.has_focus
            assert page.rows.only_text == ""
            await press(pilot, "F")
            pilot.app.screen.query_one(Input).value = "zzz"
            await press(pilot, "enter", "shift+tab", "down")
            assert page.rows.only_text == ""

    asyncio.run(run())
