"""What is slow: an exchange that took longer than nearly all of its API, or than a time that the user names.

Only time that was no wait for certain counts. The wait behind an earlier request of the connection
(``Exchange.behind_ns``) is that one's time. The wait for a quota and the network's part are nobody's work. A
Fetch may be held back for as long as its request asks (``maxWaitMs``), so only the response time beyond that
counts. A JoinGroup or SyncGroup waits for other members for a time that no field names, and is never slow.
What else is known of waits: :mod:`kdissect.analysis.waits`.

Without a time of the user's, how many exchanges of an API there are decides:

* if a hundred or more, those that took longer than 99 % of them: no more than 1 % are slow;
* if fewer, those that took longer than three times their median, and those that took more than a second;
* if fewer than five, which have no median worth the name, those that took more than a second. So too where
  the median of long polls is nothing: most are over within their wait, the others a moment after it;
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
"""Exchanges of an API from which one is 1 % of them."""
HANDFUL = 5
"""Exchanges of an API from which their median tells what is usual."""
MEDIANS = 3
"""What takes longer than so many medians is slow where there are not :data:`ENOUGH`."""
LONGEST_NS = SECOND
"""What takes longer is slow there in any case."""
POLL_ENDS_NS = 10 * MILLISECOND
"""So late after its wait an ordinary long poll may end: a timer goes off, a thread wakes and reads the log
again. It took up to 7 ms where nothing was wrong. Beside a wait of 500 ms nobody calls that slow."""
MOST_APIS = 1_000
"""Different APIs whose times are kept: a capture may hold any number of unknown keys."""


def taken_ns(exchange: Exchange) -> int | None:
    """How long an exchange took that was no wait for certain; None where it has no time, or it cannot be
    told."""
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
    """Tells what is slow. Without a time of the user's it must have been fed all exchanges before."""

    def __init__(self, slow_ns: int | None = None) -> None:
        self.slow_ns = slow_ns
        """More than this is slow, whatever the API."""
        self._times: dict[int, Histogram] = {}
        """By API key."""
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
        """Add what another one took in."""
        for key, times in later._times.items():
            self._times.setdefault(key, Histogram()).merge(times)
        self._limits.clear()

    def know(self, api_key: int, limit_ns: int) -> None:
        """The limit of an API whose times were counted elsewhere."""
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
    def nothing_is(self) -> bool:
        """Whether it is known that none of the exchanges that were fed is slow."""
        return self.slow_ns is None and not any(
            times.most is not None and times.most > self.limit_ns(key) for key, times in self._times.items()
        )

    @property
    def why_nothing(self) -> str:
        """What is to be said where nothing is slow."""
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
    """The percentile that decides what is slow among so many exchanges of an API; None where none does."""
    return PERCENT if count >= ENOUGH else 50 if count >= HANDFUL else None


def limit_of(api_key: int, count: int, percentile_ns: int | None) -> int:
    """The time beyond which one of so many exchanges of an API is slow, by that percentile."""
    if percentile_ns is None:
        return LONGEST_NS
    is_poll = api_traits(api_key).waits == "records"
    if is_poll and count < ENOUGH and percentile_ns <= 0:
        return LONGEST_NS
    limit = percentile_ns if count >= ENOUGH else min(LONGEST_NS, MEDIANS * max(0, percentile_ns))
    return max(limit, POLL_ENDS_NS) if is_poll else limit
