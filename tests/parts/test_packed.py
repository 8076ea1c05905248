"""Lists of an edge are the same after they were sent as bytes."""

from __future__ import annotations

import pickle
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.model import Segment
from kdissect.parts.numbers import true_numbers
from kdissect.parts.packed import EndsList, PackedNumbers, Segments

_NUMBER = st.integers(-(1 << 63), (1 << 63) - 1)
_COUNT = st.integers(0, (1 << 31) - 1)
_END = st.binary(min_size=6, max_size=6) | st.binary(min_size=18, max_size=18)
_SEGMENT = st.builds(
    Segment,
    packet=_NUMBER,
    timestamp_ns=_NUMBER,
    source=_END,
    destination=_END,
    seq=_COUNT,
    ack=st.none() | st.integers(0, 0xFFFF_FFFF),
    flags=st.integers(0, 0xFF),
    payload=st.binary(max_size=40),
    length=_COUNT,
    identity=_COUNT,
    network=_COUNT,
    window=st.integers(-1, 0xFFFF),
    options=st.binary(max_size=40),
    clock=st.integers(-1, 0xFFFF_FFFF),
)


@given(st.lists(_SEGMENT, max_size=5))
def test_segments(segments: list[Segment]) -> None:
    again = pickle.loads(pickle.dumps(Segments(segments)))
    assert type(again) is Segments
    assert again == segments


@given(st.lists(st.tuples(_END, _END), max_size=5))
def test_ends(pairs: list[tuple[bytes, bytes]]) -> None:
    again = pickle.loads(pickle.dumps(EndsList(pairs)))
    assert type(again) is EndsList
    assert again == pairs


def test_each_end_is_sent_once() -> None:
    one = Segment(1, 2, b"\1\2\3\4\5\6", b"\6\5\4\3\2\1", 0, None, 0, b"", 0)
    other = one._replace(source=one.destination, destination=one.source)
    assert pickle.dumps(Segments([one, other])).count(one.source) == 1


def numbers_of(values: list[int]) -> PackedNumbers:
    out = PackedNumbers()
    for each in values:
        out.add(each)
    return out


def values_of(numbers: PackedNumbers) -> list[int]:
    return [numbers[place] for place in range(len(numbers))]


@given(st.lists(_NUMBER, max_size=20), st.lists(_NUMBER, max_size=5))
def test_numbers(values: list[int], more: list[int]) -> None:
    again = pickle.loads(pickle.dumps(numbers_of(values)))
    for each in more:
        again.add(each)
    assert values_of(again) == values + more
    assert [again.at(place) for place in range(again.count())] == values + more
    assert len(again) == again.count() == len(values + more)
    for place in (-1, len(again)):
        with pytest.raises(IndexError):
            again[place]


@given(st.lists(_COUNT, max_size=20), _COUNT, st.integers(0, 20))
def test_a_place_among_numbers(values: list[int], wanted: int, start: int) -> None:
    values.sort()
    start = min(start, len(values))
    assert numbers_of(values).place_of(wanted, start) == bisect_left(values, wanted, start)


def test_many_equal_numbers() -> None:
    numbers = numbers_of([1])
    numbers.fill(7, 5_000)
    numbers.fill(8, 0)
    numbers.add(9)
    assert values_of(numbers) == [1, *[7] * 5_000, 9]


@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)), st.integers(0, 5))
def test_things_of_a_part_are_numbered_among_all(own: set[int], others: set[int], first: int) -> None:
    others -= own
    everything = sorted(own | others)
    found = true_numbers(numbers_of(sorted(own)), numbers_of(sorted(others)), first)
    assert values_of(found) == [first + everything.index(each) for each in sorted(own)]
