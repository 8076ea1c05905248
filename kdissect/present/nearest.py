"""A word that is not known → the one that was meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """``"; did you mean …?"``, or nothing where no known word is near."""
    from difflib import get_close_matches  # takes longer to import than most commands to start

    words = {each.lower(): each for each in known}
    found = get_close_matches(word.lower(), words, 1, 0.6)
    return f"; did you mean {words[found[0]]}?" if found else ""
