"""Counts in slices of time, for rates, shares, means and percentiles with margins.

Exchanges of one second are alike: they meet the same pause and the same queue. So a thousand of them are
weaker evidence than a thousand that lie apart. Therefore the margin comes from the differences between slices
of time (the variance of clusters), never from the mere count. One slice alone gives no margin.

Slices begin at multiples of a power of two of nanoseconds. They grow until at most :data:`MOST_SLICES` cover
all counts. So merged parts have the slices of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, sqrt
from typing import Any, NamedTuple

from kdissect.analysis.fold import SECOND
from kdissect.analysis.histogram import Histogram

MOST_SLICES = 16
SHORTEST_SHIFT = 28
"""The shortest slice is ``1 << 28`` ns, which is 0.27 s."""
LEAST_OF_RATE_NS = SECOND
"""The shortest time with a rate per second."""
NORMAL = 2.58
"""The number of standard deviations around the mean that contain 99 % of a normal distribution."""
_STUDENT = (63.7, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50, 3.36, 3.25, 3.17, 3.11, 3.05, 3.01, 2.98, 2.95)
"""The same number for Student's distribution with 1, 2, 3 … degrees of freedom."""


class Estimate(NamedTuple):
    """A value with its margin."""

    value: float | None
    low: float | None = None
    """The value lies between this and ``high`` with a confidence of 99 %; None if unknown."""
    high: float | None = None


NOTHING = Estimate(None)
_ONE, _MOST_SLICES = 1, MOST_SLICES


class Sums:  # noqa: PLW1641 - it changes
    """The count in a slice, and the total."""

    __slots__ = ("count", "total")

    def __init__(self, count: int = 0, total: int = 0) -> None:
        self.count = count
        self.total = total

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sums) and (self.count, self.total) == (other.count, other.total)

    def __repr__(self) -> str:
        return f"Sums{self.count, self.total}"

    def __reduce__(self) -> tuple[type[Sums], tuple[int, int]]:
        return Sums, (self.count, self.total)

    def merge(self, other: Sums) -> None:
        self.count += other.count
        self.total += other.total


class Sliced:  # noqa: PLW1641 - it changes
    """Slices by their number."""

    __slots__ = ("_first_ns", "_from_ns", "_is_empty", "_last_ns", "_now", "_up_to_ns", "shift", "slices")

    def __init__(
        self,
        slices: dict[int, Any] | None = None,
        shift: int = SHORTEST_SHIFT,
        first_ns: int | None = None,
        last_ns: int | None = None,
    ) -> None:
        self.slices: dict[int, Any] = {} if slices is None else slices
        self.shift = shift
        self._is_empty = first_ns is None or last_ns is None
        self._first_ns = 0 if first_ns is None else first_ns
        self._last_ns = 0 if last_ns is None else last_ns
        self._now: Any = None
        """The slice of the last count. The next count is mostly in it, too."""
        self._from_ns = self._up_to_ns = 0
        """The beginning and the end of that slice."""

    @property
    def first_ns(self) -> int | None:
        return None if self._is_empty else self._first_ns

    @property
    def last_ns(self) -> int | None:
        return None if self._is_empty else self._last_ns

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sliced) and type(self) is type(other) and self._parts() == other._parts()

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._parts()}"

    def __reduce__(self) -> tuple[type[Sliced], tuple[Any, ...]]:
        return type(self), self._parts()

    def _parts(self) -> tuple[dict[int, Any], int, int | None, int | None]:
        return self.slices, self.shift, self.first_ns, self.last_ns

    def _is_at(self, ns: int) -> bool:
        """Whether the slice of the last count contains this time. If so, cover the time."""
        if self._now is None or ns < self._from_ns or ns > self._up_to_ns:
            return False
        if ns > self._last_ns:
            self._last_ns = ns
        elif ns < self._first_ns:
            self._first_ns = ns
        return True

    def _go_to(self, ns: int) -> int:
        """Cover this time, and return the number of its slice. The caller sets that slice as the last one."""
        self._reach(ns, ns)
        length = _ONE << self.shift
        self._from_ns = ns - (ns & (length - 1))
        self._up_to_ns = self._from_ns + (length - 1)
        return ns >> self.shift

    def _reach(self, first_ns: int, last_ns: int) -> None:
        """Cover these times, too."""
        if self._is_empty:
            self._is_empty = False
            self._first_ns, self._last_ns = first_ns, last_ns
        elif first_ns < self._first_ns:
            self._first_ns = first_ns
        self._last_ns = max(self._last_ns, last_ns)
        shift = self.shift
        while (self._last_ns >> shift) - (self._first_ns >> shift) >= _MOST_SLICES:
            shift += 1
        if shift != self.shift:
            self._widen(shift)

    def _widen(self, shift: int) -> None:
        narrow = self.slices
        wide: dict[int, Any] = {}
        for number, each in narrow.items():
            one = wide.setdefault(number >> (shift - self.shift), each)
            if one is not each:
                one.merge(each)
        self.slices = wide
        self.shift = shift
        self._now = None

    def _cover(self, later: Sliced) -> int:
        """Cover the times of another object that is not empty.

        :returns: the number of low bits that the numbers of its slices have and those of these have not.
        """
        self._reach(later._first_ns, later._last_ns)
        if later.shift > self.shift:
            self._widen(later.shift)
        return self.shift - later.shift

    def _in_order(self) -> list[Any]:
        """The slices by time: sums of fractions depend on the order, and parts may come in any order."""
        return [self.slices[number] for number in sorted(self.slices)]

    @property
    def _deviations(self) -> float:
        """The number of standard errors in a margin; 0 without a margin."""
        return _STUDENT[min(len(self.slices) - 1, len(_STUDENT)) - 1] if len(self.slices) > 1 else 0.0


class SlicedSums(Sliced):
    """The count of exchanges, or of records in them, and a total: of bytes or errors."""

    __slots__ = ()

    def add(self, ns: int, total: int, count: int = 1) -> None:
        """Add to the slice of a time."""
        if not self._is_at(ns):
            number = self._go_to(ns)
            self._now = self.slices.get(number)
            if self._now is None:
                self._now = self.slices[number] = Sums()
        now: Sums = self._now
        now.count += count
        now.total += total

    def merge(self, later: SlicedSums) -> None:
        """Add a later part."""
        if later._is_empty:
            return
        shift = self._cover(later)
        for number, each in later.slices.items():
            self._put(number >> shift, each.count, each.total)

    def merge_alike(self, later: SlicedAlike, total: int, count: int) -> None:
        """Add later exchanges, each with this total and this count."""
        if later._is_empty:
            return
        shift = self._cover(later)
        for number, each in later.slices.items():
            self._put(number >> shift, each.count * count, each.count * total)

    def merge_errors(self, later: SlicedAlike) -> None:
        """Add later exchanges, with the number of those with errors as the total."""
        if later._is_empty:
            return
        shift = self._cover(later)
        for number, each in later.slices.items():
            self._put(number >> shift, each.count, each.errors)

    def _put(self, number: int, count: int, total: int) -> None:
        """Add to a slice."""
        mine = self.slices.get(number)
        if mine is None:
            mine = Sums.__new__(Sums)  # compiled, a call of the class takes several times as long
            mine.count, mine.total = count, total
            self.slices[number] = mine
        else:
            mine.count += count
            mine.total += total

    @property
    def count(self) -> int:
        return self._sum_up()[0]

    @property
    def total(self) -> int:
        return self._sum_up()[1]

    def _sum_up(self) -> tuple[int, int]:
        """The count and the total of all slices."""
        count = total = 0
        for each in self.slices.values():
            count += each.count
            total += each.total
        return count, total

    def rate(self) -> Estimate:
        """The total per second between the first and the last. A burst has no rate: three requests in 2 ms
        are not 1,500 a second."""
        first_ns, last_ns = self.first_ns, self.last_ns
        if first_ns is None or last_ns is None or last_ns - first_ns < LEAST_OF_RATE_NS:
            return NOTHING
        seconds = (last_ns - first_ns) / SECOND
        total, slices = self.total, (last_ns >> self.shift) - (first_ns >> self.shift) + 1
        if slices < 3:
            return Estimate(total / seconds)
        mean = total / slices
        squares = sum([(each.total - mean) ** 2 for each in self._in_order()])
        squares += (slices - len(self.slices)) * mean**2
        error = sqrt(slices / (slices - 1) * squares) * _STUDENT[min(slices - 1, len(_STUDENT)) - 1]
        return Estimate(total / seconds, max(0.0, total - error) / seconds, (total + error) / seconds)

    def mean(self) -> Estimate:
        """The total divided by the count."""
        (count, total), slices = self._sum_up(), len(self.slices)
        if not count:
            return NOTHING
        value = total / count
        if slices < 3:
            return Estimate(value)
        squares = sum([(each.total - value * each.count) ** 2 for each in self._in_order()])
        error = sqrt(slices / (slices - 1) * squares) / count * self._deviations
        return Estimate(value, max(0.0, value - error), value + error)

    def share(self) -> Estimate:
        """The mean, if a total is a part of the count: it has a margin even if it is 0 or all."""
        count, total = self._sum_up()
        if not count:
            return NOTHING
        value = total / count
        smooth = (total + 2) / (count + 4)
        error = NORMAL * sqrt(smooth * (1 - smooth) / (count + 4))
        low, high = smooth - error, smooth + error
        clustered = self.mean()
        if clustered.low is not None and clustered.high is not None:
            low, high = min(low, clustered.low), max(high, clustered.high)
        return Estimate(value, max(0.0, min(low, value)), min(1.0, max(high, value)))


def count_each(
    requests: list[SlicedSums],
    errors: list[SlicedSums],
    times: list[SlicedTimes],
    ns: int,
    has_errors: bool,
    broker_ns: int | None,
) -> None:
    """Count an exchange in measures of each kind."""
    for sums in requests:
        sums.add(ns, 1, 1)
    for sums in errors:
        sums.add(ns, has_errors, 1)
    if broker_ns is not None:
        for durations in times:
            durations.add(ns, broker_ns)


class _AlikeSlice:
    __slots__ = ("broker", "count", "errors", "network")

    def __init__(self) -> None:
        self.count = 0
        self.errors = 0
        self.broker = Histogram()
        self.network = Histogram()

    def merge(self, other: _AlikeSlice) -> None:
        self.count += other.count
        self.errors += other.errors
        self.broker.merge(other.broker)
        self.network.merge(other.network)


class SlicedAlike(Sliced):
    """Exchanges that several measures count in the same way. Each is counted once here, and the measures take
    in all of them together, with the same result (:meth:`SlicedSums.merge_alike` and others). It never
    travels between processes."""

    __slots__ = ()

    def add(self, ns: int, has_errors: bool, broker_ns: int | None, network_ns: int | None) -> None:
        """Count an exchange at a time. Each of the two durations is known for all exchanges here, or for
        none."""
        if not self._is_at(ns):
            number = self._go_to(ns)
            self._now = self.slices.get(number)
            if self._now is None:
                self._now = self.slices[number] = _AlikeSlice()
        now: _AlikeSlice = self._now
        now.count += 1
        now.errors += has_errors
        if broker_ns is not None:
            now.broker.add(broker_ns)
        if network_ns is not None:
            now.network.add(network_ns)

    @property
    def count(self) -> int:
        return sum(each.count for each in self.slices.values())


class SlicedTimes(Sliced):
    """Durations, ns."""

    __slots__ = ()

    def add(self, ns: int, duration_ns: int) -> None:
        """Count a duration at a time."""
        if not self._is_at(ns):
            number = self._go_to(ns)
            self._now = self.slices.get(number)
            if self._now is None:
                self._now = self.slices[number] = Histogram()
        now: Histogram = self._now
        now.add(duration_ns)

    def merge(self, later: SlicedTimes) -> None:
        """Add a later part."""
        if later._is_empty:
            return
        shift = self._cover(later)
        for number, each in later.slices.items():
            self._put(number >> shift, each)

    def merge_broker(self, later: SlicedAlike) -> None:
        """Add the broker's times of later exchanges."""
        if later._is_empty:
            return
        shift = self._cover(later)
        for number, each in later.slices.items():
            self._put(number >> shift, each.broker)

    def merge_network(self, later: SlicedAlike) -> None:
        """Add the times of the network in later exchanges."""
        if later._is_empty:
            return
        shift = self._cover(later)
        for number, each in later.slices.items():
            self._put(number >> shift, each.network)

    def _put(self, number: int, times: Histogram) -> None:
        """Add to a slice."""
        mine = self.slices.get(number)
        if mine is None:
            mine = self.slices[number] = Histogram()
        mine.merge(times)

    def all(self) -> Histogram:
        """The durations of all slices."""
        out = Histogram()
        for each in self.slices.values():
            out.merge(each)
        return out

    def percentiles(self, whole: Histogram, percents: Sequence[int]) -> list[Estimate]:
        """Percentiles, each with the ranks between which it lies (Woodruff).

        :param whole: the result of :meth:`all`.
        """
        count, slices = whole.count, len(self.slices)
        ordered = whole.in_order()
        values = whole.at_ranks([ceil(percent / 100 * count) for percent in percents], ordered)
        if slices < 3 or not count:
            return [Estimate(value) for value in values]
        each_up_to = [(each.count, each.up_to(values)) for each in self._in_order()]
        ranks = []
        for at, percent in enumerate(percents):
            part, below = percent / 100, sum([up_to[at] for _, up_to in each_up_to]) / count
            squares = sum([(up_to[at] - below * every) ** 2 for every, up_to in each_up_to])
            error = max(
                sqrt(slices / (slices - 1) * squares) / count * self._deviations,
                NORMAL * sqrt(part * (1 - part) / count),
            )
            ranks += [floor(count * (part - error)), ceil(count * (part + error)) + 1]
        ends = whole.at_ranks(ranks, ordered)
        return [Estimate(value, ends[2 * at], ends[2 * at + 1]) for at, value in enumerate(values)]
