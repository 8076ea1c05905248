"""Marking, commenting, copying, saving and opening the exchange under the cursor."""

from __future__ import annotations

import asyncio
import csv
import json
import shlex
import subprocess
from collections.abc import Awaitable, Callable
from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kdissect import read
from kdissect.capture.files import read_packets
from kdissect.model import Packet
from kdissect.present.options import Options
from kdissect.settings.screens import Settings
from kdissect.tui.app import Kdissect
from kdissect.tui.copying import FORMS as COPY_FORMS
from kdissect.tui.pages import selected_exchange
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.widgets.dialogs import CHOICES
from tests.amount import some
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, screen_text, settle, shown_after

ERRORS = CAPTURES / "errors.pcapng"
BASIC = CAPTURES / "basic-kafka43.pcapng"

Step = Callable[[Pilot[None]], Awaitable[None]]


def with_app(step: Step, path: Path = ERRORS, width: int = 200, **given: object) -> None:
    """Run a step on the screens of a capture."""

    async def run() -> None:
        async with running(app_of(path, **given), width, 40) as pilot:
            await step(pilot)

    asyncio.run(run())


def app_and_page(pilot: Pilot[None]) -> tuple[Kdissect, ExchangesPage]:
    assert isinstance(pilot.app, Kdissect)
    page = pilot.app.pages["exchanges"]
    assert isinstance(page, ExchangesPage)
    return pilot.app, page


def line_of(text: str, number: int) -> str:
    """The line of the list with an exchange."""
    return next(line for line in text.splitlines() if line[2:12].split()[:1] == [str(number)])


async def answer(pilot: Pilot[None], text: str) -> str:
    """Fill in the line that is asked for."""
    pilot.app.screen.query_one(Input).value = text
    return await shown_after(pilot, "enter")


def test_marks_are_shown_filtered_by_and_gone_to() -> None:
    async def step(pilot: Pilot[None]) -> None:
        _, page = app_and_page(pilot)
        assert "nothing is marked" in await shown_after(pilot, "M")
        assert "nothing is marked" in await shown_after(pilot, "apostrophe")
        await press(pilot, "j")
        text = await shown_after(pilot, "m")
        assert "No. 2 is marked; 1 marked" in text
        assert "★" in line_of(text, 2)
        assert "★" not in line_of(text, 1)
        await press(pilot, "G", "m", "g", "apostrophe")
        assert page.chosen_number == 2
        await press(pilot, "apostrophe")
        assert page.chosen_number == 52
        await press(pilot, "apostrophe")
        assert page.chosen_number == 2
        text = await shown_after(pilot, "M")
        assert "2 shown" in text
        assert [page.kdissect.index.value("number", place) for place in page.rows.view] == [2, 52]
        assert " shown" not in await shown_after(pilot, "escape")
        text = await shown_after(pilot, "m")
        assert "No. 2 is no longer marked; 1 marked" in text or page.chosen_number != 2

    with_app(step)


def test_keys_mark_one_row_after_the_other() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app, page = app_and_page(pilot)
        await press(pilot, "j", "shift+down", "shift+down")
        assert page.list_pane.cursor == 3
        assert app.marks.numbers == {2, 3, 4}
        await press(pilot, "g", "shift+up")  # there is none above
        assert app.marks.numbers == {1, 2, 3, 4}

    with_app(step)


def test_two_exchanges_are_compared_line_by_line() -> None:
    async def step(pilot: Pilot[None]) -> None:
        _, page = app_and_page(pilot)
        assert "mark two exchanges with m" in await shown_after(pilot, "D")
        text = await shown_after(pilot, "m", "D")
        assert "; 1 marked" in text  # the one under the cursor is that one
        await press(pilot, "j")
        text = await shown_after(pilot, "D")
        assert "- only in No. 1   + only in No. 2" in text
        assert "Esc closes" in text
        assert "-   request: 42 bytes" in text
        assert "- Exchange 1: " in text
        assert "+ Exchange 2: " in text
        await press(pilot, "escape", "m", "j")
        assert "- only in No. 1   + only in No. 2" in await shown_after(pilot, "D")  # not the cursor's
        await press(pilot, "q", "m")
        assert "3 marked" in await shown_after(pilot, "D")
        assert page.kdissect.marks.numbers == {1, 2, 3}

    with_app(step)


def test_all_that_is_shown_is_marked_at_once() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app, page = app_and_page(pilot)
        app.shown.write("error")
        await settle(pilot)
        text = await shown_after(pilot, "A")
        errors = [each.number for each in read(ERRORS) if each.error]
        assert f"{len(errors)} exchanges are marked; {len(errors)} marked" in text
        await press(pilot, "escape")
        await press(pilot, "M")
        assert [app.index.value("number", place) for place in page.rows.view] == errors
        assert f"{len(errors)} exchanges are no longer marked; 0 marked" in await shown_after(pilot, "A")

    with_app(step)


def test_marks_that_no_filter_can_tell_are_no_defect() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app, _ = app_and_page(pilot)
        app.marks.toggle_all(range(1, 10_000, 2))
        text = await shown_after(pilot, "M")
        assert "there are too many marks for a filter; w saves the marked exchanges" in text
        assert not app.shown.text

    with_app(step)


def test_a_comment_is_shown_changed_and_taken_away() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app, page = app_and_page(pilot)
        await press(pilot, "j", "semicolon")
        text = await answer(pilot, "look [red]here[/] \u202ex")
        assert "No. 2: look [red]here[/]" in text
        assert "✎" in line_of(text, 2)
        await press(pilot, "g", "apostrophe")
        assert page.chosen_number == 2
        await press(pilot, "semicolon")
        assert pilot.app.screen.query_one(Input).value == "look [red]here[/] \u202ex"
        await press(pilot, "escape")
        assert app.marks.comment(2) == "look [red]here[/] \u202ex"
        await press(pilot, "semicolon")
        text = await answer(pilot, "")
        assert "✎" not in line_of(text, 2)
        assert app.marks.comment(2) is None

    with_app(step)


def test_comments_are_kept_in_pcapng_and_shown_again(tmp_path: Path) -> None:
    path = tmp_path / "x.pcapng"

    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "e", "m", "semicolon")
        await answer(pilot, "why?")
        await press(pilot, "w")
        assert "1 exchange" in await shown_after(pilot, "down", "enter")
        assert f"of 1 exchange written to {path}" in await answer(pilot, str(path))

    with_app(step)
    packets = [item for item in read_packets([path]) if isinstance(item, Packet)]
    assert [packet.comments for packet in packets if packet.comments] == [("why?",)]

    async def again(pilot: Pilot[None]) -> None:
        app, page = app_and_page(pilot)
        assert "✎" in line_of(screen_text(app), 1)
        assert "why?" in await shown_after(pilot, "apostrophe")
        assert len(page.rows) == 1

    with_app(again, path)


@pytest.mark.parametrize(
    ("which", "form"),
    some(
        product(("shown", "marked", "this one"), ("pcapng", "ndjson", "csv", "parquet")),
        4,
        *(("shown", "pcapng"), ("marked", "pcapng"), ("marked", "ndjson"), ("this one", "parquet")),
    ),
)
def test_saving_shown_marked_and_one(which: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{form}"
    everything = list(read(ERRORS))
    wanted = {
        "shown": [each for each in everything if each.connection == 0],
        "marked": [everything[1], everything[51]],
        "this one": [everything[1]],
    }[which]

    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "j", "m", "G", "m", "g", "j", "f", "w")
        for _ in range(["shown", "marked", "this one"].index(which)):
            await press(pilot, "down")
        await press(pilot, "enter")
        assert "written to" in await answer(pilot, str(path))

    with_app(step)
    assert path.stat().st_mode & 0o777 == 0o600
    if form == "pcapng":
        found = [(each.api, each.correlation_id, each.latency_ns) for each in read(path)]
        assert found == [(each.api, each.correlation_id, each.latency_ns) for each in wanted]
        if which == "shown":  # whole connections: nothing had to be concluded
            assert all(each.inferred is None and each.missing is None for each in read(path))
        return
    numbers = [each.number for each in wanted]
    if form == "ndjson":
        assert [json.loads(line)["number"] for line in path.read_bytes().splitlines()] == numbers
    elif form == "csv":
        with path.open(newline="") as file:
            assert [int(row["number"]) for row in csv.DictReader(file)] == numbers
    else:
        assert pq.read_table(path)["number"].to_pylist() == numbers


def test_a_file_that_is_there_is_only_replaced_when_that_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("mine")
    path.chmod(0o640)

    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "w", "enter")
        assert "is there already" in await answer(pilot, str(path))
        assert "was not changed" in await shown_after(pilot, "enter")
        assert path.read_text() == "mine"
        await press(pilot, "w", "enter")
        await answer(pilot, str(path))
        assert "was not changed" in await shown_after(pilot, "escape")
        await press(pilot, "w", "enter")
        await answer(pilot, str(path))
        assert "52 exchanges written to" in await shown_after(pilot, "down", "enter")
        assert path.read_bytes().startswith(b'"number"')
        assert [each.name for each in tmp_path.iterdir()] == ["x.csv"]
        assert path.stat().st_mode & 0o777 == 0o640

    with_app(step)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("x.txt", "the name must end in one of .pcapng"),
        ("no/such/x.csv", "there is no folder "),
    ],
)
def test_what_cannot_be_saved_is_said(name: str, said: str, tmp_path: Path) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "w", "enter")
        assert said in await answer(pilot, str(tmp_path / name))
        assert pilot.app.screen.query_one(Input).value == str(tmp_path / name)  # it can be mended
        assert list(tmp_path.iterdir()) == []

    with_app(step)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("filter", 'client_id == "errors"'),
        ("path", "apiversions.request.header.clientId"),
        ("tshark command", f"tshark -r {ERRORS} -d tcp.port==20011,kafka -Y 'frame.number in {{4, 6}}' -V"),
    ],
)
def test_copying_a_line(form: str, expected: str) -> None:
    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", *["down"] * 5)
        await press(pilot, "y", *["down"] * COPY_FORMS.index(form), "enter")
        assert pilot.app.clipboard == expected

    with_app(step)


def test_what_a_line_does_not_have_is_said() -> None:
    async def step(pilot: Pilot[None]) -> None:
        text = await shown_after(pilot, "y", *["down"] * COPY_FORMS.index("kcat command"), "enter")
        assert "there is no kcat command for this line" in text
        assert pilot.app.clipboard == ""

    with_app(step)


@pytest.mark.parametrize(
    ("form", "paths", "said"),
    [
        ("body for client send --json", (ERRORS,), "copy kdissect client send instead"),
        ("kdissect client send", (ERRORS, BASIC), "open the file of this exchange alone"),
        ("tshark command", (ERRORS, BASIC), "open the file of this exchange alone"),
    ],
)
def test_why_a_produce_request_has_no_such_form_is_said(
    form: str, paths: tuple[Path, ...], said: str
) -> None:
    async def run() -> None:
        async with running(app_of(*paths, settings=Settings(filter="api == Produce"))) as pilot:
            text = await shown_after(pilot, "y", *["down"] * COPY_FORMS.index(form), "enter")
            assert said in text
            assert pilot.app.clipboard == ""

    asyncio.run(run())


@pytest.mark.parametrize("is_there", [False, True])
def test_wireshark_is_opened_or_its_command_told(is_there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(selected_exchange, "which", lambda name: "/usr/bin/wireshark" if is_there else None)
    monkeypatch.setattr(subprocess, "Popen", lambda command, **given: started.append(command))
    monkeypatch.setenv("DISPLAY", ":0")
    command = ["wireshark", "-r", str(ERRORS), "-d", "tcp.port==20011,kafka", "-g", "4"]

    async def step(pilot: Pilot[None]) -> None:
        text = await shown_after(pilot, "W")
        if is_there:
            assert "Wireshark opens at packet 4" in text
            assert started == [command]
        else:
            assert "not installed here; copied: wireshark -r" in text
            assert pilot.app.clipboard == " ".join(command)
            assert started == []

    with_app(step)


def test_commands_of_the_user_are_copied_with_values_of_the_exchange() -> None:
    async def run() -> None:
        commands = {"groups": "groups --group {group}", "who": "echo {client_id}"}
        app = app_of(ERRORS, settings=Settings(commands=commands))
        async with running(app) as pilot:
            count = len(COPY_FORMS)
            await press(pilot, "y", *["down"] * (count + 1), "enter")
            exchange = app.chosen_exchange()
            assert exchange is not None
            assert app.clipboard == f"echo {exchange.client_id}"
            text = await shown_after(pilot, "y", *["down"] * count, "enter")
            assert "this exchange has no group" in text
            assert app.clipboard == f"echo {exchange.client_id}"
            app.copy_to_clipboard("")
            key = CHOICES[count + 1]
            assert f" {key} command who " in await shown_after(pilot, "y")
            await press(pilot, key)
            assert app.clipboard == f"echo {exchange.client_id}"

    asyncio.run(run())


def test_a_query_for_duckdb_is_about_what_is_shown() -> None:
    async def run() -> None:
        app = app_of(ERRORS)
        async with running(app) as pilot:
            app.shown.write("error")
            await settle(pilot)
            await press(pilot, "y", *["down"] * COPY_FORMS.index("DuckDB query"), "enter")
            assert app.clipboard.startswith(
                f"kdissect read {ERRORS} -Y error -T parquet -o exchanges.parquet && "
            )
            assert shlex.split(app.clipboard)[-3:-1] == ["duckdb", "-c"]

    asyncio.run(run())


@pytest.mark.parametrize("show_secrets", [False, True])
def test_a_query_for_duckdb_has_no_filter_that_asks_for_a_secret(show_secrets: bool) -> None:
    async def run() -> None:
        app = app_of(ERRORS, options=Options(embedded=True, show_secrets=show_secrets))
        async with running(app) as pilot:
            app.shown.write('error or saslAuthenticate.request.authBytes == "letmein"')
            await settle(pilot)
            text = await shown_after(pilot, "y", *["down"] * COPY_FORMS.index("DuckDB query"), "enter")
            assert ("letmein" in app.clipboard) == show_secrets
            assert ("-Y '<redacted>' " in app.clipboard) != show_secrets
            said = "copied the DuckDB query with <redacted>, because the filter asks for a secret"
            assert (said in text) != show_secrets

    asyncio.run(run())


def test_bytes_that_are_no_text_are_copied_as_escapes() -> None:
    async def run() -> None:
        app = app_of(ERRORS)
        async with running(app):
            app.copy_to_clipboard("g\udcffb")
            assert app.clipboard == "g\\xffb"

    asyncio.run(run())
