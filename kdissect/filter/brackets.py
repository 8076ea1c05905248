"""``topics[0]``, ``partitions[-1]``, ``record.key[0:4]``: which elements of an array, which part of a value.

The forms are Wireshark's: ``[n]`` is one element, ``[a:n]`` are n elements from a on, ``[a-b]`` are a to b.
``[:n]`` is the first n, ``[a:]`` all from a on. A negative position counts from the end, -1 is the last.
``[*]`` is all of them, the same as no bracket. If an array has fewer elements, those that exist are selected.
If text or bytes are too short for the part, the part is absent.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypeVar

from kdissect.filter.errors import FilterError
from kdissect.filter.syntax import Word

T = TypeVar("T", str, bytes)

FORMS = "[n], [-1], [a:n], [a-b], [:n], [a:] or [*]"

_BRACKET = re.compile(
    r"\*|(?P<at>-?\d{1,9})|(?P<low>\d{1,9})-(?P<high>\d{1,9})|(?P<start>-?\d{1,9})?:(?P<length>\d{1,9})?",
    re.ASCII,
)


class Bracket(NamedTuple):
    """A range of elements, characters or bytes."""

    start: int
    length: int | None
    """None: up to the end."""

    def elements(self, values: list[Any]) -> list[Any]:
        """The selected elements of an array."""
        start = self._start(len(values))
        if start < 0:
            return []
        return values[start:] if self.length is None else values[start : start + self.length]

    def part(self, value: T) -> T | None:
        """The selected part of text or bytes; None if they are too short."""
        start = self._start(len(value))
        end = len(value) if self.length is None else start + self.length
        return value[start:end] if 0 <= start <= end <= len(value) else None

    def _start(self, length: int) -> int:
        return self.start + length if self.start < 0 else self.start


class PathStep(NamedTuple):
    """One name of a path, and the brackets after it."""

    name: str
    brackets: tuple[Bracket, ...]


def steps_of(word: Word) -> list[PathStep]:
    """The steps of a name with brackets.

    :raises FilterError: a bracket has another form, or no end.
    """
    out = []
    start = word.start
    for text in word.text.split("."):
        name, *inside = text.split("[")
        found = []
        at = start + len(name)
        for each in inside:
            if not each.endswith("]"):
                raise FilterError("the closing bracket is missing", at, len(each) + 1)
            found.append(_bracket(each[:-1], at))
            at += len(each) + 1
        out.append(PathStep(name, tuple(found)))
        start += len(text) + 1
    return out


def _bracket(text: str, at: int) -> Bracket:
    found = _BRACKET.fullmatch(text)
    if found is None:
        raise FilterError(f"brackets contain {FORMS}", at, len(text) + 2)
    if found["at"] is not None:
        return Bracket(int(found["at"]), 1)
    if found["low"] is not None:
        low, high = int(found["low"]), int(found["high"])
        if low > high:
            raise FilterError("the range ends before it begins", at, len(text) + 2)
        return Bracket(low, high - low + 1)
    length = found["length"]
    return Bracket(int(found["start"] or 0), None if length is None else int(length))
