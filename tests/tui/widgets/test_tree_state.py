"""What was opened, closed and selected in a tree, in the tree of the next exchange of the API."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from kdissect.tui.widgets import tree_state
from tests.kafka import Talk, request, response
from tests.present.captures import write_capture
from tests.tui.snapshots import press, settle
from tests.tui.widgets.test_panes import BASIC, panes_of, shown_lines, with_app


def talk_of(tmp_path: Path, *counts: int) -> Path:
    """Answers to Metadata with so many topics, each with two partitions, and after each a heartbeat."""
    talk = Talk()
    for number, count in enumerate(counts, 1):
        partitions = [
            {
                "errorCode": 0,
                "partitionIndex": index,
                "leaderId": 1,
                "replicaNodes": [1],
                "isrNodes": [1],
            }
            for index in range(2)
        ]
        topics = [
            {"errorCode": 0, "name": f"t{each}", "isInternal": False, "partitions": partitions}
            for each in range(count)
        ]
        talk = talk.ask(request("Metadata", 1, 2 * number, topics=None)).answer(
            response("Metadata", 1, 2 * number, brokers=[], controllerId=1, topics=topics)
        )
        talk = talk.ask(
            request("Heartbeat", 0, 2 * number + 1, groupId="g", generationId=1, memberId="m")
        ).answer(response("Heartbeat", 0, 2 * number + 1, errorCode=0))
    return write_capture(tmp_path / "c.pcapng", talk.close())


def select(pilot: Pilot[None], *names: str) -> None:
    """Put the cursor on the line below others; of several with a name the first."""
    tree = panes_of(pilot).tree_pane
    here = tree.root
    for name in names:
        here = next(node for node in here.children if str(node.label).startswith(name))
    tree.move_cursor(here)


def selected(pilot: Pilot[None]) -> list[str]:
    """The name of the selected line, after those around it."""
    return [spot.text.partition(":")[0] for spot in panes_of(pilot).chosen()]


def names(pilot: Pilot[None]) -> list[str]:
    """The lines without their values."""
    return [line.partition(":")[0] for line in shown_lines(pilot)]


async def open_topic(pilot: Pilot[None], number: int) -> None:
    """Open the partitions of a topic in an answer to Metadata."""
    topics = ("response", "body", "topics")
    for path in (topics, (*topics, f"[{number}]"), (*topics, f"[{number}]", "partitions")):
        select(pilot, *path)
        await press(pilot, "right")


def test_the_next_exchange_of_the_api_has_the_same_lines_open_and_the_same_selected(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        await open_topic(pilot, 1)
        select(pilot, "response", "body", "topics", "[1]", "partitions", "[1]")
        await press(pilot, "right")
        select(pilot, "response", "body", "topics", "[1]", "partitions", "[1]", "leaderId")
        await press(pilot)
        before, lines = selected(pilot), names(pilot)
        assert before[-1] == "leaderId"
        await press(pilot, "escape", "j")
        assert selected(pilot) == ["request"], "of another API nothing is kept yet"
        await press(pilot, "j")
        assert selected(pilot) == before
        assert names(pilot) == lines
        tree = panes_of(pilot).tree_pane
        top = tree.scroll_offset.y
        assert top <= tree.cursor_line < top + tree.scrollable_content_region.height

    with_app(step, talk_of(tmp_path, 3, 3), height=30)


def test_what_was_closed_stays_closed(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down", "left", "escape", "j")
        assert any("requestApiKey" in line for line in shown_lines(pilot)), "another API"
        await press(pilot, "j")
        assert selected(pilot) == ["request", "header"]
        assert not any("requestApiKey" in line for line in shown_lines(pilot))
        await press(pilot, "enter", "right", "escape", "j", "j")
        assert any("requestApiKey" in line for line in shown_lines(pilot))

    with_app(step, talk_of(tmp_path, 1, 1, 1))


def test_of_a_shorter_array_the_last_element_is_open_and_selected(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        await open_topic(pilot, 3)
        select(pilot, "response", "body", "topics", "[3]", "name")
        await press(pilot, "escape", "j", "j")
        assert selected(pilot)[-2:] == ["[1]", "name"]
        opened = [line.startswith("[1]") for line in shown_lines(pilot)]
        assert any(opened)
        await press(pilot, "j", "j")  # again a long one
        assert selected(pilot)[-2:] == ["[1]", "name"], "the line that was selected last"
        texts = [line.split()[0] for line in shown_lines(pilot) if line.startswith(("[", "name"))]
        assert texts == ["[0]", "[1]", "name:", "[2]", "[3]", "name:", "[0]", "[1]"]

    with_app(step, talk_of(tmp_path, 4, 2, 4))


def test_where_there_is_no_such_field_the_line_around_it_is_selected(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        await open_topic(pilot, 0)
        select(pilot, "response", "body", "topics", "[0]", "name")
        await press(pilot, "escape", "j", "j")
        assert selected(pilot)[-1] == "topics"

    with_app(step, talk_of(tmp_path, 2, 0))


def test_record_sets_that_were_open_are_opened(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, *"jjjjj", "enter")
        path = ["request", "body", "topicData", "[0]", "partitionData", "[0]", "records", "[0]"]
        for count in range(3, len(path) + 1):
            select(pilot, *path[:count])
            await press(pilot, "right")
        select(pilot, *path, "baseTimestamp")
        await press(pilot)
        before = shown_lines(pilot)
        number = panes_of(pilot).detail.exchange.number  # type: ignore[union-attr]
        await press(pilot, "escape", "k")
        assert shown_lines(pilot) != before
        await press(pilot, "j")
        assert panes_of(pilot).detail.exchange.number == number  # type: ignore[union-attr]
        assert shown_lines(pilot) == before
        assert selected(pilot)[-1] == "baseTimestamp"

    with_app(step, BASIC)


def test_lines_that_a_search_opened_are_not_kept(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        select(pilot, "response", "body", "controllerId")
        await press(pilot, "escape")
        panes_of(pilot).point_at_line(lambda detail: detail.path_to_line(lambda text: "isrNodes" in text))
        await press(pilot)
        assert selected(pilot)[-1] == "isrNodes"
        await press(pilot, "j", "j")
        assert selected(pilot)[-1] == "isrNodes", "the line that was selected last"
        await press(pilot, "enter")
        select(pilot, "response", "body", "controllerId")
        await press(pilot, "escape", "k", "k")
        assert not any("isrNodes" in line for line in shown_lines(pilot))

    with_app(step, talk_of(tmp_path, 2, 2))


def test_what_is_kept_and_drawn_is_bounded(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        select(pilot, "response", "body", "topics")
        await press(pilot, "right")
        tree = panes_of(pilot).tree_pane
        for node in list(tree.cursor_node.children):  # type: ignore[union-attr]
            node.expand()
        await settle(pilot)
        before = tree.last_line
        assert before > 2_000
        await press(pilot, "escape", "j", "j")
        drawn = tree.last_line
        assert tree_state.MOST_DRAWN < drawn < tree_state.MOST_DRAWN + 550

    with_app(step, talk_of(tmp_path, 450, 450))
