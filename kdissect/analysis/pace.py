"""How quickly each broker serves each client, API by API, and the reasons for delays. Rules judge by this.

Requests of brokers to each other are left out.
"""

from __future__ import annotations

import re
from bisect import insort
from functools import lru_cache
from typing import Any

from kdissect.analysis.counters import Span
from kdissect.analysis.declared import (
    BROKER_COLUMN,
    EXCHANGE,
    SPEAKER_COLUMNS,
    column,
    first_and_last,
)
from kdissect.analysis.fold import MILLISECOND, SECOND, Batched, OneTable, Row
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.quotas import COUNTED, Quota
from kdissect.analysis.rows import Rows
from kdissect.analysis.speakers import address
from kdissect.analysis.waits import Wait, asked_wait, is_long_poll_of, split
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.protocol.apis import FETCH
from kdissect.session.throttling import told_ms

SHARE_FETCH = 78
BEHIND_NS = 10 * MILLISECOND
"""The shortest wait behind another request that counts."""
POLLED_NS = 50 * MILLISECOND
"""The shortest wait behind a long poll that counts."""
BACKWARDS_NS = MILLISECOND
"""If an answer is this long before its request, a clock is wrong."""
LARGE_BYTES = 100_000_000
"""librdkafka's default limit of an answer (``receive.message.max.bytes``)."""
_LARGE_BYTES = LARGE_BYTES
BEYOND_BYTES = 64 << 10
"""Answers with fewer bytes are small, whatever the request allowed."""
WORST = 8
MOST_SECONDS = 10_000
"""The most seconds with such waits that are kept."""
_OWN = re.compile(r"raft-client-\d+|broker-\d+-fetcher-\d+|\d+")
"""Client ids of brokers (KafkaRaftManager, ReplicaFetcherThread, NodeToControllerChannelManager)."""


def is_of_brokers(exchange: Exchange) -> bool:
    """Whether a broker or controller sent the request, judged by its client id."""
    return is_own_id(exchange.client_id)


@lru_cache(maxsize=4_096)
def is_own_id(client_id: str | None) -> bool:
    """Whether a client id is one that brokers and controllers use."""
    return client_id is not None and _OWN.fullmatch(client_id) is not None


class _Worst:
    """The number of slow (or large) cases, and the exchanges with the worst ones."""

    __slots__ = ("count", "span", "total_ns", "worst")

    def __init__(self) -> None:
        self.count = 0
        self.total_ns = 0
        self.worst: list[tuple[int, int]] = []
        """For each, minus its duration or size, and its number."""
        self.span = Span()

    def add(self, ns: int, exchange: Exchange) -> None:
        self.count += 1
        self.total_ns += ns
        this = -ns, exchange.number
        if len(self.worst) < WORST or this < self.worst[-1]:
            insort(self.worst, this)
            del self.worst[WORST:]
        self.span.add(exchange.begun_ns, exchange.number)

    def merge(self, later: _Worst) -> None:
        self.count += later.count
        self.total_ns += later.total_ns
        self.worst = sorted(self.worst + later.worst)[:WORST]
        self.span.merge(later.span)

    def column_value(self, part: str) -> Any:
        """The value of a column."""
        if part == "count":
            return self.count
        if part == "sum_ns":
            return self.total_ns
        if part in ("max_ns", "bytes"):
            return -self.worst[0][0] if self.worst else None
        if part == "exchanges":
            return [number for _, number in self.worst]
        return self.span.first_ns if part == "first_ns" else self.span.last_ns


class _PaceRow:
    """The counts of an API on a connection. Rare events take no room until they happen."""

    __slots__ = (
        *("answered", "away", "behind_ns", "behind_seconds", "beyond_limit", "broker", "happened"),
        *("known_ns", "latency", "least", "max_wait_ms", "min_bytes", "quota", "span"),
    )

    def __init__(self) -> None:
        self.latency = Histogram()
        self.broker = Histogram()
        self.known_ns = 0
        """The sum of the latencies whose waits behind other requests are known."""
        self.behind_ns = 0
        self.behind_seconds: dict[int, tuple[int, int]] = {}
        """For each second, the number of such waits and their total time."""
        self.happened: dict[str, _Worst] = {}
        """The delays and large messages, by the word that begins the names of their columns."""
        self.away: Histogram | None = None
        self.quota: Quota | None = None
        self.answered: Histogram | None = None
        self.least = 0
        self.beyond_limit = 0
        self.min_bytes = 0
        self.max_wait_ms = 0
        self.span = Span()

    def add(self, exchange: Exchange, api: str, latency: int) -> None:
        """Count an exchange that has both messages."""
        response, behind = exchange.response, exchange.behind_ns
        assert response is not None
        self.span.begin(exchange)
        self.latency.add(latency)
        if latency <= -BACKWARDS_NS:
            self.happens("backwards", -latency, exchange)
        known = split(exchange)
        if known.broker_ns is not None:
            self.broker.add(known.broker_ns)
        if behind is not None:
            self.known_ns += latency
            self.behind_ns += behind
            if behind >= BEHIND_NS:
                self.happens("behind", behind, exchange)
                self.add_waits(exchange._begun() // SECOND, 1, behind)
                if behind >= POLLED_NS and exchange.after_api_key in (FETCH, SHARE_FETCH):
                    self.happens("polled", behind, exchange)
        if response.frame.size > _LARGE_BYTES:
            self.happens("large", response.frame.size, exchange)
        throttle_ms = told_ms(response)
        if api in COUNTED:
            if self.quota is None:
                self.quota = Quota()
            self.quota.add(exchange, throttle_ms)
        if throttle_ms:
            self.happens("throttled", throttle_ms * MILLISECOND, exchange)
        if exchange.breaks_quota:
            self.happens("broken", 0, exchange)
        if is_long_poll_of(exchange):
            self._count_poll(exchange, known.wait)

    def _count_poll(self, exchange: Exchange, wait: Wait) -> None:
        """Count a long poll."""
        request, response = exchange.request, exchange.response
        assert request is not None
        assert response is not None
        seen = response.survey()
        size = 0 if seen is None else sum(seen.records[1::2]) - sum(seen.records[::2])
        self.answered = self.answered or Histogram()
        self.answered.add(size)
        if not size:
            return
        longest, least = asked_wait(request)
        self.least = max(self.least, least)
        if size >= BEYOND_BYTES:
            limit = request.body().get("maxBytes", 0)
            if 0 < limit < size:
                self.happens("beyond", size, exchange)
                self.beyond_limit = max(self.beyond_limit, limit)
        if wait is Wait.WAITED_OUT and longest is not None and least > 1:
            self.happens("held", longest * MILLISECOND, exchange)
            self.min_bytes, self.max_wait_ms = max(self.min_bytes, least), max(self.max_wait_ms, longest)
        think, served = exchange.think_ns, exchange._served()
        is_at_once = longest is None or served is None or served < longest * MILLISECOND // 2
        if think is not None and exchange.after_api_key == exchange.api_key and is_at_once:
            self.away = self.away or Histogram()
            self.away.add(think)
            self.happens("away", think, exchange)

    def happens(self, what: str, ns: int, exchange: Exchange) -> None:
        """Count an event in an exchange, with its duration or size."""
        found = self.happened.get(what)
        if found is None:
            found = self.happened[what] = _Worst()
        found.add(ns, exchange)

    def merge(self, later: _PaceRow) -> None:
        self.latency.merge(later.latency)
        self.broker.merge(later.broker)
        self.known_ns += later.known_ns
        self.behind_ns += later.behind_ns
        for what, theirs in later.happened.items():
            self.happened.setdefault(what, _Worst()).merge(theirs)
        for second, (count, total) in later.behind_seconds.items():
            self.add_waits(second, count, total)
        if later.away is not None:
            self.away = self.away or Histogram()
            self.away.merge(later.away)
        if later.quota is not None:
            self.quota = self.quota or Quota()
            self.quota.merge(later.quota)
        if later.answered is not None:
            self.answered = self.answered or Histogram()
            self.answered.merge(later.answered)
        self.least = max(self.least, later.least)
        self.beyond_limit = max(self.beyond_limit, later.beyond_limit)
        self.min_bytes = max(self.min_bytes, later.min_bytes)
        self.max_wait_ms = max(self.max_wait_ms, later.max_wait_ms)
        self.span.merge(later.span)

    def add_waits(self, second: int, count: int, total_ns: int) -> None:
        """Add the waits behind other requests in a second."""
        before = self.behind_seconds.get(second, (0, 0))
        if before[0] or len(self.behind_seconds) < MOST_SECONDS:
            self.behind_seconds[second] = (before[0] + count, before[1] + total_ns)


_Key = tuple[str, str, str, str]
"""Broker, client, client id, API."""


class Pace(Batched, OneTable[_Key, _PaceRow]):
    """A row for each broker, client, client id and API."""

    name = "pace"
    about = "how quickly clients are served, and what holds them up"
    row_bytes = 4_500
    columns = (
        BROKER_COLUMN,
        *SPEAKER_COLUMNS,
        column("api", "text", "Kafka's newest name of the API"),
        column("count", "int64", "exchanges with request and response"),
        column("latency_p50_ns", "int64", "median latency"),
        column("broker_count", "int64", "exchanges whose time of the broker's work is known"),
        column("broker_p50_ns", "int64", "median of the broker's work"),
        column("broker_p99_ns", "int64", "99th percentile of the broker's work"),
        column("latency_sum_ns", "int64", "sum of the latencies whose wait behind other requests is known"),
        column("behind_sum_ns", "int64", "sum of these waits"),
        column("behind_count", "int64", "waits of 10 ms and more"),
        column("behind_max_ns", "int64", "the longest"),
        column("behind_exchanges", "int64s", "the longest few", unit=EXCHANGE),
        column("behind_seconds", "json", "by second: the number of such waits and their sum"),
        column("behind_first_ns", "int64", "when the first of them began", unit="time"),
        column("behind_last_ns", "int64", "when the last of them began", unit="time"),
        column("polled_count", "int64", "waits of 50 ms and more behind a long poll"),
        column("polled_sum_ns", "int64", "sum of these waits behind long polls"),
        column("polled_max_ns", "int64", "the longest"),
        column("polled_exchanges", "int64s", "the longest few", unit=EXCHANGE),
        column("throttled_count", "int64", "responses that tell the client to wait because of a quota"),
        column("throttled_sum_ns", "int64", "sum of these throttle times"),
        column("throttled_max_ns", "int64", "the longest"),
        column("throttled_exchanges", "int64s", "the longest few", unit=EXCHANGE),
        column("throttled_first_ns", "int64", "time of the first of these requests", unit="time"),
        column("throttled_last_ns", "int64", "time of the last of these requests", unit="time"),
        column(
            "throttled_bytes_per_s",
            "float64",
            "bytes per second that quotas count, if the client was throttled",
        ),
        column("quota_bytes_per_s", "float64", "an estimate of the quota, if the client was throttled"),
        column("broken_count", "int64", "requests that the client sent although a quota told it to wait"),
        column("broken_exchanges", "int64s", "the first few", unit=EXCHANGE),
        column(
            "held_count",
            "int64",
            "Fetches that waited for all of fetch.max.wait.ms and got fewer bytes than they asked for",
        ),
        column("held_exchanges", "int64s", "the longest few", unit=EXCHANGE),
        column("held_first_ns", "int64", "time of the first of these requests", unit="time"),
        column("held_last_ns", "int64", "time of the last of these requests", unit="time"),
        column("held_min_bytes", "int64", "the most bytes that they waited for (fetch.min.bytes)"),
        column("held_max_wait_ms", "int64", "the longest wait that they asked for"),
        column(
            "answered_bytes_p50",
            "int64",
            "median number of record bytes in its responses",
            unit="bytes",
        ),
        column("least_bytes", "int64", "the most bytes that its Fetches wait for"),
        column("large_count", "int64", "responses of more than 100,000,000 bytes"),
        column("large_bytes", "int64", "the largest of them"),
        column("large_exchanges", "int64s", "the largest few", unit=EXCHANGE),
        column("beyond_count", "int64", "large responses with more record bytes than the request allowed"),
        column("beyond_bytes", "int64", "the largest of them"),
        column("beyond_limit_bytes", "int64", "the most bytes that such a request allowed"),
        column("beyond_exchanges", "int64s", "the largest few", unit=EXCHANGE),
        column("away_count", "int64", "Fetches that got records at once and came after another Fetch"),
        column("away_p50_ns", "int64", "median time between the two"),
        column("away_p90_ns", "int64", "90th percentile of that time"),
        column("away_sum_ns", "int64", "sum of these times"),
        column("away_exchanges", "int64s", "the longest few", unit=EXCHANGE),
        column("backwards_count", "int64", "responses that were captured 1 ms or more before their requests"),
        column("backwards_max_ns", "int64", "the largest such difference"),
        column("backwards_exchanges", "int64s", "the worst few", unit=EXCHANGE),
        *first_and_last("exchange"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_PaceRow, limits)

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        _count(exchanges, self._rows)

    def result(self) -> list[Row]:
        return [_result(key, row) for key, row in sorted(self._rows.rows.items())]


def _count(exchanges: list[Exchange], rows: Rows[_Key, _PaceRow]) -> None:
    """Count exchanges."""
    clients: dict[tuple[int, str | None], str | None] = {}
    """The address of each client that was seen here, by connection and client id; None for brokers."""
    for exchange in exchanges:
        request = exchange.request
        if request is None or exchange.response is None:
            continue
        api, latency = exchange._api(), exchange._latency()
        if api is None or latency is None:
            continue
        client_id = request.client_id
        who = exchange.connection, client_id
        if who in clients:
            client = clients[who]
        else:
            client = clients[who] = None if is_own_id(client_id) else address(exchange._client_address())
        if client is None:
            continue
        row = rows.row((exchange._broker_address(), client, client_id or "", api))
        if row is not None:
            row.add(exchange, api, latency)


_HAPPENED = {
    "behind": ("count", "max_ns", "exchanges", "first_ns", "last_ns"),
    "polled": ("count", "sum_ns", "max_ns", "exchanges"),
    "throttled": ("count", "sum_ns", "max_ns", "exchanges", "first_ns", "last_ns"),
    "broken": ("count", "exchanges"),
    "held": ("count", "exchanges", "first_ns", "last_ns"),
    "large": ("count", "bytes", "exchanges"),
    "beyond": ("count", "bytes", "exchanges"),
    "away": ("exchanges",),
    "backwards": ("count", "max_ns", "exchanges"),
}
"""The possible events, with the columns of each."""
_QUIET: Row = {
    **dict.fromkeys(each.name for each in Pace.columns),
    **{f"{what}_{part}": _Worst().column_value(part) for what, parts in _HAPPENED.items() for part in parts},
    **{"away_count": 0, "away_sum_ns": 0},
}
"""A row without any event, like most rows. Its lists must not be changed."""


def _result(key: _Key, row: _PaceRow) -> Row:
    out = _QUIET.copy()
    out["broker"], out["client"], client_id, out["api"] = key
    out["client_id"] = client_id or None
    out["count"] = row.latency.count
    (out["latency_p50_ns"],) = row.latency.percentiles(50)
    out["broker_count"] = row.broker.count
    out["broker_p50_ns"], out["broker_p99_ns"] = row.broker.percentiles(50, 99)
    out["latency_sum_ns"], out["behind_sum_ns"] = row.known_ns, row.behind_ns
    out["behind_seconds"] = [(second, *row.behind_seconds[second]) for second in sorted(row.behind_seconds)]
    out["held_min_bytes"], out["held_max_wait_ms"] = row.min_bytes, row.max_wait_ms
    out["least_bytes"], out["beyond_limit_bytes"] = row.least, row.beyond_limit
    out["first_ns"], out["last_ns"] = row.span.first_ns, row.span.last_ns
    for what, worst in row.happened.items():
        out.update((f"{what}_{part}", worst.column_value(part)) for part in _HAPPENED[what])
    if row.quota is not None:
        out["throttled_bytes_per_s"], out["quota_bytes_per_s"] = row.quota.rate, row.quota.estimate
    if row.answered is not None:
        (out["answered_bytes_p50"],) = row.answered.percentiles(50)
    if row.away is not None:
        out["away_count"], out["away_sum_ns"] = row.away.count, row.away.total
        out["away_p50_ns"], out["away_p90_ns"] = row.away.percentiles(50, 90)
    return out
