"""Two exchanges line by line: what differs, and around it what is the same in both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import islice
from typing import NamedTuple

from kdissect.exchange import Exchange
from kdissect.present.options import PLAIN, Options
from kdissect.present.tree import exchange_tree

SAME, FIRST, SECOND, LEFT_OUT = " ", "-", "+", "…"
"""A line of both, of the first alone, of the second alone; and lines that are left out."""
MOST_LINES = 2_000
"""Lines of an exchange that are compared."""
AROUND = 3
"""Lines of both that are shown before and after what differs."""


_RANGE = re.compile(r"\s*\[\d+:\d+\]$")
"""Where a field stands in its message: behind a longer value all others would differ."""


class ComparedLine(NamedTuple):
    """A line of a comparison."""

    sign: str
    text: str


def compared(one: Exchange, other: Exchange, options: Options = PLAIN) -> Iterator[ComparedLine]:
    """The trees of two exchanges, the lines of the first before those of the second where they differ."""
    first, second = (_lines(each, options) for each in (one, other))
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    for what, start, end, begin, stop in matcher.get_opcodes():
        if what == "equal":
            yield from _same(first[start:end], start == 0, end == len(first))
        else:
            yield from (ComparedLine(FIRST, text) for text in first[start:end])
            yield from (ComparedLine(SECOND, text) for text in second[begin:stop])
    if len(first) == MOST_LINES or len(second) == MOST_LINES:
        yield ComparedLine(LEFT_OUT, f"only the first {MOST_LINES:,} lines of each are compared")


def _lines(exchange: Exchange, options: Options) -> list[str]:
    return [_RANGE.sub("", line) for line in islice(exchange_tree(exchange, options), MOST_LINES)]


def _same(lines: list[str], is_first: bool, is_last: bool) -> Iterator[ComparedLine]:
    """Lines of both: those beside what differs, and how many are left out."""
    before, after = (0 if is_first else AROUND), (0 if is_last else AROUND)
    left_out = len(lines) - before - after
    if left_out <= 1:
        yield from (ComparedLine(SAME, text) for text in lines)
        return
    yield from (ComparedLine(SAME, text) for text in lines[:before])
    yield ComparedLine(LEFT_OUT, f"{left_out:,} lines are the same")
    yield from (ComparedLine(SAME, text) for text in lines[len(lines) - after :])
