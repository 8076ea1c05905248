"""Two exchanges, field by field: the differences, with some equal lines around them.

Fields are matched by their paths, including indexes of arrays. So a field is only compared with the same
field of the other exchange, and a comparison takes no longer than writing both trees.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby, islice
from typing import NamedTuple

from kdissect.exchange import Exchange
from kdissect.present.options import PLAIN, Options
from kdissect.present.tree import INDENT, exchange_tree

SAME, FIRST, SECOND, LEFT_OUT = " ", "-", "+", "…"
"""The marks of lines: in both, in the first only, in the second only; and lines that are left out."""
MOST_LINES = 2_000
"""The most lines of an exchange that are compared."""
AROUND = 3
"""The number of equal lines shown before and after a difference."""
_RANGE = re.compile(r"\s*\[\d+:\d+\]$")
"""The range of a field in its message. It is ignored: after a longer value all later ranges would differ."""
_NAME = re.compile(r"[^:]*?(?=:|  |$)")
"""The name of a field, before its value or its type."""

Path = tuple[str, ...]


class ComparedLine(NamedTuple):
    """A line of a comparison."""

    sign: str
    text: str


def compared(one: Exchange, other: Exchange, options: Options = PLAIN) -> Iterator[ComparedLine]:
    """The trees of two exchanges; at differences, lines of the first come before lines of the second."""
    first, second = (_lines(each, options) for each in (one, other))
    runs = [(sign, list(lines)) for sign, lines in groupby(_merged(first, second), lambda each: each.sign)]
    for at, (sign, lines) in enumerate(runs):
        if sign == SAME:
            yield from _same([each.text for each in lines], at == 0, at == len(runs) - 1)
        else:
            yield from lines
    if len(first) == MOST_LINES or len(second) == MOST_LINES:
        yield ComparedLine(LEFT_OUT, f"only the first {MOST_LINES:,} lines of each are compared")


def _lines(exchange: Exchange, options: Options) -> dict[Path, str]:
    """The lines of a tree by their paths, in order."""
    found: dict[Path, str] = {}
    around: list[str] = []
    seen: Counter[Path] = Counter()
    for at, line in enumerate(islice(exchange_tree(exchange, options), MOST_LINES)):
        text = _RANGE.sub("", line)
        bare = text.lstrip(" ")
        depth = (len(text) - len(bare)) // len(INDENT)
        match = _NAME.match(bare)
        name = "exchange" if at == 0 else match[0] if match else bare
        around[depth:] = [name]
        path = tuple(around)
        seen[path] += 1
        found[(*path, str(seen[path]))] = text
    return found


def _merged(first: dict[Path, str], second: dict[Path, str]) -> Iterator[ComparedLine]:
    """The lines of both, each in its own order."""
    others = iter(second.items())
    waiting = next(others, None)
    for path, text in first.items():
        if path not in second:
            yield ComparedLine(FIRST, text)
            continue
        while waiting is not None and waiting[0] != path and waiting[0] not in first:
            yield ComparedLine(SECOND, waiting[1])
            waiting = next(others, None)
        if waiting is None or waiting[0] != path:  # in another order
            yield ComparedLine(FIRST, text)
            continue
        if waiting[1] == text:
            yield ComparedLine(SAME, text)
        else:
            yield ComparedLine(FIRST, text)
            yield ComparedLine(SECOND, waiting[1])
        waiting = next(others, None)
    while waiting is not None:
        yield ComparedLine(SECOND, waiting[1])
        waiting = next(others, None)


def _same(lines: list[str], is_first: bool, is_last: bool) -> Iterator[ComparedLine]:
    """Equal lines: those next to a difference, and the number of those left out."""
    before, after = (0 if is_first else AROUND), (0 if is_last else AROUND)
    left_out = len(lines) - before - after
    if left_out <= 1:
        yield from (ComparedLine(SAME, text) for text in lines)
        return
    yield from (ComparedLine(SAME, text) for text in lines[:before])
    yield ComparedLine(LEFT_OUT, f"{left_out:,} lines are the same")
    yield from (ComparedLine(SAME, text) for text in lines[len(lines) - after :])
