"""Tree and bytes of an exchange: long arrays, tabs, bytes that were unpacked."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from kdissect.present.detail import PAGE
from kdissect.record.records import Record
from kdissect.record.write import write_batch, write_message_set
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.widgets.bars import PaneLine
from kdissect.tui.widgets.bytes_pane import BytesPane
from kdissect.tui.widgets.panes import DetailPanes
from tests.amount import some
from tests.cli.run import CAPTURES
from tests.kafka import Talk, request, response
from tests.present.captures import write_capture
from tests.tui.producing import produced
from tests.tui.snapshots import app_of, press, running, screen_text, settle, shown_after

BASIC = CAPTURES / "basic-kafka43.pcapng"
Step = Callable[[Pilot[None]], Awaitable[None]]


def with_app(step: Step, path: Path, width: int = 160, height: int = 60) -> None:
    async def run() -> None:
        async with running(app_of(path), width, height) as pilot:
            await step(pilot)

    asyncio.run(run())


def panes_of(pilot: Pilot[None]) -> DetailPanes:
    return pilot.app.screen.query_one(DetailPanes)


def many_topics(tmp_path: Path, count: int) -> Path:
    asked = request("Metadata", 1, 1, topics=None)
    topics = [
        {"errorCode": 0, "name": f"topic-{n}", "isInternal": False, "partitions": []} for n in range(count)
    ]
    answered = response("Metadata", 1, 1, brokers=[], controllerId=1, topics=topics)
    return write_capture(tmp_path / "c.pcapng", Talk().ask(asked).answer(answered).close())


def test_a_long_array_pages_in(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        panes = panes_of(pilot)
        await press(pilot, "enter")
        tree = panes.tree_pane
        body = tree.root.children[1].children[1]
        (topics,) = [node for node in body.children if node.data is not None and node.data.text == "topics"]
        tree.move_cursor(topics)
        await press(pilot, "right")
        assert len(topics.children) == PAGE + 1
        tree.move_cursor(topics.children[-1])
        assert f"… {2 * PAGE + 1:,} more" in await shown_after(pilot)
        await press(pilot, "enter")
        assert len(topics.children) == 2 * PAGE + 1
        chosen = panes.chosen()[-1]
        assert chosen.text == f"[{PAGE - 1}]"  # the first of those that came
        tree.move_cursor(topics.children[-1])
        await press(pilot, "l")
        assert len(topics.children) == 3 * PAGE + 1

    with_app(step, many_topics(tmp_path, 3 * PAGE))


def test_a_byte_far_down_a_long_array_finds_its_field(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        panes = panes_of(pilot)
        shown = panes.bytes_pane
        assert panes.detail is not None
        data = panes.detail.buffers()[1]
        await press(pilot, "enter", "G", "tab")
        shown.cursor = data.index(b"topic-39999")
        await settle(pilot)
        assert panes.chosen()[-1].text == 'name: "topic-39999"'
        topics = panes.chosen()[-3]
        assert topics.text == "topics"
        lines = panes.tree_pane.cursor_node.parent.parent.children  # type: ignore[union-attr]
        assert len(lines) <= 2 * PAGE + 3
        assert [line.data.rest is not None for line in lines if line.data].count(True) == 1

    with_app(step, many_topics(tmp_path, 40_000))


def test_tabs() -> None:
    async def step(pilot: Pilot[None]) -> None:
        panes = panes_of(pilot)
        await press(pilot, *["j"] * 5, "enter")
        assert panes.tabs() == ["request", "response", "records", "timing", "tcp"]
        assert panes.tab == "request"
        await press(pilot, "full_stop")
        assert panes.chosen()[-1].text.startswith("response: ")
        text = await shown_after(pilot, "full_stop")
        assert "java43-basic-1 [0]: 1,056 bytes, 0x0000: none, CreateTime" in text
        text = await shown_after(pilot, "right")
        assert '[0]: "key-3" → "{"codec"' in text
        text = await shown_after(pilot, "full_stop")
        assert "latency: 24.8 ms, from the request's last byte" in text
        assert "throttleTimeMs: 0 ms" in text
        text = await shown_after(pilot, "full_stop")
        assert "relative sequence" in text
        assert "request packets: " in text
        await press(pilot, "j")
        assert panes.tab == "tcp"
        await press(pilot, "full_stop")
        assert panes.tab == "request"
        await press(pilot, "comma")
        assert panes.tab == "tcp"

    with_app(step, BASIC)


def test_a_tab_stays_for_the_next_exchange_if_that_has_it() -> None:
    async def step(pilot: Pilot[None]) -> None:
        panes = panes_of(pilot)
        await press(pilot, *["j"] * 5)  # what a tab can show is known once the exchange is there
        await press(pilot, "enter", "full_stop", "full_stop", "escape")
        assert panes.tab == "records"
        await press(pilot, "j")
        assert "java43-basic" in screen_text(pilot.app)
        assert panes.tab == "records"
        text = await shown_after(pilot, "G")
        assert "request: " in text

    with_app(step, BASIC)


def test_tabs_can_be_clicked() -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        await pilot.click(PaneLine, offset=(22, 0))
        await settle(pilot)
        assert panes_of(pilot).tab == "timing"

    with_app(step, BASIC)


PACKED = [(2, 1), (2, 2), (2, 3), (2, 4), (1, 1), (1, 2), (1, 3), (0, 1)]


@pytest.mark.parametrize(("magic", "codec"), some(PACKED, 4, (2, 2), (2, 4), (1, 3), (0, 1)))
def test_a_byte_of_unpacked_records_finds_its_field(magic: int, codec: int, tmp_path: Path) -> None:
    records = [Record(n, 1, b"key-%d" % n, b"value" * 50) for n in range(3)]
    packed = write_batch(records, codec) if magic == 2 else write_message_set(records, magic, codec)
    partition = {"index": 0, "records": b64encode(packed).decode()}
    topics = [{"name": "t", "partitionData": [partition]}]
    asked = request("Produce", 3, 1, transactionalId=None, acks=1, timeoutMs=1, topicData=topics)

    async def step(pilot: Pilot[None]) -> None:
        panes = panes_of(pilot)
        await press(pilot, "enter", "full_stop", "full_stop", "comma")
        panes.turn_to("records")
        await settle(pilot)
        panes.turn_to("request")
        await press(pilot, "b")
        shown = panes.bytes_pane
        assert b"key-1" in shown.data
        assert "unpacked, " in screen_text(pilot.app)
        await press(pilot, "tab")
        shown.cursor = shown.data.index(b"key-1")
        await settle(pilot)
        assert panes.chosen()[-1].text == 'key: "key-1"'
        assert shown.data[slice(*shown.range)].endswith(b"key-1")
        await press(pilot, "b")
        assert "request, " in screen_text(pilot.app)

    with_app(step, write_capture(tmp_path / "c.pcapng", Talk().ask(asked).close()))


def test_hostile_bytes_in_every_tab(tmp_path: Path) -> None:
    name = "[red]\x1b[2J\u202e[/"
    record = Record(0, 1, name.encode(), b"[/b]\x1b]0;x\x07", ((name, b"\x9b1m"),))

    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        for key in ("full_stop",) * 5:
            text = await shown_after(pilot, key, "right", "down", "right")
            assert all(character.isprintable() for character in text if character != "\n")

    path = write_capture(tmp_path / "c.pcapng", Talk().ask(produced([record], 1, topic=name)).close())
    with_app(step, path)


def test_without_an_exchange_there_is_nothing_to_turn_to(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        panes = panes_of(pilot)
        panes.action_turn_tab(1)
        panes.action_next_bytes()
        await press(pilot, "enter", "b", "full_stop", "comma")
        assert panes.tabs() == []
        assert panes.query_one(BytesPane).data == b""

    with_app(step, write_capture(tmp_path / "c.pcapng"))


def shown_lines(pilot: Pilot[None]) -> list[str]:
    """The lines of the tree that can be seen when it is scrolled."""
    tree = panes_of(pilot).tree_pane
    nodes = (tree.get_node_at_line(line) for line in range(tree.last_line + 1))
    return [str(node.label) for node in nodes if node is not None]


def test_what_is_open_stays_so_while_other_tabs_are_shown() -> None:
    async def step(pilot: Pilot[None]) -> None:
        async def go_to(word: str) -> None:
            """Put the cursor on the first line below with a word."""
            for _ in range(60):
                if word in str(panes_of(pilot).tree_pane.cursor_node.label):  # type: ignore[union-attr]
                    return
                await pilot.press("down")
                await pilot.pause()
            raise AssertionError(word)

        await press(pilot, *"jjjjj")
        await press(pilot, "enter")
        for word in ("topicData", "[0]", "partitionData", "[0]", "records"):
            await go_to(word)
            await press(pilot, "right", "down")
        await press(pilot, "g", "down", "left")  # the header, which was open, is shut
        opened = shown_lines(pilot)
        assert any("RecordBatch" in line for line in opened)
        assert sum("requestApiKey" in line for line in opened) == 0
        await press(pilot, "full_stop")
        while panes_of(pilot).tab not in ("request", "response"):
            assert shown_lines(pilot) != opened
            await press(pilot, "full_stop")
        assert shown_lines(pilot) == opened
        await press(pilot, "escape", "down")
        await press(pilot, "up")  # another exchange, and back
        assert shown_lines(pilot) == opened

    with_app(step, BASIC)


def test_where_the_cursor_lands_what_is_below_can_be_read() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng"), 120, 36) as pilot:
            page = pilot.app.screen
            assert isinstance(page, ExchangesPage)
            tree = page.panes.tree_pane
            await press(pilot, "e")
            room = tree.scrollable_content_region.height
            assert tree.cursor_line > room, "or nothing had to move"
            below = tree.scroll_offset.y + room - 1 - tree.cursor_line
            assert below == min(room // 3, tree.last_line - tree.cursor_line) > 0

    asyncio.run(run())


def test_a_tree_that_is_too_wide_has_a_bar_and_no_exchange_lays_the_screen_out_without_need() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng"), 120, 40) as pilot:
            page = pilot.app.screen
            assert isinstance(page, ExchangesPage)
            tree, laid_out = page.panes.tree_pane, 0
            await press(pilot, "e")
            assert tree.show_horizontal_scrollbar
            assert tree.horizontal_scrollbar.region.width > 0
            await press(pilot, "home", "down", "down")

            def count(_: object) -> None:
                nonlocal laid_out
                laid_out += 1

            page.screen_layout_refresh_signal.subscribe(tree, count)
            bars = tree.scrollbars_enabled
            await press(pilot, "down")
            assert laid_out == 0 or tree.scrollbars_enabled != bars

    asyncio.run(run())


def test_the_line_below_the_tree_has_the_word_of_a_filter_if_there_is_room() -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await shown_after(pilot, "enter", "down", "down", "down", "down", "down")
        assert "string   filter: client_id" in text
        await pilot.resize_terminal(44, 40)
        text = await shown_after(pilot, "up", "down")
        assert "filter: client_id" not in text

    with_app(step, BASIC)
