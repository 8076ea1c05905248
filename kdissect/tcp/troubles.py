"""What went wrong with one direction of a connection: bytes sent again because they were lost, windows of 0.

A segment that is sent again was lost, unless its receiver shows that it had it. An acknowledgement before it
shows that, or a D-SACK after it (RFC 2883). A D-SACK also follows the probes of a tail that is merely
acknowledged late (RFC 8985). A segment that fills a hole was lost before the capture point, unless the
packets just changed places.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

REORDERED_NS = 3_000_000
"""What fills a hole sooner came out of order (Wireshark's bound)."""
TIMEOUT_NS = 200_000_000
"""Of a gap that a retransmission closes: Linux waits at least so long where nothing else tells of a loss."""
RECENT = 16
"""So many are kept until their receiver may show that they were none."""
EXAMPLES = 8


class Resent(NamedTuple):
    """A segment that was sent again."""

    start: int
    end: int
    """Offsets in the stream."""
    packet: int
    ns: int
    gap_ns: int
    """Since when it was due, as far as it shows: the bytes sent last, or those behind the hole."""


class Troubles:
    """Those of one direction: of the bytes that an end sends, and of the window that it offers."""

    __slots__ = (
        *("_recent", "_since_ns", "_times", "late_packets", "late_times_ns", "lost", "lost_late"),
        *("outage_from_ns", "outage_ns", "zero_longest_ns", "zero_ns", "zeros"),
    )

    def __init__(self) -> None:
        self._recent: list[Resent] = []
        self._since_ns = -1
        """Since when what was sent again is not acknowledged; -1 if nothing is."""
        self._times = 0
        """How often it was sent again since."""
        self.lost = 0
        """Segments that were sent again because they were lost."""
        self.lost_late = 0
        """Of them, those that came :data:`TIMEOUT_NS` or more after they were due."""
        self.late_packets: list[int] = []
        """The packets of the first of those."""
        self.late_times_ns: list[int] = []
        """When they came."""
        self.outage_ns = 0
        """The longest time in which bytes were sent again at least twice and nothing was acknowledged."""
        self.outage_from_ns: int | None = None
        self.zeros = 0
        """How often the window closed."""
        self.zero_ns = 0
        """How long it was closed in all."""
        self.zero_longest_ns = 0

    def late(self) -> Iterable[tuple[int, int]]:
        """When the first of those came that came late, and in which packets."""
        return zip(self.late_times_ns, self.late_packets, strict=True)

    def resent(self, resent: Resent) -> None:
        """A segment was sent again, and was not acknowledged before."""
        self.lost += 1
        if resent.gap_ns >= TIMEOUT_NS:
            self.lost_late += 1
            if len(self.late_packets) < EXAMPLES:
                self.late_packets.append(resent.packet)
                self.late_times_ns.append(resent.ns)
        self._recent.append(resent)
        if len(self._recent) > RECENT:
            del self._recent[0]
        if self._since_ns < 0:
            self._since_ns = max(0, resent.ns - resent.gap_ns)
        self._times += 1

    def duplicate(self, start: int, end: int) -> None:
        """The receiver says that it had these bytes before."""
        for each in self._recent:
            if each.start < end and start < each.end:
                self._recent.remove(each)
                self.lost -= 1
                if each.gap_ns >= TIMEOUT_NS:
                    self.lost_late -= 1
                    if each.packet in self.late_packets:
                        at = self.late_packets.index(each.packet)
                        del self.late_packets[at], self.late_times_ns[at]
                return

    def acknowledged(self, ns: int) -> None:
        """New bytes were acknowledged."""
        if self._since_ns >= 0:
            self.settle(ns)
            self._since_ns, self._times = -1, 0

    def settle(self, ns: int) -> None:
        """Count what goes on as if it were over now."""
        if self._since_ns >= 0 and self._times > 1 and ns - self._since_ns > self.outage_ns:
            self.outage_ns, self.outage_from_ns = ns - self._since_ns, self._since_ns

    def closed(self, took_ns: int) -> None:
        """A window of 0 was open again after this time."""
        self.zero_ns += took_ns
        self.zero_longest_ns = max(self.zero_longest_ns, took_ns)
