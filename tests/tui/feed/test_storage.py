"""Columns that grow."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from kdissect.tui.feed.storage import Columns

FIELDS = tuple((f"f{at}", "i4") for at in range(22))


def packed(values: range) -> bytes:
    return b"".join(struct.pack("<22i", *range(value, value + 22)) for value in values)


@given(st.lists(st.integers(0, 3_000), max_size=6))
def test_every_row_stays_what_it_is(sizes: list[int]) -> None:
    columns, end = Columns(FIELDS), 0
    for size in sizes:
        columns.append(packed(range(end, end + size)))
        end += size
        assert len(columns) == end
        for at in (0, 9, 21):
            assert columns[f"f{at}"][:end].tolist() == list(range(at, end + at))


def test_a_view_stays_when_its_column_has_moved() -> None:
    columns = Columns(FIELDS)
    columns.append(packed(range(1_000)))
    before = columns["f3"][:1_000]
    columns.append(packed(range(1_000, 30_000)))
    assert before.tolist() == list(range(3, 1_003))


def test_few_columns_move_at_once() -> None:
    columns, moved = Columns(FIELDS), []
    columns.append(packed(range(20_000)))
    for start in range(20_000, 60_000, 200):
        places = [columns[name] for name, _ in FIELDS]
        columns.append(packed(range(start, start + 200)))
        moved.append(sum(columns[name] is not place for (name, _), place in zip(FIELDS, places, strict=True)))
    assert sum(moved) > len(FIELDS)
    assert max(moved) <= 4


def test_no_more_than_an_eighth_is_in_reserve() -> None:
    columns = Columns(FIELDS)
    columns.append(packed(range(50_000)))
    assert all(50_000 <= len(columns[name]) <= 50_000 * 1.13 for name, _ in FIELDS)
