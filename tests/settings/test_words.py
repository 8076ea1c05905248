"""What people type for actions, and what is said of screens."""

from __future__ import annotations

from kdissect.settings.actions import IDS
from kdissect.settings.places import PAGES
from kdissect.settings.words import ABOUT, WORDS, WORDS_OF_COMMANDS


def test_words_are_of_actions_that_there_are() -> None:
    assert set(WORDS) <= set(IDS)
    assert not set(WORDS_OF_COMMANDS) & set(IDS)
    texts = (*WORDS.values(), *WORDS_OF_COMMANDS.values())
    assert all(text == text.lower() for text in texts)
    assert all(len(set(text.split())) == len(text.split()) for text in texts)


MOVES = {
    *("up", "down", "page-up", "page-down", "first", "last", "column-before", "column-after"),
    *("earlier", "later", "range-earlier", "range-later", "pane-before", "pane-after"),
}
"""What nobody looks for by a word."""
TYPING = {"palette", "take", "leave"}
"""What stands in lines to write into."""


def test_every_other_action_is_found_by_words_that_people_type() -> None:
    assert set(IDS) - MOVES - TYPING == set(WORDS)


def test_every_screen_is_told_in_at_most_five_lines() -> None:
    assert set(PAGES) <= set(ABOUT)
    assert all(3 <= len(lines) <= 5 for lines in ABOUT.values())
    assert max(len(line) for lines in ABOUT.values() for line in lines) <= 70, "as wide as on 80 columns"
