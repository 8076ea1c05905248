"""Filters from what is under the cursor of the list or of the tree."""

from __future__ import annotations

from textual.pilot import Pilot

from kdissect import read
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage
from tests.tui.pages.test_exchanges import ERRORS, listed, numbers, with_page
from tests.tui.snapshots import press


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
