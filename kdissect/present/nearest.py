"""An unknown word → the known word that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """``"; did you mean …?"``, or nothing if no known word is near."""
    from difflib import get_close_matches  # importing it takes longer than most commands take to start

    asked, words = word.lower(), {each.lower(): each for each in known}
    beginnings: dict[str, str] = {}
    for each in sorted(words, key=len):
        if len(each) > len(asked) + 1 > 4:
            beginnings.setdefault(each[: len(asked) + 1], each)  # the rest may be missing
    found = get_close_matches(asked, words, 1, 0.8)
    if not found:
        found = [beginnings[each] for each in get_close_matches(asked, beginnings, 1, 0.8)]
    if not found:
        found = get_close_matches(asked, words, 1, 0.6)
    return f"; did you mean {words[found[0]]}?" if found else ""
