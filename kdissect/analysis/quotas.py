"""The likely quota of a client, by its bytes and throttle times (KIP-13).

A broker (ClientQuotaManager) measures bytes over the last :data:`WINDOW_S` (``quota.window.num`` windows of a
second), with 0 for the time before the client came. Over the quota, it makes the client wait until the same
bytes, over the window and the wait, are within the quota again. So at a throttled answer, with all bytes so
far: ``quota ≈ bytes / (the longer of the time since and the window + the wait)``.

A Fetch over the quota is answered without records (KIP-219), though they were measured. The client asks again
after the wait, and gets them then. So the bytes of its next answer belong to those before the wait.
"""

from __future__ import annotations

from kdissect.analysis.fold import SECOND
from kdissect.exchange import Exchange
from kdissect.protocol.apis import FETCH, PRODUCE
from kdissect.session.briefs import Brief

WINDOW_S = 10.5
"""Ten full windows, and on average half of the current one."""
COUNTED = frozenset(("Produce", "Fetch"))
"""The APIs whose bytes quotas count."""
_FETCH, _PRODUCE = FETCH, PRODUCE
_EMPTY_BYTES = 1024
"""A Fetch answer with more bytes than this has records; brokers before KIP-219 sent such answers late."""


class Quota:
    """Bytes of one kind of request of a client, by time."""

    __slots__ = (
        *("first_ns", "first_size", "held_size", "last_ns"),
        *("size", "throttled_bytes", "throttled_ms", "throttled_ns"),
    )

    def __init__(self) -> None:
        self.first_ns: int | None = None
        self.first_size = -1
        """The bytes of the first Fetch answer with records, if no throttled one came before it; else -1."""
        self.held_size = -1
        """The bytes of the latest throttled Fetch answer until its records come; else -1."""
        self.last_ns: int | None = None
        self.size = 0
        self.throttled_ns: int | None = None
        """When the latest throttled answer came."""
        self.throttled_ms = 0
        """Its throttle time."""
        self.throttled_bytes = 0
        """All bytes until then."""

    def add(self, exchange: Exchange, throttle_ms: int) -> None:
        """Count an exchange with its answer. APIs whose bytes no quota counts are left out."""
        request, response = exchange.request, exchange.response
        if request is None or response is None or request.api_key is None:
            return
        key = request.api_key
        if key in (_PRODUCE, _FETCH):
            size = request.frame.size if key == _PRODUCE else response.frame.size
            if key == _FETCH:
                self._fetched(size, throttle_ms)
            self._answered(request.frame.first_ns, response.frame.first_ns, size, throttle_ms)

    def add_brief(self, brief: Brief, throttle_ms: int) -> None:
        """Count an exchange in brief."""
        key = brief.form.key
        if key == _PRODUCE:
            size = brief.request_end - brief.request_start
        elif key == _FETCH:
            size = brief.response_end - brief.response_start
            self._fetched(size, throttle_ms)
        else:
            return
        self._answered(brief.request_first_ns, brief.response_first_ns, size, throttle_ms)

    def _fetched(self, size: int, throttle_ms: int) -> None:
        """Take in a Fetch answer: records that were held back, or new ones."""
        if throttle_ms:
            self.held_size = size if size <= _EMPTY_BYTES else -1
            return
        if size <= _EMPTY_BYTES:
            return  # this answer is empty too: the held records are still to come
        if self.throttled_ns is None and self.first_size < 0:
            self.first_size = size
        if self.held_size >= 0:
            self.throttled_bytes += max(0, size - self.held_size)
            self.held_size = -1

    def _answered(self, asked_ns: int, ns: int, size: int, throttle_ms: int) -> None:
        if throttle_ms:
            self._throttle(ns, throttle_ms, size)
        self._count(asked_ns, ns, size)

    def merge(self, later: Quota) -> None:
        """Add a later part."""
        if later.first_ns is None or later.last_ns is None:
            return
        if later.first_size >= 0:
            self._fetched(later.first_size, 0)
        if later.throttled_ns is not None:
            self._throttle(later.throttled_ns, later.throttled_ms, later.throttled_bytes)
            self.held_size = later.held_size
        self._count(later.first_ns, later.last_ns, later.size)

    def _throttle(self, ns: int, throttle_ms: int, size: int) -> None:
        """Take in a throttled answer, with this many bytes that are not yet counted."""
        if self.throttled_ns is None or ns >= self.throttled_ns:
            self.throttled_bytes = self.size + size
            self.throttled_ns, self.throttled_ms = ns, throttle_ms

    def _count(self, first_ns: int, last_ns: int, size: int) -> None:
        if self.first_ns is None or first_ns < self.first_ns:
            self.first_ns = first_ns
        if self.last_ns is None or last_ns > self.last_ns:
            self.last_ns = last_ns
        self.size += size

    @property
    def rate(self) -> float | None:
        """Bytes per second while it is throttled; None if it is not."""
        if self.throttled_ns is None or self.first_ns is None or self.last_ns is None:
            return None
        span = self.last_ns - self.first_ns
        return round(self.size * SECOND / span, 1) if span > 0 else None

    @property
    def estimate(self) -> float | None:
        """Bytes per second that the quota may allow; None if it does not show."""
        if self.throttled_ns is None or self.first_ns is None or self.held_size >= 0:
            return None
        span_s = max(WINDOW_S, (self.throttled_ns - self.first_ns) / SECOND) + self.throttled_ms / 1_000
        return round(self.throttled_bytes / span_s, 1)
