"""The screen of records: what each key changes on it."""

from __future__ import annotations

import asyncio
import os
import stat
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
from textual.pilot import Pilot

from kdissect import read
from kdissect.feed import records as record_lines
from kdissect.feed.decoder import Decoder
from kdissect.filter.compiled import compile_filter
from kdissect.present.records import record_rows
from kdissect.record.records import Record
from kdissect.system.editor import CannotEditError, edit, editor_of
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.ladder import LadderPage
from kdissect.tui.pages.records import RecordsPage
from kdissect.tui.widgets.bytes_pane import BytesPane
from kdissect.tui.widgets.field_tree import FieldTree
from kdissect.tui.widgets.panes import DetailPanes
from kdissect.tui.widgets.text_pane import TextPane
from tests.amount import some
from tests.cli.run import CAPTURES
from tests.feed.feeds import source_of
from tests.kafka import Talk
from tests.present.captures import SECRET, secret_talks, write_capture
from tests.tui.producing import produced
from tests.tui.snapshots import EXCHANGES, app_of, press, running, screen_text, settle, shown_after

BASIC = CAPTURES / "basic-kafka43.pcapng"
Step = Callable[[Pilot[None]], Awaitable[None]]


def with_records(step: Step, *paths: Path, width: int = 140, height: int = 40, **given: object) -> None:
    """Run a step on the screen of records."""

    async def run() -> None:
        async with running(app_of(*(paths or (BASIC,)), **given), width, height) as pilot:
            await press(pilot, "7")
            await step(pilot)

    asyncio.run(run())


def page_of(pilot: Pilot[None]) -> RecordsPage:
    page = pilot.app.screen
    assert isinstance(page, RecordsPage)
    return page


def capture(tmp_path: Path, *records: Record) -> Path:
    return write_capture(tmp_path / "c.pcapng", Talk().ask(produced(records)).close())


def test_all_records_are_listed_and_the_one_under_the_cursor_is_shown() -> None:
    rows = [row for exchange in read(BASIC) for row in record_rows(exchange)]

    async def step(pilot: Pilot[None]) -> None:
        text = screen_text(page_of(pilot).kdissect)
        assert f"{len(rows)} records" in text
        assert "key: text, 5 bytes\nkey-3\n" in text
        await press(pilot, "G")
        record = page_of(pilot).record
        assert record is not None
        assert record["key"] == rows[-1]["key"]
        assert (record["exchange"], record["offset"]) == (rows[-1]["exchange"], rows[-1]["offset"])

    with_records(step)


def test_enter_leads_to_the_record_in_the_tree_and_its_bytes() -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = page_of(pilot)
        rows = page.rows
        assert rows is not None
        compressed = next(at for at in range(len(rows)) if rows.cells(at, 200)[-1] == "zstd")
        page.table.cursor = compressed + 3
        await press(pilot, "enter")
        assert page.pane.has_focus
        record = page.record
        assert record is not None
        await press(pilot, "enter")
        panes = pilot.app.screen.query_one(DetailPanes)
        assert panes.detail is not None
        assert panes.detail.exchange.number == record["exchange"]
        spot = panes.chosen()[-1]
        assert spot.type == "Record"
        shown = panes.query_one(BytesPane)
        assert shown.range == (spot.start, spot.end)
        assert record["value"] in shown.data[spot.start : spot.end]
        assert "records unpacked" in screen_text(page.kdissect)
        assert panes.query_one(FieldTree).has_focus

    with_records(step)


def test_out_goes_to_the_list_and_then_to_the_exchanges() -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = page_of(pilot)
        await press(pilot, "enter", "escape")
        assert page.table.has_focus
        await press(pilot, "escape")
        assert pilot.app.screen is page.kdissect.pages["exchanges"]

    with_records(step)


def test_where_there_is_room_for_one_pane_it_is_the_list_or_the_record() -> None:
    async def step(pilot: Pilot[None]) -> None:
        assert "CreateTime" not in screen_text(page_of(pilot).kdissect)
        text = await shown_after(pilot, "enter")
        assert "CreateTime" in text
        assert "Offset" not in text
        assert "Offset" in await shown_after(pilot, "q")

    with_records(step, width=80, height=24)


def test_values_in_another_form(tmp_path: Path) -> None:
    path = capture(tmp_path, Record(0, 1, b"k", b'{"a":1}'), Record(1, 1, b"\x00\xff", b"x"))

    async def step(pilot: Pilot[None]) -> None:
        text = screen_text(page_of(pilot).kdissect)
        assert 'value: json, 7 bytes\n{\n  "a": 1\n}' in text
        assert ' {"a":1} ' in text
        await press(pilot, "v")
        assert "value: text, 7 bytes\n" in await shown_after(pilot, "v")
        text = await shown_after(pilot, "v")
        assert "value: hex, 7 bytes\n00000000  7b 22 61" in text
        assert "7b 22 61 22 3a 31 7d" in text.split("CreateTime", maxsplit=1)[0]
        assert "value: json" in await shown_after(pilot, "v")

    with_records(step, path)


def test_times() -> None:
    async def step(pilot: Pilot[None]) -> None:
        times = [screen_text(page_of(pilot).kdissect).splitlines()[3]]
        times += [(await shown_after(pilot, "t")).splitlines()[3] for _ in range(3)]
        assert "2026-11-21T" in times[0]
        assert len(set(times[:3])) == 3
        assert times[0] == times[3]

    with_records(step)


def test_registry_framing_is_shown_as_that(tmp_path: Path) -> None:
    guid = b"\x01" + bytes(range(16))
    path = capture(
        tmp_path,
        Record(0, 1, b"k", b"\x00\x00\x00\x00\x2a\x02\x06abc"),
        Record(1, 1, b"k", b"{}", (("__value_schema_id", guid),)),
    )

    async def step(pilot: Pilot[None]) -> None:
        text = screen_text(page_of(pilot).kdissect)
        assert "⟨schema 42⟩ 02 06 61 62 63" in text
        assert "⟨schema⟩" in text
        assert "begins as the framing of Confluent's schema registry does: schema 42" in text
        text = await shown_after(pilot, "j")
        assert "schema 00010203-0405-0607-0809-0a0b0c0d0e0f in a header" in text
        assert "__value_schema_id: 01 00 01" in text

    with_records(step, path)


def test_records_of_internal_topics_are_decoded() -> None:
    async def step(pilot: Pilot[None]) -> None:
        rows = page_of(pilot).rows
        assert rows is not None
        values = [rows.cells(row, 200)[6] for row in range(len(rows))]
        assert any(
            "TopicRecord" in value or "RegisterBroker" in value or "Record v" in value for value in values
        )

    paths = [path for path in sorted(CAPTURES.glob("*.pcap*")) if _has_metadata(path)]
    if paths:
        with_records(step, paths[0], width=200)


def _has_metadata(path: Path) -> bool:
    return any("__cluster_metadata" in exchange.topics for exchange in read(path))


def test_a_filter_chooses_records() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = page_of(pilot).kdissect
        app.shown.push('record.key == "key-3" and record.codec == "zstd"')
        await settle(pilot)
        await pilot.pause(0.5)
        text = await shown_after(pilot)
        rows = page_of(pilot).rows
        assert rows is not None
        wanted = [
            row
            for exchange in read(BASIC)
            for row in record_rows(exchange)
            if row["key"] == b"key-3" and row["codec"] == "zstd"
        ]
        assert len(rows) == len(wanted) > 0
        assert f"{plural(len(wanted))}" in text
        app.shown.pop()
        assert "930 records" in await shown_after(pilot)

    def plural(count: int) -> str:
        return "1 record" if count == 1 else f"{count} records"

    with_records(step)


def test_no_more_than_the_limit_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_lines, "MOST_RECORDS", 25)

    async def step(pilot: Pilot[None]) -> None:
        assert "25 records (the list shows no more" in screen_text(page_of(pilot).kdissect)

    with_records(step)


@pytest.mark.parametrize(
    ("downs", "copied"),
    [
        (0, '{"a":1}'),
        (1, "key"),
        (2, '[{"key":"h","value":"x"}]'),
        (4, b'{"a":1}'.hex()),
    ],
)
def test_copying(downs: int, copied: str, tmp_path: Path) -> None:
    path = capture(tmp_path, Record(0, 1, b"key", b'{"a":1}', (("h", b"x"),)))

    async def step(pilot: Pilot[None]) -> None:
        assert "copied the" in await shown_after(pilot, "y", *["down"] * downs, "enter")
        assert pilot.app.clipboard == copied

    with_records(step, path)


def test_copying_a_record_as_json_is_what_the_table_of_records_has(tmp_path: Path) -> None:
    path = capture(tmp_path, Record(0, 1, b"key", b"\xff"))

    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "y", "down", "down", "down", "enter")
        assert pilot.app.clipboard.startswith('{"exchange":1,"connection":0,"direction":"produce"')
        assert '"value":{"base64":"/w=="}' in pilot.app.clipboard

    with_records(step, path)


class Editor:
    """Stands for the editor: what it got, and how its file could be read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files: list[tuple[str, bytes, int]] = []
        monkeypatch.setenv("EDITOR", "vi -R")
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setattr("kdissect.system.editor.run_in_terminal", self.run)
        monkeypatch.setattr(Kdissect, "suspend", contextmanager(self.suspend))

    def suspend(self, _: object) -> Iterator[None]:
        yield

    def run(self, command: list[str]) -> int:
        assert command[:2] == ["vi", "-R"]
        path = Path(command[2])
        self.files.append((command[2], path.read_bytes(), stat.S_IMODE(path.stat().st_mode)))
        return 0


def test_the_value_opens_in_the_editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    editor = Editor(monkeypatch)
    path = capture(tmp_path, Record(0, 1, b"k", b'{"a":1}'))

    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "O", "v", "v", "v", "O")
        (first, data, mode), (second, dump, _) = editor.files
        assert (data, mode) == (b'{"a":1}', 0o600)
        assert first.endswith(".json")
        assert dump.startswith(b"00000000  7b 22")
        assert not os.path.exists(first)
        assert not os.path.exists(second)

    with_records(step, path)


def test_without_an_editor_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)

    async def step(pilot: Pilot[None]) -> None:
        assert "neither VISUAL nor EDITOR" in await shown_after(pilot, "O")
        monkeypatch.setenv("EDITOR", "true")
        assert "cannot be opened in this terminal" in await shown_after(pilot, "O")

    with_records(step)


def test_an_editor_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdissect.system.editor.tempfile.tempdir", str(tmp_path))
    with pytest.raises(CannotEditError, match="ended with 1"):
        edit(["false"], b"x", ".txt")
    with pytest.raises(CannotEditError, match="No such file"):
        edit(["no-such-editor"], b"x", ".txt")
    edit(["true"], b"x", ".txt")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(CannotEditError, match="VISUAL"):
        editor_of({"VISUAL": "vi '"})


HOSTILE = (b"[red]x[/red]", b"\x1b[2J\x1b]0;t\x07", "a\u202eb\u2066c".encode(), b"[/", b"\xff\xfe\n\r\t")


@pytest.mark.parametrize("width", some([80, 120, 200], 1, 120))
def test_hostile_records_are_shown_as_they_are(width: int, tmp_path: Path) -> None:
    records = [
        Record(n, 1, each, each, ((each.decode("utf-8", "surrogateescape"), each),))
        for n, each in enumerate(HOSTILE)
    ]
    talk = Talk().ask(produced(records, topic="[b]t\x1b[2J\u202e["))
    path = write_capture(tmp_path / "c.pcapng", talk.close())

    async def step(pilot: Pilot[None]) -> None:
        for keys in (
            ["j"] * len(HOSTILE),
            ["enter", "v", "v"],
            ["v", "v", "escape"],
            ["L"],
            ["1", "enter", "full_stop", "full_stop"],
        ):
            for key in keys:
                text = await shown_after(pilot, key)
                assert all(character.isprintable() for character in text if character != "\n")

    with_records(step, path, width=width)


@pytest.mark.parametrize("height", some([24, 60], 1, 60))
def test_secrets_are_on_no_screen(height: int, tmp_path: Path) -> None:
    path = write_capture(tmp_path / "c.pcapng", *secret_talks())
    secret = SECRET.encode()
    coded = [SECRET, b64encode(secret)[:-4].decode(), secret.hex(), secret.hex(" ")]

    async def step(pilot: Pilot[None]) -> None:
        rows = page_of(pilot).rows
        assert rows is not None
        texts = []
        for _ in range(len(rows)):
            texts += [await shown_after(pilot, key) for key in ("enter", "v", "v", "v", "v", "escape")]
            for downs in range(5):
                await press(pilot, "y", *["down"] * downs, "enter")
                texts.append(pilot.app.clipboard)
            await press(pilot, "j")
        everything = "\n".join(texts)
        assert "<redacted>" in everything
        assert [each for each in coded if each in everything] == []

    with_records(step, path, width=160, height=height)


def test_the_list_fills_from_the_process_while_the_capture_is_read() -> None:
    async def run() -> None:
        app = Kdissect(Decoder(source_of(BASIC)), settings=EXCHANGES)
        async with running(app) as pilot:
            await press(pilot, "7")
            for _ in range(200):
                if app.ended is not None and "930 records" in screen_text(app):
                    break
                await pilot.pause(0.05)
            text = screen_text(app)
            assert "930 records" in text
            page = page_of(pilot)
            for _ in range(100):  # the record is drawn after the list
                if page.query_one(TextPane).virtual_size.height > 5:
                    break
                await pilot.pause(0.05)
            assert page.query_one(TextPane).virtual_size.height > 5
            assert page._steps is None  # nothing runs when nothing changes

    asyncio.run(run())


def test_a_screen_that_nobody_sees_lists_on_and_draws_nothing() -> None:
    async def run() -> None:
        app = app_of(BASIC)
        async with running(app) as pilot:
            await press(pilot, "7")
            page = page_of(pilot)
            rows = page.rows
            assert rows is not None
            rows.begin(None)  # as if a large capture were still being listed
            rows.take(app.shown.places_of_records)
            await press(pilot, "1")
            with mock.patch.object(page.table, "rows_changed") as drawn:
                for _ in range(100):
                    page._step()
                assert not rows.is_busy
                assert not drawn.called
            text = await shown_after(pilot, "7")
            assert "930 records" in text
            assert page.table.virtual_size.height == 931

    asyncio.run(run())


def test_the_line_at_the_top_counts_the_records_that_a_filter_leaves() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = page_of(pilot).kdissect
        assert " 930 records" in screen_text(app).splitlines()[0]
        for text in ("record.partition == 1", "record.partition == 99"):
            app.shown.write(text)
            await settle(pilot)
            lines = screen_text(app).splitlines()
            count = len(page_of(pilot).rows or ())
            assert f"{count} record" in lines[0] if count else "record" not in lines[0]
            assert f"{count} record" in "\n".join(lines[1:])

    with_records(step)


def test_the_ladder_of_a_record_is_that_of_its_exchanges_client() -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = page_of(pilot)
        await press(pilot, "j", "j")
        place = page.chosen_place()
        assert place is not None
        client = page.kdissect.index.text("client_id", place)
        text = await shown_after(pilot, "L")
        assert "there is no exchange to show" not in text
        ladder = page.kdissect.screen
        assert isinstance(ladder, LadderPage)
        assert ladder.chosen_place() == place
        assert f"all connections of {client}" in text

    with_records(step)


def test_the_count_of_a_filter_says_that_it_is_of_exchanges() -> None:
    async def step(pilot: Pilot[None]) -> None:
        page = page_of(pilot)
        page.kdissect.shown.push("api == Produce")
        text = await shown_after(pilot, "j")
        assert f"/ api == Produce  ✓ {len(page.kdissect.shown.places)} exchanges" in text

    with_records(step)


def test_an_offset_from_the_first_of_a_batch_is_explained(tmp_path: Path) -> None:
    path = capture(tmp_path, Record(0, 1, b"k", b"v"))

    async def step(pilot: Pilot[None]) -> None:
        text = screen_text(page_of(pilot).kdissect)
        assert " +0 " in text
        assert "+n: counted from the batch's first" in text

    with_records(step, path)


def test_keys_say_that_there_is_no_record() -> None:
    async def step(pilot: Pilot[None]) -> None:
        page_of(pilot).kdissect.shown.write("api == ApiVersions")
        await settle(pilot)
        for key in ("=", "o"):
            assert "there is no record" in await shown_after(pilot, key)

    with_records(step)


@pytest.mark.parametrize(
    "text",
    [
        "not record.partition == 1",
        "record.partition != 1",
        "not record.key",
        "record.key == key-3",
        "not record.key != key-3",
        "number <= 60 and record.key != key-3",
    ],
)
def test_the_records_of_a_filter_are_those_that_the_command_line_prints(text: str) -> None:
    matches = compile_filter(text).matches_record
    expected = sum(matches(exchange, row) for exchange in read(BASIC) for row in record_rows(exchange))
    assert expected

    async def step(pilot: Pilot[None]) -> None:
        page = page_of(pilot)
        page.kdissect.shown.write(text)
        await settle(pilot)
        assert page.rows is not None
        assert len(page.rows) == expected
        shown = screen_text(page.kdissect)
        assert f"{expected} records" in shown
        assert "no exchange matches" not in shown

    with_records(step)


def test_exchanges_that_the_rest_of_a_filter_leaves_out_are_not_asked_for_records() -> None:
    async def step(pilot: Pilot[None]) -> None:
        app = page_of(pilot).kdissect
        for text, most in (
            ("number <= 60 and not record.key == a", 60),
            ("not record.key == a", len(app.index)),
        ):
            app.shown.write(text)
            await settle(pilot)
            assert len(app.shown.places_of_records) == most

    with_records(step)
