"""Statistics of the shown exchanges, for the screens: exchanges are sent to a process, and rows come back.

The process that counts is started when a screen asks for the first statistic. Every exchange is sent to it
once, in the order in which exchanges were complete; ``kdissect stats`` counts in the same order. With a
filter, those that it does not choose are sent to be seen, not counted. When the filter changes, counting
begins again. It waits for the second stage of a filter, because exchanges that this stage finds late would
come in the wrong order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from kdissect.analysis.fold import Row
from kdissect.faults import is_unread
from kdissect.feed.batches import CountedFault, Ended, Feed
from kdissect.feed.counting import Asked, AskTables, Begin, CountedRows, Counting, Grown, Order
from kdissect.feed.decoder import Decoded
from kdissect.feed.filtering import Shown
from kdissect.feed.index import Index
from kdissect.feed.side_process import Here, Process, Shared, Worker
from kdissect.feed.stories import is_story
from kdissect.filter.masks import Mask
from kdissect.settings.screens import Rules

MOST_AT_ONCE = 100_000
"""The largest number of places sent at once; more would make a key wait."""


class CountedTables(NamedTuple):
    """The rows counted for one screen."""

    tables: Mapping[str, list[Row]]
    """The tables, by the statistic's name."""
    left_out: int
    """How often the limit of rows prevented counting something."""
    exchanges: int
    """The number of counted exchanges."""
    of: int
    """The number of exchanges that existed then."""
    connections: int
    faults: int = 0
    """The number of kinds of faults."""


class Statistics:
    """The screens' side of counting.

    :param shown: the exchanges to count; None for all, whatever is shown.
    :param rules: the settings for findings.
    """

    def __init__(
        self,
        index: Index,
        feed: Feed,
        shown: Shown | None,
        rules: Rules = Rules(),  # noqa: B008 - it cannot be changed
    ) -> None:
        self._rules = rules
        self._index, self._feed, self._shown = index, feed, shown
        self._counter: Worker[Order, CountedRows] | None = None
        self._asked: Asked = ()
        self._serial = 0
        self._results: dict[Asked, CountedTables] = {}
        self._coming: dict[str, list[Row]] = {}
        """Tables whose pieces have begun to come."""
        self._coming_left_out: dict[str, int] = {}
        self._next_piece = 0
        self.reason: str | None = None
        """The reason why nothing more is counted; None without a problem."""
        self._forget()

    def _forget(self) -> None:
        self._state: tuple[str, int, int] | None = None
        """Filter, its version, and the length of the index at the last look."""
        self._chosen: Mask = np.zeros(0, np.bool_)
        """The places that a filter shows, as far as the index was filtered."""
        self._shown_connections: list[int] = []
        self._count = 0
        """The number of places sent."""
        self._connections: set[int] = set()
        self._names = 0
        self._faults: dict[int | tuple[str, str], int] = {}
        """The number of faults sent: of the snap length, by connection; of files, by layer and kind."""
        self._fault_count = 0
        """How often faults were sent."""

    def request(self, asked: Asked) -> None:
        """Count these from now on; nothing with an empty tuple. A process that died is started again."""
        self._asked = asked
        if self._counter is None or (asked and self.reason is not None):
            if not asked:
                return
            self.close()
            self.reason = None
            self._counter = self._start()
            self._begin()
        self._next_piece = 0
        for other in [each for each in self._results if each != asked and any(map(is_story, each))]:
            del self._results[other]
        self._counter.send(AskTables(asked))
        self.sync()

    def _start(self) -> Worker[Order, CountedRows]:
        """Start a separate process like the feed, or work at once."""
        spool, limits = self._feed.descriptor, self._feed.source.limits
        if isinstance(self._feed, Decoded):
            return Here(Counting(spool, limits, self._rules))
        return Process("the process of the statistics", Counting, Shared(spool), limits, self._rules)

    def release(self, asked: Asked) -> None:
        """Note that these are no longer needed. A later request of another screen stays: the screen that is
        left may call this after the shown screen's request."""
        if self._asked == asked:
            self.request(())

    def _begin(self) -> None:
        assert self._counter is not None
        self._forget()
        self._results.clear()
        self._next_piece = 0
        self._serial += 1
        self._counter.send(Begin(self._serial))

    def sync(self) -> None:
        """Send new or changed exchanges; cheap without any."""
        counter, shown = self._counter, self._shown
        if counter is None or self.reason is not None:
            return
        text = shown.text if shown is not None and shown.is_filtered else ""
        if self._state is not None and self._state[0] != text:
            self._begin()
        if text and self.waits_for_filter is not None:
            return
        self._look(text)
        start, end = self._count, min(self._target_count, self._count + MOST_AT_ONCE)
        connections = self._new_connections(text)
        names = tuple(self._index.names[self._names :])
        faults = tuple(self._new_faults())
        if start == end and not connections and not names and not faults:
            return
        self._fault_count += len(faults)
        self._names += len(names)
        self._count = end
        self._connections.update(connections)
        found = tuple(self._index.connections.packed(connections))
        places = self._index.column("place")[start:end].astype("<i8").tobytes()
        lengths = self._index.column("length")[start:end].astype("<u4").tobytes()
        chosen = self._chosen[start:end].tobytes() if text else b""
        counter.send(Grown(places, lengths, found, names, faults, self._index.packets, chosen))

    def _look(self, text: str) -> None:
        """Find the exchanges to count. Counting begins again if one already sent is shown or hidden now."""
        shown = self._shown if text else None
        state = text, 0 if shown is None else shown.version, len(self._index)
        if state == self._state:
            return
        if shown is not None:
            places = shown.places
            chosen = np.zeros(len(self._index), np.bool_)
            chosen[places] = True
            if not np.array_equal(chosen[: self._count], self._chosen[: self._count]):
                self._begin()
            self._chosen = chosen
            counts = np.bincount(self._index.column("connection")[places])
            self._shown_connections = np.flatnonzero(counts).tolist()
        self._state = state

    @property
    def _target_count(self) -> int:
        """The number of exchanges to count or see; none if a filter shows none."""
        if self._shown is not None and self._shown.is_filtered:
            return len(self._chosen) if self._chosen.any() else 0
        return len(self._index)

    def _new_connections(self, text: str) -> list[int]:
        """The rows of finished connections that were not sent, by their places, in order. With a filter, only
        of connections with an exchange that it shows."""
        over = self._index.connections
        if not text:
            return list(range(len(self._connections), over.rows))
        places = (place for number in self._shown_connections for place in over.places(number))
        return sorted(place for place in places if place not in self._connections)

    def _new_faults(self) -> Iterator[CountedFault]:
        """The faults that were not sent, of those about missing or unreadable data."""
        unread = {key: each for key, each in self._index.faults.items() if is_unread(each.first)}
        told: list[tuple[int | tuple[str, str], CountedFault]]
        told = [*self._index.cut.items(), *unread.items()]
        for key, (number, first) in told:
            sent = self._faults.get(key, 0)
            if number > sent:
                self._faults[key] = number
                yield CountedFault(number - sent, first)

    @property
    def waits_for_filter(self) -> float | None:
        """The progress of a filter that must finish first; None without one."""
        shown = self._shown
        return shown.progress if shown is not None and shown.is_filtered else None

    @property
    def is_busy(self) -> bool:
        """Whether more results of the request are to come."""
        if not self._asked or self.reason is not None:
            return False
        if self.waits_for_filter is not None:
            return True
        found = self._results.get(self._asked)
        if found is None or self._count < self._target_count:
            return True
        counted = found.exchanges, found.connections, found.faults
        return counted != (self._count, len(self._connections), self._fault_count)

    def result(self, asked: Asked) -> CountedTables | None:
        """The results so far; None before the first."""
        return self._results.get(asked)

    def poll(self) -> bool:
        """Send new exchanges, and take in results. Return whether anything is new."""
        self.sync()
        found = False
        for message in self._counter.poll() if self._counter is not None else ():
            if isinstance(message, Ended):
                self.reason = message.reason
                found = True
            elif message.serial == self._serial:
                found = self._take(message) or found
        return found

    def _take(self, piece: CountedRows) -> bool:
        if piece.asked != self._asked:
            return False
        if piece.number == 0:
            self._coming, self._coming_left_out = {}, {}
        if piece.number not in (self._next_piece, 0):
            return False  # rows of an older request
        self._next_piece = piece.number + 1
        self._coming.setdefault(piece.table, []).extend(piece.rows)
        self._coming_left_out[piece.table] = piece.left_out
        if not piece.is_last:
            return False
        left_out = sum(self._coming_left_out.values())
        self._results[piece.asked] = CountedTables(
            self._coming, left_out, piece.counted, piece.of, piece.connections, piece.faults
        )
        self._next_piece = 0
        return True

    def close(self) -> None:
        """Stop the process."""
        if self._counter is not None:
            self._counter.close()
            self._counter = None
