"""Several statistics fed together: their shared parts are fed, kept and merged once.

Limits may apply at the ends of chapters only (:mod:`kdissect.analysis.whole`). Then a fold is open until it
holds too much at such an end, and full from then on. Open folds take in events as they come. A full fold
takes in whole chapters: events go to the same fold of a chapter, which is merged at the chapter's end. The
facts of :class:`~kdissect.analysis.latest.Latest` are sets and maxima, so they are taken in as they come.
Only the clusters among them have a limit: from the end of the chapter in which they reach it, no more are
taken.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Self

from kdissect.analysis.fold import Fold, Statistic, View
from kdissect.analysis.latest import Latest
from kdissect.analysis.latest import share as share_latest
from kdissect.analysis.room import Room, begin_chapter, close_all, crowded, open_all, share
from kdissect.analysis.shared_parts import by_api
from kdissect.analysis.shared_parts import share as share_parts
from kdissect.analysis.shared_parts import unshare as unshare_parts
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.session.briefs import Brief, Interest, runs_of_briefs
from kdissect.session.conversation import Connection

Take = Callable[[Exchange], None]
TakeOther = Callable[[Any], None]


class Together:
    """Statistics that are fed the same events. Those that are views of one fold share it from now on.

    :param percent: the share of the memory for facts that they may take.
    """

    def __init__(self, statistics: Iterable[Statistic], percent: int = 100) -> None:
        self.statistics = list(statistics)
        shared: dict[type[Fold], Fold] = {}
        fed: list[Fold] = []
        for each in self.statistics:
            if isinstance(each, View):
                if type(each.basis) not in shared:
                    shared[type(each.basis)] = each.basis
                    fed.append(each.basis)
                each.basis = shared[type(each.basis)]
                each.room, each.latest = each.basis.room, each.basis.latest
            else:
                fed.append(each)
        self._fed = fed
        share_latest([each.latest for each in fed])
        self._clusters = fed[0].latest.clusters if fed and fed[0].latest.keeps_clusters else None
        """The facts in :class:`Latest` that have a limit, if folds keep them."""
        beside = None
        if self._clusters is not None:
            beside = Room(fed[0].limits)
            self._clusters.keep_in(beside)
        share([each.room for each in fed], percent, beside)
        self._full: set[int] = set()
        """The places of full folds."""
        self._chapter: Self | None = None
        """Takes in the events of the current chapter for them."""
        self._find_ways()

    def _find_ways(self) -> None:
        """Find where events go. :meth:`Fold.feed` would ask for the type of each event, again for each
        fold."""
        self._latest = self._fed[0].latest if self._fed else Latest()
        self._taking = [
            self._chapter._fed[place] if self._chapter is not None and place in self._full else each
            for place, each in enumerate(self._fed)
        ]
        """The folds that take in events, at the places of all folds."""
        self._see_too = None if self._chapter is None else self._chapter._latest
        """The facts that the chapter's folds need."""
        connected = [each for each in self._taking if _takes_connections(type(each))]
        self._connections = [each._connection for each in connected]
        self._copies = [each._connection for each in connected if each.at_every_point]
        """The functions that take in the rows of connections, including those of other capture points."""
        self._own = [each for each in self._taking if type(each).feed is not Fold.feed]
        """The folds that take in events in their own way."""
        self._every = (
            [each.handlers()[0] for each in self._taking],
            [each.handlers()[1] for each in self._taking],
        )
        """The functions for exchanges that count, and for those that do not."""
        self._by_api: tuple[dict[str | None, list[Take]], dict[str | None, list[Take]]] = {}, {}
        """The same functions for whole exchanges of each API that was seen."""
        self._briefs = [each.brief_handler() for each in self._taking]
        self._takes_briefs = self.briefs is not None
        self._in_turn = [
            (each, each.handlers()[0], each.batch_handler(), *_ways_of_others(each)) for each in self._taking
        ]
        """Each fold with its functions: for exchanges that count, for many of them at once, for rows of
        connections that count, and for all other events."""

    def _takers(self, api: str | None, counts: bool) -> list[Take]:
        """The functions that take in whole exchanges of an API."""
        found = [each.handlers() for each in self._taking if each.apis is None or api in each.apis]
        out = [count for count, _ in found] if counts else [see for _, see in found]
        self._by_api[not counts][api] = out
        return out

    def __getstate__(self) -> dict[str, Any]:
        kept = ("statistics", "_fed", "_clusters", "_full", "_chapter")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._find_ways()

    @property
    def briefs(self) -> Interest | None:
        """The data that they need of exchanges in brief; None if one of them needs whole exchanges."""
        asked = [each.briefs for each in self._fed]
        known = [each for each in asked if each is not None]
        if len(known) < len(asked):
            return None
        return Interest(*map(any, zip(*known, strict=True)))

    @property
    def sees_others(self) -> bool:
        """Whether exchanges that do not count tell one of them something."""
        return any(type(each)._other is not Fold._other for each in self._fed)

    def set_open(self) -> None:
        """Accept more than the limits allow, until :meth:`close`. Call it before the first event."""
        open_all(self._rooms)

    def close(self) -> None:
        """Keep to the limits from now on, as events come."""
        close_all(self._rooms)
        self._full.clear()
        self._find_ways()

    @property
    def awaits_chapter(self) -> bool:
        """Whether a full fold needs a fold for the current chapter."""
        return bool(self._full) and self._chapter is None

    def begin_chapter(self, chapter: Self) -> None:
        """Let the open folds of ``chapter`` take in the events of the current chapter for full folds."""
        self._chapter = chapter
        self._find_ways()

    def end_chapter(self, new: Callable[[], Self]) -> None:
        """Add the current chapter to the full folds, and apply the limits to the others.

        :param new: makes the same folds without any contents.
        """
        chapter, self._chapter = self._chapter, None
        if chapter is not None:
            self._latest.merge(chapter._latest)
            for place in sorted(self._full):
                _merge(self._fed[place], chapter._fed[place])
        rooms, empty = self._rooms, list[Self]()
        for place, most in crowded(rooms).items():
            if place == len(self._fed):
                rooms[place].seal()
                continue
            self._full.add(place)
            if rooms[place].exceeded or most < rooms[place].held:
                empty = empty or [new()]
                self._renew(place, empty[0]._fed[place], most)
            else:
                close_all([rooms[place]])
        begin_chapter(self._rooms)
        self._find_ways()

    def _renew(self, place: int, fresh: Fold, most: int) -> None:
        """Take what is beyond the limits out of a fold.

        :param fresh: the same fold without any contents.
        :param most: the most bytes that it may keep.
        """
        old = self._fed[place]
        fresh.latest.replace(old.latest)
        fresh.room.replace(old.room, most)
        fresh.merge(old)
        fresh.room.settle(old.room)
        if self._clusters is not None:
            self._clusters.follow(old.room, fresh.room)
        old.__dict__ = fresh.__dict__  # others refer to the old object
        for each in self.statistics:
            if isinstance(each, View) and each.basis is old:
                each.room, each.latest = old.room, old.latest

    @property
    def _rooms(self) -> list[Room]:
        """The rooms of all folds, then that of the clusters."""
        rooms = [each.room for each in self._fed]
        return rooms if self._clusters is None else [*rooms, self._clusters.room]

    def feed(self, event: Event, counts: bool = True) -> None:
        """Take in the next event.

        :param counts: whether it counts; else it is only seen, for what it tells of others.
        """
        if isinstance(event, Brief):
            for take_briefs in self._briefs:
                take_briefs([event])
        elif isinstance(event, Exchange):
            self._latest.see(event)
            if self._see_too is not None:
                self._see_too.see(event)
            at = 0 if counts else 1
            if event.missing is not None:
                takers = self._every[at]
            else:
                api = event.api
                takers = self._by_api[at].get(api) or self._takers(api, counts)
            for take in takers:
                take(event)
        elif counts:
            if isinstance(event, Connection):
                for connection in self._copies if event.is_copy else self._connections:
                    connection(event)
            for fold in self._own:
                fold.feed(event)
        else:
            for fold in self._taking:
                fold.see(event)

    def feed_all(self, events: Sequence[Event]) -> None:
        """Take in the next events, all of which count, as :meth:`feed` does one by one. Here each fold takes
        in all of them before the next one does. Its code and its rows are then in the caches, which takes a
        third less time than changing the fold for each event."""
        if self._takes_briefs:
            for part in runs_of_briefs(events):
                if isinstance(part, list):
                    for take_briefs in self._briefs:
                        take_briefs(part)
                else:
                    self.feed(part)
            return
        batch = _FedEvents(events)
        exchanges = batch.exchanges(None)
        self._latest.see_all(exchanges)
        if self._see_too is not None:
            self._see_too.see_all(exchanges)
        share_parts(exchanges)
        for fold, take, take_many, take_row, take_any in self._in_turn:
            take_other = take_row if batch.has_rows_only else take_any
            for part in batch.in_order(fold.apis) if take_other else (batch.exchanges(fold.apis),):
                if not isinstance(part, list):
                    if take_other is not None:
                        take_other(part)
                elif take_many is not None:
                    take_many(part)
                else:
                    for exchange in part:
                        take(exchange)
        unshare_parts(exchanges)

    def merge(self, later: Self) -> None:
        """Add the results of the same statistics over later events."""
        self._merge_latest(later)
        for mine, theirs in zip(self._taking, later._fed, strict=True):
            _merge(mine, theirs)

    def take(self, later: Self) -> None:
        """Add the same results, and empty ``later`` meanwhile: both together would take much memory. If
        ``later`` is the current chapter, what it has for full folds stays there."""
        self._merge_latest(later)
        for mine, theirs in zip(self._taking, later._fed, strict=True):
            if mine is not theirs:
                _merge(mine, theirs)
                vars(theirs).clear()

    def _merge_latest(self, later: Self) -> None:
        self._latest.merge(later._latest)
        if self._chapter is not None and self._chapter is not later:
            self._chapter._latest.merge(later._latest)


def _merge(mine: Fold, later: Fold) -> None:
    mine.merge(later)
    mine.room.refused |= later.room.refused


class _FedEvents:
    """Events that are taken in together."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._exchanges: list[Exchange] = []
        self._others: list[tuple[int, Event]] = []
        """Events that are no exchanges, each with the number of exchanges before it."""
        for event in events:
            if isinstance(event, Exchange):
                self._exchanges.append(event)
            else:
                self._others.append((len(self._exchanges), event))
        self.has_rows_only = all(
            isinstance(each, Connection) and not each.is_copy for _, each in self._others
        )
        """Whether all of them are rows of connections, from the capture point that counts."""
        self._places = by_api(self._exchanges)
        """The exchanges of each API; with None those that every fold is asked for."""
        every = list(range(len(self._exchanges)))
        self._chosen: dict[frozenset[str] | None, tuple[list[int], list[Exchange]]] = {
            None: (every, self._exchanges)
        }
        self._in_order: dict[frozenset[str] | None, list[list[Exchange] | Event]] = {}

    def exchanges(self, apis: frozenset[str] | None) -> list[Exchange]:
        """The exchanges of some APIs; all of them for None."""
        return self._choose(apis)[1]

    def _choose(self, apis: frozenset[str] | None) -> tuple[list[int], list[Exchange]]:
        """The exchanges of some APIs, with the place of each among all exchanges."""
        found = self._chosen.get(apis)
        if found is None:
            assert apis is not None
            some = [places for api, places in self._places.items() if api is None or api in apis]
            chosen = some[0] if len(some) == 1 else sorted(chain.from_iterable(some))
            found = self._chosen[apis] = chosen, list(map(self._exchanges.__getitem__, chosen))
        return found

    def in_order(self, apis: frozenset[str] | None) -> list[list[Exchange] | Event]:
        """The exchanges of some APIs and all other events, in their order: each other event by itself, and
        between them lists of exchanges."""
        found = self._in_order.get(apis)
        if found is None:
            found = self._in_order[apis] = []
            places, exchanges = self._choose(apis)
            begin = 0
            for before, other in self._others:
                end = bisect_left(places, before, begin)
                if end > begin:
                    found.append(exchanges[begin:end])
                    begin = end
                found.append(other)
            if begin < len(exchanges):
                found.append(exchanges[begin:])
        return found


def _takes_connections(kind: type[Fold]) -> bool:
    """Whether such a fold uses the rows of connections, and does not take in events in its own way."""
    return kind.feed is Fold.feed and kind._connection is not Fold._connection


def _ways_of_others(fold: Fold) -> tuple[TakeOther | None, TakeOther | None]:
    """The function for rows of connections that count, and the function for all events that are no exchanges.
    None if a fold does not use them."""
    if type(fold).feed is not Fold.feed:
        return fold.feed, fold.feed
    return (fold._connection, fold.feed) if _takes_connections(type(fold)) else (None, None)
