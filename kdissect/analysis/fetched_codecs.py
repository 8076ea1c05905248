"""The codecs with which the batches of a partition were fetched, and batches that a broker recompressed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from kdissect.analysis.production import FetchedCodecs


class FetchedWays(NamedTuple):
    """The combinations of magic and codec with which each offset of a partition was fetched."""

    begins: list[int]
    """The offsets at which the combinations change, ascending."""
    ways: list[frozenset[int]]
    """The combinations before the first of these offsets, and from each of them on."""


NOTHING_FETCHED = FetchedWays([], [frozenset()])


def fetched_ways(codecs: FetchedCodecs) -> FetchedWays:
    """How each offset of a partition was fetched."""
    changes: dict[int, set[int]] = {}
    for way, spans in _by_way(codecs).items():
        for first, last in _joined(spans):
            if first <= last:
                changes.setdefault(first, set()).add(way)
                changes.setdefault(last + 1, set()).add(way)
    begins = sorted(changes)
    ways: list[frozenset[int]] = [frozenset()]
    for begin in begins:
        ways.append(ways[-1] ^ changes[begin])
    return FetchedWays(begins, ways)


def as_fetched(
    offsets: Sequence[int], codecs: Sequence[int], fetched: FetchedWays
) -> tuple[set[int], int, int]:
    """The codecs and magics with which the offsets of these batches were fetched. Also the numbers of batches
    that were fetched with another codec, and with another magic.

    :param offsets: the offset of each batch; -1 if unknown.
    :param codecs: its own codec and magic.
    """
    recompressed = converted = 0
    found: set[int] = set()
    begins, ways = fetched
    for offset, codec in zip(offsets, codecs, strict=True) if begins else ():
        of_fetch = ways[bisect_right(begins, offset)] if offset >= 0 else None
        if not of_fetch:
            continue
        found |= of_fetch
        if len(of_fetch) > 1 or codec not in of_fetch:  # seldom
            recompressed += any(way % 8 != codec % 8 for way in of_fetch)
            converted += any(way // 8 != codec // 8 for way in of_fetch)
    return found, recompressed, converted


def _by_way(codecs: FetchedCodecs) -> dict[int, list[tuple[int, int]]]:
    """The stretches of offsets, by magic and codec."""
    found: dict[int, list[tuple[int, int]]] = {}
    for first, last, way in codecs:
        found.setdefault(way, []).append((first, last))
    return found


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The stretches, after joining those that overlap or touch."""
    starts: list[int] = []
    ends: list[int] = []
    for first, last in sorted(spans):
        if ends and first <= ends[-1] + 1:
            ends[-1] = max(ends[-1], last)
        else:
            starts.append(first)
            ends.append(last)
    return list(zip(starts, ends, strict=True))
