"""Several statistics fed together: what they share is fed, kept and merged once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from kdissect.analysis.fold import Fold, Statistic, View
from kdissect.dissect import Event


class Together:
    """Statistics that are fed the same events. Those that are views of one fold share it from now on."""

    def __init__(self, statistics: Iterable[Statistic]) -> None:
        self.statistics = list(statistics)
        shared: dict[type[Fold], Fold] = {}
        fed: list[Fold] = []
        for each in self.statistics:
            if isinstance(each, View):
                if type(each.basis) not in shared:
                    shared[type(each.basis)] = each.basis
                    fed.append(each.basis)
                each.basis = shared[type(each.basis)]
            else:
                fed.append(each)
        self._fed = fed

    def feed(self, event: Event, counts: bool = True) -> None:
        """Take in the next event.

        :param counts: whether it is to be counted; else it is only seen, for what it tells of others.
        """
        for fold in self._fed:
            if counts:
                fold.feed(event)
            else:
                fold.see(event)

    def merge(self, later: Self) -> None:
        """Add what the same statistics found in the events that came after."""
        for mine, theirs in zip(self._fed, later._fed, strict=True):
            mine.merge(theirs)
