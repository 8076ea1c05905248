"""Many integers → how many, least, most, mean, and percentiles with a bounded error.

Values of 256 and more are counted in buckets: 128 of equal width between one power of two and the next, so
that a bucket is at most 1/128 of its values wide. A percentile is given as the middle of its bucket: it
lies within 1/256 (0.4 %) of the value that stands at that rank. Values below 256, the least, the
most, and the mean are exact. Histograms over parts, merged, are equal to the one over the whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field

EXACT_BITS = 8
"""Values below ``2 ** EXACT_BITS`` have a bucket each; of larger ones so many leading bits count."""


@dataclass(slots=True)
class Histogram:
    """A distribution of integers, which may be negative."""

    count: int = 0
    total: int = 0
    least: int | None = None
    most: int | None = None
    buckets: dict[int, int] = field(default_factory=dict)
    """Lowest magnitude of the bucket, with the sign of its values: how many."""

    def add(self, value: int) -> None:
        """Count a value."""
        self.count += 1
        self.total += value
        if self.least is None or value < self.least:
            self.least = value
        if self.most is None or value > self.most:
            self.most = value
        bucket = _bucket(value)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    def merge(self, other: Histogram) -> None:
        """Count what another one counted."""
        if other.least is None or other.most is None:
            return
        self.count += other.count
        self.total += other.total
        self.least = other.least if self.least is None else min(self.least, other.least)
        self.most = other.most if self.most is None else max(self.most, other.most)
        for bucket, count in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + count

    @property
    def mean(self) -> int | None:
        """Rounded down; None without values."""
        return self.total // self.count if self.count else None

    def percentiles(self, *percents: int) -> list[int | None]:
        """Of each of these, which ascend: the smallest value that so many percent of all do not exceed
        (nearest rank); None without values."""
        if self.least is None or self.most is None:
            return [None] * len(percents)
        found: list[int | None] = []
        ranks = [max(1, -(-percent * self.count // 100)) for percent in percents]
        below = 0
        for bucket in sorted(self.buckets):
            below += self.buckets[bucket]
            while len(found) < len(ranks) and ranks[len(found)] <= below:
                found.append(min(max(_middle(bucket), self.least), self.most))
        return found


def _bucket(value: int) -> int:
    magnitude = -value if value < 0 else value
    shift = magnitude.bit_length() - EXACT_BITS
    if shift <= 0:
        return value
    magnitude = magnitude >> shift << shift
    return -magnitude if value < 0 else magnitude


def _middle(bucket: int) -> int:
    magnitude = -bucket if bucket < 0 else bucket
    shift = magnitude.bit_length() - EXACT_BITS
    if shift <= 0:
        return bucket
    half = (1 << shift) // 2
    return bucket - half if bucket < 0 else bucket + half
