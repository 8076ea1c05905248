"""The screen of errors: all that is said of the row under the cursor."""

from __future__ import annotations

import asyncio
import time

import pytest
from textual.pilot import Pilot

from kdissect.tui.pages.problems import ProblemsPage, filter_of, other_rows, text_of
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, shown_after

ERRORS = CAPTURES / "errors.pcapng"
INCIDENT = CAPTURES / "incidents" / "leader-killed.pcapng.gz"


def page_of(pilot: Pilot[None]) -> ProblemsPage:
    page = pilot.app.screen
    assert isinstance(page, ProblemsPage)
    return page


def said(text: str) -> str:
    """What stands below the list."""
    return " ".join(text.rpartition("▔")[2].split())


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (240, 70)])
def test_an_error_is_told_whole_below_the_list(size: tuple[int, int]) -> None:
    async def run() -> None:
        async with running(app_of(INCIDENT), *size) as pilot:
            await press(pilot, "6", "tab")
            below = said(await shown_after(pilot, "g"))
            assert "RETRIABLE NOT_COORDINATOR of OffsetCommit, client trade-reader, group trade-book" in below
            assert "broker 127.0.0.1:25002 1 time, at 14.560804, first in exchange No." in below
            text = below + said(await shown_after(pilot, "G"))
            assert "do the client looks for the new one by itself" in text
            assert 'see errors == "NOT_COORDINATOR" and api == "OffsetCommit"' in text

    asyncio.run(run())


def test_the_text_follows_the_cursor_and_enter_there_leads_to_the_exchanges() -> None:
    async def run() -> None:
        async with running(app_of(INCIDENT)) as pilot:
            text = said(await shown_after(pilot, "6", "end"))
            assert text.startswith("ROUTINE")
            assert "An ordinary step" in text
            await press(pilot, "tab", "enter")
            assert "errors == " in await shown_after(pilot)
            assert not isinstance(pilot.app.screen, ProblemsPage)

    asyncio.run(run())


def test_a_fault_and_a_missing_side_say_what_they_mean() -> None:
    async def run() -> None:
        async with running(app_of(INCIDENT)) as pilot:
            await press(pilot, "6")
            page = page_of(pilot)
            index = page.kdissect.index
            rows = other_rows(index, page.kdissect.shown.places, False)
            told = {
                row["what"]: " ".join(each.text for each in text_of(row, filter_of(row), str, 100))
                for row in rows
            }
            assert "not all bytes of a frame were captured" in told["frame: cut-frame"]
            assert "first in packet" in told["frame: cut-frame"]
            assert "The connection ended before the response came." in told["missing: connection closed"]

    asyncio.run(run())


def test_without_a_row_there_is_no_empty_pane() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "basic-kafka43.pcapng")) as pilot:
            await press(pilot, "slash", *"number==1", "enter")
            text = await shown_after(pilot, "6")
            assert "▔" not in text
            assert "No error or fault is in what the filter shows." in text

    asyncio.run(run())


def test_rows_that_differ_by_their_partition_show_it() -> None:
    async def run() -> None:
        async with running(app_of(INCIDENT)) as pilot:
            lines = [line for line in (await shown_after(pilot, "6")).splitlines() if "↻ retriable" in line]
            assert len(lines) == len(set(lines)) == 3

    asyncio.run(run())


def test_what_came_too_soon_for_another_look_is_looked_at_later() -> None:
    async def run() -> None:
        async with running(app_of(INCIDENT)) as pilot:
            await press(pilot, "6")
            page = page_of(pilot)
            page.kdissect.ended = None  # more may come
            page._looking.done(time.monotonic() - 0.02)
            page.kdissect.index.faults.clear()
            page._looked_at = (0, *page._looked_at[1:])
            page.index_grew()
            assert "frame: cut-frame" in {row["what"] for row in page._others}
            while page._later is not None:
                await pilot.pause(0.01)
            assert "frame: cut-frame" not in {row["what"] for row in page._others}

    asyncio.run(run())
