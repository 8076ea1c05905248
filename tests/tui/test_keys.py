"""What each key changes on the screen."""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import pytest
from textual.pilot import Pilot

from kdissect import read
from kdissect.present.form import Clock
from kdissect.present.options import Options
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.widgets.bytes_pane import BytesPane
from kdissect.tui.widgets.field_tree import FieldTree
from kdissect.tui.widgets.panes import DetailPanes
from kdissect.tui.widgets.table import VirtualTable
from tests.amount import some
from tests.cli.run import CAPTURES
from tests.kafka import Talk, request
from tests.present.captures import OPEN, SECRET, secret_talks, write_capture
from tests.tui.snapshots import app_of, press, running, screen_text, settle, shown_after

ERRORS = CAPTURES / "errors.pcapng"
EXCHANGES = len(list(read(ERRORS)))

Step = Callable[[Pilot[None]], Awaitable[None]]


def with_app(step: Step, *paths: Path, width: int = 120, height: int = 40, **given: object) -> None:
    """Run a step on the screens of captures."""

    async def run() -> None:
        async with running(app_of(*(paths or (ERRORS,)), **given), width, height) as pilot:
            await step(pilot)

    asyncio.run(run())


def page_of(pilot: Pilot[None]) -> ExchangesPage:
    assert isinstance(pilot.app, Kdissect)
    page = pilot.app.pages["exchanges"]
    assert isinstance(page, ExchangesPage)
    return page


def cursor(pilot: Pilot[None]) -> int:
    """The number of the exchange under the cursor."""
    page = page_of(pilot)
    return page.kdissect.index.value("number", page.rows.place(page.list_pane.cursor))


def shown(pilot: Pilot[None]) -> int:
    """The number of the exchange whose tree is shown."""
    detail = page_of(pilot).query_one(DetailPanes).detail
    assert detail is not None
    return detail.exchange.number


MOVES = (
    (("j", "j"), 3),
    (("down", "down", "k"), 2),
    (("up",), 1),
    (("G",), EXCHANGES),
    (("end", "g"), 1),
    (("end", "home"), 1),
    (("end",), EXCHANGES),
    (("pagedown",), 17),
    (("pagedown", "pageup"), 1),
    (("e",), 5),
    (("e", "e", "E"), 5),
)


def test_moving_shows_the_exchange_under_the_cursor() -> None:
    async def step(pilot: Pilot[None]) -> None:
        for keys, number in MOVES:
            await press(pilot, *keys)
            assert cursor(pilot) == shown(pilot) == number, keys
            page_of(pilot).go_to(0)
            await settle(pilot)

    with_app(step)


def test_no_further_error_is_said() -> None:
    async def step(pilot: Pilot[None]) -> None:
        none = "no exchange with an error or fault"
        assert f"{none} before this; e goes to the next one" in await shown_after(pilot, "E")
        assert cursor(pilot) == 1
        await press(pilot, "e")
        assert "this is the first exchange with an error" in await shown_after(pilot, "E")
        for _ in range(EXCHANGES):
            text = await shown_after(pilot, "e")
            if "goes to" in text:
                break
        assert "this is the last exchange with an error or fault; E goes to the previous one" in text
        last = cursor(pilot)
        page_of(pilot).kdissect.shown.write(f"number == {last}")
        await settle(pilot)
        assert "this is the only exchange with an error or fault\n" in await shown_after(pilot, "e")
        page_of(pilot).kdissect.shown.write("not error")
        await settle(pilot)
        assert f"{none} after this\n" in await shown_after(pilot, "e")

    with_app(step)


def test_sorting() -> None:
    async def step(pilot: Pilot[None]) -> None:
        assert "by Time, smallest first" in await shown_after(pilot, "s")
        assert "by Latency, largest first" in await shown_after(pilot, "s")
        slowest = max(read(ERRORS), key=lambda exchange: exchange.latency_ns or 0)
        assert cursor(pilot) == slowest.number  # the cursor stays on the first row
        await press(pilot, "j")
        second = cursor(pilot)
        assert "by Latency, smallest first" in await shown_after(pilot, "S")
        assert cursor(pilot) == second  # or else on its exchange
        fastest = min(read(ERRORS), key=lambda exchange: exchange.latency_ns or 0)
        await press(pilot, "g")
        assert cursor(pilot) == fastest.number

    with_app(step)


def test_from_exchange_to_exchange_of_one_connection() -> None:
    here = [each.number for each in read(ERRORS) if each.connection == 1]
    assert any(number - before > 1 for before, number in pairwise(here))  # others are between them

    async def step(pilot: Pilot[None]) -> None:
        page_of(pilot).go_to(here[0] - 1)
        await settle(pilot)
        for number in here[1:4]:
            await press(pilot, "right_curly_bracket")
            assert cursor(pilot) == shown(pilot) == number
        await press(pilot, "enter", "left_curly_bracket")  # also from the tree
        assert cursor(pilot) == shown(pilot) == here[2]
        assert page_of(pilot).panes.has_focus_within
        page_of(pilot).go_to(here[-1] - 1)
        await settle(pilot)
        text = await shown_after(pilot, "right_curly_bracket")
        assert "the list has no exchange of this connection after this one" in text
        assert cursor(pilot) == here[-1]

    with_app(step)


def test_only_this_connection_and_back() -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "j", "j", "j")
        text = await shown_after(pilot, "f")
        here = [each.number for each in read(ERRORS) if each.connection == 1]
        assert f"{len(here)} shown" in text
        assert "/ connection == 1  ✓ 11" in text
        assert cursor(pilot) == 4
        await press(pilot, "G")
        assert cursor(pilot) == here[-1]
        assert " shown" not in await shown_after(pilot, "escape")
        assert cursor(pilot) == here[-1]

    with_app(step)


def test_following_and_not() -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "F")
        assert cursor(pilot) == EXCHANGES
        assert page_of(pilot).follow
        await press(pilot, "k")
        assert not page_of(pilot).follow

    with_app(step)


def test_times() -> None:
    async def step(pilot: Pilot[None]) -> None:
        texts = [screen_text(page_of(pilot).kdissect)] + [await shown_after(pilot, "t") for _ in range(5)]
        assert "since the epoch" in texts[4]
        assert "2026-" in texts[3] or "2025-" in texts[3]
        assert texts[0].splitlines()[4] == texts[5].splitlines()[4]
        assert len({text.splitlines()[4] for text in texts[:5]}) == 5

    with_app(step)


def test_times_count_from_an_exchange() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = page_of(pilot).kdissect
        await press(pilot, "j", "j", "j")
        text = await shown_after(pilot, "R")
        assert "times since No. 4" in text.splitlines()[0]
        assert "times count from No. 4" in text
        times = [app.index.value("time_ns", place) for place in range(6)]
        shown = re.findall(r" (-?[0-9]+\.[0-9]{6}) ", "\n".join(text.splitlines()[3:9]))
        assert shown == [Clock("r", times[3]).text(ns) for ns in times]
        assert shown[2].startswith("-")
        assert "times since" not in await shown_after(pilot, "t")  # of day: they count from nothing
        assert "times since No. 4" in await shown_after(pilot, "t", "t", "t", "t")
        text = await shown_after(pilot, "R")
        assert "times since" not in text
        assert f" {Clock('r', app.index.first_ns).text(times[0])} " in text.splitlines()[3]

    with_app(step)


def test_in_and_out() -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = page_of(pilot)
        await press(pilot, "enter")
        assert page.query_one(FieldTree).has_focus
        await press(pilot, "tab")
        assert page.query_one(BytesPane).has_focus
        await press(pilot, "shift+tab")
        assert page.query_one(FieldTree).has_focus
        await press(pilot, "q")
        assert page.list_pane.has_focus
        assert pilot.app.is_running
        await pilot.press("q")
        await pilot.pause()
        assert pilot.app.return_code == 0

    with_app(step)


def test_a_field_has_its_bytes_in_colour() -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = page_of(pilot)
        await press(pilot, "enter")
        for _ in range(5):
            await press(pilot, "down")
        assert page.query_one(BytesPane).range == (8, 16)  # clientId, with its length
        assert "clientId: 8 bytes at 8 to 16 of 42" in screen_text(page.kdissect)

    with_app(step)


def test_a_byte_has_its_field_chosen() -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = page_of(pilot)
        await press(pilot, "enter", "tab", "down", "down", "right")
        assert page.query_one(BytesPane).cursor == 17
        chosen = page.query_one(DetailPanes).chosen()
        assert chosen[-1].text == 'clientSoftwareName: "apache-kafka-java"'
        assert page.query_one(BytesPane).range == (17, 35)
        await press(pilot, "G")
        assert page.query_one(DetailPanes).chosen()[-1].end == 42
        await press(pilot, "g", "l", "h")
        assert page.query_one(BytesPane).cursor == 0

    with_app(step)


def test_record_sets_open_and_their_bytes_find_their_fields() -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = page_of(pilot)
        for exchange in read(CAPTURES / "basic-kafka43.pcapng"):
            if exchange.api == "Produce":
                page.go_to(exchange.number - 1)
                break
        await settle(pilot)
        await press(pilot, "enter", "tab", "G")
        for _ in range(4):
            await press(pilot, "left")
        path = [spot.text.partition(":")[0] for spot in page.query_one(DetailPanes).chosen()]
        assert path[:3] == ["request", "body", "topicData"]
        assert len(path) > 4

    with_app(step, CAPTURES / "basic-kafka43.pcapng")


def test_the_tree_opens_and_shuts() -> None:
    async def step(pilot: Pilot[None]) -> None:
        tree = page_of(pilot).query_one(FieldTree)
        await press(pilot, "enter", "down")
        assert tree.cursor_node is not None
        assert tree.cursor_node.is_expanded
        await press(pilot, "h")
        assert not tree.cursor_node.is_expanded
        await press(pilot, "l")
        assert tree.cursor_node.is_expanded
        await press(pilot, "j", "h")
        assert tree.cursor_node.data is not None
        assert tree.cursor_node.data.text == "header"
        await press(pilot, "G")
        assert tree.cursor_line == tree.last_line
        await press(pilot, "g")
        assert tree.cursor_line == 0

    with_app(step)


def test_bytes_on_and_off() -> None:
    async def step(pilot: Pilot[None]) -> None:
        assert "00000000  00 12" not in await shown_after(pilot, "x")
        assert "00000000  00 12" in await shown_after(pilot, "x")

    with_app(step)


def test_one_pane_where_there_is_room_for_one() -> None:
    async def step(pilot: Pilot[None]) -> None:
        assert "RequestHeader" not in screen_text(page_of(pilot).kdissect)
        assert "RequestHeader" in await shown_after(pilot, "enter")
        text = await shown_after(pilot, "x")
        assert "00000000  00 12" in text
        assert "RequestHeader" not in text
        assert "RequestHeader" in await shown_after(pilot, "x")
        assert "Metadata v13" in await shown_after(pilot, "escape")

    with_app(step, width=80, height=24)


def test_zoom() -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await shown_after(pilot, "backslash")
        assert "RequestHeader" not in text
        assert "RequestHeader" in await shown_after(pilot, "backslash")
        text = await shown_after(pilot, "enter", "backslash")
        assert "RequestHeader" in text
        assert " No. " not in text
        assert "00000000" not in text
        text = await shown_after(pilot, "escape", "tab", "backslash")
        assert "00000000" in text
        assert "RequestHeader" not in text

    with_app(step)


def test_more_and_less_room() -> None:
    async def step(pilot: Pilot[None]) -> None:
        table = page_of(pilot).list_pane
        before = table.size.height
        await press(pilot, "plus")
        assert table.size.height > before
        await press(pilot, "minus", "minus")
        assert table.size.height < before

    with_app(step)


def test_copying_goes_to_the_terminals_clipboard() -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", *["down"] * 5)
        for downs, expected in (
            (0, "errors"),
            (1, "apiversions.request.header.clientId"),
            (7, "0006" + b"errors".hex()),
        ):
            text = await shown_after(pilot, "y", *["down"] * downs, "enter")
            assert pilot.app.clipboard == expected
            assert "copied the" in text

    with_app(step)


def test_copying_a_message_as_json() -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "y", *["down"] * 6, "enter")
        assert '"clientSoftwareName":"apache-kafka-java"' in pilot.app.clipboard
        await press(pilot, "enter", "y", "escape")
        assert page_of(pilot).query_one(FieldTree).has_focus

    with_app(step)


def test_the_other_screens_and_the_way_back() -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await shown_after(pilot, "2")
        assert "127.0.0.1:42774" in text
        text = await shown_after(pilot, "j", "enter")
        assert "connection == 1" in text
        text = await shown_after(pilot, "escape", "6")
        assert "INVALID_TOPIC_EXCEPTION" in text
        await press(pilot, "enter")
        assert cursor(pilot) in {each.number for each in read(ERRORS) if each.error}
        assert "MEMBER_ID_REQUIRED" in await shown_after(pilot, "escape", "6")
        assert "Latency" in await shown_after(pilot, "1")
        await press(pilot, "2")
        assert "Latency" in await shown_after(pilot, "q")

    with_app(step)


def test_help_lists_the_keys() -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await shown_after(pilot, "question_mark")
        assert "show only the marked exchanges" in text
        assert "show only the marked exchanges" not in await shown_after(pilot, "escape")

    with_app(step)


def test_a_click_chooses_a_row_and_a_byte() -> None:
    async def step(pilot: Pilot[None]) -> None:
        await pilot.click(VirtualTable, offset=(20, 4))
        await settle(pilot)
        assert cursor(pilot) == shown(pilot) == 4
        await pilot.click(BytesPane, offset=(1 + 10 + 3 * 3 + 2, 1))
        await settle(pilot)
        assert page_of(pilot).query_one(BytesPane).cursor == 11

    with_app(step)


def test_a_capture_without_exchanges_says_so(tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await shown_after(pilot, "j", "e", "s", "y", "G", "enter")
        assert "0 exchanges" in text
        assert "no errors and no faults" in await shown_after(pilot, "escape", "6")

    with_app(step, write_capture(tmp_path / "c.pcapng"))


HOSTILE = ("[red]x[/red]", "\x1b[2J\x1b]0;t\x07", "a\u202eb\u2066c", "[/", "\u200b\U000e0041", "$(x)\r\n`")


@pytest.mark.parametrize("width", some([80, 120, 200], 1))
def test_hostile_names_are_shown_as_they_are(width: int, tmp_path: Path) -> None:
    talk = Talk()
    for number, name in enumerate(HOSTILE, 1):
        talk.ask(request("Metadata", 1, number, client_id=name, topics=[{"name": name}]))
    path = write_capture(tmp_path / "[b]x[", talk.close())

    async def step(pilot: Pilot[None]) -> None:
        for keys in (["g"], ["enter", "G"], ["escape", "2"], ["6"], ["1"]):
            text = await shown_after(pilot, *keys)
            assert all(character.isprintable() for character in text if character != "\n")
        for _ in HOSTILE:
            await press(pilot, "j", "y", "enter")
        text = await shown_after(pilot, "g")
        if width > 80:  # else there is no room for the names
            assert "[red]x[/red]" in text
            assert "\\x1b[2J" in text

    with_app(step, path, width=width)


def test_secrets_are_on_no_screen(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "c.pcapng", *secret_talks())
    secret = SECRET.encode()
    coded = [SECRET, b64encode(secret)[:-4].decode(), secret.hex(), secret.hex(" ")]

    async def step(pilot: Pilot[None]) -> None:
        texts = [await shown_after(pilot, "j") for _ in read(path)]
        everything = "\n".join(texts)
        assert OPEN in everything
        assert [each for each in coded if each in everything] == []

    with_app(step, path, width=160, height=60)


def test_secrets_are_shown_when_asked_for(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "c.pcapng", *secret_talks())

    async def step(pilot: Pilot[None]) -> None:
        texts = [await shown_after(pilot, "j") for _ in range(4)]
        assert SECRET in "".join("\n".join(texts).split())

    with_app(step, path, width=200, height=100, options=Options(show_secrets=True, embedded=True))
