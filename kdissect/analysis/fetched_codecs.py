"""The codecs with which the batches of a partition were fetched, and batches that a broker recompressed."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from kdissect.analysis.headers import Header
from kdissect.analysis.packed import packed
from kdissect.analysis.resends import SentBatch

_RUN = 3
"""The numbers of one run of fetched batches: first offset, last offset, and magic with codec."""
Covered = dict[int, tuple[list[int], list[int]]]
"""For each magic and codec, the first and the last offsets of the stretches that were fetched so."""


@packed
@dataclass(slots=True)
class FetchedCodecs:
    """The codecs with which the batches of a partition were fetched."""

    runs: array[int] = field(default_factory=lambda: array("q"))

    def add(self, first: int, last: int, codec: int) -> bool:
        """Add a batch; return whether it needed a run of its own."""
        runs = self.runs
        if len(runs) and runs[-1] == codec and runs[-2] + 1 == first:
            runs[-2] = last
            return False
        runs.extend((first, last, codec))
        return True

    def covered(self) -> Covered:
        """The offsets that were fetched with each magic and codec."""
        return {way: _covered(spans) for way, spans in _by_way(self.runs).items()}

    def merge(self, later: FetchedCodecs) -> None:
        """Add later fetches."""
        for run in later:
            self.add(*run)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """First offset, last offset, and magic with codec of each run."""
        numbers = iter(self.runs)
        return zip(*[numbers] * _RUN, strict=True)


def way_of(batch: Header) -> int:
    """Magic and codec of a batch, as one number."""
    return batch.magic * 8 + (batch.attributes & 7)


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
                is_recompressed |= way % 8 != codec % 8
                is_converted |= way // 8 != codec // 8
        recompressed += is_recompressed
        converted += is_converted
    return found, recompressed, converted


def _by_way(runs: array[int]) -> dict[int, list[tuple[int, int]]]:
    """The stretches of offsets, by magic and codec."""
    found: dict[int, list[tuple[int, int]]] = {}
    for at in range(0, len(runs), _RUN):
        found.setdefault(runs[at + 2], []).append((runs[at], runs[at + 1]))
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
