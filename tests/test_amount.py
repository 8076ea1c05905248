"""How much is tried, and how."""

from __future__ import annotations

import pytest

from tests import amount
from tests.amount import each_of, fewer_again, some, times


@pytest.mark.parametrize(
    ("is_long", "is_again", "expected"),
    [(False, False, (4, 10, 25)), (False, True, (2, 4, 13)), (True, False, (10, 10, 100))],
)
def test_fewer_cases_are_enough_where_all_were_just_tried(
    monkeypatch: pytest.MonkeyPatch, is_long: bool, is_again: bool, expected: tuple[int, int, int]
) -> None:
    monkeypatch.setattr(amount, "LONG", is_long)
    monkeypatch.setattr(amount, "AGAIN", is_again)
    tried = some(range(10), 4), fewer_again(range(10), 4)
    assert (*map(len, tried), times(25, 100)) == expected
    assert fewer_again(range(10), 4, 3)[-1] >= 3
    assert 3 in some(range(10), 2, 3)


def _is_small(number: int) -> None:
    """Numbers are small."""
    assert number < 3, f"{number} is large"


def test_a_test_of_many_cases_tries_all_and_names_those_that_fail() -> None:
    each_of(lambda: range(3))(_is_small)()
    test = each_of(lambda: range(5), lambda number: f"case {number}")(_is_small)
    with pytest.raises(ExceptionGroup, match="2 of 5 cases fail") as caught:
        test()
    assert [error.__notes__ for error in caught.value.exceptions] == [
        ["the case is case 3"],
        ["the case is case 4"],
    ]
    assert "4 is large" in str(caught.value.exceptions[1])


def test_a_test_without_cases_fails() -> None:
    with pytest.raises(AssertionError, match="there are cases"):
        each_of(lambda: [])(_is_small)()


def test_a_test_of_many_cases_is_called_as_its_check() -> None:
    test = each_of(lambda: range(3))(_is_small)
    assert (test.__name__, test.__doc__) == ("_is_small", "Numbers are small.")
