"""What people type for actions, and what is said of screens."""

from __future__ import annotations

from kdissect.settings.actions import IDS, PAGES
from kdissect.settings.words import ABOUT, WORDS


def test_words_are_of_actions_that_there_are() -> None:
    assert set(WORDS) <= set(IDS)
    assert all(text == text.lower() for text in WORDS.values())
    assert all(len(set(text.split())) == len(text.split()) for text in WORDS.values())


def test_every_screen_is_told_in_at_most_five_lines() -> None:
    assert set(PAGES) <= set(ABOUT)
    assert all(1 <= len(lines) <= 5 for lines in ABOUT.values())
    assert max(len(line) for lines in ABOUT.values() for line in lines) <= 110
