"""The exchanges that took longest, with the parts of their times.

They are sorted by the time that was certainly no wait (:func:`~kdissect.analysis.slow.taken_ns`), so that
long polls and joins do not come before all others.
"""

from __future__ import annotations

from typing import Self

from kdissect.analysis.declared import (
    BROKER_COLUMN,
    CLIENT_COLUMN,
    CLIENT_ID_COLUMN,
    EXCHANGE,
    column,
    time_column,
)
from kdissect.analysis.fold import Batched, Row, Statistic
from kdissect.analysis.slow import taken_ns
from kdissect.analysis.waits import split
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits

MOST = 20


class Slowest(Batched, Statistic):
    """The statistic ``slowest``."""

    name = "slowest"
    about = "the 20 exchanges that took longest (without requested waits), and the parts of their times"
    columns = (
        column("number", "int64", "number of the exchange", unit=EXCHANGE),
        time_column("request_time_ns", "when its request was complete"),
        column("api", "text", "its API"),
        column("api_version", "int16", "version of the API"),
        CLIENT_ID_COLUMN,
        CLIENT_COLUMN,
        BROKER_COLUMN,
        column("topics", "texts", "its topics, at most 8"),
        column("error", "text", "its first error"),
        column("taken_ns", "int64", "time that was certainly no requested wait; the rows are in this order"),
        column("latency_ns", "int64", "the response time"),
        column(
            "behind_ns", "int64", "part of latency_ns: the wait behind the previous request of its connection"
        ),
        column("throttle_ns", "int64", "part of latency_ns: the delay by a quota"),
        column("network_ns", "int64", "part of latency_ns: the network; null if unknown"),
        column("wait_ns", "int64", "part of latency_ns: the wait that the client asked for; null if unknown"),
        column("broker_ns", "int64", "part of latency_ns: the broker's work; null if the wait is unknown"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._most = min(MOST, limits.rows)
        self._worst: list[tuple[int, int, Row]] = []
        """Minus the time, the number, the row; the worst first."""
        self._left_out = 0

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        for exchange in exchanges:
            if len(self._worst) >= self._most >= MOST:
                longest = exchange.served_ns
                if longest is None or -max(0, longest) > self._worst[-1][0]:
                    continue  # nearly always; what it took was no longer than that
            self._take(exchange)

    def _take(self, exchange: Exchange) -> None:
        taken = taken_ns(exchange)
        if taken is None or (len(self._worst) >= self._most and -taken > self._worst[-1][0]):
            self._left_out += taken is not None and self._most < MOST
            return
        wait = split(exchange)
        row: Row = {
            "number": exchange.number,
            "request_time_ns": exchange.request_time_ns,
            "api": exchange.api,
            "api_version": exchange.api_version,
            "client_id": exchange.client_id,
            "client": exchange.client,
            "broker": exchange.broker,
            "topics": exchange.topics[:8],
            "error": exchange.error,
            "taken_ns": taken,
            "latency_ns": exchange.latency_ns,
            "behind_ns": exchange.behind_ns,
            "throttle_ns": exchange.throttle_ns,
            "network_ns": exchange.network_ns,
            "wait_ns": wait.wait_ns,
            "broker_ns": wait.broker_ns,
        }
        self._worst.append((-taken, exchange.number, row))
        self._keep()

    def _keep(self) -> None:
        self._worst.sort(key=lambda each: each[:2])
        if self._most < MOST:
            self._left_out += max(0, len(self._worst) - self._most)
        del self._worst[self._most :]

    def merge(self, later: Self) -> None:
        self._worst += later._worst
        self._left_out += later._left_out
        self._keep()

    @property
    def left_out(self) -> int:
        """Exchanges that were left out because of a limit below :data:`MOST`."""
        return self._left_out

    def result(self) -> list[Row]:
        return [dict(row) for _, _, row in self._worst]
