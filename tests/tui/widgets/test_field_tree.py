"""Opening a line of the tree with everything below it."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from kdissect.tui.widgets.field_tree import MOST_LINES
from tests.tui.snapshots import press, shown_after
from tests.tui.widgets.test_panes import BASIC, many_topics, panes_of, with_app
from tests.tui.widgets.test_tree_state import names, select, selected, talk_of


def test_a_key_opens_all_below_a_line_and_closes_it_again(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        select(pilot, "response", "body", "topics")
        before = names(pilot)
        text = await shown_after(pilot, "*")
        opened = names(pilot)
        assert opened.count("leaderId") == 4
        assert opened.count("[1]  int32") == 0, "an array of one broker"
        assert "there are more" not in text
        assert selected(pilot)[-1] == "topics"
        await press(pilot, "*")
        assert names(pilot) == before
        await press(pilot, "*", "escape", "j", "j")
        assert names(pilot) == opened, "the next exchange of the API"

    with_app(step, talk_of(tmp_path, 2, 2), height=80)


def test_what_is_open_in_part_is_opened_whole(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        select(pilot, "response", "body", "topics")
        await press(pilot, "right", "down", "right", "up", "*")
        assert names(pilot).count("leaderId") == 4

    with_app(step, talk_of(tmp_path, 2), height=80)


def test_record_sets_are_unpacked_for_it() -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, *"jjjjj", "enter")
        select(pilot, "request", "body", "topicData")
        await press(pilot, "*")
        assert names(pilot).count("baseTimestamp") == 2
        assert names(pilot).count("timestampDelta") > 10

    with_app(step, BASIC)


def test_too_much_is_opened_in_part_which_is_told(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        select(pilot, "response", "body", "topics")
        before = names(pilot)
        assert "there are more below this line" in await shown_after(pilot, "*")
        added = len(names(pilot)) - len(before)
        assert MOST_LINES - 50 < added <= MOST_LINES
        await press(pilot, "*")
        assert names(pilot) == before

    with_app(step, talk_of(tmp_path, 100))


def test_a_long_array_is_opened_as_far_as_one_line_opens_it(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        select(pilot, "response", "body", "topics")
        assert " lines are open; there are more below this line" in await shown_after(pilot, "*")
        tree = panes_of(pilot).tree_pane
        tree.move_cursor(tree.cursor_node.children[-1])  # type: ignore[union-attr]
        await press(pilot, "*")
        assert selected(pilot)[-1] == "[499]", "the line that stands for the others gives way to the next"

    with_app(step, many_topics(tmp_path, 2_000))


def test_a_line_with_nothing_below_says_so(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        select(pilot, "response", "body", "controllerId")
        assert "there is nothing below this line" in await shown_after(pilot, "*")

    with_app(step, talk_of(tmp_path, 2))
