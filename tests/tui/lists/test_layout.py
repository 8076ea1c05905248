"""How cells are shared out, and texts shortened."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kdissect.present.form import size
from kdissect.tui.lists.layout import _SIZE_FROM, Want, _size_cells, evenly, granted, shortened, taken
from kdissect.tui.widgets.table import Heading, VirtualTable
from tests.amount import some
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, shown_after

PADDED = ("API", "Key")
"""Columns of texts that also hold what is too little for the next column."""
WIDTHS = range(60, 241)


def test_wants_are_granted_in_their_order_as_far_as_there_is_room() -> None:
    must, wants = [Want(0, 4)], [Want(1, 5), Want(0, 6), Want(2, 3)]
    assert granted(must, wants, 3, 9) == [4, 0, 0]
    assert granted(must, wants, 3, 10) == [4, 5, 0]
    assert granted(must, wants, 3, 11) == [5, 5, 0]
    assert granted(must, wants, 3, 15) == [6, 5, 0]
    assert granted(must, wants, 3, 16) == [6, 5, 3]
    assert taken([6, 5, 3]) == 16


def test_what_must_be_is_granted_without_room_and_nothing_else() -> None:
    assert granted([Want(0, 4), Want(1, 4)], [Want(0, 8), Want(2, 1)], 3, 5) == [4, 4, 0]


@given(st.lists(st.integers(0, 2**31 - 1) | st.integers(0, 20).map(lambda at: 2**at), min_size=1))
def test_cells_of_sizes_are_known_without_writing_them(counts: list[int]) -> None:
    near = [each for count in counts for each in (count - 1, count, count + 1) if 0 <= each < 2**31]
    steps = [each for bound in _SIZE_FROM.tolist() for each in (bound - 1, bound, bound + 1) if each >= 0]
    for known in (near, steps):
        assert _size_cells(np.array(known)).tolist() == [len(size(each)) for each in known]
    assert _size_cells(np.array([-1])).tolist() == [1]


def test_columns_that_share_the_room_grow_together() -> None:
    least, most = [Want(0, 2), Want(1, 4)], [Want(0, 6), Want(1, 5)]
    assert granted(least, evenly(least, most), 2, 9) == [4, 4]
    assert granted(least, evenly(least, most), 2, 11) == [5, 5]
    assert granted(least, evenly(least, most), 2, 40) == [6, 5]
    assert not list(evenly([], []))


def cells(headings: Sequence[Heading], width: int) -> dict[str, int]:
    """The cells of each column of a table that is so wide."""
    fixed = sum(each.width for each in headings) + len(headings) - 1
    return {each.title: each.width or width - fixed for each in headings}


SCREENS = {
    "exchanges": ("1",),
    "connections": ("2",),
    "clients": ("2", "g"),
    "topics": ("3",),
    "partitions": ("3", "g"),
    "groups": ("4",),
    "latency": ("5",),
    "latency-topic": ("5", "g", "g", "g"),
    "problems": ("6",),
    "records": ("7",),
    "capture": ("8",),
    "ladder": ("1", "L"),
}


@pytest.mark.parametrize("capture", some(["errors.pcapng", "transactions-kafka39.pcapng"], 1))
def test_no_column_of_any_list_shrinks_as_the_terminal_grows(capture: str) -> None:
    async def run() -> None:
        app = app_of(CAPTURES / capture)
        async with running(app) as pilot:
            for keys in SCREENS.values():
                await press(pilot, *keys)
                table = app.screen.query_one("#list", VirtualTable)
                before: dict[str, int] = {}
                for width in WIDTHS:
                    found = cells(table.rows.headings(width - 2), width - 2)
                    if table.rows is app.pages["exchanges"].query_one("#list", VirtualTable).rows:
                        assert found["Info"] >= 10
                    # The head of a ladder names its lanes, more of them where there is room.
                    found = dict(enumerate(found.values())) if "L" in keys else found  # type: ignore[arg-type]
                    for title, had in before.items():
                        assert title in found
                        assert found[title] >= had or title in PADDED
                    before = found

    asyncio.run(run())


@pytest.mark.parametrize("width", some([60, 80, 100, 120, 159, 160, 200, 240], 4, 60, 80, 100))
def test_the_screen_has_room_for_remarks_at_every_width(width: int) -> None:
    async def run() -> str:
        async with running(app_of(CAPTURES / "errors.pcapng"), width) as pilot:
            return await shown_after(pilot, "e")

    lines = asyncio.run(run()).splitlines()
    head = next(line for line in lines if "Info" in line)
    assert width - head.index("Info") >= (12 if width < 80 else 18 if width < 100 else 30)
    assert "INVALID" in "\n".join(lines)


@pytest.mark.parametrize(
    ("room", "text"),
    [
        (30, "ConsumerGroupHeartbeat v1"),
        (25, "ConsumerGroupHeartbeat v1"),
        (20, "ConsumerGroupHea… v1"),
        (5, "C… v1"),
        (4, "Con…"),
        (1, "…"),
    ],
)
def test_the_end_stays_as_long_as_there_is_room_for_it(room: int, text: str) -> None:
    assert shortened("ConsumerGroupHeartbeat", " v1", room) == text


@given(st.text(), st.text(max_size=5), st.integers(1, 30))
def test_no_more_than_the_room_is_taken(text: str, end: str, room: int) -> None:
    assert cell_len(shortened(text, end, room)) <= room
