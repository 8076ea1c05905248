"""IP fragments ─► whole datagrams (RFC 791 section 3.2, RFC 8200 section 4.5).

Rule 1  Fragments come in any order and any number of times; the first copy of a byte counts.
Rule 2  A datagram waits ``fragment_ns`` of capture time from its first fragment on. All datagrams together
        hold at most ``fragment_bytes`` in ``fragments`` pieces; the oldest is given up first.
Rule 3  A datagram that is given up is reported as a Fault, once, if its content matters.
Rule 4  If the snap length cut a fragment, the datagram's bytes are known up to the cut, and its full length
        too.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict, deque
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from kdissect.faults import fault
from kdissect.limits import Limits
from kdissect.model import Fault
from kdissect.wording import plural

FragmentKey = tuple[bytes, bytes, int, int, int]
"""Source, destination, protocol, identification, and the network (:class:`~kdissect.model.Segment`)."""

_DATAGRAM_COST = 640
"""The cost of each datagram: its memory, with its key. So datagrams of empty fragments are bounded too."""

_PIECE_COST = 160
"""The cost of each kept piece of a fragment, beside its bytes."""

_LONGEST = 65_535


class Fragment(NamedTuple):
    """One fragment's part of the datagram's payload."""

    key: FragmentKey
    offset: int
    data: bytes
    """The captured bytes."""
    length: int
    """The length on the wire."""
    more: bool
    """The flag: it is not the last fragment."""
    matters: bool = True
    """Whether it shows that the loss of its datagram matters."""


class _Datagram:
    """The fragments of one datagram so far."""

    __slots__ = ("cost", "first_ns", "last_packet", "length", "matters", "packets", "pieces", "received")

    def __init__(self, first_ns: int) -> None:
        self.first_ns = first_ns
        self.last_packet = 0
        self.matters = False
        self.packets: list[int] = []
        """The packets that brought new bytes."""
        self.pieces: list[tuple[int, int, bytes]] = []
        """(begin, end, captured bytes) in order, without overlaps."""
        self.length: int | None = None
        """The length of the whole payload; known with the last fragment."""
        self.received = 0
        self.cost = _DATAGRAM_COST

    def add(self, packets: Sequence[int], fragment: Fragment) -> None:
        """Take in the new bytes of a fragment, which these packets carried."""
        _, offset, data, length, more, matters = fragment
        at, end = offset, offset + length
        new: list[tuple[int, int, bytes]] = []
        first = max(0, bisect_left(self.pieces, (offset,)) - 1)
        for begin, piece_end, _ in islice(self.pieces, first, None):
            if begin >= end:
                break
            if begin > at:
                new.append((at, begin, data[at - offset : begin - offset]))
            at = max(at, piece_end)
        if at < end:
            new.append((at, end, data[at - offset :]))
        for piece in new:
            insort(self.pieces, piece)
            self.received += piece[1] - piece[0]
            self.cost += len(piece[2]) + _PIECE_COST
        ends = not more and self.length is None
        if ends:
            self.length = offset + length
        if new or ends:
            self.packets.extend(packets)
        self.matters = self.matters or matters
        self.last_packet = packets[-1]

    def whole(self) -> bytes | None:
        """The payload up to the cut of a fragment; None if a part of it is missing."""
        if self.length is None or self.received < self.length:
            return None
        parts: list[bytes] = []
        reached = 0
        cut = False
        for begin, end, data in self.pieces:
            if begin != reached:
                return None
            if not cut:
                parts.append(data)
                cut = len(data) < end - begin
            reached = end
            if reached >= self.length:
                return b"".join(parts)[: self.length]
        return None


class Fragments:
    """Collects the fragments of all datagrams."""

    def __init__(self, limits: Limits) -> None:
        self.faults: deque[Fault] = deque()
        """The faults of datagrams that were given up, until a caller reports and removes them."""
        self._limits = limits
        self._datagrams: OrderedDict[FragmentKey, _Datagram] = OrderedDict()
        """The datagrams in the order of their first fragments. An OrderedDict finds its first entry at once;
        a dict passes over all entries removed before it."""
        self._cost = 0
        self._pieces = 0
        self.had_any = False
        """Whether there was a fragment. Without one, nothing here changes."""

    def add(
        self, packets: Sequence[int], time_ns: int, fragment: Fragment
    ) -> tuple[bytes, int, list[int]] | None:
        """The payload of the datagram that ``fragment`` completes: its bytes captured from its start on, its
        length on the wire, and its packets. None while fragments are missing.

        :param packets: the packets that carried the fragment, the latest last (several in a tunnel that
            fragments).
        """
        self.had_any = True
        self._expire(time_ns)
        key = fragment.key
        datagram = self._datagrams.get(key)
        if datagram is None:
            datagram = self._datagrams[key] = _Datagram(time_ns)
            self._cost += datagram.cost
        self._cost -= datagram.cost
        self._pieces -= len(datagram.pieces)
        datagram.add(packets, fragment)
        self._cost += datagram.cost
        self._pieces += len(datagram.pieces)
        whole = datagram.whole()
        if whole is not None and datagram.length is not None:
            self._remove(key)
            return whole, datagram.length, datagram.packets
        while self._cost > self._limits.fragment_bytes or self._pieces > self._limits.fragments:
            self._give_up(next(iter(self._datagrams)), "more fragments wait than the limit")
        return None

    @property
    def wait(self) -> bool:
        """Whether fragments wait for others, or a fault waits to be reported."""
        return bool(self._datagrams or self.faults)

    def close(self) -> None:
        """Give up every incomplete datagram."""
        for key in list(self._datagrams):
            self._give_up(key, "the capture ends")

    def _expire(self, now_ns: int) -> None:
        while self._datagrams:
            key = next(iter(self._datagrams))
            if now_ns - self._datagrams[key].first_ns <= self._limits.fragment_ns:
                return
            self._give_up(key, f"the others did not come within {self._limits.fragment_ns // 10**9} s")

    def _give_up(self, key: FragmentKey, reason: str) -> None:
        datagram = self._remove(key)
        if not datagram.matters:
            return
        received = plural(datagram.received, "byte")
        if datagram.length is not None:
            received = f"{datagram.received:,} of {plural(datagram.length, 'byte')}"
        self.faults.append(
            fault(
                "fragment-lost",
                f"{plural(len(datagram.pieces), 'fragment')} with {received} of the IP packet "
                f"with identification {key[3]}: {reason}",
                packet=datagram.last_packet,
            )
        )

    def _remove(self, key: FragmentKey) -> _Datagram:
        datagram = self._datagrams.pop(key)
        self._cost -= datagram.cost
        self._pieces -= len(datagram.pieces)
        return datagram


def fits(fragment: Fragment) -> bool:
    """Whether a fragment ends inside the longest payload that IP allows."""
    return fragment.offset + fragment.length <= _LONGEST
