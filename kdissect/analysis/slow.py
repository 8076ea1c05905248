"""What is slow: an exchange that took longer than 99 % of its API, or than a time that the user names.

What counts is the time that was no wait for certain. A Fetch may be held back for as long as its request
asks (``maxWaitMs``), so of its response time only what goes beyond that counts; a JoinGroup or SyncGroup
waits for other members for a time that no field names, and is never slow. What else is known of waits:
:mod:`kdissect.analysis.waits`.

No more than 1 % of an API's exchanges are slow by their own measure; of fewer than a hundred, none is.
"""

from __future__ import annotations

from typing import Any, Self

from kdissect.analysis.fold import MILLISECOND
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.waits import LONG_POLLS, WAIT_FOR_MEMBERS
from kdissect.exchange import Exchange

PERCENT = 99
MOST_APIS = 1_000
"""Different APIs whose times are kept: a capture may hold any number of unknown keys."""


def taken_ns(exchange: Exchange) -> int | None:
    """How long an exchange took that was no wait for certain; None where it has no time, or it cannot be
    told."""
    latency = exchange.latency_ns
    if latency is None or exchange.request is None or exchange.api in WAIT_FOR_MEMBERS:
        return None
    if exchange.api not in LONG_POLLS:
        return latency
    longest = exchange.request.body().get("maxWaitMs")
    return None if longest is None else max(0, latency - max(0, longest) * MILLISECOND)


class Slowness:
    """Tells what is slow. Without a time of the user's it must have been fed all exchanges before."""

    def __init__(self, slow_ns: int | None = None) -> None:
        self.slow_ns = slow_ns
        """More than this is slow, whatever the API."""
        self._times: dict[int, Histogram] = {}
        """By API key."""
        self._limits: dict[int, int | None] = {}

    def feed(self, event: Any) -> None:
        """Take in the next event of a capture."""
        if not isinstance(event, Exchange) or event.api_key is None:
            return
        taken = taken_ns(event)
        if taken is None:
            return
        times = self._times.get(event.api_key)
        if times is None:
            if len(self._times) >= MOST_APIS:
                return
            times = self._times[event.api_key] = Histogram()
        times.add(taken)
        self._limits.pop(event.api_key, None)

    def merge(self, later: Self) -> None:
        """Add what another one took in."""
        for key, times in later._times.items():
            self._times.setdefault(key, Histogram()).merge(times)
        self._limits.clear()

    def know(self, api_key: int, limit_ns: int) -> None:
        """The limit of an API whose times were counted elsewhere."""
        self._limits[api_key] = limit_ns

    def limit_ns(self, api_key: int) -> int | None:
        """The time beyond which exchanges of an API are slow; None where none is."""
        if self.slow_ns is not None:
            return self.slow_ns
        if api_key not in self._limits:
            times = self._times.get(api_key)
            self._limits[api_key] = None if times is None else times.ceiling(PERCENT)
        return self._limits[api_key]

    @property
    def can_tell(self) -> bool:
        """Whether anything can be slow: there are so many exchanges of some API that 1 % is one of them."""
        enough = 100 // (100 - PERCENT)
        return self.slow_ns is not None or any(times.count >= enough for times in self._times.values())

    def is_slow(self, exchange: Exchange) -> bool:
        """Whether an exchange is slow."""
        if exchange.api_key is None:
            return False
        limit, taken = self.limit_ns(exchange.api_key), taken_ns(exchange)
        return limit is not None and taken is not None and taken > limit
