"""What the keys for the line under the cursor do: filters, columns, and colours of rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.color import Color
from rich.style import Style
from textual.pilot import Pilot

from kdissect import read
from kdissect.feed import frame_time
from kdissect.settings.coloring import COLORS, ColoringRule
from kdissect.settings.screens import Settings
from kdissect.tui.app import Kdissect
from kdissect.tui.colors import legible
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.widgets.table import VirtualTable
from tests.kafka import Talk, request, response
from tests.present.captures import write_capture
from tests.tui.pages.test_exchanges import ERRORS, listed, numbers, with_page
from tests.tui.snapshots import press, screen_text, shown_after


def test_a_row_filters_before_its_panes_are_there() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        page.resting.decode = lambda *_: None  # type: ignore[method-assign]
        await pilot.press("j", "j", "j", "=")
        await pilot.pause()
        assert app.shown.text == "api == CreateTopics"

    with_page(step)


def test_filtering_by_the_column_under_the_cursor() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        await press(pilot, "e", *["right"] * 8, "=")
        assert app.shown.text == "error == INVALID_TOPIC_EXCEPTION"
        await press(pilot, *["left"] * 4, "&")
        assert app.shown.text == '(error == INVALID_TOPIC_EXCEPTION) and client_id == "errors"'
        assert listed(page) == numbers(error="INVALID_TOPIC_EXCEPTION", client_id="errors")
        await press(pilot, *["left"] * 9, "|")
        assert page.list_pane.column is None
        assert app.shown.text.endswith(" or api == CreateTopics")
        assert listed(page) == numbers(api="CreateTopics")

    with_page(step)


def test_filtering_by_the_field_of_the_tree() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        page.go_to(next(e.number for e in read(ERRORS) if e.api == "Produce") - 1)
        await press(pilot, "enter")
        tree = page.panes.tree_pane
        while "acks" not in str(tree.cursor_node and tree.cursor_node.label):
            await press(pilot, "down")
        await press(pilot, "=")
        assert app.shown.text.startswith("produce.request.acks == ")
        assert set(listed(page)) <= set(numbers(api="Produce"))
        assert listed(page)

    with_page(step)


def color_of(page: ExchangesPage, number: int) -> str:
    """In which colour the row of an exchange is drawn while the cursor is elsewhere."""
    table = page.list_pane
    drawn = table._style(listed(page).index(number), False).color
    return next((name for name in (*COLORS, "error") if drawn == _drawn(table, name)), "none")


def _drawn(table: VirtualTable, name: str) -> Color | None:
    even = table.get_component_rich_style("table--even")
    return legible(even + Style(color=table.get_component_rich_style(f"table--{name}").color)).color


def test_rows_have_the_colour_of_the_first_rule_that_they_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_time, "SPENT_SECONDS", 3_600)
    rules = (
        ColoringRule("topics", "createTopics.request.topics", "cyan"),
        ColoringRule("all of it", "number > 0", "grey"),
    )

    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        rows = [number for number in listed(page) if not listed(page).index(number) & 1]
        assert {number for number in rows if color_of(page, number) == "cyan"} == {
            number for number in rows if number in numbers(api="CreateTopics")
        }
        assert {color_of(page, number) for number in rows} == {"cyan", "grey"}
        assert "topics" in screen_text(app)
        assert "all of it" in screen_text(app)

    columns = ("number", "coloring_rule", "what", "info")
    with_page(step, settings=Settings(columns=columns, coloring=rules))


def test_a_key_colours_the_rows_with_the_value_under_the_cursor() -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        await press(pilot, "j", "j", "j", "enter")
        await press(pilot, "H")  # the API in the tree, which is there now
        assert "Colour rows with api == CreateTopics" in screen_text(app)
        await press(pilot, "2")
        assert [rule.filter for rule in app.coloring.rules] == ["api == CreateTopics"]
        some = next(number for number in numbers(api="CreateTopics") if not listed(page).index(number) & 1)
        assert color_of(page, some) == "cyan"
        await press(pilot, "H", "6")
        assert app.coloring.rules == ()
        assert color_of(page, some) != "cyan"

    with_page(step)


def test_a_value_that_is_too_long_for_a_filter_has_no_colour(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None], app: Kdissect, page: ExchangesPage) -> None:
        assert "there is no filter for this" in await shown_after(pilot, "H")
        assert app.coloring.rules == ()

    talk = Talk()
    talk.ask(request("Heartbeat", 0, 1, "x" * 5_000, groupId="g", generationId=1, memberId="m"))
    talk.answer(response("Heartbeat", 0, 1, errorCode=0))
    with_page(step, write_capture(tmp_path / "long.pcap", talk.close()))
