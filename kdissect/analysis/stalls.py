"""Times in which a broker answered nobody though requests waited, and times in which an API was much slower.

Both are computed at the end. Until then a few numbers are kept for each long exchange, and the count of
exchanges in each second. Answers of a broker come in the order of time, so a time without answers lies
between two of them. Only answers after a gap come late, when the gap is known to stay.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from kdissect.analysis.declared import BROKER_COLUMN, EXCHANGE, column, time_column
from kdissect.analysis.fold import MILLISECOND, SECOND, Batched, OneTable, Row
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.pace import is_own_id
from kdissect.analysis.packed import packed
from kdissect.analysis.speakers import address
from kdissect.analysis.waits import asked_wait, is_long_poll, split, waits_for_members
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits

SILENCE_NS = SECOND
"""A broker stands still if it answers nobody for this long while requests wait."""
OVERDUE_NS = SECOND // 2
"""A long poll counts as waiting if it has outlived its allowed wait by this much."""
AT_ONCE_NS = SECOND // 4
"""The longest time after the silence within which the waiting requests are answered."""
MOST_LONG = 10_000
"""The most long exchanges that are kept for a broker, and the most silences."""
SLOW_NS = 100 * MILLISECOND
WINDOW_NS = SECOND
MOST_SLOW = 64
"""The most slow exchanges that are kept for an API in a second."""
JOINED = 3
"""Windows that are at most this many seconds apart are one time."""
MOST_WINDOWS = 100_000


ALONE = frozenset(
    (
        *("ApiVersions", "Metadata", "DescribeTopicPartitions", "Heartbeat", "FindCoordinator", "Fetch"),
        *(
            "ShareFetch",
            "ListOffsets",
            "OffsetForLeaderEpoch",
            "OffsetFetch",
            "SaslHandshake",
            "FetchSnapshot",
        ),
        *("GetTelemetrySubscriptions", "PushTelemetry", "DescribeConfigs", "DescribeGroups", "ListGroups"),
    )
)
"""APIs that a broker answers alone. It may answer other APIs late because of another broker: writes wait for
replicas, as do commits and joins of members, and changes wait for the controller."""


class _Long(NamedTuple):
    answered_ns: int
    asked_ns: int
    number: int
    connection: int
    client: str
    client_id: str
    api: str
    alone: bool
    """Whether the broker answers without another one."""


@packed
@dataclass(slots=True)
class _Broker:
    first_ns: int | None = None
    last_ns: int | None = None
    """The time of the last answer."""
    silences: list[tuple[int, int]] = field(default_factory=list)
    """In the order of time."""
    long: list[_Long] = field(default_factory=list)

    def note_answer(self, ns: int) -> None:
        """Note an answer to any client."""
        if self.first_ns is None or self.last_ns is None:
            self.first_ns = self.last_ns = ns
        elif ns < self.first_ns:
            self._add(ns, self.first_ns)
            self.first_ns = ns
        elif ns < self.last_ns:
            self._break(ns)
        else:
            self._add(self.last_ns, ns)
            self.last_ns = ns

    def _add(self, from_ns: int, to_ns: int) -> None:
        if to_ns - from_ns >= SILENCE_NS and len(self.silences) < MOST_LONG:
            insort(self.silences, (from_ns, to_ns))

    def _break(self, ns: int) -> None:
        """Note that the broker was not silent at a time."""
        at = bisect_left(self.silences, (ns,)) - 1
        if at >= 0 and ns < self.silences[at][1]:
            from_ns, to_ns = self.silences.pop(at)
            self._add(from_ns, ns)
            self._add(ns, to_ns)

    def merge(self, later: _Broker) -> None:
        if later.first_ns is None or later.last_ns is None:
            return
        if self.first_ns is None or self.last_ns is None:
            self.first_ns, self.last_ns, self.silences = later.first_ns, later.last_ns, [*later.silences]
        else:
            # A late answer of one part may come in a silence of the other.
            self.silences = _in_both(self._free(), later._free())[:MOST_LONG]
            self.first_ns = min(self.first_ns, later.first_ns)
            self.last_ns = max(self.last_ns, later.last_ns)
        self.long = (self.long + later.long)[:MOST_LONG]

    def _free(self) -> list[tuple[float, float]]:
        """The times without answers, also those before the first and after the last."""
        assert self.first_ns is not None
        assert self.last_ns is not None
        return [(-inf, self.first_ns), *self.silences, (self.last_ns, inf)]


def _in_both(some: list[tuple[float, float]], others: list[tuple[float, float]]) -> list[tuple[int, int]]:
    """The silences that lie in times of both lists, which are sorted."""
    found = []
    one = other = 0
    while one < len(some) and other < len(others):
        from_ns = max(some[one][0], others[other][0])
        to_ns = min(some[one][1], others[other][1])
        if to_ns - from_ns >= SILENCE_NS and -inf < from_ns and to_ns < inf:
            found.append((int(from_ns), int(to_ns)))
        if some[one][1] < others[other][1]:
            one += 1
        else:
            other += 1
    return found


class Stalls(Batched, OneTable[str, _Broker]):
    """A row for each time in which a broker answered nobody though two connections or more waited."""

    name = "stalls"
    about = "periods in which a broker answered nobody"
    columns = (
        BROKER_COLUMN,
        time_column("from_ns", "time of the last response before it, or of the first request that waited"),
        time_column("to_ns", "time of the first response after it"),
        time_column("asked_last_ns", "time of the last request that waited for a second or longer"),
        column("stalled_ns", "int64", "duration of the stall"),
        column("connections", "int64s", "connections that waited"),
        column("clients", "texts", "clients that waited, by client id or address"),
        column("exchanges", "int64s", "exchanges that waited, the longest wait first", unit=EXCHANGE),
        column("waiting", "int64", "number of exchanges that waited"),
        column("alone", "int64", "number of these that the broker needs no other broker for"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_Broker, limits)

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        row_of = self._rows.row
        for exchange in exchanges:
            response = exchange.response
            if response is None:
                continue
            row = row_of(exchange.broker)
            if row is None:
                continue
            answered_ns, last_ns = response.frame.first_ns, row.last_ns
            if last_ns is not None and 0 <= answered_ns - last_ns < SILENCE_NS:  # as mostly
                row.last_ns = answered_ns
            else:
                row.note_answer(answered_ns)
            request = exchange.request
            if request is not None and answered_ns - request.frame.last_ns >= SILENCE_NS:
                self._answered_late(exchange, row, answered_ns)

    def _answered_late(self, exchange: Exchange, row: _Broker, answered_ns: int) -> None:
        """Keep an exchange with a long latency if a broker that stood still may have caused that."""
        request = exchange.request
        assert request is not None
        if len(row.long) >= MOST_LONG:
            return
        served, api = exchange.served_ns, exchange.api
        if api is None or served is None or served < SILENCE_NS or waits_for_members(api):
            return
        if is_long_poll(api):
            longest, _ = asked_wait(request)
            if longest is None or served - longest * MILLISECOND < OVERDUE_NS:
                return
        row.long.append(
            _Long(
                answered_ns,
                answered_ns - served,
                exchange.number,
                exchange.connection,
                address(exchange.client),
                exchange.client_id or "",
                api,
                api in ALONE or (api == "Produce" and request.body().get("acks") == 1),
            )
        )

    def result(self) -> list[Row]:
        out = []
        for broker, row in sorted(self._rows.rows.items()):
            for begin_ns, end_ns in row.silences:
                waited = [
                    each
                    for each in row.long
                    if each.asked_ns <= end_ns - SILENCE_NS and 0 <= each.answered_ns - end_ns <= AT_ONCE_NS
                ]
                connections = sorted({each.connection for each in waited})
                if len(connections) < 2:
                    continue
                begin_ns = max(begin_ns, min(each.asked_ns for each in waited))
                waited.sort(key=lambda each: (each.asked_ns, each.number))
                out.append(
                    {
                        "broker": broker,
                        "from_ns": begin_ns,
                        "to_ns": end_ns,
                        "asked_last_ns": max(each.asked_ns for each in waited),
                        "stalled_ns": end_ns - begin_ns,
                        "connections": connections,
                        "clients": sorted({each.client_id or each.client for each in waited}),
                        "exchanges": [each.number for each in waited[:8]],
                        "waiting": len(waited),
                        "alone": sum(each.alone for each in waited),
                    }
                )
        return out


@packed
@dataclass(slots=True)
class _Api:
    work: Histogram = field(default_factory=Histogram)
    counts: dict[int, int] = field(default_factory=dict)
    """Exchanges by the second of their requests."""
    slow: dict[int, list[tuple[int, int, str, str]]] = field(default_factory=dict)
    """The slow ones of a second: minus the duration, number, broker, client."""

    def merge(self, later: _Api) -> None:
        self.work.merge(later.work)
        for window, count in later.counts.items():
            self.counts[window] = self.counts.get(window, 0) + count
        for window, slow in later.slow.items():
            self.slow[window] = sorted(self.slow.get(window, []) + slow)[:MOST_SLOW]


class Spikes(Batched, OneTable[str, _Api]):
    """A row for each time in which an API took much longer than usual."""

    name = "spikes"
    about = "periods in which an API was much slower than usual"
    columns = (
        column("api", "text", "Kafka's newest name of the API"),
        time_column("from_ns", "beginning of its first second"),
        time_column("to_ns", "end of its last second"),
        column("count", "int64", "exchanges in these seconds"),
        column("slow", "int64", "exchanges in these seconds that took the broker 100 ms and more"),
        column("p50_ns", "int64", "median of the broker's work on all exchanges of the API"),
        column("worst_ns", "int64", "the longest broker's work in these seconds"),
        column("p99_ns", "int64", "99th percentile of the broker's work in the slowest of these seconds"),
        column("brokers", "texts", "brokers of the slow exchanges"),
        column("clients", "texts", "clients of the slow exchanges, by client id, else by address"),
        column("exchanges", "int64s", "the slowest of these exchanges", unit=EXCHANGE),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_Api, limits)

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        row_of = self._rows.row
        for exchange in exchanges:
            work = split(exchange).broker_ns
            request = exchange.request
            if work is None or request is None or is_own_id(request.client_id):
                continue
            api = exchange.api
            if api is None or (api == "SaslAuthenticate" and exchange.error is not None):
                continue  # brokers delay these on purpose (connection.failed.authentication.delay.ms)
            row = row_of(api)
            if row is None:
                continue
            row.work.add(work)
            window = request.frame.last_ns // WINDOW_NS
            counts = row.counts
            if window in counts:
                counts[window] += 1
            elif len(counts) < MOST_WINDOWS:
                counts[window] = 1
            else:
                continue
            if work >= SLOW_NS:
                client = exchange.client_id or exchange.client
                slow = [*row.slow.get(window, []), (-work, exchange.number, exchange.broker, client)]
                row.slow[window] = sorted(slow)[:MOST_SLOW]

    def result(self) -> list[Row]:
        out = []
        for api, row in sorted(self._rows.rows.items()):
            (p50,) = row.work.percentiles(50)
            if p50 is None:
                continue
            times: list[list[int]] = []
            for window, slow in sorted(row.slow.items()):
                above = row.counts[window] // 100  # this many are above the 99th percentile
                if len(slow) < 3 or len(slow) <= above or -slow[above][0] < 10 * p50:
                    continue
                if times and window - times[-1][-1] <= JOINED:
                    times[-1].append(window)
                else:
                    times.append([window])
            out += [_spike(api, row, p50, windows) for windows in times]
        return out


def _spike(api: str, row: _Api, p50: int, windows: list[int]) -> Row:
    slow = sorted(each for window in windows for each in row.slow[window])
    return {
        "api": api,
        "from_ns": windows[0] * WINDOW_NS,
        "to_ns": (windows[-1] + 1) * WINDOW_NS,
        "count": sum(row.counts[window] for window in windows),
        "slow": len(slow),
        "p50_ns": p50,
        "worst_ns": -slow[0][0],
        "p99_ns": max(-row.slow[window][row.counts[window] // 100][0] for window in windows),
        "brokers": sorted({broker for _, _, broker, _ in slow}),
        "clients": sorted({client for *_, client in slow}),
        "exchanges": [number for _, number, *_ in slow[:8]],
    }
