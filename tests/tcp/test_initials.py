"""Initials: which of several initial sequence numbers counts."""

from __future__ import annotations

from kdissect.tcp.initials import MOST, Initials, signed_distance

FARTHEST = 1 << 30


def several(*numbers: int) -> Initials:
    made = Initials(numbers[0])
    for each in numbers[1:]:
        made.add(each)
    return made


def test_distances_wrap() -> None:
    assert signed_distance(5, 2**32 - 5) == 10
    assert signed_distance(2**32 - 5, 5) == -10


def test_the_nearest_before_an_acknowledgement_is_confirmed() -> None:
    assert several(100, 5000).confirmed_by(100, FARTHEST) == 100
    assert several(100, 5000).confirmed_by(5000, FARTHEST) == 5000
    assert several(100, 5000).confirmed_by(5200, FARTHEST) == 5000
    assert several(5000, 100).confirmed_by(4000, FARTHEST) == 100


def test_none_is_confirmed_from_too_far() -> None:
    assert several(100, 5000).confirmed_by(50, FARTHEST) is None
    assert several(100, 5000).confirmed_by(5001 + FARTHEST, FARTHEST) is None


def test_what_is_older_than_the_confirmed_one_counts_no_more() -> None:
    made = several(100, 5000, 90_000)
    assert made.confirmed_by(5000, FARTHEST) == 5000
    assert made.confirmed_by(100, FARTHEST) is None
    assert made.confirmed_by(90_000, FARTHEST) == 90_000


def test_one_that_is_sent_again_is_the_newest() -> None:
    made = several(100, 5000, 100)
    assert made.confirmed_by(5000, FARTHEST) == 5000
    assert made.confirmed_by(100, FARTHEST) == 100


def test_data_continue_the_nearest() -> None:
    made = several(100, 5000)
    assert made.continued_by(5000, 100, 140) == 5000
    assert made.continued_by(140, 100, 140) == 100
    assert made.continued_by(1600, 100, 140) == 100


def test_what_was_merely_heard_of_is_known_as_such() -> None:
    made = several(100)
    made.add_acknowledged(777_777)
    assert made.continued_by(777_777, 100, 100) == 777_777
    assert made.is_only_acknowledged(777_777)
    assert not made.is_only_acknowledged(100)
    assert made.confirmed_by(777_777, 1000) is None


def test_the_newest_are_kept() -> None:
    made = several(*(i * 1000 for i in range(100)))
    assert made.confirmed_by(91_000, 999) is None
    assert made.confirmed_by((100 - MOST) * 1000, 999) == (100 - MOST) * 1000
