"""Connections that are over."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kdissect.session.conversation import Connection
from kdissect.tui.feed.connections import TOGETHER, Connections


def connection(number: int) -> Connection:
    ends = f"10.0.0.{number % 250}:{40_000 + number}", "10.0.0.1:9092"
    sasl = {"mechanism": "PLAIN", "user": None} if number % 3 else None
    return Connection(number, *ends, 5, 6, "fin", 1, 2, 3, 4, 5, 6, 7, 8, "kafka", None, "librdkafka", sasl)


@given(st.lists(st.integers(1, 500), unique=True, max_size=3 * TOGETHER))
def test_each_is_found_by_its_number(numbers: list[int]) -> None:
    found = Connections()
    for number in numbers:
        found.add(connection(number))
    assert list(found) == numbers
    assert len(found) == len(numbers)
    assert found == {number: connection(number) for number in numbers}
    assert [number for number in range(-3, 510) if number in found] == sorted(numbers)
    assert found.get(501) is found.get(-1) is None


def test_they_take_a_tenth_of_what_they_would() -> None:
    found = Connections()
    for number in range(100 * TOGETHER):
        found.add(connection(number))
    assert sum(map(len, found._packed)) < 50 * len(found)


def test_rows_of_other_capture_points_stand_beside_the_one_that_counts() -> None:
    found = Connections()
    for number, is_copy in ((0, False), (0, True), (1, True), (1, False), (2, False)):
        found.add(connection(number)._replace(is_copy=is_copy, packets=number))
    assert list(found) == [0, 1, 2]
    assert len(found) == 3
    assert not any(each.is_copy for each in found.values())
    assert [[found.row(place).is_copy for place in found.places(number)] for number in (0, 1, 2, 3)] == [
        [False, True],
        [False, True],
        [False],
        [],
    ]
    assert found.rows == 5
