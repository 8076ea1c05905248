"""How many requests of a connection are in flight: sent, and not yet answered.

The depth is taken at every answered request, when it is complete: itself and those before it whose response
had not begun then. Brokers answer in the order of the requests, so exchanges come in that order too. An
earlier exchange is remembered only if its response came after the latest request. These are never more than
may wait for a response at all (``Limits.pending_requests``), whatever the times say.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass, field

from kdissect.analysis.packed import packed
from kdissect.limits import DEFAULTS


@packed
@dataclass(slots=True)
class Depth:
    """The fold over one connection's exchanges."""

    count: int = 0
    total: int = 0
    deepest: int = 0
    first_response_ns: int | None = None
    limit: int = DEFAULTS.pending_requests
    _latest_ns: int | None = None
    """The latest time of a request."""
    _waiting: list[int] = field(default_factory=list)
    """Times of the responses that came after the latest request, in order."""
    _head: list[tuple[int, int]] = field(default_factory=list)
    """Requests that were sent before the first response came, and their depth as known here: what was
    in flight before the first of them adds to it."""

    @property
    def mean(self) -> float | None:
        """Over the requests."""
        return self.total / self.count if self.count else None

    def add(self, request_ns: int, response_ns: int, counts: bool = True) -> None:
        """An exchange whose request was complete, and whose response began, at these times. One that does
        not count is in flight all the same."""
        self._drop(request_ns)
        if counts:
            self._count(request_ns, len(self._waiting) + 1)
        if self.first_response_ns is None:
            self.first_response_ns = response_ns
        insort(self._waiting, response_ns)
        del self._waiting[: -self.limit]

    def merge(self, later: Depth) -> None:
        """Add what came after on the same connection."""
        for request_ns, depth in later._head:
            self._drop(request_ns)
            self._count(request_ns, depth + len(self._waiting))
        self.count += later.count - len(later._head)
        self.total += later.total - sum(depth for _, depth in later._head)
        self.deepest = max(self.deepest, later.deepest)
        if later._latest_ns is not None:
            self._drop(later._latest_ns)
        self._waiting = sorted([*self._waiting, *later._waiting])[-self.limit :]
        if self.first_response_ns is None:
            self.first_response_ns = later.first_response_ns

    def _count(self, request_ns: int, depth: int) -> None:
        self.count += 1
        self.total += depth
        self.deepest = max(self.deepest, depth)
        before = self.first_response_ns is None or request_ns < self.first_response_ns
        if before and len(self._head) < self.limit:
            self._head.append((request_ns, depth))

    def _drop(self, now_ns: int) -> None:
        """Forget the responses that had come by now."""
        if self._latest_ns is None or now_ns > self._latest_ns:
            self._latest_ns = now_ns
        del self._waiting[: bisect_right(self._waiting, now_ns)]
