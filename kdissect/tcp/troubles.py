"""Troubles of one direction of a connection: bytes sent again because they were lost, and windows of 0.

A retransmitted segment was lost, unless its receiver shows that it had it. An acknowledgement before the
retransmission shows that, or a D-SACK after it (RFC 2883). A D-SACK also follows the probes of a tail that is
merely acknowledged late (RFC 8985). A segment that fills a hole was lost before the capture point, unless
packets were only reordered.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

REORDERED_NS = 3_000_000
"""A segment that fills a hole sooner came out of order (Wireshark's bound)."""
TIMEOUT_NS = 200_000_000
"""The shortest delay of a retransmission that counts as late. Linux waits at least this time if nothing else
shows a loss."""
RECENT = 16
"""The number of retransmissions kept until the receiver may show that they were unnecessary."""
EXAMPLES = 8


class Resent(NamedTuple):
    """A segment that was retransmitted."""

    start: int
    end: int
    """The end, an offset in the stream like the start."""
    packet: int
    ns: int
    gap_ns: int
    """The time since it was due: since the bytes were sent last, or since the bytes behind the hole."""


class Troubles:
    """The troubles of one direction: of an end's bytes, and of the window that this end offers."""

    __slots__ = (
        *("_recent", "_since_ns", "_times", "late_packets", "late_times_ns", "lost", "lost_late"),
        *("outage_from_ns", "outage_ns", "zero_longest_ns", "zero_ns", "zeros"),
    )

    def __init__(self) -> None:
        self._recent: list[Resent] = []
        self._since_ns = -1
        """The time since which retransmitted bytes are not acknowledged; -1 without any."""
        self._times = 0
        """The number of retransmissions since then."""
        self.lost = 0
        """The segments that were retransmitted because they were lost."""
        self.lost_late = 0
        """The lost segments that came :data:`TIMEOUT_NS` or more after they were due."""
        self.late_packets: list[int] = []
        """The packets of the first late segments."""
        self.late_times_ns: list[int] = []
        """The times of the first late segments."""
        self.outage_ns = 0
        """The longest time with at least two retransmissions and no acknowledgement."""
        self.outage_from_ns: int | None = None
        self.zeros = 0
        """How often the window closed."""
        self.zero_ns = 0
        """How long it was closed in total."""
        self.zero_longest_ns = 0

    def late(self) -> Iterable[tuple[int, int]]:
        """The time and packet of each of the first late segments."""
        return zip(self.late_times_ns, self.late_packets, strict=True)

    def resent(self, resent: Resent) -> None:
        """Take in a retransmitted segment that was not acknowledged before."""
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
        """Take in a report of the receiver that it had these bytes before."""
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

    def take_ack(self, ns: int) -> None:
        """Take in an acknowledgement of new bytes."""
        if self._since_ns >= 0:
            self.count_outage(ns)
            self._since_ns, self._times = -1, 0

    def count_outage(self, ns: int) -> None:
        """Count a current outage as if it ended now."""
        if self._since_ns >= 0 and self._times > 1 and ns - self._since_ns > self.outage_ns:
            self.outage_ns, self.outage_from_ns = ns - self._since_ns, self._since_ns

    def add_zero_window(self, took_ns: int) -> None:
        """Count a window of 0 that opened after this time."""
        self.zero_ns += took_ns
        self.zero_longest_ns = max(self.zero_longest_ns, took_ns)
