"""What is counted in slices of time, so that its rate, share, mean or percentile has a margin.

Exchanges of one second are alike: they meet the same pause and the same queue. So a thousand of them say
less than a thousand that lie apart. The margin therefore comes from how slices of time differ (the variance
of clusters), never from the mere count. One slice alone gives no margin.

Slices begin at multiples of a power of two of nanoseconds. They grow until at most :data:`MOST_SLICES` cover
all that was counted. So parts that are merged have the slices of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, floor, sqrt
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from kdissect.analysis.fold import SECOND
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.packed import packed

MOST_SLICES = 16
SHORTEST_SHIFT = 28
"""A slice takes ``1 << 28`` ns at least, which is 0.27 s."""
LEAST_OF_RATE_NS = SECOND
"""What lasts less has no rate a second."""
NORMAL = 2.58
"""99 % of a normal distribution lie within so many standard deviations of its mean."""
_STUDENT = (63.7, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50, 3.36, 3.25, 3.17, 3.11, 3.05, 3.01, 2.98, 2.95)
"""The same of Student's distribution with 1, 2, 3 … degrees of freedom."""


class Estimate(NamedTuple):
    """A value with its margin."""

    value: float | None
    low: float | None = None
    """The value lies between this and ``high`` with a confidence of 99 %; None where that is not known."""
    high: float | None = None


NOTHING = Estimate(None)


class _Slice(Protocol):
    def merge(self, other: Self, /) -> None: ...


S = TypeVar("S", bound=_Slice)
L = TypeVar("L", "SlicedSums", "SlicedTimes")


@packed
@dataclass(slots=True)
class Sums:
    """How many in a slice, and what they come to."""

    count: int = 0
    total: int = 0

    def merge(self, other: Sums) -> None:
        self.count += other.count
        self.total += other.total


@packed
@dataclass(slots=True)
class Sliced(Generic[S]):
    """Slices by their number."""

    slices: dict[int, S] = field(default_factory=dict)
    shift: int = SHORTEST_SHIFT
    first_ns: int | None = None
    last_ns: int | None = None
    _now: S | None = field(default=None, compare=False, repr=False)
    """The slice that was counted into last: mostly the next one is, too."""
    _from_ns: int = field(default=0, compare=False, repr=False)
    _to_ns: int = field(default=0, compare=False, repr=False)
    """It ends before this."""

    def _at(self, ns: int, new: type[S]) -> S:
        """The slice of this time, which is covered from now on."""
        last = self.last_ns
        if self._now is None or last is None or not self._from_ns <= ns < self._to_ns:
            self._reach(ns, ns)
            number = ns >> self.shift
            found = self.slices.get(number)
            if found is None:
                found = self.slices[number] = new()
            self._now = found
            self._from_ns = number << self.shift
            self._to_ns = self._from_ns + (1 << self.shift)
        elif ns > last:
            self.last_ns = ns
        elif self.first_ns is None or ns < self.first_ns:
            self.first_ns = ns
        return self._now

    def _reach(self, first_ns: int, last_ns: int) -> None:
        """Cover these times, too."""
        self.first_ns = first_ns if self.first_ns is None else min(self.first_ns, first_ns)
        self.last_ns = last_ns if self.last_ns is None else max(self.last_ns, last_ns)
        shift = self.shift
        while (self.last_ns >> shift) - (self.first_ns >> shift) >= MOST_SLICES:
            shift += 1
        self._widen(shift)

    def _widen(self, shift: int) -> None:
        if shift == self.shift:
            return
        narrow, self.slices = self.slices, {}
        for number, each in narrow.items():
            wide = self.slices.setdefault(number >> (shift - self.shift), each)
            if wide is not each:
                wide.merge(each)
        self.shift = shift
        self._now = None

    def _add(self, later: Sliced[S], new: type[S]) -> None:
        """Add all slices of another."""
        if later.first_ns is None or later.last_ns is None:
            return
        self._reach(later.first_ns, later.last_ns)
        if later.shift > self.shift:
            self._widen(later.shift)
        for number, each in later.slices.items():
            self.slices.setdefault(number >> (self.shift - later.shift), new()).merge(each)

    def _in_order(self) -> list[S]:
        """The slices by time: sums of fractions depend on the order, and parts may come in any."""
        return [self.slices[number] for number in sorted(self.slices)]

    @property
    def _deviations(self) -> float:
        """How many standard errors a margin has; 0 where there is none."""
        return _STUDENT[min(len(self.slices) - 1, len(_STUDENT)) - 1] if len(self.slices) > 1 else 0.0


class SlicedSums(Sliced[Sums]):
    """What is counted: exchanges, or records in them; and what it comes to: bytes, errors."""

    def add(self, ns: int, total: int, count: int = 1) -> None:
        """Count at a time."""
        found = self._now
        if found is None or not self._from_ns <= ns < self._to_ns:
            found = self._at(ns, Sums)
        elif self.last_ns is None or ns > self.last_ns:
            self.last_ns = ns
        elif self.first_ns is None or ns < self.first_ns:
            self.first_ns = ns
        found.count += count
        found.total += total

    def merge(self, later: SlicedSums) -> None:
        """Add what was counted later."""
        self._add(later, Sums)

    @property
    def count(self) -> int:
        return sum(each.count for each in self.slices.values())

    @property
    def total(self) -> int:
        return sum(each.total for each in self.slices.values())

    def rate(self) -> Estimate:
        """The total a second between the first and the last. A burst has no rate: three requests in 2 ms are
        not 1,500 a second."""
        if self.first_ns is None or self.last_ns is None or self.last_ns - self.first_ns < LEAST_OF_RATE_NS:
            return NOTHING
        seconds = (self.last_ns - self.first_ns) / SECOND
        total, slices = self.total, (self.last_ns >> self.shift) - (self.first_ns >> self.shift) + 1
        if slices < 3:
            return Estimate(total / seconds)
        mean = total / slices
        squares = sum((each.total - mean) ** 2 for each in self._in_order())
        squares += (slices - len(self.slices)) * mean**2
        error = sqrt(slices / (slices - 1) * squares) * _STUDENT[min(slices - 1, len(_STUDENT)) - 1]
        return Estimate(total / seconds, max(0.0, total - error) / seconds, (total + error) / seconds)

    def mean(self) -> Estimate:
        """The total of one of those that were counted."""
        count, total, slices = self.count, self.total, len(self.slices)
        if not count:
            return NOTHING
        value = total / count
        if slices < 3:
            return Estimate(value)
        squares = sum((each.total - value * each.count) ** 2 for each in self._in_order())
        error = sqrt(slices / (slices - 1) * squares) / count * self._deviations
        return Estimate(value, max(0.0, value - error), value + error)

    def share(self) -> Estimate:
        """The mean where a total is a part of the count: it has a margin even if it is 0 or all."""
        count, total = self.count, self.total
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


@packed
@dataclass(slots=True)
class _AlikeSlice:
    count: int = 0
    errors: int = 0
    broker: Histogram = field(default_factory=Histogram)
    network: Histogram = field(default_factory=Histogram)

    def merge(self, other: _AlikeSlice) -> None:
        self.count += other.count
        self.errors += other.errors
        self.broker.merge(other.broker)
        self.network.merge(other.network)


class SlicedAlike(Sliced[_AlikeSlice]):
    """Exchanges that several measures count alike. Each is counted once here; the measures then take in all
    of them together, which comes to the same."""

    def add(self, ns: int, has_errors: bool, broker_ns: int | None, network_ns: int | None) -> None:
        """Count one at a time. Each of the two durations is known of all that are alike, or of none."""
        found = self._now
        if found is None or not self._from_ns <= ns < self._to_ns:
            found = self._at(ns, _AlikeSlice)
        elif self.last_ns is None or ns > self.last_ns:
            self.last_ns = ns
        elif self.first_ns is None or ns < self.first_ns:
            self.first_ns = ns
        found.count += 1
        found.errors += has_errors
        if broker_ns is not None:
            found.broker.add(broker_ns)
        if network_ns is not None:
            found.network.add(network_ns)

    @property
    def count(self) -> int:
        return sum(each.count for each in self.slices.values())

    def sums(self, total: int, count: int) -> SlicedSums:
        """What they come to, where one of them has this total, and this count."""
        return self._with_span(
            SlicedSums({at: Sums(each.count * count, each.count * total) for at, each in self.slices.items()})
        )

    def errors(self) -> SlicedSums:
        """How many of them have errors."""
        return self._with_span(
            SlicedSums({at: Sums(each.count, each.errors) for at, each in self.slices.items()})
        )

    def broker(self) -> SlicedTimes:
        """The times that the broker took."""
        return self._with_span(SlicedTimes({at: each.broker for at, each in self.slices.items()}))

    def network(self) -> SlicedTimes:
        """The times of the network."""
        return self._with_span(SlicedTimes({at: each.network for at, each in self.slices.items()}))

    def _with_span(self, made: L) -> L:
        made.shift, made.first_ns, made.last_ns = self.shift, self.first_ns, self.last_ns
        return made


class SlicedTimes(Sliced[Histogram]):
    """Durations, ns."""

    def add(self, ns: int, duration_ns: int) -> None:
        """Count a duration at a time."""
        self._at(ns, Histogram).add(duration_ns)

    def merge(self, later: SlicedTimes) -> None:
        """Add what was counted later."""
        self._add(later, Histogram)

    def all(self) -> Histogram:
        """Those of all slices."""
        out = Histogram()
        for each in self.slices.values():
            out.merge(each)
        return out

    def percentile(self, whole: Histogram, percent: int) -> Estimate:
        """A percentile, with the ranks between which it lies (Woodruff).

        :param whole: what :meth:`all` gives.
        """
        count, part = whole.count, percent / 100
        value = whole.at_rank(ceil(part * count))
        if value is None:
            return NOTHING
        slices = len(self.slices)
        if slices < 3:
            return Estimate(value)
        below = whole.up_to(value) / count
        squares = sum((each.up_to(value) - below * each.count) ** 2 for each in self._in_order())
        error = max(
            sqrt(slices / (slices - 1) * squares) / count * self._deviations,
            NORMAL * sqrt(part * (1 - part) / count),
        )
        low = whole.at_rank(floor(count * (part - error)))
        high = whole.at_rank(ceil(count * (part + error)) + 1)
        return Estimate(value, low, high)
