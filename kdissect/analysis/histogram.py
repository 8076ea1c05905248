"""Many integers → how many, least, most, mean, and percentiles with a bounded error.

Values of 256 and more are counted in buckets: 128 of equal width between one power of two and the next. So a
bucket is at most 1/128 of its values wide. A percentile is given as the middle of its bucket: it lies within
1/256 (0.4 %) of the value that stands at that rank. Values below 256, the least, the most, and the mean are
exact. Histograms over parts, merged, are equal to the one over the whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

EXACT_BITS = 8
"""Values below ``2 ** EXACT_BITS`` have a bucket each; of larger ones so many leading bits count."""

_EXACT_BITS = EXACT_BITS
_SHORT = 1 << 62
"""Compiled, the bucket of values below this, which are nearly all, is worked out without objects."""

BANDS_NS = tuple(
    round(10 ** (half / 2) * 1_000)  # microseconds
    for half in range(4, 14)
)
"""Where the bands of a distribution of times end: 100 µs, 316 µs, 1 ms … 3.16 s. The last has no end."""


class Histogram:  # noqa: PLW1641 - it changes
    """A distribution of integers, which may be negative."""

    __slots__ = ("buckets", "count", "least", "most", "total")

    def __init__(
        self,
        count: int = 0,
        total: int = 0,
        least: int | None = None,
        most: int | None = None,
        buckets: dict[int, int] | None = None,
    ) -> None:
        self.count = count
        self.total = total
        self.least = least
        self.most = most
        self.buckets: dict[int, int] = {} if buckets is None else buckets
        """Lowest magnitude of the bucket, with the sign of its values: how many."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and self._parts() == other._parts()

    def __repr__(self) -> str:
        return f"Histogram{self._parts()}"

    def __reduce__(self) -> tuple[type[Histogram], tuple[int | dict[int, int] | None, ...]]:
        return Histogram, self._parts()

    def _parts(self) -> tuple[int | dict[int, int] | None, ...]:
        return self.count, self.total, self.least, self.most, self.buckets

    def add(self, value: int, times: int = 1) -> None:
        """Count a value, or so many that are equal."""
        self.count += times
        self.total += value * times
        if self.least is None or value < self.least:
            self.least = value
        if self.most is None or value > self.most:
            self.most = value
        bucket = _short_bucket(value) if -_SHORT < value < _SHORT else _bucket(value)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + times

    def add_one(self, value: int) -> None:
        """Count a value of 63 bits: compiled, its bucket is worked out without an object."""
        number = value  # compiled, an object made once
        self.count += 1
        self.total += number
        if self.least is None or number < self.least:
            self.least = number
        if self.most is None or number > self.most:
            self.most = number
        bucket = _short_bucket(value)
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

    def bands(self, ends: Sequence[int] = BANDS_NS) -> list[int]:
        """How many values lie below each end, and not below the one before; then how many are left. As a
        bucket is counted by its middle, values within 0.4 % of an end may stand on its other side."""
        out = [0] * (len(ends) + 1)
        for bucket, count in self.buckets.items():
            out[bisect_right(ends, _middle(bucket))] += count
        return out

    def percentiles(self, *percents: int) -> list[int | None]:
        """For each percentage, in ascending order: the smallest value that so many percent of all do not
        exceed (nearest rank). None without values."""
        if self.least is None or self.most is None:
            return [None] * len(percents)
        return [min(max(_middle(bucket), self.least), self.most) for bucket in self._buckets_of(percents)]

    def ceiling(self, percent: int) -> int | None:
        """A value that so many percent of all do not exceed for certain. It is at most 1/128 above the
        smallest such value. None without values."""
        if self.most is None:
            return None
        (bucket,) = self._buckets_of((percent,))
        return min(_highest(bucket), self.most)

    def at_rank(self, rank: int) -> int | None:
        """The value that stands at a rank, 1 for the least; None where there is no such rank."""
        if self.least is None or self.most is None or not 1 <= rank <= self.count:
            return None
        below = 0
        for bucket in sorted(self.buckets):
            below += self.buckets[bucket]
            if below >= rank:
                return min(max(_middle(bucket), self.least), self.most)
        raise AssertionError

    def up_to(self, value: int) -> int:
        """How many values are less, or lie in the bucket of this one."""
        highest = _bucket(value)
        return sum(count for bucket, count in self.buckets.items() if bucket <= highest)

    def _buckets_of(self, percents: tuple[int, ...]) -> list[int]:
        """The buckets in which the percentiles lie."""
        found: list[int] = []
        ranks = [max(1, -(-percent * self.count // 100)) for percent in percents]
        below = 0
        for bucket in sorted(self.buckets):
            below += self.buckets[bucket]
            while len(found) < len(ranks) and ranks[len(found)] <= below:
                found.append(bucket)
        return found


def add_known(histograms: list[Histogram], values: tuple[int | None, ...]) -> None:
    """Count each value in the histogram at its place; None is not known, and is not counted."""
    for at in range(len(values)):
        value = values[at]
        if value is not None:
            histogram = histograms[at]
            histogram.add(value)


def ceiling_of(value: int) -> int:
    """The highest value that is counted in the same bucket."""
    return _highest(_bucket(value))


def _bucket(value: int) -> int:
    magnitude = -value if value < 0 else value
    shift = magnitude.bit_length() - EXACT_BITS
    if shift <= 0:
        return value
    magnitude = magnitude >> shift << shift
    return -magnitude if value < 0 else magnitude


def _short_bucket(value: int) -> int:
    """The same of a value of 63 bits."""
    magnitude = -value if value < 0 else value
    left, shift = magnitude >> _EXACT_BITS, 0
    while left >= 0x100:
        left >>= 8
        shift += 8
    while left:
        left >>= 1
        shift += 1
    magnitude = magnitude >> shift << shift
    return -magnitude if value < 0 else magnitude


def _highest(bucket: int) -> int:
    """The highest of its values."""
    shift = abs(bucket).bit_length() - EXACT_BITS
    return bucket if shift <= 0 or bucket < 0 else bucket + (1 << shift) - 1


def _middle(bucket: int) -> int:
    magnitude = -bucket if bucket < 0 else bucket
    shift = magnitude.bit_length() - EXACT_BITS
    if shift <= 0:
        return bucket
    half = (1 << shift) // 2
    return bucket - half if bucket < 0 else bucket + half
