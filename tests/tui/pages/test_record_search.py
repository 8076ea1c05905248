"""Searching in records: from match to match, and which match it is of how many."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kdissect import read
from kdissect.present.records import record_rows
from kdissect.record.records import Record
from kdissect.tui.pages import record_search
from tests.kafka import Talk
from tests.present.captures import write_capture
from tests.tui.pages.test_records import BASIC, capture, page_of, with_records
from tests.tui.producing import produced
from tests.tui.snapshots import press, screen_text, settle, shown_after


async def search(pilot: Pilot[None], text: str) -> str:
    """Search for a text; gives what then stands on the screen."""
    await press(pilot, "ctrl+f")
    pilot.app.screen.query_one(Input).value = text
    return await shown_after(pilot, "enter")


def key_of(pilot: Pilot[None]) -> bytes:
    record = page_of(pilot).record
    assert record is not None
    key = record["key"]
    assert isinstance(key, bytes)
    return key


def test_search_goes_from_record_to_record_and_on_from_the_other_end(tmp_path: Path) -> None:
    keys = [b"a1", b"b1", b"a2", b"b2", b"a3"]
    path = capture(tmp_path, *(Record(at, 1, key, b"v") for at, key in enumerate(keys)))

    async def step(pilot: Pilot[None]) -> None:
        assert "searching" not in await search(pilot, "B")
        assert key_of(pilot) == b"b1"
        await press(pilot, "n")
        assert key_of(pilot) == b"b2"
        assert "the search went on from the top" in await shown_after(pilot, "n")
        assert key_of(pilot) == b"b1"
        assert "the search went on from the end" in await shown_after(pilot, "N")
        assert key_of(pilot) == b"b2"

    with_records(step, path)


def test_search_finds_what_the_list_has_no_room_for(tmp_path: Path) -> None:
    long = b"\n".join(b"line %d" % at for at in range(200)) + b" needle"
    path = capture(tmp_path, Record(0, 1, b"k0", b"v"), Record(1, 1, b"k1", long))

    async def step(pilot: Pilot[None]) -> None:
        text = await search(pilot, "NEEDLE")
        assert key_of(pilot) == b"k1"
        assert "line 199 needle" in text

    with_records(step, path)


def test_search_looks_at_the_records_that_are_listed_and_at_no_other(tmp_path: Path) -> None:
    path = capture(tmp_path, *(Record(at, 1, b"k%d" % at, b"same") for at in range(6)))

    async def step(pilot: Pilot[None]) -> None:
        page_of(pilot).kdissect.shown.write('record.key == "k2" or record.key == "k5"')
        await settle(pilot)
        await search(pilot, "same")
        assert key_of(pilot) == b"k2"
        await press(pilot, "n")
        assert key_of(pilot) == b"k5"
        assert "k3 is not found in these records" in await search(pilot, "k3")
        assert key_of(pilot) == b"k5"

    with_records(step, path)


def test_search_tells_what_it_cannot_search_for() -> None:
    async def step(pilot: Pilot[None]) -> None:
        assert "not a regular expression" in await search(pilot, "/(/")

    with_records(step)


def numbered(*keys: bytes) -> list[Record]:
    return [Record(at, 1, key, b"v") for at, key in enumerate(keys)]


def test_the_status_says_which_record_it_is_of_how_many_that_match(tmp_path: Path) -> None:
    """Two exchanges with matches, and one between them without."""
    talk = Talk()
    for correlation, keys in enumerate([(b"a1", b"b1", b"b2"), (b"a2", b"a3"), (b"b3", b"a4", b"b4")], 1):
        talk.ask(produced(numbered(*keys), correlation_id=correlation))
    path = write_capture(tmp_path / "c.pcapng", talk.close())

    async def step(pilot: Pilot[None]) -> None:
        assert "  match 1 of 4  " in await search(pilot, "b")
        assert "  match 2 of 4  " in await shown_after(pilot, "n")
        assert "  match 3 of 4  " in await shown_after(pilot, "n")
        assert key_of(pilot) == b"b3"
        assert "  match " not in await shown_after(pilot, "j"), "no match is under the cursor"
        assert "  match 4 of 4  " in await shown_after(pilot, "n")
        assert "  match 1 of 4  " in await shown_after(pilot, "n")
        assert "  match 4 of 4  " in await shown_after(pilot, "N")

    with_records(step, path, width=160)


def test_a_search_from_the_middle_counts_the_records_before_it_too(tmp_path: Path) -> None:
    path = capture(tmp_path, *numbered(b"b1", b"a1", b"b2", b"a2", b"b3"))

    async def step(pilot: Pilot[None]) -> None:
        await press(pilot, "j", "j")
        assert "  match 2 of 3  " in await search(pilot, "b")

    with_records(step, path, width=160)


def test_matches_are_counted_among_the_records_that_are_listed(tmp_path: Path) -> None:
    path = capture(tmp_path, *numbered(*(b"k%d" % at for at in range(6))))

    async def step(pilot: Pilot[None]) -> None:
        assert "  match 1 of 6  " in await search(pilot, "k")
        page_of(pilot).kdissect.shown.write('record.key == "k2" or record.key == "k5"')
        await settle(pilot)
        assert "  match " not in screen_text(page_of(pilot).kdissect), "the list is another one"
        assert "  match 2 of 2  " in await shown_after(pilot, "n")

    with_records(step, path, width=160)


def test_matches_of_a_real_capture_are_counted_exchange_by_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_search, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(record_search, "MOST_IN_PORTION", 2)
    rows = [row for exchange in read(BASIC) for row in record_rows(exchange)]
    wanted = sum(row["key"] is not None and b"key-1" in row["key"] for row in rows)

    async def step(pilot: Pilot[None]) -> None:
        await search(pilot, "key-1")
        assert f"  match 1 of {wanted}  " in await shown_after(pilot)
        await press(pilot, "G")
        assert f"  match {wanted} of {wanted}  " in await shown_after(pilot, "N")

    with_records(step, width=160)


@pytest.mark.parametrize(("most", "told"), [(2, "match 1 of 3+"), (4, "match 1 of 5")])
def test_more_matches_than_are_counted_are_told_by_a_plus(
    most: int, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdissect.tui.pages.finder.MOST_COUNTED", most)
    monkeypatch.setattr(record_search, "ROWS_AT_ONCE", 1)
    path = capture(tmp_path, *numbered(*[b"b"] * 5))

    async def step(pilot: Pilot[None]) -> None:
        assert f"  {told}  " in await search(pilot, "b")

    with_records(step, path, width=160)
