from __future__ import annotations

import pytest

from kdissect.filter.saved import hints_of_saved, searched

NAMED = {"mine": "api == Fetch", "slow": "latency > 1s", "topics": "latency > 2s"}


@pytest.mark.parametrize("text", ["mine", "errors and mine", "not (mine or other)", "mine other"])
def test_a_word_alone_that_names_a_saved_filter_is_told_of(text: str) -> None:
    (hint,) = hints_of_saved(text, NAMED)
    assert hint == "mine is searched as text; the saved filter of that name is: api == Fetch"


@pytest.mark.parametrize("text", ['"mine"', "slow", "topics", "client_id == mine", "other", "mine ==", ""])
def test_what_is_not_looked_for_as_text_gets_no_hint(text: str) -> None:
    assert hints_of_saved(text, NAMED) == ()


def test_words_in_quotes_and_names_of_fields_are_not_among_the_words() -> None:
    assert searched('a and "b" and (client_id or not c) and slow and a') == ("a", "c")
