"""Events → the :class:`~kdissect.insight.context.JudgingContext` of a capture."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Self

from kdissect.analysis.fold import Fold, least, most
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.faults import is_cut, is_unread
from kdissect.insight.context import STEP_NS, JudgingContext, Some, Spoken
from kdissect.insight.finding import MOST_EVIDENCE
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Fault
from kdissect.session.conversation import Connection

_OF_ONE = " for client random"
"""The start of a text that differs for each connection."""
_NOT_CAPTURED = "not captured"
_SILENT_STEPS = 2
"""The number of steps without events that makes a silence."""
_MOST_STEPS = 100_000
"""The most steps of time that are kept: two days."""
_MOST_HALTS = 1_000
"""The most halts of connections that are kept."""
_WHYS = 100
"""The most reasons for missing decryption that are counted separately."""


class _ConnectionCount:
    """Counts connections, each once, and keeps the lowest numbers."""

    def __init__(self) -> None:
        self._count = 0
        self._first: list[int] = []

    def add(self, number: int) -> None:
        self._count += 1
        self._keep([number])

    def merge(self, later: _ConnectionCount) -> None:
        self._count += later._count
        self._keep(later._first)

    def some(self) -> Some:
        return Some(self._count, tuple(self._first))

    def _keep(self, numbers: list[int]) -> None:
        self._first = sorted({*self._first, *numbers})[:MOST_EVIDENCE]


class _LowestConnections:
    """The lowest numbers of connections, at most ``most``, each with the highest value that it got. They are
    the same however a capture is cut into parts."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[int, int] = {}
        """At most twice as many, so that sorting them is rare."""

    def add(self, number: int, value: int = 0) -> None:
        self._values[number] = max(value, self._values.get(number, value))
        if len(self._values) > 2 * self._most:
            self._values = self.values()

    def merge(self, later: _LowestConnections) -> None:
        for number, value in later._values.items():
            self.add(number, value)

    def values(self) -> dict[int, int]:
        """The values by number, in the order of the numbers."""
        return dict(sorted(self._values.items())[: self._most])


def _is_one_sided(connection: Connection) -> bool:
    """Whether one direction is not in the capture at all. If a broker closed without an answer, nothing of it
    is missing: only bytes that the other end acknowledged are known to be missing."""
    to, back = connection.bytes_to_broker, connection.bytes_from_broker
    return bool(back and not to) or _is_unanswered(connection)


def _is_unanswered(connection: Connection) -> bool:
    """Whether bytes are missing and nothing came back. If packets are cut, these may be the missing bytes."""
    return bool(connection.bytes_to_broker and not connection.bytes_from_broker and connection.gap_bytes)


class Coverage(Fold):
    """Counts what was captured, and what was not."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._first_ns: int | None = None
        self._last_ns: int | None = None
        self._packets = self._exchanges = self._not_selected = self._one_sided = 0
        self._connections = self._kafka = self._gap_bytes = self._captured_bytes = 0
        self._cut_packets = 0
        self._cut = _LowestConnections(limits.rows)
        """Connections with packets that the snap length cut."""
        self._unanswered = _LowestConnections(limits.rows)
        """Connections with one side, unless packets of them are cut."""
        self._gaps, self._one_side, self._dark, self._mid_stream = (
            _ConnectionCount(),
            _ConnectionCount(),
            _ConnectionCount(),
            _ConnectionCount(),
        )
        self._whys: Counter[str] = Counter()
        self._spoken: Counter[tuple[str, str]] = Counter()
        self._unread = ""
        """The first damage of the files."""
        self._most_steps = min(_MOST_STEPS, limits.timeline_events)
        self._steps: set[int] = set()
        """Steps of time in which anything was captured."""
        self._numbers: dict[int, tuple[int, int]] = {}
        """For each step of time, the numbers of the first and the last packet that completed an exchange in
        it."""
        self._gap_packets = _LowestConnections(limits.rows)
        """By connection, the last packet that showed that bytes before it are missing."""
        self._complete_since: dict[int, int] = {}
        """The same as times, for earlier captures."""
        self._halts: list[tuple[int, int, int]] = []
        """Times of connections that did not pass by the clocks of both ends: from, to, and how much time
        passed by those clocks."""
        self._earlier: tuple[tuple[int, int], ...] = ()
        """The times at which the clocks of earlier captures were set back."""
        self._is_late = False
        """Whether a file came late, so that the order of the packets is not the order of time."""

    def feed(self, event: Event) -> None:
        if isinstance(event, Exchange):
            self._exchange(event)  # it does not use ``latest``
        elif isinstance(event, Fault):
            self._fault(event)
        else:
            super().feed(event)

    def feed_all(self, events: Sequence[Event]) -> None:
        """Take in the next events, as :meth:`feed` does one by one."""
        for other in [each for each in events if not isinstance(each, Exchange)]:
            if not isinstance(other, Connection):
                self.feed(other)
            elif not other.is_copy:
                self._connection(other)
        self._take([each for each in events if isinstance(each, Exchange)])

    def _take(self, exchanges: list[Exchange]) -> None:
        """Take in exchanges, most of which belong to the same step of time."""
        if not exchanges or len(self._steps) + 2 * len(exchanges) > self._most_steps:
            for each in exchanges:
                self._exchange(each)
            return
        begun, told = [each.begun_ns for each in exchanges], [each.ended_ns for each in exchanges]
        self._exchanges += len(exchanges)
        self._one_sided += sum([each.missing == _NOT_CAPTURED for each in exchanges])
        self._first_ns = least(self._first_ns, min(begun))
        self._last_ns = most(self._last_ns, max(told))
        steps = [ns // STEP_NS for ns in told]
        self._steps.update([ns // STEP_NS for ns in begun], steps)
        packets: dict[int, list[int]] = {}
        for step, each in zip(steps, exchanges, strict=True):
            packet = each.response_packet
            if packet is None:
                packet = each.request_packet
            if packet is not None:
                packets.setdefault(step, []).append(packet)
        for step, some in packets.items():
            self._number(step, min(some), max(some))

    def see(self, event: Event) -> None:
        # A filter does not change what was captured.
        before = self._exchanges
        self.feed(event)
        self._not_selected += self._exchanges - before

    def _exchange(self, exchange: Exchange) -> None:
        self._exchanges += 1
        self._one_sided += exchange.missing == _NOT_CAPTURED
        told_ns = exchange.ended_ns
        self._span(exchange.begun_ns, told_ns)
        packet = exchange.response_packet
        if packet is None:
            packet = exchange.request_packet
        if packet is not None:
            self._number(told_ns // STEP_NS, packet, packet)

    def _connection(self, connection: Connection) -> None:
        number = connection.connection
        to, back = connection.bytes_to_broker, connection.bytes_from_broker
        self._connections += 1
        self._packets += connection.packets
        self._captured_bytes += to + back
        self._gap_bytes += connection.gap_bytes
        self._span(connection.start_ns, connection.end_ns)
        tcp = connection.tcp
        if tcp is not None and tcp.get("clock_halts"):
            halts = iter(tcp["clock_halts"])
            self._keep_halts(list(zip(halts, halts, halts, strict=True)))
        protocol = connection.protocol if to + back else "silent"
        spoken = protocol, connection.broker.rpartition(":")[2]
        self._spoken[spoken] += 1  # at most one for each port and protocol
        if connection.protocol == "kafka":
            self._kafka += 1
            if connection.exchanges and _is_one_sided(connection):
                if not _is_unanswered(connection):
                    self._one_side.add(number)
                else:
                    self._unanswered.add(number)
                return
            if not connection.opened and connection.exchanges:
                self._mid_stream.add(number)
            if connection.gap_bytes:
                self._gaps.add(number)
        elif connection.protocol == "tls":
            self._dark.add(number)
            why = ((connection.tls or {}).get("dark") or "").partition(_OF_ONE)[0]
            if why in self._whys or len(self._whys) < _WHYS:
                self._whys[why] += 1

    def _fault(self, fault: Fault) -> None:
        self._is_late = self._is_late or fault.kind == "late-file"
        if fault.kind == "gap" and fault.connection is not None and fault.packet is not None:
            self._gap_packets.add(fault.connection, fault.packet)
        if is_cut(fault):
            self._cut_packets += 1
            if fault.connection is not None:
                self._cut.add(fault.connection)
        elif not self._unread and is_unread(fault):
            self._unread = fault.message

    def _span(self, first_ns: int, last_ns: int) -> None:
        if self._first_ns is None or first_ns < self._first_ns:
            self._first_ns = first_ns
        if self._last_ns is None or last_ns > self._last_ns:
            self._last_ns = last_ns
        if len(self._steps) < self._most_steps:
            self._steps.add(first_ns // STEP_NS)
            self._steps.add(last_ns // STEP_NS)

    def _keep_halts(self, found: list[tuple[int, int, int]]) -> None:
        if found:
            self._halts = sorted([*self._halts, *found])[:_MOST_HALTS]

    def _number(self, step: int, first: int, last: int) -> None:
        known = self._numbers.get(step)
        if known is None:
            if len(self._numbers) < self._most_steps:
                self._numbers[step] = (first, last)
        elif first < known[0] or last > known[1]:
            self._numbers[step] = (min(first, known[0]), max(last, known[1]))

    def end_capture(self) -> None:
        """End a capture: the next events are of another one, whose packets are counted from 1 again."""
        self._complete_since = self._gaps_end()
        self._gap_packets = _LowestConnections(self.limits.rows)
        self._earlier = self._set_back()
        self._numbers = {}

    def merge(self, later: Self) -> None:
        self._first_ns = least(self._first_ns, later._first_ns)
        self._last_ns = most(self._last_ns, later._last_ns)
        self._packets += later._packets
        self._exchanges += later._exchanges
        self._not_selected += later._not_selected
        self._one_sided += later._one_sided
        self._connections += later._connections
        self._kafka += later._kafka
        self._gap_bytes += later._gap_bytes
        self._captured_bytes += later._captured_bytes
        self._cut_packets += later._cut_packets
        self._cut.merge(later._cut)
        self._gaps.merge(later._gaps)
        self._one_side.merge(later._one_side)
        self._unanswered.merge(later._unanswered)
        self._dark.merge(later._dark)
        self._mid_stream.merge(later._mid_stream)
        self._steps |= later._steps
        self._gap_packets.merge(later._gap_packets)
        for connection, ns in later._complete_since.items():
            self._complete_since[connection] = max(ns, self._complete_since.get(connection, ns))
        self._keep_halts(later._halts)
        self._earlier += later._earlier
        self._is_late = self._is_late or later._is_late
        for step, (first, last) in later._numbers.items():
            self._number(step, first, last)
        self._whys.update(later._whys)
        self._spoken.update(later._spoken)
        self._unread = self._unread or later._unread

    @property
    def left_out(self) -> int:
        return 0

    def _silences(self) -> tuple[tuple[int, int], ...]:
        if len(self._steps) >= self._most_steps:
            return ()  # steps after that were not kept
        return tuple(
            ((before + 1) * STEP_NS, after * STEP_NS)
            for before, after in pairwise(sorted(self._steps))
            if after - before > _SILENT_STEPS
        )

    def _clock_halts(self) -> tuple[tuple[int, int], ...]:
        """Times that did not pass by the clocks of both ends of connections, and in which nothing happened.
        Each connection shows the time from its last packet before the halt to its first packet after it. So
        the halt is the part that all of these connections share."""
        found: list[tuple[int, int]] = []
        for from_ns, to_ns, passed_ns in self._halts:
            if found and from_ns < found[-1][1]:
                from_ns, to_ns = max(found[-1][0], from_ns), min(found[-1][1], to_ns)
                del found[-1]
            if to_ns - from_ns > 2 * passed_ns and not self._happened(from_ns, to_ns):
                found.append((from_ns, to_ns))
        return tuple(found)

    def _happened(self, from_ns: int, to_ns: int) -> bool:
        """Whether anything happened in this time, by the steps of time."""
        return any(step in self._steps for step in range(-(-from_ns // STEP_NS), to_ns // STEP_NS))

    def _set_back(self) -> tuple[tuple[int, int], ...]:
        """Times at which later packets have earlier times. Queues of a network card also swap packets, but
        never by two seconds."""
        if self._is_late:
            return ()
        steps = sorted(self._numbers)
        found = []
        for at, (before, after) in enumerate(pairwise(steps)):
            if after - before == 1:  # neighbouring steps have no distance
                after = steps[at + 2] if at + 2 < len(steps) else before
            if after > before and self._numbers[before][1] > self._numbers[after][0]:
                found.append(((before + 1) * STEP_NS, after * STEP_NS))
        return (*self._earlier, *found)

    def _gaps_end(self) -> dict[int, int]:
        """When each connection with missing bytes is complete again: not before the packet that showed the
        last gap, and at most a step of time later. Packets tell no time if they are not in its order."""
        if self._is_late or self._last_ns is None or self._set_back():
            return {}
        steps = sorted(self._numbers)
        lasts = list(accumulate((self._numbers[step][1] for step in steps), max))
        found = dict(self._complete_since)
        for connection, packet in self._gap_packets.values().items():
            at = bisect_left(lasts, packet)
            ns = (steps[at] + 1) * STEP_NS if at < len(steps) else self._last_ns
            found[connection] = max(ns, found.get(connection, ns))
        return found

    def _ends_earlier(self) -> bool:
        """Whether the last packets do not have the latest times."""
        if self._is_late or not self._numbers:
            return False
        return self._numbers[max(self._numbers)][1] < max(last for _, last in self._numbers.values())

    def context(self) -> JudgingContext:
        """What was captured so far."""
        cut, set_back = list(self._cut.values()), self._set_back()
        one_side = _ConnectionCount()
        one_side.merge(self._one_side)
        known_cut = frozenset(cut)
        for number in self._unanswered.values():
            if number not in known_cut:
                one_side.add(number)
        return JudgingContext(
            first_ns=self._first_ns,
            last_ns=self._last_ns,
            packets=self._packets,
            exchanges=self._exchanges,
            not_selected=self._not_selected,
            one_sided=self._one_sided,
            connections=self._connections,
            kafka=self._kafka,
            dark=self._dark.some().number,
            mid_stream=self._mid_stream.some().number,
            gap_bytes=self._gap_bytes,
            captured_bytes=self._captured_bytes,
            cut_packets=self._cut_packets,
            with_gaps=self._gaps.some(),
            complete_since=self._gaps_end(),
            with_one_side=one_side.some(),
            in_the_dark=self._dark.some(),
            in_mid_stream=self._mid_stream.some(),
            cut=Some(len(cut), tuple(cut[:MOST_EVIDENCE])),
            unread=self._unread,
            silences=self._silences(),
            halts=self._clock_halts(),
            set_back=set_back,
            ends_earlier=bool(set_back) and self._ends_earlier(),
            why_dark=min(self._whys, key=lambda why: (-self._whys[why], why), default=""),
            spoken=tuple(
                Spoken(*what, count)
                for what, count in sorted(self._spoken.items(), key=lambda each: (-each[1], each[0]))
            ),
        )
