"""What is left of captures that lost packets is found (``python -m tests.acceptance.loss`` in full)."""

from __future__ import annotations

import pytest

from tests.acceptance.loss import Score, in_all, score, tried, truth
from tests.amount import times

PARTS = 2
COUNT = times(40, 120)


@pytest.mark.parametrize("part", range(PARTS))
def test_what_was_not_lost_is_found_and_nothing_else(part: int) -> None:
    total = in_all(f"{part}-{number}" for number in range(COUNT // PARTS))
    assert total.there > 5_000
    assert total.is_good, total


def test_without_loss_everything_is_there() -> None:
    whole = truth("java43-basic")
    found = score(whole, list(whole.packets))
    assert found.there == found.recovered == found.found
    assert (found.false, found.wrong_pairs) == (0, 0)


def test_a_tail_that_a_search_kept_is_no_start_of_a_segment() -> None:
    """Its first bytes were the length of a record batch, and its leader epoch passed for a correlation id."""
    found = tried("0-232")
    assert (found.false, found.wrong_pairs) == (0, 0)


@pytest.mark.parametrize("seed", ["0-944", "0-972"])
def test_responses_of_lost_requests_are_not_taken_for_produce_requests(seed: str) -> None:
    """Their correlation ids read like Produce and a version of it, a topic's name like a client id."""
    found = tried(seed)
    assert (found.false, found.wrong_pairs) == (0, 0)


def test_an_id_that_is_used_again_does_not_give_an_answer_to_who_lost_his() -> None:
    """When clients log in anew they use the same correlation ids again."""
    assert tried("0-2493").wrong_pairs == 0


def test_a_score_that_is_not_good_says_so() -> None:
    assert Score(1, 100, 95, 95, 0, 10, 0).is_good
    assert not Score(1, 100, 94, 95, 0, 10, 0).is_good
    assert not Score(1, 100, 99, 99, 1, 10, 0).is_good
    assert not Score(1, 100, 99, 99, 0, 10, 1).is_good
