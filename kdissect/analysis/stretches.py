"""Times that lie close together, kept as stretches."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator


class Stretches:
    """Stretches of time, in order. Two that are at most ``gap_ns`` apart are one, in whatever order they were
    added. So parts of a capture merge without seams.

    :param most: the most stretches that are kept. Later ones are left out and counted.
    """

    __slots__ = ("_gap_ns", "_most", "firsts", "lasts", "left_out")

    def __init__(self, gap_ns: int, most: int) -> None:
        self.firsts: list[int] = []
        self.lasts: list[int] = []
        self.left_out = 0
        self._gap_ns = gap_ns
        self._most = most

    def add(self, first_ns: int, last_ns: int) -> None:
        """Add a stretch of time, which may join others."""
        last_ns = max(first_ns, last_ns)
        if self.firsts and self.firsts[-1] <= first_ns <= self.lasts[-1] + self._gap_ns:  # as mostly
            self.lasts[-1] = max(last_ns, self.lasts[-1])
            return
        low = bisect_left(self.lasts, first_ns - self._gap_ns)
        high = bisect_right(self.firsts, last_ns + self._gap_ns)
        if low < high:
            self.firsts[low:high] = [min(first_ns, self.firsts[low])]
            self.lasts[low:high] = [max(last_ns, self.lasts[high - 1])]
        elif len(self.firsts) >= self._most:
            self.left_out += 1
        else:
            self.firsts.insert(low, first_ns)
            self.lasts.insert(low, last_ns)

    def merge(self, later: Stretches) -> None:
        """Add the stretches of another part."""
        self.left_out += later.left_out
        for first_ns, last_ns in later:
            self.add(first_ns, last_ns)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.firsts, self.lasts, strict=True)

    def last_until(self, ns: int) -> int | None:
        """The last covered time that is not after ``ns``."""
        at = bisect_right(self.firsts, ns)
        return None if at == 0 else min(ns, self.lasts[at - 1])

    def first_from(self, ns: int) -> int | None:
        """The first covered time that is not before ``ns``."""
        at = bisect_left(self.lasts, ns)
        return None if at == len(self.firsts) else max(ns, self.firsts[at])

    def touches(self, first_ns: int, last_ns: int) -> bool:
        """Whether any stretch lies between two times."""
        found = self.first_from(first_ns)
        return found is not None and found <= last_ns
