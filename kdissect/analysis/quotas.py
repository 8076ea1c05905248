"""What the quota of a client may be, by what it sends and how long it is throttled (KIP-13).

A broker (ClientQuotaManager) measures bytes over the last :data:`WINDOW_S` (``quota.window.num`` windows of
a second), those before the client came counted as 0. Over the quota it has the client wait so long that the
same bytes over the window and the wait are the quota again. So at a throttled answer, with all bytes so far:
``quota ≈ bytes / (the longer of the time since and the window + the wait)``.
"""

from __future__ import annotations

from dataclasses import dataclass

from kdissect.analysis.fold import SECOND, least
from kdissect.exchange import Exchange

WINDOW_S = 10.5
"""Ten full windows, and on average half of the one that goes on."""
COUNTED = frozenset(("Produce", "Fetch"))
"""The APIs whose bytes quotas count."""


@dataclass(slots=True)
class Quota:
    """Bytes of one kind of request of a client, by time."""

    first_ns: int | None = None
    last_ns: int | None = None
    bytes: int = 0
    throttled_ns: int | None = None
    """When the latest throttled answer came."""
    throttled_ms: int = 0
    """The time that it tells."""
    throttled_bytes: int = 0
    """All bytes until then."""

    def add(self, exchange: Exchange, throttle_ms: int) -> None:
        """Count an exchange with its answer; those whose bytes no quota counts are left out."""
        request, response = exchange.request, exchange.response
        if request is None or response is None or exchange.api not in COUNTED:
            return
        ns = response.frame.first_ns
        size = request.frame.size if exchange.api == "Produce" else response.frame.size
        self.merge(Quota(request.frame.first_ns, ns, size, ns if throttle_ms else None, throttle_ms, size))

    def merge(self, later: Quota) -> None:
        """Add what came later."""
        if later.first_ns is None or later.last_ns is None:
            return
        if later.throttled_ns is not None and (
            self.throttled_ns is None or later.throttled_ns >= self.throttled_ns
        ):
            self.throttled_bytes = self.bytes + later.throttled_bytes
            self.throttled_ns, self.throttled_ms = later.throttled_ns, later.throttled_ms
        self.first_ns = least(self.first_ns, later.first_ns)
        self.last_ns = later.last_ns if self.last_ns is None else max(self.last_ns, later.last_ns)
        self.bytes += later.bytes

    @property
    def rate(self) -> float | None:
        """Bytes a second while it is throttled; None where it is not."""
        if self.throttled_ns is None or self.first_ns is None or self.last_ns is None:
            return None
        span = self.last_ns - self.first_ns
        return round(self.bytes * SECOND / span, 1) if span > 0 else None

    @property
    def estimate(self) -> float | None:
        """Bytes a second that the quota may allow; None where it does not show."""
        if self.throttled_ns is None or self.first_ns is None:
            return None
        span_s = max(WINDOW_S, (self.throttled_ns - self.first_ns) / SECOND) + self.throttled_ms / 1_000
        return round(self.throttled_bytes / span_s, 1)
