"""Many integers → their number, minimum, maximum, mean, and percentiles with a bounded error.

Values of 256 and more are counted in buckets: 128 of equal width between one power of two and the next. So a
bucket is at most 1/128 of its values wide. A percentile is the middle of its bucket: it lies within 1/256
(0.4 %) of the value at that rank. Values below 256, the minimum, the maximum, and the mean are exact. Merged
histograms of parts are equal to the histogram of the whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from kdissect.tcp.packed import BYTES, number, put

EXACT_BITS = 8
"""The number of leading bits that count. Values below ``2 ** EXACT_BITS`` have a bucket each."""

_EXACT_BITS = EXACT_BITS
_MOST_FRESH = 8
"""The number of values that are kept unchanged before buckets are made."""
_SHORT = 1 << 57
"""In compiled code, values below this, which are nearly all, are counted without Python objects: the sum of
the fresh values fits in 63 bits too."""
_SHORT_C = _SHORT
_SHORT_BELOW = -_SHORT
_BYTES = BYTES

BANDS_NS = tuple(
    round(10 ** (half / 2) * 1_000)  # microseconds
    for half in range(4, 14)
)
"""The ends of the bands of a distribution of times: 100 µs, 316 µs, 1 ms … 3.16 s. The last has no end."""


class _Bucket:
    """The number of values in a bucket. Changing an attribute costs less than a new number in a table."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Histogram:  # noqa: PLW1641 - it changes
    """A distribution of integers, which may be negative."""

    __slots__ = ("_buckets", "_fresh", "_fresh_count", "_least", "_most", "_total", "count")

    def __init__(
        self,
        count: int = 0,
        total: int = 0,
        least: int | None = None,
        most: int | None = None,
        buckets: dict[int, int] | None = None,
    ) -> None:
        self.count = count
        self._total = total
        self._least = least
        self._most = most
        self._buckets: dict[int, _Bucket] | None = None
        if buckets is not None:
            self._add_buckets(buckets)
        self._fresh = [0] * 8
        """Values that are not yet in the total, the extremes and the buckets, at most :data:`_MOST_FRESH`.
        Most histograms, such as those of connections, never have more: sorting a few values is quicker than
        keeping buckets. In compiled code they are C numbers."""
        self._fresh_count = 0
        """The number of fresh values."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and self._parts() == other._parts()

    def __repr__(self) -> str:
        return f"Histogram{self._parts()}"

    def __reduce__(self) -> tuple[Callable[..., Histogram], tuple[Any, ...]]:
        """Its counts become bytes. To pickle them one by one took three times as long."""
        counts = self.buckets if self._is_long() else self._packed()
        return of_parts, (self.count, self._total, self._least, self._most, counts)

    def _packed(self) -> bytes:
        """How many fresh values there are, these values, and each bucket with its count."""
        known = self._buckets
        size = _BYTES * (1 + self._fresh_count + (0 if known is None else 2 * len(known)))
        packed = bytearray(size)
        raw, at = packed, _BYTES
        put(raw, 0, self._fresh_count)
        fresh = 0
        while fresh < self._fresh_count:
            put(raw, at, self._fresh[fresh])
            at += _BYTES
            fresh += 1
        if known is not None:
            for magnitude, bucket in known.items():
                put(raw, at, magnitude)
                put(raw, at + _BYTES, bucket.count)
                at += 2 * _BYTES
        return bytes(packed)

    def _unpack(self, packed: bytes) -> None:
        """Take in the values of :meth:`_packed`.

        :raises ValueError: the bytes are not those of a histogram: they may come from a file.
        """
        raw, at, end = packed, _BYTES, len(packed)
        fresh = number(raw, 0) if end >= _BYTES else -1
        pairs = end // _BYTES - 1 - fresh
        if end % _BYTES or fresh < 0 or fresh >= _MOST_FRESH or pairs < 0 or pairs % 2:
            raise ValueError("these bytes are not a histogram")
        self._fresh_count = fresh
        fresh = 0
        while fresh < self._fresh_count:
            self._fresh[fresh] = number(raw, at)
            at += _BYTES
            fresh += 1
        while at < end:
            self._bucket_of(number(raw, at)).count = number(raw, at + _BYTES)
            at += 2 * _BYTES

    def _parts(self) -> tuple[int | dict[int, int] | None, ...]:
        return self.count, self.total, self.least, self.most, self.buckets

    @property
    def total(self) -> int:
        """The sum of the values."""
        return self._total + sum(self._fresh_values())

    @property
    def least(self) -> int | None:
        """The minimum; None without values."""
        if not self._fresh_count:
            return self._least
        least = min(self._fresh_values())
        return least if self._least is None or least < self._least else self._least

    @property
    def most(self) -> int | None:
        """The maximum; None without values."""
        if not self._fresh_count:
            return self._most
        most = max(self._fresh_values())
        return most if self._most is None or most > self._most else self._most

    @property
    def buckets(self) -> dict[int, int]:
        """The number of values in each bucket, by its lowest magnitude with the sign of its values. Do not
        change it."""
        self._flush()
        known = self._buckets
        return {} if known is None else {magnitude: bucket.count for magnitude, bucket in known.items()}

    def add(self, value: int, times: int = 1) -> None:
        """Count a value, or several equal ones."""
        if times == 1 and _SHORT_BELOW < value < _SHORT:
            self.add_one(value)
        else:
            self.count += times
            self._count(value, times)

    def add_one(self, value: int) -> None:
        """Count a value of 63 bits; in compiled code, without a Python call."""
        if not -_SHORT_C < value < _SHORT_C:
            self.add(value)
            return
        self.count += 1
        self._fresh[self._fresh_count] = value
        self._fresh_count += 1
        if self._fresh_count >= _MOST_FRESH:
            self._flush()

    def add_each(self, values: list[int]) -> None:
        """Count each value."""
        for value in values:
            self.add(value)

    def add_pairs(self, pairs: list[tuple[int, int]]) -> None:
        """Count each value so many times as the number after it says. No number is 0."""
        for pair in pairs:
            self.add(pair[0], pair[1])

    def _flush(self) -> None:
        """Put the fresh values into their buckets."""
        if not self._fresh_count:
            return
        least = most = self._fresh[0]
        total, at, of = least, 1, _short_bucket(least)
        bucket = self._bucket_of(of)
        bucket.count += 1
        while at < self._fresh_count:
            short = self._fresh[at]
            at += 1
            total += short
            least = min(least, short)
            most = max(most, short)
            magnitude = _short_bucket(short)
            if magnitude != of:  # many values are the same, such as waits of 0
                of, bucket = magnitude, self._bucket_of(magnitude)
            bucket.count += 1
        self._fresh_count = 0
        self._total += total
        if self._least is None or least < self._least:
            self._least = least
        if self._most is None or most > self._most:
            self._most = most

    def _fresh_values(self) -> list[int]:
        """The fresh values, in the order in which they came."""
        values, at = [], 0
        while at < self._fresh_count:
            values.append(self._fresh[at])
            at += 1
        return values

    def _bucket_of(self, magnitude: int) -> _Bucket:
        """The bucket that begins at a magnitude."""
        if self._buckets is None:
            self._buckets = {}
        found = self._buckets.get(magnitude)
        if found is None:
            found = _Bucket.__new__(_Bucket)  # compiled, a call of the class takes several times as long
            found.count = 0
            self._buckets[magnitude] = found
        return found

    def _add_buckets(self, counts: dict[int, int]) -> None:
        """Add counts of buckets."""
        if self._buckets is None:
            self._buckets = {}
        for magnitude, count in counts.items():
            bucket = self._bucket_of(magnitude)
            bucket.count += count

    def _count(self, value: int, times: int) -> None:
        self._total += value * times
        if self._least is None or value < self._least:
            self._least = value
        if self._most is None or value > self._most:
            self._most = value
        bucket = self._bucket_of(_short_bucket(value) if _SHORT_BELOW < value < _SHORT else _bucket(value))
        bucket.count += times

    def merge(self, other: Histogram) -> None:
        """Add the counts of another histogram."""
        if not other.count:
            return
        count = self.count + other.count
        for value in other._fresh_values():
            self.add_one(value)
        self.count = count
        if other._buckets is None:
            return
        least, most = other._least, other._most
        self._total += other._total
        if self._least is None or (least is not None and least < self._least):
            self._least = least
        if self._most is None or (most is not None and most > self._most):
            self._most = most
        for magnitude, known in other._buckets.items():
            bucket = self._bucket_of(magnitude)
            bucket.count += known.count

    @property
    def mean(self) -> int | None:
        """The mean, rounded down; None without values."""
        return self.total // self.count if self.count else None

    def bands(self, ends: Sequence[int] = BANDS_NS) -> list[int]:
        """The number of values from each end to the next, and last, the number of values above the last end.
        A bucket is counted by its middle, so values within 0.4 % of an end may be counted on its other
        side."""
        out = [0] * (len(ends) + 1)
        for bucket, count in self.buckets.items():
            out[bisect_right(ends, _middle(bucket))] += count
        return out

    def percentiles(self, *percents: int) -> list[int | None]:
        """For each percentage, in ascending order: the smallest value that this percentage of all values does
        not exceed (nearest rank). None without values."""
        if not self.count:
            return [None] * len(percents)
        if self._buckets is None:
            values = self._fresh_values()
            if len(values) == 1:
                return [values[0] for _ in percents]
            values.sort()
            return [
                min(max(_middle(_short_bucket(values[rank - 1])), values[0]), values[-1])
                for rank in self._ranks(percents)
            ]
        self._flush()
        least, most = self._least or 0, self._most or 0
        return [min(max(_middle(bucket), least), most) for bucket in self._buckets_of(percents)]

    def ceiling(self, percent: int) -> int | None:
        """A value that this percentage of all values certainly does not exceed. It is at most 1/128 above the
        smallest such value. None without values."""
        most = self.most
        if most is None:
            return None
        self._flush()
        (bucket,) = self._buckets_of((percent,))
        return min(_highest(bucket), most)

    def in_order(self) -> list[tuple[int, int]]:
        """Each bucket with its number of values, from the lowest."""
        counts = self.buckets
        return [(bucket, counts[bucket]) for bucket in sorted(counts)]

    def at_ranks(
        self, ranks: Sequence[int], ordered: list[tuple[int, int]] | None = None
    ) -> list[int | None]:
        """The values at these ranks, 1 for the minimum; None for a rank that does not exist.

        :param ordered: the result of :meth:`in_order`, if the caller has it.
        """
        found: list[int | None] = [None] * len(ranks)
        wanted = sorted([(rank, at) for at, rank in enumerate(ranks) if 1 <= rank <= self.count])
        if not wanted:
            return found
        least, most = self.least or 0, self.most or 0
        below, following = 0, 0
        for bucket, count in self.in_order() if ordered is None else ordered:
            below += count
            while following < len(wanted) and wanted[following][0] <= below:
                found[wanted[following][1]] = min(max(_middle(bucket), least), most)
                following += 1
            if following == len(wanted):
                break
        return found

    def up_to(self, values: Sequence[int | None]) -> list[int]:
        """For each of these values, the number of counted values that are less than it or lie in its bucket;
        0 for None."""
        if self._is_long():
            return self._long_up_to(values)
        out = []
        for value in values:
            below = 0
            if value is not None and value > _SHORT_BELOW:
                # Values beyond 57 bits are greater than all that are counted here.
                end = _short_bucket(value) if value < _SHORT else _SHORT_C
                at = 0
                while at < self._fresh_count:
                    below += _short_bucket(self._fresh[at]) <= end
                    at += 1
                if self._buckets is not None:
                    for short, known in self._buckets.items():
                        if short <= end:
                            below += known.count
            out.append(below)
        return out

    def _is_long(self) -> bool:
        """Whether a value is beyond 57 bits."""
        if self._least is None or self._most is None:
            return False
        is_long: bool = self._least <= _SHORT_BELOW or self._most >= _SHORT
        return is_long

    def _long_up_to(self, values: Sequence[int | None]) -> list[int]:
        """The result of :meth:`up_to` for values of any length."""
        counts, out = self.buckets, []
        for value in values:
            end = None if value is None else _bucket(value)
            out.append(sum([counts[bucket] for bucket in counts if end is not None and bucket <= end]))
        return out

    def _ranks(self, percents: tuple[int, ...]) -> list[int]:
        return [max(1, (percent * self.count + 99) // 100) for percent in percents]

    def _buckets_of(self, percents: tuple[int, ...]) -> list[int]:
        """The buckets that contain the percentiles. All values must already be in their buckets."""
        found: list[int] = []
        ranks = self._ranks(percents)
        counts = self.buckets
        below = 0
        for bucket in sorted(counts):
            below += counts[bucket]
            while len(found) < len(ranks) and ranks[len(found)] <= below:
                found.append(bucket)
        return found


def of_parts(
    count: int, total: int, least: int | None, most: int | None, counts: bytes | dict[int, int]
) -> Histogram:
    """The histogram with the values that :meth:`Histogram.__reduce__` gave.

    :raises ValueError: the counts are not those of a histogram.
    """
    if not isinstance(counts, bytes):
        return Histogram(count, total, least, most, counts)
    made = Histogram(count, total, least, most)
    made._unpack(counts)
    return made


def add_known(histograms: list[Histogram], values: tuple[int | None, ...]) -> None:
    """Add each value to the histogram at the same index. None is unknown, and is not counted."""
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
    """The bucket of a value of 63 bits."""
    magnitude = -value if value < 0 else value
    shift = _short_shift(magnitude)
    magnitude = magnitude >> shift << shift
    return -magnitude if value < 0 else magnitude


def _short_shift(magnitude: int) -> int:
    """The number of low bits of a magnitude that do not count."""
    left, shift = magnitude >> _EXACT_BITS, 0
    while left >= 0x100:
        left >>= 8
        shift += 8
    while left:
        left >>= 1
        shift += 1
    return shift


def _highest(bucket: int) -> int:
    """The highest value of a bucket."""
    shift = abs(bucket).bit_length() - EXACT_BITS
    return bucket if shift <= 0 or bucket < 0 else bucket + (1 << shift) - 1


def _middle(bucket: int) -> int:
    """The middle of a bucket."""
    magnitude = -bucket if bucket < 0 else bucket
    shift = magnitude.bit_length() - EXACT_BITS
    if shift <= 0:
        return bucket
    half = (1 << shift) // 2
    return bucket - half if bucket < 0 else bucket + half
