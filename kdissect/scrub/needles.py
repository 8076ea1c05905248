"""Search for many texts at once, by a few of their bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kdissect.scrub.allowed import FILLER, UNKNOWN

SURE_BYTES = 8
"""The length from which on a text is in no token by chance."""
GRAM = 4
"""The least length of a needle."""
_ENOUGH = 3
FILLERS = frozenset(FILLER.encode() + UNKNOWN + b"\0")


class Hit(NamedTuple):
    """A needle that was found."""

    at: int
    needle: bytes


class Needles:
    """The texts to search for. Short needles are found by four of their bytes, others by eight."""

    def __init__(self, needles: Iterable[bytes]) -> None:
        self._indexes: dict[int, defaultdict[bytes, list[tuple[int, bytes]]]] = {}
        for needle in needles:
            size = GRAM if len(needle) < SURE_BYTES else SURE_BYTES
            at = _specific_part(needle, size)
            grams = self._indexes.setdefault(size, defaultdict(list))
            grams[needle[at : at + size]].append((at, needle))

    def find(self, data: bytes) -> Iterator[Hit]:
        """The places of all needles in the data."""
        for size, grams in self._indexes.items():
            look_up = grams.get
            for at in range(len(data) - size + 1):
                found = look_up(data[at : at + size])
                for before, needle in () if found is None else found:
                    if at >= before and data.startswith(needle, at - before):
                        yield Hit(at - before, needle)


def _specific_part(needle: bytes, size: int) -> int:
    """The start of the bytes by which a needle is found: the last ones with enough different values, because
    names often begin alike; else those with the most different values."""
    places = range(len(needle) - size, -1, -1)
    distinct = {at: len(set(needle[at : at + size]) - FILLERS) for at in places}
    return next((at for at in places if distinct[at] >= _ENOUGH), max(places, key=lambda at: distinct[at]))
