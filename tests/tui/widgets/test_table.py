"""Cells of a table that are cut, and the row under the cursor."""

from __future__ import annotations

import asyncio

import pytest
from rich.cells import cell_len

from kdissect.tui.widgets.table import VirtualTable, cut_apart, cut_name, cut_text
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running

NAMES = ("127.0.0.1:25001", "raft-client-1", "消費者グループ-orders-12")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("room", range(1, 13))
def test_a_name_takes_all_of_its_room(name: str, room: int) -> None:
    """But for a cell at either side of the cut, in which a wide character would have its half."""
    cells = cell_len(cut_name(name, room))
    assert cells == room if name.isascii() else room - 2 <= cells <= room


def test_no_blank_stands_for_half_a_character() -> None:
    assert cut_name("日本語クライアント-注文処理サービス", 14) == "日本語…ービス"
    assert cut_text("日本語", 5) == "日本…"
    assert cut_text("日本語", 4) == "日…"
    assert cut_text("a b c", 3) == "a …"


def test_no_accent_stands_at_the_sign_of_a_cut() -> None:
    assert cut_name("e\u0301" * 20, 8) == "e\u0301e\u0301e\u0301e\u0301…e\u0301e\u0301e\u0301"


def test_names_that_differ_at_the_end_differ_where_they_are_cut() -> None:
    assert cut_name("127.0.0.1:25001", 12) == "127.0.…25001"
    assert cut_name("raft-client-1", 12) == "raft-c…ent-1"
    assert cut_name("raft-client-1", 12) != cut_name("raft-client-2", 12)
    assert cut_text("it was cut", 7) == "it was…"


@pytest.mark.parametrize("room", [12, 22, 30, 31, 40])
def test_two_names_that_differ_in_the_middle_differ_where_they_are_cut(room: int) -> None:
    names = "client-0.10.2-on-3.9/capture.pcapng", "client-0.10.2-on-4.3/capture.pcapng"
    first, second = cut_apart(names, room)
    assert first != second
    assert "3.9" in first
    assert "4.3" in second
    assert max(map(cell_len, (first, second))) <= room


def test_two_names_that_differ_elsewhere_are_cut_as_any_name() -> None:
    assert cut_apart(("raft-client-1", "raft-client-2"), 12) == ["raft-c…ent-1", "raft-c…ent-2"]
    assert cut_apart(("short", "raft-client-2"), 12) == ["short", "raft-c…ent-2"]
    assert cut_apart(("raft-client-2", "raft-client-2"), 12) == ["raft-c…ent-2"] * 2


@pytest.mark.parametrize("has_focus", [True, False])
def test_without_colours_only_the_row_under_the_cursor_is_reversed(
    has_focus: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        monkeypatch.setenv("NO_COLOR", "1")
        async with running(app_of(CAPTURES / "errors.pcapng")) as pilot:
            await press(pilot, "down", *([] if has_focus else ["tab"]))
            table = pilot.app.screen.query(VirtualTable).first()
            assert table.has_focus is has_focus
            marked = [
                row
                for row in range(8)
                if any(each.style is not None and each.style.reverse for each in table.render_line(row + 1))
            ]
            assert marked == [1]

    asyncio.run(run())
