"""The parts of the latency of exchanges, by API and version.

The parts are columns of an exchange: ``behind_ns``, ``throttle_ns``, ``network_ns`` and ``served_ns``. If the
wait is known, ``served_ns`` is split into ``wait_ns`` and ``broker_ns``. The parts add up to ``latency_ns``,
which does not contain the transfers and the client's own time. An exchange counts for its known parts.
"""

from __future__ import annotations

from kdissect.analysis.declared import Declared, column
from kdissect.analysis.fold import Batched, OneTable, Row
from kdissect.analysis.groupings import GROUPINGS, ApiRowKey, key_columns, key_values, order_of
from kdissect.analysis.histogram import Histogram, add_known
from kdissect.analysis.rows import Rows
from kdissect.analysis.speakers import address
from kdissect.analysis.waits import split
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits

PARTS = {
    "behind": "wait behind an earlier request of the connection",
    "throttle": "delay by a quota",
    "network": "the smallest round trip between capture point and broker",
    "served": "time of the broker, including waits that the client asked for",
    "wait": "part of served: the wait that the client asked for, if known",
    "broker": "part of served: the broker's work, if the wait is known",
}
"""The parts of a latency."""
OUTSIDE = {
    "request_transfer": "from the first byte of the request to its last",
    "response_transfer": "from the first byte of the response to its last",
    "think": "the client's time since the previous response, if no other request was waiting",
}
"""The times that are not in a latency."""
_ALL = {"latency": "from the request's last byte to the response's first", **PARTS, **OUTSIDE}


class _Parts:
    __slots__ = ("count", "times")

    def __init__(self) -> None:
        self.count = 0
        self.times: list[Histogram] = [Histogram() for _ in _ALL]
        """The times of each part, in the same order."""

    def add(self, exchange: Exchange) -> None:
        """Count an exchange."""
        _, wait_ns, broker_ns = split(exchange)
        values = (
            *(exchange._latency(), exchange.behind_ns, exchange.throttle_ns, exchange.network_ns),
            *(exchange._served(), wait_ns, broker_ns, exchange.request_transfer_ns),
            *(exchange.response_transfer_ns, exchange.think_ns),
        )
        self.count += 1
        add_known(self.times, values)

    def merge(self, later: _Parts) -> None:
        self.count += later.count
        for mine, theirs in zip(self.times, later.times, strict=True):
            mine.merge(theirs)


def _columns() -> tuple[Declared, ...]:
    out = []
    for name, meaning in _ALL.items():
        out += [
            column(f"{name}_sum_ns", "int64", f"{meaning} (sum)"),
            column(f"{name}_p50_ns", "int64", "median of that time (within 0.4 %)"),
            column(f"{name}_p99_ns", "int64", "99th percentile of that time (within 0.4 %)"),
            column(f"{name}_max_ns", "int64", "the longest such time"),
        ]
        if name in PARTS:
            out.append(
                column(
                    f"{name}_share_pct", "float64", "share of that time in all latencies of the row, percent"
                )
            )
    return tuple(out)


class Latency(Batched, OneTable[ApiRowKey, _Parts]):
    """The statistic ``latency``. ``by`` has some of the :data:`~kdissect.analysis.groupings.GROUPINGS`."""

    name = "latency"
    about = "the parts of latencies: behind others, quotas, network, waits, the broker's work"
    columns = (
        *key_columns("latency"),
        column("count", "int64", "exchanges with request and response"),
        *_columns(),
    )
    groupings = GROUPINGS

    def __init__(self, limits: Limits = DEFAULTS, by: tuple[str, ...] = ()) -> None:
        super().__init__(_Parts, limits)
        self._by = by

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        if not self._by:
            _count(exchanges, self._rows)
            return
        for exchange in exchanges:
            if exchange.latency_ns is not None and exchange.api is not None:
                for topic in self._topics(exchange):
                    row = self._rows.row(self._key(exchange, topic))
                    if row is not None:
                        row.add(exchange)

    def _topics(self, exchange: Exchange) -> list[str] | tuple[None]:
        return (exchange.topics if "topic" in self._by else None) or (None,)

    def _key(self, exchange: Exchange, topic: str | None) -> ApiRowKey:
        by = self._by
        return (
            exchange.api_key,
            exchange.api or "",
            exchange.api_version,
            exchange.broker if "broker" in by else None,
            address(exchange.client) if "client" in by else None,
            exchange.client_id if "client_id" in by else None,
            topic,
        )

    def result(self) -> list[Row]:
        return [
            _result(key, row) for key, row in sorted(self._rows.rows.items(), key=lambda e: order_of(e[0]))
        ]


def _count(exchanges: list[Exchange], rows: Rows[ApiRowKey, _Parts]) -> None:
    """Count exchanges by API and version alone."""
    for exchange in exchanges:
        request = exchange.request
        if request is None or exchange.response is None:
            continue
        api = exchange._api()
        if api is None or exchange._latency() is None:
            continue
        row = rows.row((request.api_key, api, request.api_version, None, None, None, None))
        if row is not None:
            row.add(exchange)


def _result(key: ApiRowKey, row: _Parts) -> Row:
    out: Row = {
        **key_values(key),
        "count": row.count,
    }
    whole = row.times[0].total
    for name, times in zip(_ALL, row.times, strict=True):
        p50, p99 = times.percentiles(50, 99)
        out |= {
            f"{name}_sum_ns": times.total if times.count else None,
            f"{name}_p50_ns": p50,
            f"{name}_p99_ns": p99,
            f"{name}_max_ns": times.most,
        }
        if name in PARTS:
            known = times.count and whole > 0
            out[f"{name}_share_pct"] = round(100 * times.total / whole, 2) if known else None
    return out
