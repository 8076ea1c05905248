"""Slow exchanges: longer than nearly all of their API, or than a time that the user gives.

Only time that was certainly no wait counts. The wait behind an earlier request of the connection
(``Exchange.behind_ns``) is that request's time. The wait for a quota and the network's part are nobody's
work. A Fetch may be held back for as long as its request allows (``maxWaitMs``), so only the response time
beyond that counts. A JoinGroup or SyncGroup waits for other members for a time that no field names, and is
never slow. More facts about waits: :mod:`kdissect.analysis.waits`.

Without a time from the user, the number of exchanges of an API decides:

* 100 or more: those longer than 99 % of them, so at most 1 % are slow;
* fewer: those longer than three times their median, and those longer than a second;
* fewer than five: those longer than a second, because their median means little. The same holds if the median
  of long polls is 0: most are over within their wait, the others a moment after it;
* a long poll that ended up to :data:`POLL_ENDS_NS` after its wait is never slow.
"""

from __future__ import annotations

from typing import Any, Self

from kdissect.analysis.fold import MILLISECOND, SECOND
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.waits import asked_wait
from kdissect.exchange import Exchange
from kdissect.protocol.traits import api_traits

PERCENT = 99
ENOUGH = 100 // (100 - PERCENT)
"""The number of exchanges of an API of which one is 1 %."""
HANDFUL = 5
"""The number of exchanges of an API from which on their median shows what is usual."""
MEDIANS = 3
"""Without :data:`ENOUGH` exchanges, one is slow if it takes longer than this number of medians."""
LONGEST_NS = SECOND
"""An exchange that takes longer is slow there in any case."""
POLL_ENDS_NS = 10 * MILLISECOND
"""How late after its wait an ordinary long poll may end: a timer goes off, a thread wakes and reads the log
again. It took up to 7 ms without a problem. Compared with a wait of 500 ms, nobody calls that slow."""
MOST_APIS = 1_000
"""The most APIs whose times are kept: a capture may contain any number of unknown keys."""


def taken_ns(exchange: Exchange) -> int | None:
    """How long an exchange took, without possible waits; None if it has no time, or if that is unknown."""
    own = exchange.served_ns
    if own is None or exchange.request is None:
        return None
    waits = api_traits(exchange.api_key).waits
    if waits is None:
        return own
    if waits == "members":
        return None
    if waits != "records":
        return own
    longest, _ = asked_wait(exchange.request)
    return None if longest is None else max(0, own - max(0, longest) * MILLISECOND)


class Slowness:
    """Finds slow exchanges. Without a time from the user, it needs all exchanges first."""

    def __init__(self, slow_ns: int | None = None) -> None:
        self.slow_ns = slow_ns
        """The user's limit for all APIs; None without one."""
        self._times: dict[int, Histogram] = {}
        """The times of each API key."""
        self._limits: dict[int, int] = {}

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
        """Add another part."""
        for key, times in later._times.items():
            self._times.setdefault(key, Histogram()).merge(times)
        self._limits.clear()

    def know(self, api_key: int, limit_ns: int) -> None:
        """Set the limit of an API whose times were counted elsewhere."""
        self._limits[api_key] = limit_ns

    def limit_ns(self, api_key: int) -> int:
        """The time beyond which exchanges of an API are slow."""
        if self.slow_ns is not None:
            return self.slow_ns
        if api_key not in self._limits:
            times = self._times.get(api_key, Histogram())
            percent = asked_percent(times.count)
            ceiling = None if percent is None else times.ceiling(percent)
            self._limits[api_key] = limit_of(api_key, times.count, ceiling)
        return self._limits[api_key]

    @property
    def is_none_slow(self) -> bool:
        """Whether certainly no exchange that was fed is slow."""
        return self.slow_ns is None and not any(
            times.most is not None and times.most > self.limit_ns(key) for key, times in self._times.items()
        )

    @property
    def none_slow_message(self) -> str:
        """The message if nothing is slow."""
        if self.slow_ns is not None:
            return (
                f"nothing is slow: no exchange took longer than {self.slow_ns // MILLISECOND:,} ms (slow_ms)"
            )
        return (
            f"nothing is slow: no exchange took longer than {PERCENT} % of its API (below {ENOUGH} "
            f"exchanges: than {MEDIANS} times their median, or 1 s); slow_ms sets a limit"
        )

    def is_slow(self, exchange: Exchange) -> bool:
        """Whether an exchange is slow."""
        if exchange.api_key is None:
            return False
        taken = taken_ns(exchange)
        return taken is not None and taken > self.limit_ns(exchange.api_key)


def asked_percent(count: int) -> int | None:
    """The percentile that decides which of this many exchanges of an API are slow; None if none does."""
    return PERCENT if count >= ENOUGH else 50 if count >= HANDFUL else None


def limit_of(api_key: int, count: int, percentile_ns: int | None) -> int:
    """The time beyond which an exchange of an API is slow, by the number of exchanges and that percentile."""
    if percentile_ns is None:
        return LONGEST_NS
    is_poll = api_traits(api_key).waits == "records"
    if is_poll and count < ENOUGH and percentile_ns <= 0:
        return LONGEST_NS
    limit = percentile_ns if count >= ENOUGH else min(LONGEST_NS, MEDIANS * max(0, percentile_ns))
    return max(limit, POLL_ENDS_NS) if is_poll else limit
