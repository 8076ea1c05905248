"""IP fragments ─► whole datagrams (RFC 791 section 3.2, RFC 8200 section 4.5).

Rule 1  Fragments come in any order and any number of times; of bytes that come twice the first count.
Rule 2  A datagram waits ``fragment_ns`` of capture time from its first fragment on, and all together wait
        for no more than ``fragment_bytes`` in ``fragments`` pieces; the oldest is given up first.
Rule 3  A datagram that is given up is a Fault, once, if what it carries matters.
Rule 4  Where the snap length cut a fragment, the datagram is known up to there, and its length whole.
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
"""Charged for each datagram, so that those of empty fragments are bounded too. What it takes in memory,
with its key."""

_PIECE_COST = 160
"""Charged for each piece that is kept of a fragment, beside its bytes."""

_LONGEST = 65_535


class Fragment(NamedTuple):
    """One fragment's part of the datagram's payload."""

    key: FragmentKey
    offset: int
    data: bytes
    """As captured."""
    length: int
    """As it was on the wire."""
    more: bool
    """The flag: this is not the last."""
    matters: bool = True
    """Whether it shows that the loss of its datagram would be one."""


class _Datagram:
    """What is there of one datagram."""

    __slots__ = ("cost", "first_ns", "last_packet", "length", "matters", "packets", "pieces", "received")

    def __init__(self, first_ns: int) -> None:
        self.first_ns = first_ns
        self.last_packet = 0
        self.matters = False
        self.packets: list[int] = []
        """Those that brought something new."""
        self.pieces: list[tuple[int, int, bytes]] = []
        """(begin, end, bytes captured of it), in order, none overlapping another."""
        self.length: int | None = None
        """Of the whole payload; known with the last fragment."""
        self.received = 0
        self.cost = _DATAGRAM_COST

    def add(self, packets: Sequence[int], fragment: Fragment) -> None:
        """Take in what is new of a fragment, which these packets carried."""
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
        """The payload up to where a fragment was cut; None if some of it is missing."""
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
        """Datagrams that were given up and not yet reported: whoever reports them removes them."""
        self._limits = limits
        self._datagrams: OrderedDict[FragmentKey, _Datagram] = OrderedDict()
        """In the order of their first fragments. An OrderedDict finds its first at once; a dict passes over
        all that were removed before it."""
        self._cost = 0
        self._pieces = 0
        self.had_any = False
        """Whether there was a fragment. Without one, nothing here changes."""

    def add(
        self, packets: Sequence[int], time_ns: int, fragment: Fragment
    ) -> tuple[bytes, int, list[int]] | None:
        """The payload of the datagram that ``fragment`` completes. It has the bytes captured from its start
        on, its length on the wire, and the packets that carried it. None as long as some are missing.

        :param packets: what carried the fragment, the latest last (several in a tunnel that fragments).
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
        """Whether some wait for others, or something is to be reported."""
        return bool(self._datagrams or self.faults)

    def close(self) -> None:
        """Give up every datagram that waits."""
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
    """Whether it ends inside the longest payload IP can have."""
    return fragment.offset + fragment.length <= _LONGEST
