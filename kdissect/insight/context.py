"""The contents and the gaps of a capture, which rules must know before they accuse anybody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kdissect.analysis.fold import SECOND, Row

STEP_NS = 2 * SECOND
"""The step of time in which silences are measured. A silence may begin and end up to one step outside of its
reported times."""
PAUSE_NS = 120 * SECOND
ASKED_NS = SECOND // 20
"""If a broker stands still, its clients go on asking for longer than this. Hardly any heartbeat is among the
requests before."""
DUE_NS = SECOND
"""How much later than expected a heartbeat may come."""
SLEPT = "the capture paused or its clock was set, so nobody knows how long that was"
"""The reason that a rule gives for not judging a time for which :meth:`JudgingContext.slept` is true."""


class Some(NamedTuple):
    """A number of connections of one kind."""

    number: int = 0
    first: tuple[int, ...] = ()
    """The numbers of the first few."""


class Spoken(NamedTuple):
    """Connections that speak one protocol, by the port of the end that seems to be the broker."""

    protocol: str
    """``kafka``, ``tls``, ``http``, ``unknown``; ``silent`` where no byte went over it."""
    port: str
    number: int
    """How many connections there are."""


class ClusterEnds(NamedTuple):
    """When the last traffic of each of several clusters was captured."""

    of: Mapping[str, int]
    """By the id of the cluster, and by the address of each of its brokers."""
    latest_ns: int | None
    """The latest time of all, also while one cluster is judged."""


class JudgingContext(NamedTuple):
    """The whole of what was captured."""

    first_ns: int | None = None
    last_ns: int | None = None
    packets: int = 0
    """Packets of TCP connections that have ended."""
    exchanges: int = 0
    not_selected: int = 0
    """Exchanges that are not judged, because a filter or a span of time leaves them out."""
    one_sided: int = 0
    """Exchanges with one side that was not captured, though it should have been."""
    connections: int = 0
    """All connections, of any protocol."""
    kafka: int = 0
    """Connections that speak Kafka."""
    dark: int = 0
    """TLS connections that are not decrypted."""
    mid_stream: int = 0
    """Kafka connections that began before the capture."""
    gap_bytes: int = 0
    captured_bytes: int = 0
    """Bytes captured in both directions of all connections."""
    cut_packets: int = 0
    """Packets that lost bytes of Kafka to the snap length."""
    with_gaps: Some = Some()
    """Connections with missing bytes."""
    complete_since: Mapping[int, int] = {}
    """For connections with missing bytes, by number, a time after which none is missing. Connections for
    which it is not known are not there."""
    with_one_side: Some = Some()
    """Kafka connections with one captured direction."""
    in_the_dark: Some = Some()
    in_mid_stream: Some = Some()
    cut: Some = Some()
    """Connections with packets that the snap length cut."""
    why_dark: str = ""
    """Why most of the undecrypted TLS connections are not decrypted."""
    spoken: tuple[Spoken, ...] = ()
    """The protocols that were seen, the most frequent first."""

    incomplete: frozenset[str] = frozenset()
    """The tables that had no room for all rows."""
    packets_read: int | None = None
    """All packets that were read, of any protocol; None if the number is unknown."""
    unread: str = ""
    """The first damage in the files; empty if all files could be read."""

    silences: tuple[tuple[int, int], ...] = ()
    """Times, from and to, of four seconds or more without any request, answer, or opened or closed
    connection."""

    halts: tuple[tuple[int, int], ...] = ()
    """Times in which the capture or its clock stood still. By the clocks of the hosts that sent the packets
    before and after, hardly any time passed. Or they are silences after which waiting requests were answered
    at once, and in which not even a heartbeat was sent that was due."""

    set_back: tuple[tuple[int, int], ...] = ()
    """Times, from and to, at which the capture's clock was set back: packets with earlier times came
    later."""

    ends_earlier: bool = False
    """Whether the capture ends at an earlier time than its latest, because its clock was set back. Then
    something that lasts to the latest time need not last to the end."""

    ends: ClusterEnds | None = None
    """If several clusters were captured, when the last traffic of each was captured."""

    def end_ns(self, *places: str | None) -> int | None:
        """The time after which nothing shows what happened in a cluster. If its traffic ends before that of
        another cluster, it is not the end of the capture.

        :param places: the id of the cluster, or addresses of its brokers. If several clusters were captured
            and none of these is known, the first of their ends counts.
        """
        of = {} if self.ends is None else self.ends.of
        if not of:
            return self.last_ns
        known = [of[place] for place in places if place is not None and place in of]
        return max(known) if known else min(of.values())

    def beyond_ns(self, cluster: str | None) -> int:
        """How long the capture of other clusters went on after that of a cluster."""
        end_ns, latest_ns = self.end_ns(cluster), None if self.ends is None else self.ends.latest_ns
        return 0 if latest_ns is None or end_ns is None else max(0, latest_ns - end_ns)

    @property
    def pauses(self) -> tuple[tuple[int, int], ...]:
        """The halts, and silences of two minutes or more. Clients that wait for an answer give up and ask
        again sooner. So the machine slept, its clock was set, or several captures were joined."""
        long = (each for each in self.silences if each[1] - each[0] >= PAUSE_NS)
        return tuple(sorted({*long, *self.halts}))

    def with_halts(self, stalls: Iterable[Row], stays: Iterable[Row]) -> JudgingContext:
        """This context, with the halts that silences show.

        :param stalls: rows of :class:`~kdissect.analysis.stalls.Stalls`.
        :param stays: rows of :class:`~kdissect.analysis.groups.Stays`. If no heartbeat was due, nobody knows
            whether the capture stood still, or a broker did whose clients had nothing more to ask.
        """
        rows = [row for row in stalls if row["asked_last_ns"] < row["from_ns"] + ASKED_NS]
        members = [row for row in stays if row["heartbeat_p50_ns"] is not None]
        found = [
            (begin, end)
            for begin, end in self.silences
            if any(
                2 * (min(end, row["to_ns"]) - max(begin, row["from_ns"])) >= row["stalled_ns"] for row in rows
            )
            and any(
                row["first_ns"] < begin
                and end < row["last_ns"]
                and row["heartbeat_p50_ns"] + DUE_NS <= end - begin
                for row in members
            )
        ]
        known = self.halts
        found = [each for each in found if not any(begin < each[1] and each[0] < end for begin, end in known)]
        return self._replace(halts=tuple(sorted((*known, *found))))

    def may_lack(self, from_ns: int, to_ns: int) -> bool:
        """Whether the capture has a hole in this time: bytes are missing, and nothing was captured."""
        return self.gap_bytes > 0 and any(begin < to_ns and from_ns < end for begin, end in self.silences)

    def was_set_back(self, from_ns: int, to_ns: int) -> bool:
        """Whether the clock was set back in this time. Then a duration may be too long or too short, and the
        order of events may be wrong."""
        return any(begin < to_ns and from_ns < end for begin, end in self.set_back)

    def awake_ns(self, from_ns: int, to_ns: int) -> int:
        """How much of this time lies outside the pauses: the least time that really passed. 0 where the clock
        was set back."""
        if self.was_set_back(from_ns, to_ns):
            return 0
        slept = (min(to_ns, end + STEP_NS) - max(from_ns, begin - STEP_NS) for begin, end in self.pauses)
        return to_ns - from_ns - sum(each for each in slept if each > 0)

    def halted_ns(self, from_ns: int, to_ns: int) -> int:
        """How much of this time lies in the halts at least."""
        halted = (min(to_ns, end) - max(from_ns, begin) for begin, end in self.halts)
        return sum(each for each in halted if each > 0)

    def slept(self, from_ns: int, to_ns: int) -> bool:
        """Whether a pause lies in this time, or the clock was set back, so that nobody knows how long it
        was."""
        paused = any(from_ns <= begin and end <= to_ns for begin, end in self.pauses)
        return paused or self.was_set_back(from_ns, to_ns)

    def seen_ns(self, from_ns: int, to_ns: int) -> int:
        """How much of this time lies outside the silences, so that somebody was seen to do something. 0 if
        the clock was set back."""
        if self.was_set_back(from_ns, to_ns):
            return 0
        silent = (min(to_ns, end) - max(from_ns, begin) for begin, end in self.silences)
        return to_ns - from_ns - sum(each for each in silent if each > 0)

    @property
    def most_lacks(self) -> str | None:
        """Why most of the traffic cannot be judged, even where no rule notices; None if it can."""
        if 2 * self.one_sided > self.exchanges:
            return "only one direction was captured"
        if self.cut_packets and self.gap_bytes > self.captured_bytes:
            return "the capture tool kept less than half of the bytes (its snap length)"
        return None

    @property
    def is_unread(self) -> bool:
        """Whether nothing at all could be read, not even a packet of another protocol."""
        return bool(self.unread) and self.packets_read == 0 and not self.connections and not self.exchanges

    @property
    def span_ns(self) -> int:
        """The time from the first to the last captured event."""
        if self.first_ns is None or self.last_ns is None:
            return 0
        return self.last_ns - self.first_ns

    @property
    def span_s(self) -> float:
        return self.span_ns / SECOND
