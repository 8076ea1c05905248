"""The screens of figures: what stands on them, what their keys change, and what they save."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kdissect import read
from kdissect.analysis.fold import Row
from kdissect.filter.compiled import compile_filter
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.pages.groups import GroupsPage
from kdissect.tui.pages.statistics import StatisticsPage
from kdissect.tui.widgets.table import WRONG_TONES, VirtualTable
from tests.amount import some
from tests.cli.run import CAPTURES, run_with
from tests.tui.snapshots import app_of, press, running, screen_text, settle, shown_after

ERRORS = CAPTURES / "errors.pcapng"
KIP848 = CAPTURES / "consumer-group-kip848.pcapng"

Step = Callable[[Pilot[None]], Awaitable[None]]


def with_app(step: Step, path: Path = ERRORS, width: int = 160, height: int = 40) -> None:
    """Run a step on the screens of a capture."""

    async def run() -> None:
        async with running(app_of(path), width, height) as pilot:
            await step(pilot)

    asyncio.run(run())


def page(pilot: Pilot[None]) -> StatisticsPage:
    """The screen that is shown."""
    assert isinstance(pilot.app.screen, StatisticsPage)
    return pilot.app.screen


def app_in(pilot: Pilot[None]) -> Kdissect:
    assert isinstance(pilot.app, Kdissect)
    return pilot.app


def rows_of(pilot: Pilot[None]) -> list[Row]:
    rows = page(pilot).rows
    return [rows.row(at) for at in range(len(rows))]


async def filtered(pilot: Pilot[None]) -> None:
    """Wait until the filter is done, with its second stage."""
    for _ in range(200):
        await settle(pilot)
        if app_in(pilot).shown.progress is None:
            break
    await settle(pilot)


async def save_as(pilot: Pilot[None], path: Path) -> str:
    """Save under a name; gives what then stands on the screen."""
    await press(pilot, "w")
    if not isinstance(pilot.app.focused, Input):
        await press(pilot, "enter")  # the first of the tables
    pilot.app.screen.query_one(Input).value = str(path)
    return await shown_after(pilot, "enter")


SHOWN = (
    ("2", "connections"),
    ("g", "clients"),
    ("3", "topics"),
    ("4", "groups"),
    ("5", "srt"),
    ("g", "srt,broker"),
    ("g", "srt,client_id"),
    ("g", "srt,topic"),
    ("6", "errors"),
)
"""Keys, one after the other, and the statistics that they lead to."""


@pytest.mark.parametrize(
    "path", some([KIP848, CAPTURES / "transactions-kafka39.pcapng"], 1, KIP848), ids=lambda p: p.stem
)
def test_the_figures_are_those_of_the_command_line(path: Path, tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        for key, statistic in SHOWN:
            await press(pilot, key)
            assert "written to" in await save_as(pilot, tmp_path / f"{statistic}.ndjson")

    with_app(step, path)
    for _, statistic in SHOWN:
        expected = run_with(b"", "stats", path, "-z", statistic, "-T", "ndjson", "-q").out
        assert (tmp_path / f"{statistic}.ndjson").read_bytes() == expected


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_tables_are_saved_as_the_command_line_writes_them(form: str, tmp_path: Path) -> None:
    saved, expected = tmp_path / f"x.{form}", tmp_path / f"y.{form}"

    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "6")
        assert "written to" in await save_as(pilot, saved)
        before = saved.read_bytes()
        assert "is there already" in await save_as(pilot, saved)
        assert saved.read_bytes() == before
        assert "must end in one of" in await save_as(pilot, tmp_path / "x.txt")
        await press(pilot, "escape")
        assert "there is no folder" in await save_as(pilot, tmp_path / "no" / f"x.{form}")

    with_app(step, width=250)
    run_with(b"", "stats", ERRORS, "-z", "errors", "-T", form, "-q", "-o", expected)
    assert saved.read_bytes() == expected.read_bytes()
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([saved.name, expected.name])


def test_each_table_of_a_screen_can_be_saved(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await shown_after(pilot, "4", "w")
        assert "members: 2 rows" in text
        await press(pilot, "down", "enter")
        pilot.app.screen.query_one(Input).value = str(tmp_path / "m.ndjson")
        assert "2 rows written" in await shown_after(pilot, "enter")
        await press(pilot, "8")
        assert "1 row written" in await save_as(pilot, tmp_path / "i.ndjson")

    with_app(step)
    assert b'"member_id"' in (tmp_path / "m.ndjson").read_bytes()
    assert b'"interface":0,"name":"lo"' in (tmp_path / "i.ndjson").read_bytes()


def test_sorting_keeps_the_cursor_on_its_row() -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "5", "j")
        here = page(pilot).rows.identity(1)
        assert here is not None
        await press(pilot, "s")
        assert "by API, smallest first" in await shown_after(pilot)
        assert [row["api"] for row in rows_of(pilot)] == sorted(row["api"] for row in rows_of(pilot))
        text = await shown_after(pilot, "s")
        assert "by Count, largest first" in text
        assert "▾Count" in text
        counts = [row["count"] for row in rows_of(pilot)]
        assert counts == sorted(counts, reverse=True)
        assert page(pilot).rows.identity(page(pilot).list_pane.cursor) == here
        assert "by Count, smallest first" in await shown_after(pilot, "S")
        assert [row["count"] for row in rows_of(pilot)] == sorted(counts)

    with_app(step, width=200)


def test_the_cursor_stays_on_the_first_row_until_it_is_moved() -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "5")
        first = page(pilot).rows.identity(0)
        await press(pilot, "S")
        assert page(pilot).rows.identity(0) != first
        assert page(pilot).list_pane.cursor == 0

    with_app(step)


def test_a_click_on_a_heading_sorts() -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await shown_after(pilot, "5")
        table = page(pilot).list_pane
        heading = next(line for line in text.splitlines() if line.startswith("API"))
        await pilot.click(VirtualTable, offset=(heading.index("Max") + 1, 0))
        await settle(pilot)
        longest = [row["max_ns"] for row in rows_of(pilot)]
        assert longest == sorted(longest, reverse=True)
        assert "▾Max" in screen_text(app_in(pilot))
        await pilot.click(VirtualTable, offset=(heading.index("Max") + 1, 0))
        await settle(pilot)
        assert [row["max_ns"] for row in rows_of(pilot)] == longest[::-1]
        await pilot.click(VirtualTable, offset=(table.columns - 1, 0))  # beside the headings
        assert [row["max_ns"] for row in rows_of(pilot)] == longest[::-1]

    with_app(step)


LEADS = (
    ("2", "jjj", "connection == 3"),
    ("2g", "", 'client_id == "consumer-java43-errors-g-1" and client.ip == "127.0.0.1"'),
    ("3", "", 'topic == "java43-errors"'),
    ("3g", "j", 'topic == "java43-errors" and partition == 0'),
    ("4", "", 'group == "java43-errors-g"'),
    ("5", "", 'api == "Produce" and api_version == 13'),
    ("5g", "j", 'api == "Fetch" and api_version == 18 and broker == "127.0.0.1:20011"'),
    ("5g", "j", 'api == "Fetch" and api_version == 18 and client_id == "consumer-java43-errors-g-1"'),
    (
        "6",
        "",
        'errors == "BROKER_ID_NOT_REGISTERED" and api == "UnregisterBroker" and client_id == "errors" '
        'and client.ip == 127.0.0.1 and broker == "127.0.0.1:20011"',
    ),
)
"""Keys that lead to a screen and group it, from what it was before; keys that lead to a row; its filter."""


def test_enter_shows_the_exchanges_of_a_row() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = app_in(pilot)
        for there, row, expected in LEADS:
            await press(pilot, *there)
            await press(pilot, "home", *row, "enter")
            await filtered(pilot)
            assert app.screen is app.pages["exchanges"]
            assert app.shown.text == expected
            assert 0 < len(app.shown.places) < len(app.index)
            await press(pilot, "escape", "1")
            assert app.shown.text == ""

    with_app(step)


def test_every_row_leads_to_as_many_exchanges_as_it_counts() -> None:
    exchanges = list(read(KIP848))

    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "5")
        for row in rows_of(pilot):
            chosen = compile_filter(page(pilot).filter_of(row) or "")
            assert sum(map(chosen.matches, exchanges)) == row["count"] + row["unanswered"]

    with_app(step, KIP848)


def test_a_fault_that_stands_in_no_exchange_says_so() -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "6")
        for at, row in enumerate(rows_of(pilot)):
            if row["what"] == "tcp: gap":
                page(pilot).list_pane.cursor = at
        assert "bytes of the stream were not captured" in await shown_after(pilot)
        assert "belongs to no exchange" in await shown_after(pilot, "enter")
        for at, row in enumerate(rows_of(pilot)):
            if row["what"] == "missing: gap":
                page(pilot).list_pane.cursor = at
                await press(pilot, "enter")
                await filtered(pilot)
                assert len(app_in(pilot).shown.places) == row["count"] == 3
                break

    with_app(step, CAPTURES / "loss.pcapng")


def test_with_a_filter_the_figures_are_those_of_what_it_shows() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = app_in(pilot)
        await press(pilot, "5")
        everything = rows_of(pilot)
        for text, matches in (
            ("connection == 3", lambda each: each.connection == 3),
            ("errors", lambda each: next(each.error_codes(), None) is not None),  # asks the exchanges
        ):
            app.shown.push(text)
            await filtered(pilot)
            expected = [each for each in read(ERRORS) if matches(each)]
            assert sum(row["count"] for row in rows_of(pilot)) == len(expected)
            assert "figures of what the filter shows" in screen_text(app)
        await press(pilot, "2")
        assert {row["connection"] for row in rows_of(pilot)} == {each.connection for each in expected}
        await press(pilot, "ctrl+t", "5")
        assert rows_of(pilot) == everything

    with_app(step)


def test_topics_by_partition() -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await shown_after(pilot, "3")
        assert "2 topics" in text
        assert len(rows_of(pilot)) == 2
        text = await shown_after(pilot, "g")
        assert "14 partitions and directions" in text
        assert len(rows_of(pilot)) == 14
        assert "partitions of groups" in await shown_after(pilot, "g")
        rows = rows_of(pilot)
        assert [row["lag"] for row in rows] == sorted((row["lag"] for row in rows), reverse=True)
        assert "partitions of consumers" in await shown_after(pilot, "g")
        assert all(row["client_id"] for row in rows_of(pilot))
        await press(pilot, "g")
        assert len(rows_of(pilot)) == 2

    with_app(step, KIP848)


def test_members_are_lines_of_time() -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await shown_after(pilot, "4")
        assert "static-1" in text
        text = await shown_after(pilot, "j")
        assert "static-1" not in text
        lines = [line for line in text.splitlines() if line.startswith("classic-2c30a25a") and "…" in line]
        assert len(lines) == 1
        assert "█" in lines[0]
        assert lines[0].rstrip("▁▂▃▄▅▆▇█ ").endswith("╳") or "╳" in lines[0]
        text = await shown_after(pilot, "tab", "j")
        shown = page(pilot)
        assert isinstance(shown, GroupsPage)
        assert shown.members_pane.has_focus
        assert "left by LeaveGroup" in text
        await press(pilot, "enter")
        assert app_in(pilot).shown.text == 'group == "java43-kip848-mig" and client_id == "classic"'

    with_app(step, KIP848)


def test_capture_tells_interfaces_files_and_faults() -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await shown_after(pilot, "8")
        assert "Loopback" in text
        assert "gap 3" in text
        assert "none: all" in text

    with_app(step, CAPTURES / "loss.pcapng")


def test_escape_leads_back() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = app_in(pilot)
        for key in "234568":
            await press(pilot, key)
            assert app.screen is not app.pages["exchanges"]
            await press(pilot, "escape")
            assert app.screen is app.pages["exchanges"]

    with_app(step)


def test_a_list_without_rows_says_that_there_is_nothing() -> None:
    async def step(pilot: Pilot[None]) -> None:
        empty = " No transaction was captured. A transaction shows in requests with a transactional id: "
        assert (await shown_after(pilot, "T")).splitlines()[4].startswith(empty)
        assert "was captured" not in await shown_after(pilot, "6")
        app_in(pilot).shown.push("latency > 1h")
        await settle(pilot)
        assert "No error or fault is in what the filter shows." in screen_text(app_in(pilot))

    with_app(step)


def test_nothing_is_asked_for_while_nothing_changes() -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "5")
        assert page(pilot)._polling is None

    with_app(step)


def test_a_legend_is_said_of_columns_that_are_shown_only() -> None:
    async def text_of(width: int) -> str:
        async with running(app_of(CAPTURES / "errors.pcapng"), width, 40) as pilot:
            return await shown_after(pilot, "5")

    for width in (60, 80, 200):
        text = asyncio.run(text_of(width))
        assert "spread: " not in text or "Spread" in text
        assert "waited: " not in text or "Waited" in text
    assert "spread: " in text
    assert "waited: " in text


@pytest.mark.parametrize("style", WRONG_TONES)
def test_without_colours_what_is_wrong_is_bold(style: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng")) as pilot:
            page = pilot.app.screen
            assert isinstance(page, ExchangesPage)
            table = page.list_pane
            monkeypatch.setattr(page.rows, "tone", lambda row: style)
            drawn = table._style(1, False)
            assert drawn.bold
            assert drawn.color == table.get_component_rich_style("table--odd").color
            assert page.alarm == "bold"

    asyncio.run(run())


def test_a_row_is_searched_for_by_a_part_of_any_column() -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "5", "ctrl+f")
        pilot.app.screen.query_one(Input).value = "fetch v"
        await press(pilot, "enter")
        rows = [row["api"] for row in rows_of(pilot)]
        assert rows[page(pilot).list_pane.cursor] == "Fetch"
        await press(pilot, "N")
        assert rows[page(pilot).list_pane.cursor] == "OffsetFetch"
        await press(pilot, "n")
        assert rows[page(pilot).list_pane.cursor] == "Fetch"
        await press(pilot, "ctrl+f")
        assert pilot.app.screen.query_one(Input).value == "fetch v"
        pilot.app.screen.query_one(Input).value = "nowhere"
        assert "no row has nowhere" in await shown_after(pilot, "enter")

    with_app(step)


@pytest.mark.parametrize("key", ["ctrl+f", "F"])
@pytest.mark.parametrize("screen", ["5", "9"])
def test_a_broken_regular_expression_is_told_and_can_be_mended(screen: str, key: str) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, screen, key)
        for text in ("/(/", "/[/"):
            pilot.app.screen.query_one(Input).value = text
            assert "this is not a regular expression (RE2): missing" in await shown_after(pilot, "enter")
        pilot.app.screen.query_one(Input).value = "/^[a-z]/"
        await press(pilot, "enter")
        assert pilot.app.screen is app_in(pilot).pages["findings" if screen == "9" else "latency"]

    with_app(step)


def test_a_row_the_list_its_filter_and_a_command_are_copied() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = app_in(pilot)
        await press(pilot, "3")
        copied = {}
        said = {"row": "copied the row", "list": "copied the list", "filter": "copied the filter"}
        for number, form in enumerate((*said, "kdissect read"), 1):
            assert f"{number} {form}" in await shown_after(pilot, "y")
            assert said.get(form, "copied: kdissect read") in await shown_after(pilot, str(number))
            copied[form] = app.clipboard
        heads, first, *more = copied["list"].splitlines()
        assert copied["row"] == f"{heads}\n{first}"
        assert len(more) + 1 == len(rows_of(pilot))
        assert (
            dict(zip(heads.split("\t"), first.split("\t"), strict=True))["Topic"]
            == rows_of(pilot)[0]["topic"]
        )
        words = shlex.split(copied["kdissect read"])
        assert words == ["kdissect", "read", str(ERRORS), "-Y", copied["filter"]]
        matches = compile_filter(copied["filter"]).matches
        assert len(run_with(b"", *words[1:]).out.splitlines()) == sum(map(matches, read(ERRORS))) > 0

    with_app(step)


def test_there_is_nothing_to_copy_in_an_empty_list() -> None:
    async def step(pilot: Pilot[None]) -> None:
        assert "there is nothing to copy" in await shown_after(pilot, "T", "y")

    with_app(step)


@pytest.mark.parametrize("key", ["2", "3", "5"])
def test_only_rows_with_a_text_are_shown_until_escape(key: str) -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "basic-kafka43.pcapng"), 160, 40) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            await press(pilot, key)
            page = app.screen
            assert isinstance(page, StatisticsPage)
            rows = page.rows
            every = [rows.as_text(rows.row(at)) for at in range(len(rows))]
            word = rows.columns[0].text(rows.row(len(every) - 1))
            matching = [text for text in every if word.casefold() in text.casefold()]
            await press(pilot, "F")
            app.screen.query_one(Input).value = word.upper()
            text = await shown_after(pilot, "enter")
            assert len(rows) == len([row for row in every if word.casefold() in row.casefold()])
            assert f"only {len(matching)} of {len(every)}, with {word.upper()}" in text
            assert "q All rows" in text
            await press(pilot, "s")  # another order keeps it
            assert len(rows) == len(matching)
            await press(pilot, "escape")
            assert app.screen is page
            assert len(rows) == len(every)
            await press(pilot, "F")
            app.screen.query_one(Input).value = "no such row"
            assert "No row is shown: only 0 of" in await shown_after(pilot, "enter")

    asyncio.run(run())


def test_only_rows_with_trouble_are_shown_until_the_key_comes_again() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng"), 160, 40) as pilot:
            await press(pilot, "2")
            page = pilot.app.screen
            assert isinstance(page, StatisticsPage)
            rows = page.rows
            wrong = [at for at in range(len(rows)) if rows.tone(at) in WRONG_TONES]
            every = len(rows)
            text = await shown_after(pilot, "!")
            assert len(rows) == len(wrong)
            assert f"only {len(wrong)} of {every}, with trouble" in text
            await press(pilot, "!")
            assert len(rows) == every
            await press(pilot, "!", "escape")
            assert len(rows) == every

    asyncio.run(run())
