"""What a capture covers: what rules must know before they accuse anybody."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kdissect.analysis.fold import SECOND, Row

STEP_NS = 2 * SECOND
"""Steps of time by which silences are known: one begins and ends up to a step outside of what is told."""
PAUSE_NS = 120 * SECOND
ASKED_NS = SECOND // 20
"""If a broker stands still, clients go on asking for longer than this, and hardly any heartbeat is among what
they asked until then."""
DUE_NS = SECOND
"""A heartbeat may come so much later than those before."""
SLEPT = "the capture paused or its clock was set, so nobody knows how long that was"
"""Why a rule does not judge what :meth:`JudgingContext.slept`."""


class Some(NamedTuple):
    """Connections of some kind."""

    number: int = 0
    first: tuple[int, ...] = ()
    """The numbers of the first few."""


class Spoken(NamedTuple):
    """Connections that speak something, by the port of the end that is taken for the broker."""

    protocol: str
    """``kafka``, ``tls``, ``http``, ``unknown``; ``silent`` where no byte went over it."""
    port: str
    number: int
    """How many."""


class JudgingContext(NamedTuple):
    """The whole of what was captured."""

    first_ns: int | None = None
    last_ns: int | None = None
    packets: int = 0
    """Of TCP connections that are over."""
    exchanges: int = 0
    not_selected: int = 0
    """Exchanges that are not judged: a filter or a span of time leaves them out."""
    one_sided: int = 0
    """Exchanges of which one side was not captured, though it should have been."""
    connections: int = 0
    """All of them, whatever they speak."""
    kafka: int = 0
    """Those that speak Kafka."""
    dark: int = 0
    """Those of TLS that are not decrypted."""
    mid_stream: int = 0
    """Those of Kafka that began before the capture."""
    gap_bytes: int = 0
    captured_bytes: int = 0
    """Of both directions of all connections."""
    cut_packets: int = 0
    """Packets of which the snap length cut bytes of Kafka off."""
    with_gaps: Some = Some()
    """Connections of which bytes are missing."""
    with_one_side: Some = Some()
    """Those of Kafka of which only one direction was captured."""
    in_the_dark: Some = Some()
    in_mid_stream: Some = Some()
    cut: Some = Some()
    """Those of which the snap length cut packets."""
    why_dark: str = ""
    """Why most of those of TLS are not decrypted."""
    spoken: tuple[Spoken, ...] = ()
    """What there was, the most frequent first."""

    packets_read: int | None = None
    """All that were read, whatever they carry; None where nobody tells."""
    unread: str = ""
    """What the first damage of the files is; empty where all of them could be read."""

    silences: tuple[tuple[int, int], ...] = ()
    """Times, from and to, of four seconds or more in which nobody at all asked, answered, connected or
    closed."""

    halts: tuple[tuple[int, int], ...] = ()
    """Times in which the capture or its clock stood still. They hardly passed by the clocks of those that
    sent the packets before and after. Or they are silences, requests waited, and were answered at once after
    it. Meanwhile nobody did anything, not even members of groups whose heartbeats were due."""

    set_back: tuple[tuple[int, int], ...] = ()
    """Times, from and to, at which the capture's clock was set back: what has an earlier time came later."""

    ends_earlier: bool = False
    """Whether the capture ends at an earlier time than its latest, since its clock was set back. What lasts
    to the latest time then need not last to the end."""

    @property
    def pauses(self) -> tuple[tuple[int, int], ...]:
        """The halts, and silences of two minutes or more. Clients that wait for an answer give up and ask
        again sooner. So the machine slept, its clock was set, or captures were put together."""
        long = (each for each in self.silences if each[1] - each[0] >= PAUSE_NS)
        return tuple(sorted({*long, *self.halts}))

    def with_halts(self, stalls: Iterable[Row], stays: Iterable[Row]) -> JudgingContext:
        """The same with the halts that silences show.

        :param stalls: rows of :class:`~kdissect.analysis.stalls.Stalls`.
        :param stays: rows of :class:`~kdissect.analysis.groups.Stays`. Without a member that was due to send,
            nobody knows whether the clients of a broker that stood still had nothing more to ask.
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
        """Whether the clock was set back in this time. What it seems to take may have taken no time at all,
        and what seems to come first may have come last."""
        return any(begin < to_ns and from_ns < end for begin, end in self.set_back)

    def awake_ns(self, from_ns: int, to_ns: int) -> int:
        """How much of this time lies outside the pauses: so long it was at least. 0 where the clock was set
        back."""
        if self.was_set_back(from_ns, to_ns):
            return 0
        slept = (min(to_ns, end + STEP_NS) - max(from_ns, begin - STEP_NS) for begin, end in self.pauses)
        return to_ns - from_ns - sum(each for each in slept if each > 0)

    def halted_ns(self, from_ns: int, to_ns: int) -> int:
        """How much of this time lies in the halts, at least."""
        halted = (min(to_ns, end) - max(from_ns, begin) for begin, end in self.halts)
        return sum(each for each in halted if each > 0)

    def slept(self, from_ns: int, to_ns: int) -> bool:
        """Whether a pause lies in this time, or the clock was set back, so that nobody knows how long it
        was."""
        paused = any(from_ns <= begin and end <= to_ns for begin, end in self.pauses)
        return paused or self.was_set_back(from_ns, to_ns)

    def seen_ns(self, from_ns: int, to_ns: int) -> int:
        """How much of this time lies outside the silences, that is, when somebody at least did something. 0
        where the clock was set back."""
        if self.was_set_back(from_ns, to_ns):
            return 0
        silent = (min(to_ns, end) - max(from_ns, begin) for begin, end in self.silences)
        return to_ns - from_ns - sum(each for each in silent if each > 0)

    @property
    def is_unread(self) -> bool:
        """Whether nothing at all could be read: not even a packet of another protocol."""
        return bool(self.unread) and self.packets_read == 0 and not self.connections and not self.exchanges

    @property
    def span_ns(self) -> int:
        """From the first to the last that was seen."""
        if self.first_ns is None or self.last_ns is None:
            return 0
        return self.last_ns - self.first_ns

    @property
    def span_s(self) -> float:
        return self.span_ns / SECOND
