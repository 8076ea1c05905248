"""The measures of a profile, and the classes that count exchanges into them.

alike.slices.add(…); left_out = alike.settle()    each exchange once; later all of them into each measure
"""

from __future__ import annotations

from typing import NamedTuple

from kdissect.analysis.slices import SlicedAlike, SlicedSums, SlicedTimes


class Measure:
    """One of the two, by the kind of the key; made on first use."""

    __slots__ = ("counted", "times")

    def __init__(self) -> None:
        self.counted: SlicedSums | None = None
        self.times: SlicedTimes | None = None

    def sums(self) -> SlicedSums:
        """The sums of the measure."""
        if self.counted is None:
            self.counted = SlicedSums()
        return self.counted

    def durations(self) -> SlicedTimes:
        """The times of the measure."""
        if self.times is None:
            self.times = SlicedTimes()
        return self.times

    def merge(self, later: Measure) -> None:
        if later.counted is not None:
            self.counted = self.counted or SlicedSums()
            self.counted.merge(later.counted)
        if later.times is not None:
            self.times = self.times or SlicedTimes()
            self.times.merge(later.times)


Additions = list[tuple[SlicedSums | None, int, int]]
"""For each measure, the total and the count of one exchange to add; None if there is no room for the
measure."""


class AlikeExchanges:
    """Exchanges of one client id in one version of one API, with the same parts known. They are counted
    together, and their measures take the counts in later. Counting each exchange into each of its measures
    would take several times as long."""

    __slots__ = ("answers", "asked", "network", "slices", "times")

    def __init__(self) -> None:
        self.slices = SlicedAlike()
        self.asked: Additions = []
        self.answers: list[SlicedSums | None] = []
        self.times: list[SlicedTimes | None] = []
        self.network: list[SlicedTimes | None] = []

    def flush(self) -> int:
        """Add the counts to the measures.

        :returns: how often there was no room for a measure.
        """
        found = self.slices
        for sums, total, count in self.asked:
            if sums is not None:
                sums.merge_alike(found, total, count)
        for answers in self.answers:
            if answers is not None:
                answers.merge_errors(found)
        for times in self.times:
            if times is not None:
                times.merge_broker(found)
        for times in self.network:
            if times is not None:
                times.merge_network(found)
        measures = [*(sums for sums, _, _ in self.asked), *self.answers, *self.times, *self.network]
        self.slices = SlicedAlike()
        return found.count * measures.count(None)


class DirectMeasures(NamedTuple):
    """The measures that count exchanges of one kind, one by one."""

    requests: list[SlicedSums]
    errors: list[SlicedSums]
    times: list[SlicedTimes]
    left_out: int
    """The number of further measures without room."""
