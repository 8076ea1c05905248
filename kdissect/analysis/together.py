"""Several statistics fed together: what they share is fed, kept and merged once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

from kdissect.analysis.fold import Fold, Statistic, View
from kdissect.analysis.room import share
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.session.briefs import Brief


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
                each.room = each.basis.room
            else:
                fed.append(each)
        self._fed = fed
        share([each.room for each in fed])
        self._ways = self._find_ways()
        self._others = self._take_others()

    def _find_ways(self) -> tuple[list[Callable[[Exchange], None]], list[Callable[[Exchange], None]]]:
        """Where exchanges go: those that count, and those that do not. :meth:`Fold.feed` would ask of each
        event what it is, once more for each fold."""
        ways = [each.ways() for each in self._fed]
        return [feed for feed, _ in ways], [see for _, see in ways]

    def _take_others(self) -> list[Fold]:
        """The folds that take in more than exchanges."""
        return [each for each in self._fed if _takes_others(type(each))]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_ways", "_others")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._ways = self._find_ways()
        self._others = self._take_others()

    @property
    def takes_briefs(self) -> bool:
        """Whether a :class:`~kdissect.session.briefs.Brief` is enough for all of them."""
        return all(each.takes_briefs for each in self._fed)

    def feed(self, event: Event, counts: bool = True) -> None:
        """Take in the next event.

        :param counts: whether it is to be counted; else it is only seen, for what it tells of others.
        """
        if isinstance(event, Exchange):
            for take in self._ways[0 if counts else 1]:
                take(event)
        elif isinstance(event, Brief):
            for fold in self._fed:
                fold.feed(event)
        elif counts:
            for fold in self._others:
                fold.feed(event)
        else:
            for fold in self._fed:
                fold.see(event)

    def merge(self, later: Self) -> None:
        """Add what the same statistics found in the events that came after."""
        for mine, theirs in zip(self._fed, later._fed, strict=True):
            mine.merge(theirs)
            mine.room.refused |= theirs.room.refused


def _takes_others(kind: type[Fold]) -> bool:
    """Whether such a fold does anything with what is no exchange."""
    return kind.feed is not Fold.feed or kind._connection is not Fold._connection
