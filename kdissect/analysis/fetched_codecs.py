"""The codecs with which the batches of a partition were fetched, and batches that a broker recompressed."""

from __future__ import annotations

from bisect import bisect_right

from kdissect.analysis.production import FetchedCodecs
from kdissect.analysis.resends import SentBatch

Covered = dict[int, tuple[list[int], list[int]]]
"""For each magic and codec, the first and the last offsets of the stretches that were fetched so."""


def covered(codecs: FetchedCodecs) -> Covered:
    """The offsets of a partition that were fetched with each magic and codec."""
    return {way: _covered(spans) for way, spans in _by_way(codecs).items()}


def as_fetched(batches: list[SentBatch], covered: Covered) -> tuple[set[int], int, int]:
    """The codecs and magics with which the offsets of these batches were fetched. Also the numbers of batches
    that were fetched with another codec, and with another magic."""
    recompressed = converted = 0
    found: set[int] = set()
    for each in batches if covered else ():
        offset, codec = each.offset, each.codec
        if offset < 0:
            continue
        is_recompressed = is_converted = False
        for way, (starts, ends) in covered.items():
            at = bisect_right(starts, offset) - 1
            if at >= 0 and offset <= ends[at]:  # one of the stretches has the offset
                found.add(way)
                if way != codec:
                    is_recompressed |= way % 8 != codec % 8
                    is_converted |= way // 8 != codec // 8
        recompressed += is_recompressed
        converted += is_converted
    return found, recompressed, converted


def _by_way(codecs: FetchedCodecs) -> dict[int, list[tuple[int, int]]]:
    """The stretches of offsets, by magic and codec."""
    found: dict[int, list[tuple[int, int]]] = {}
    for first, last, way in codecs:
        found.setdefault(way, []).append((first, last))
    return found


def _covered(spans: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """The first and the last offsets of the stretches, after joining those that overlap or touch."""
    starts: list[int] = []
    ends: list[int] = []
    for first, last in sorted(spans):
        if ends and first <= ends[-1] + 1:
            ends[-1] = max(ends[-1], last)
        else:
            starts.append(first)
            ends.append(last)
    return starts, ends
