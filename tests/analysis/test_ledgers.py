"""Many rows of whole numbers by key."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.analysis.ledgers import KEY_BYTES, NONE, Ledgers, known
from kdissect.analysis.room import Room
from kdissect.limits import Limits


def ledgers(keys: int = 10, rows: int = 10, fact_bytes: int = 1 << 20) -> Ledgers[str]:
    return Ledgers(2, keys, rows, Room(Limits(fact_bytes=fact_bytes)))


def test_rows_are_kept_in_order() -> None:
    kept = ledgers()
    kept.add("a", 1, -2)
    kept.add_row("b", (known(None), known(7)))
    kept.add("a", (1 << 63) - 1, 4)
    assert list(kept) == ["a", "b"]
    assert list(kept.rows("a")) == [(1, -2), ((1 << 63) - 1, 4)]
    assert list(kept.rows("b")) == [(NONE, 7)]
    assert list(kept.rows("c")) == []
    assert kept.numbers("a").tolist() == [1, -2, (1 << 63) - 1, 4]


def test_a_number_beyond_64_bits_is_left_out() -> None:
    kept = ledgers()
    kept.add("a", 1 << 63, 0)
    kept.add("a", 1, 2)
    kept.add("a", 0, -(1 << 63) - 1)
    assert (list(kept.rows("a")), kept.left_out) == ([(1, 2)], 2)


@pytest.mark.parametrize(
    ("kept", "left"),
    [
        (ledgers(keys=1), {"a": 3}),
        (ledgers(rows=2), {"a": 2}),
        (ledgers(fact_bytes=KEY_BYTES + 3 * 18), {"a": 3}),
    ],
)
def test_beyond_the_limits_rows_are_only_counted(kept: Ledgers[str], left: dict[str, int]) -> None:
    for key in "aabba":
        kept.add(key, 1, 2)
    assert {key: len(list(kept.rows(key))) for key in kept} == left
    assert kept.left_out == 5 - sum(left.values())


def test_merged_it_has_the_rows_of_both() -> None:
    one, other = ledgers(rows=3), ledgers()
    one.add("a", 1, 1)
    for at in range(2, 5):
        other.add("a", at, at)
    other.add("b", 1 << 63, 0)
    one.merge(other)
    assert (list(one.rows("a")), one.left_out) == ([(1, 1), (2, 2), (3, 3)], 2)


def test_pickled_it_goes_on_as_before() -> None:
    kept = ledgers(rows=2)
    kept.add("a", 1, 2)
    kept.add("a", 1 << 63, 0)
    again = pickle.loads(pickle.dumps(kept))
    for at in (3, 4):
        again.add("a", at, at)
    assert (list(again.rows("a")), again.left_out) == ([(1, 2), (3, 3)], 2)


def test_rows_take_little_where_numbers_grow_a_little() -> None:
    kept: Ledgers[str] = Ledgers(9, 10, 10_000, Room(Limits()))
    rows = [(10**18 + at * 10**6, at, 7 * at, NONE, 7 * at + at % 3, 0, 0, 0, 1 << 20) for at in range(1_000)]
    for row in rows:
        kept.add_row("a", row)
    assert list(kept.rows("a")) == rows
    assert len(kept["a"]) < 16 * len(rows)


@given(st.lists(st.tuples(*[st.integers(-(1 << 63), (1 << 63) - 1)] * 3)))
def test_any_numbers_come_back(rows: list[tuple[int, ...]]) -> None:
    kept: Ledgers[int] = Ledgers(3, 10, 1_000, Room(Limits()))
    for row in rows:
        kept.add_row(1, row)
    assert list(kept.rows(1)) == rows
    again: Ledgers[int] = Ledgers(3, 10, 1_000, Room(Limits()))
    again.merge(kept)
    assert dict(again) == dict(kept)


@pytest.mark.parametrize("forged", [b"", bytes(15), bytes(17), bytes(17) + b"\x80" * 11, bytes(17) + b"\x80"])
def test_rows_of_a_forged_state_end_in_an_error(forged: bytes) -> None:
    kept = ledgers()
    kept["a"] = bytearray(forged)
    with pytest.raises(ValueError, match=r"breaks off|no beginning"):
        list(_with_another(kept))


def _with_another(kept: Ledgers[str]) -> Iterator[tuple[int, ...]]:
    kept.add("a", 1, 2)
    return kept.rows("a")


def test_a_width_has_limits() -> None:
    for width in (0, 256):
        with pytest.raises(ValueError, match="1 to 255"):
            Ledgers(width, 1, 1, Room(Limits()))
