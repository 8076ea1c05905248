"""Rows by key, with a limit."""

from __future__ import annotations

import pickle
from typing import Self

import pytest

from kdissect.analysis.room import Room
from kdissect.analysis.rows import Rows, as_one
from kdissect.limits import Limits


class Tally:
    def __init__(self) -> None:
        self.count = 0

    def merge(self, later: Self) -> None:
        self.count += later.count


def counted(rows: Rows[str, Tally], keys: str) -> Rows[str, Tally]:
    for key in keys:
        row = rows.row(key)
        if row is not None:
            row.count += 1
    return rows


def counts(rows: Rows[str, Tally]) -> dict[str, int]:
    return {key: row.count for key, row in rows.rows.items()}


def test_a_row_is_made_once() -> None:
    assert counts(counted(Rows(Tally, Room(Limits())), "abca")) == {"a": 2, "b": 1, "c": 1}


@pytest.mark.parametrize(
    "rows",
    [
        Rows(Tally, Room(Limits(rows=2))),
        Rows(Tally, Room(Limits()), most=2),
        Rows(Tally, Room(Limits(fact_bytes=250)), row_bytes=100),
    ],
)
def test_beyond_the_limits_the_first_rows_are_kept(rows: Rows[str, Tally]) -> None:
    counted(rows, "abcac")
    assert counts(rows) == {"a": 2, "b": 1}
    assert rows.left_out == 2


def test_looking_up_a_key_makes_no_row() -> None:
    rows = counted(Rows(Tally, Room(Limits())), "a")
    assert "b" not in rows
    with pytest.raises(KeyError):
        rows["b"]


def test_merged_rows_are_those_of_the_whole() -> None:
    one, other = (counted(Rows(Tally, Room(Limits(rows=2))), keys) for keys in ("abcc", "bcad"))
    one.merge(other)
    assert counts(one) == {"a": 1, "b": 2}
    assert (one.left_out, other.left_out) == (2 + 2 + 1, 2)


def test_pickled_it_goes_on_as_before() -> None:
    rows = counted(Rows(Tally, Room(Limits(rows=2))), "aabc")
    again = pickle.loads(pickle.dumps(rows))
    assert counts(counted(again, "bd")) == {"a": 2, "b": 2}
    assert (again.left_out, type(again)) == (2, Rows)


def test_rows_that_get_the_same_key_become_one() -> None:
    rows = counted(Rows(Tally, Room(Limits())), "aAb")
    whole = as_one(rows, Tally, str.lower)
    assert {key: row.count for key, row in whole.items()} == {"a": 2, "b": 1}
    assert counts(rows) == {"a": 1, "A": 1, "b": 1}
