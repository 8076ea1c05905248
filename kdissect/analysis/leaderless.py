"""How long a KRaft quorum had no leader, by the Fetches of its metadata log (KIP-595).

The kept facts do not depend on the order in which they come. So parts of a capture add up to the whole, even
if its clock was set back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kdissect.analysis.fold import SECOND
from kdissect.analysis.packed import packed

SERVED_NS = SECOND
"""A follower asks again within half a second. Answers that are at most this far apart are of one leader."""
PATIENCE_NS = 3 * SECOND
"""Without a leader, a node asks again at once if it is refused. If it is not answered, it asks after 2 s
(``controller.quorum.request.timeout.ms``). Refusals farther apart show nothing of the time between them."""
SLOT_NS = SECOND // 2
"""Refusals are grouped by slots of time of this length."""

Span = tuple[int, int]


@packed
@dataclass(slots=True)
class _RefusedFetches:
    """The refusals of one slot."""

    first_ns: int
    last_ns: int
    askers: frozenset[int]
    """The nodes that were refused."""
    is_unnamed: bool
    """Whether one of the refusals names no leader."""
    named: int = -1
    """The latest epoch whose leader one of the refusals names."""

    def extend(self, ns: int, node: int, named: int | None) -> bool:
        """Take in a refusal if it only makes the time longer. Return whether it did."""
        if node not in self.askers or (not self.is_unnamed if named is None else named > self.named):
            return False
        if ns > self.last_ns:
            self.last_ns = ns
        elif ns < self.first_ns:
            self.first_ns = ns
        return True

    def merge(self, other: _RefusedFetches) -> None:
        self.first_ns = min(self.first_ns, other.first_ns)
        self.last_ns = max(self.last_ns, other.last_ns)
        self.askers |= other.askers
        self.is_unnamed = self.is_unnamed or other.is_unnamed
        self.named = max(self.named, other.named)


@packed
@dataclass(slots=True)
class _Reign:
    """An epoch in which followers were served."""

    first_ns: int
    nodes: frozenset[int]

    def merge(self, other: _Reign) -> None:
        self.first_ns = min(self.first_ns, other.first_ns)
        self.nodes |= other.nodes


@packed
@dataclass(slots=True)
class Leaderless:
    """When the followers of one quorum were served, and when they were refused by a node that does not
    lead."""

    most: int
    """The most entries of each kind that are kept."""
    served: list[Span] = field(default_factory=list)
    """Ascending, and farther apart than :data:`SERVED_NS`."""
    refused: dict[int, _RefusedFetches] = field(default_factory=dict)
    """The refusals of each slot."""
    reigns: dict[int, _Reign] = field(default_factory=dict)
    """The reign of each epoch."""
    is_full: bool = False
    """Whether something was left out. Then there is no result."""

    def serve(self, ns: int, node: int, epoch: int) -> None:
        """Note that the leader of an epoch answered a follower."""
        begin, end = self.served[-1] if self.served else (ns + 1, ns)
        if not begin <= ns <= end + SERVED_NS:
            self._serve((ns, ns))
        elif ns > end:  # as nearly always
            self.served[-1] = begin, ns
        known = self.reigns.get(epoch)
        if known is None or ns < known.first_ns or node not in known.nodes:
            self._reign(epoch, _Reign(ns, frozenset((node,))))

    def refuse(self, ns: int, node: int, named: int | None) -> None:
        """Note that a node refused a follower because it does not lead.

        :param named: the epoch of the leader that the answer names; None if it names none.
        """
        known = self.refused.get(ns // SLOT_NS)
        if known is not None and known.extend(ns, node, named):
            return
        told = _RefusedFetches(ns, ns, frozenset((node,)), named is None, -1 if named is None else named)
        self._refuse(ns // SLOT_NS, told)

    def _serve(self, span: Span) -> None:
        spans = self.served
        begin, end = span
        if spans and spans[-1][0] <= begin <= spans[-1][1] + SERVED_NS:
            spans[-1] = spans[-1][0], max(spans[-1][1], end)
            return
        # The spans that the new one touches are next to each other.
        low = bisect_left(spans, begin - SERVED_NS, key=_end)
        high = low
        while high < len(spans) and spans[high][0] <= end + SERVED_NS:
            begin, end = min(begin, spans[high][0]), max(end, spans[high][1])
            high += 1
        if low == high and len(spans) >= self.most:
            self.is_full = True
            return
        spans[low:high] = [(begin, end)]

    def _refuse(self, slot: int, told: _RefusedFetches) -> None:
        known = self.refused.get(slot)
        if known is not None:
            known.merge(told)
        elif len(self.refused) < self.most:
            self.refused[slot] = replace(told)
        else:
            self.is_full = True

    def _reign(self, epoch: int, told: _Reign) -> None:
        known = self.reigns.get(epoch)
        if known is not None:
            known.merge(told)
        elif len(self.reigns) < self.most:
            self.reigns[epoch] = replace(told)
        else:
            self.is_full = True

    def merge(self, later: Leaderless) -> None:
        """Add the facts of another part."""
        self.is_full = self.is_full or later.is_full
        for span in later.served:
            self._serve(span)
        for slot, refusals in later.refused.items():
            self._refuse(slot, refusals)
        for epoch, reign in later.reigns.items():
            self._reign(epoch, reign)

    def longest(self) -> tuple[int, int]:
        """The longest time without a leader: its length, and minus its beginning. The first of equal ones."""
        if self.is_full:
            return 0, 0
        found = [each for run in self._runs() for each in self._judged(run)]
        return max([*found, *self._at_first()], default=(0, 0))

    def _at_first(self) -> Iterator[tuple[int, int]]:
        """The time at the beginning of the capture in which nobody was served, and at least two nodes were
        sent again and again to a leader. If no leader is named, the quorum may just be starting."""
        until_ns = self.served[0][0] if self.served else None
        chains: dict[int, list[Span]] = {}
        is_named = False
        for _, told in sorted(self.refused.items()):
            if until_ns is not None and told.last_ns >= until_ns:
                break
            is_named = is_named or told.named >= 0
            for asker in sorted(told.askers):
                mine = chains.setdefault(asker, [])
                if mine and told.first_ns - mine[-1][1] <= PATIENCE_NS:
                    mine[-1] = mine[-1][0], told.last_ns
                else:
                    mine.append((told.first_ns, told.last_ns))
        longest = sorted(
            (max((end - begin, -begin) for begin, end in mine) for mine in chains.values()), reverse=True
        )
        if is_named and len(longest) > 1:
            yield longest[1]

    def _runs(self) -> Iterator[list[_RefusedFetches]]:
        """Refusals in close succession, while nobody is served and no new leader is named."""
        run: list[_RefusedFetches] = []
        for _, each in sorted(self.refused.items()):
            since_ns = run[-1].last_ns if run else each.first_ns
            if each.first_ns - since_ns > PATIENCE_NS or self._is_led(since_ns, each):
                yield run
                run = []
            if not self._is_led(each.first_ns, each):
                run.append(each)
        yield run

    def _is_led(self, since_ns: int, told: _RefusedFetches) -> bool:
        """Whether there was a leader. A leader served somebody from that time on, until the end of these
        refusals. Or one of them names the leader of a newer epoch than any in which somebody was served
        before."""
        at = bisect_left(self.served, since_ns, key=_end)
        if at < len(self.served) and self.served[at][0] <= told.last_ns:
            return True
        return told.named > self._epoch(told.first_ns)

    def _epoch(self, ns: int) -> int:
        """The latest epoch in which somebody had been served by then."""
        return max((epoch for epoch, reign in self.reigns.items() if reign.first_ns <= ns), default=-1)

    def _judged(self, run: list[_RefusedFetches]) -> Iterator[tuple[int, int]]:
        if not run or not self.served or self.served[0][0] > run[0].first_ns:
            return  # the quorum may just be starting
        if not self._is_all(run) and not all(each.is_unnamed for each in run):
            # A single node may be cut off from the leader to which it is sent. If no leader is named, the
            # controllers themselves know of none.
            unnamed = [each for each in run if each.is_unnamed]
            if unnamed:
                yield unnamed[-1].last_ns - unnamed[0].first_ns, -unnamed[0].first_ns
            return
        begin, end = run[0].first_ns, run[-1].last_ns
        at = bisect_left(self.served, begin, key=_end)
        if at and begin - self.served[at - 1][1] <= PATIENCE_NS:
            begin = self.served[at - 1][1]
        if at < len(self.served) and self.served[at][0] - end <= PATIENCE_NS:
            end = self.served[at][0]
        yield end - begin, -begin

    def _is_all(self, run: list[_RefusedFetches]) -> bool:
        """Whether several nodes are refused. Or the only one is one of several that the same leader served
        before, so that the capture does not show that node's connections alone."""
        askers = frozenset[int]().union(*(each.askers for each in run))
        reign = self.reigns.get(self._epoch(run[0].first_ns))
        return len(askers) > 1 or (reign is not None and len(reign.nodes) > 1 and askers <= reign.nodes)


def _end(span: Span) -> int:
    return span[1]
