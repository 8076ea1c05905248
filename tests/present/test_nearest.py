from __future__ import annotations

import pytest

from kdissect.present.nearest import nearest


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("latncy", "; did you mean latency?"),
        ("LATENCY", "; did you mean latency?"),
        ("Topc", "; did you mean topic?"),
        ("apikey", "; did you mean api_key?"),
        ("zzz", ""),
        ("", ""),
    ],
)
def test_a_near_word_is_told_in_its_own_spelling_and_a_far_one_is_not(word: str, hint: str) -> None:
    assert nearest(word, ("latency", "topic", "api_key")) == hint


def test_the_beginning_of_a_long_name_is_near_to_it() -> None:
    errors = ("NOT_CONTROLLER", "NOT_LEADER_OR_FOLLOWER", "throttle-ignored", "throttled")
    assert nearest("NOT_LEDER", errors) == "; did you mean NOT_LEADER_OR_FOLLOWER?"
    assert nearest("throtle", errors) == "; did you mean throttled?"


def test_among_no_words_none_is_near() -> None:
    assert nearest("latency", ()) == ""
