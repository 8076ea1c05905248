"""Brokers that stood still: for a while they answered nobody, though several waited, and then all at once.

A long garbage collection, a stopped process or a frozen machine shows so: TCP goes on, for that is the
kernel's. A wait that the client asked for is none; nor is it a stall where only writes wait, for these wait
for other brokers.
"""

from __future__ import annotations

from typing import Any, Self

from kdissect.analysis.declared import BROKER_COLUMN, column, time_column
from kdissect.analysis.fold import MILLISECOND, SECOND, Row, Statistic
from kdissect.analysis.timelines import Timelines
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits

LONG_NS = SECOND
"""Nobody stands still for less."""
TOGETHER_NS = 300 * MILLISECOND
"""So far answers are apart that come at once."""
BUCKET_NS = 100 * MILLISECOND
"""How exactly it is known when a broker answered anybody."""
WAITS = ("Fetch", "ShareFetch")
ALONE = (
    *("Metadata", "ApiVersions", "Heartbeat", "FindCoordinator", "ListOffsets", "OffsetFetch", "Fetch"),
    *(
        "OffsetForLeaderEpoch",
        "ConsumerGroupHeartbeat",
        "ShareGroupHeartbeat",
        "ShareFetch",
        "DescribeConfigs",
    ),
)
"""What a broker answers by itself, without waiting for another."""
_OTHERS = ("Produce", "OffsetCommit", "TxnOffsetCommit", "InitProducerId", "AddPartitionsToTxn", "EndTxn")
"""What may wait for other brokers too."""
MOST = 8


class Stalls(Statistic):
    """The statistic ``stalls``: a row for each time that a broker stood still."""

    name = "stalls"
    about = "brokers that answered nobody for a while"
    columns = (
        BROKER_COLUMN,
        time_column("from_ns", "when the first of those that waited had asked, or the last answer had come"),
        time_column("to_ns", "when answers came again"),
        column("silence_ns", "int64", "how long it answered nobody"),
        column("connections", "int64", "connections that waited"),
        column("waiting", "int64", "requests that waited"),
        column("exchanges", "int64s", "the first of them"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._late: Timelines[str] = Timelines(limits)
        """By broker: when the answer came, number, when it was due, connection, whether only the broker can
        have kept it, and whether it counts."""
        self._answered: dict[str, set[int]] = {}
        """By broker, in which tenths of a second it answered anybody."""
        self._room = limits.timeline_events

    def _exchange(self, exchange: Exchange) -> None:
        self._take(exchange, True)

    def _other(self, exchange: Exchange) -> None:
        self._take(exchange, False)

    def _take(self, exchange: Exchange, counts: bool) -> None:
        if exchange.response is None:
            return
        answered_ns = exchange.response.frame.first_ns
        broker = exchange.broker
        known = self._answered.setdefault(broker, set())
        if self._room > 0:
            known.add(answered_ns // BUCKET_NS)
            self._room -= 1
        latency = exchange.served_ns
        if latency is None or latency < LONG_NS or exchange.request is None:
            return
        api = exchange.api or ""
        if api not in ALONE and api not in _OTHERS:
            return
        asked_ns = answered_ns - latency
        due_ns = asked_ns + (_asked_wait_ns(exchange.request.body()) if api in WAITS else 0)
        if answered_ns - due_ns >= LONG_NS:
            late = answered_ns, exchange.number, due_ns, exchange.connection, api in ALONE, counts
            self._late.add(broker, late)

    def merge(self, later: Self) -> None:
        self._late.merge(later._late)
        for broker, buckets in later._answered.items():
            self._answered.setdefault(broker, set()).update(buckets)
        self._room -= self.limits.timeline_events - later._room

    @property
    def left_out(self) -> int:
        return self._late.left_out

    def result(self) -> list[Row]:
        found = []
        for broker in sorted(self._late):
            together: list[Any] = []
            for late in [*self._late.line(broker), None]:
                if together and (late is None or late[0] - together[0][0] > TOGETHER_NS):
                    row = self._stall(broker, together)
                    if row is not None:
                        found.append(row)
                    together = []
                if late is not None:
                    together.append(late)
        return found

    def _stall(self, broker: str, late: list[Any]) -> Row | None:
        connections = {each[3] for each in late}
        if len(connections) < 2 or not any(each[4] for each in late) or not any(each[5] for each in late):
            return None
        to_ns = late[0][0]
        answered = self._answered[broker]
        bucket = to_ns // BUCKET_NS - 1
        # At least two waited all the time: from when the second of them was due.
        from_ns = sorted(min(each[2] for each in late if each[3] == one) for one in connections)[1]
        while bucket * BUCKET_NS >= from_ns:
            if bucket in answered:
                from_ns = (bucket + 1) * BUCKET_NS
                break
            bucket -= 1
        if to_ns - from_ns < LONG_NS - BUCKET_NS:
            return None
        return {
            "broker": broker,
            "from_ns": from_ns,
            "to_ns": to_ns,
            "silence_ns": to_ns - from_ns,
            "connections": len(connections),
            "waiting": len(late),
            "exchanges": [each[1] for each in late[:MOST]],
        }


def _asked_wait_ns(request: dict[str, Any]) -> int:
    """How long a Fetch asks to wait for records."""
    return max(0, int(request.get("maxWaitMs", 0))) * MILLISECOND
