"""Counts of exchanges that the rows of many statistics share: errors by gravity, the first and the last
exchange, and requests in flight. They are merged as the rows are."""

from __future__ import annotations

from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from kdissect.protocol.errors import FATAL, ROUTINE
from kdissect.tcp.packed import BYTES, number, put

SECOND = 1_000_000_000
_DEEPEST = DEFAULTS.pending_requests
_BYTES = BYTES


class Grades:  # noqa: PLW1641 - it changes
    """The number of errors, by gravity. Routine errors are counted separately, not as errors."""

    __slots__ = ("errors", "fatal", "routine")

    def __init__(self, errors: int = 0, fatal: int = 0, routine: int = 0) -> None:
        self.errors = errors
        """Fatal and retriable errors."""
        self.fatal = fatal
        """The fatal ones of ``errors``."""
        self.routine = routine

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Grades) and self._parts() == other._parts()

    def __repr__(self) -> str:
        return f"Grades{self._parts()}"

    def __reduce__(self) -> tuple[type[Grades], tuple[int, ...]]:
        return Grades, self._parts()

    def _parts(self) -> tuple[int, ...]:
        return self.errors, self.fatal, self.routine

    def add(self, error_class: str | None) -> None:
        """Count an error of this class. None is not counted."""
        if error_class is None:
            return
        if error_class == ROUTINE:
            self.routine += 1
        else:
            self.errors += 1
            if error_class == FATAL:
                self.fatal += 1

    def add_codes(self, exchange: Exchange) -> None:
        """Count every error code of an exchange."""
        codes = exchange.codes()
        for code in codes:
            self.add(exchange.class_of(code))

    def merge(self, later: Grades) -> None:
        """Add later counts."""
        self.errors += later.errors
        self.fatal += later.fatal
        self.routine += later.routine

    def columns(self) -> dict[str, int]:
        """The columns in rows of statistics."""
        return {"errors": self.errors, "fatal": self.fatal, "routine": self.routine}


class Span:  # noqa: PLW1641 - it changes
    """The first and the last exchange of something, by time."""

    __slots__ = ("_begin", "_end", "_first", "_is_empty", "_last")

    def __init__(
        self,
        first_ns: int | None = None,
        last_ns: int | None = None,
        first_exchange: int | None = None,
        last_exchange: int | None = None,
    ) -> None:
        self._is_empty = first_ns is None or last_ns is None
        self._begin = 0 if first_ns is None else first_ns
        self._end = 0 if last_ns is None else last_ns
        self._first = 0 if first_exchange is None else first_exchange
        self._last = 0 if last_exchange is None else last_exchange

    @property
    def first_ns(self) -> int | None:
        return None if self._is_empty else self._begin

    @property
    def last_ns(self) -> int | None:
        return None if self._is_empty else self._end

    @property
    def first_exchange(self) -> int | None:
        return None if self._is_empty else self._first

    @property
    def last_exchange(self) -> int | None:
        return None if self._is_empty else self._last

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span) and self._parts() == other._parts()

    def __repr__(self) -> str:
        return f"Span{self._parts()}"

    def __reduce__(self) -> tuple[type[Span], tuple[int | None, ...]]:
        return Span, self._parts()

    def _parts(self) -> tuple[int | None, ...]:
        return self.first_ns, self.last_ns, self.first_exchange, self.last_exchange

    def add(self, ns: int, exchange: int) -> None:
        """Take in an exchange at a time. If two have the same time, the lower number is first."""
        if self._is_empty:
            self._is_empty = False
            self._begin = self._end = ns
            self._first = self._last = exchange
            return
        if ns < self._begin or (ns == self._begin and exchange < self._first):
            self._begin, self._first = ns, exchange
        if ns > self._end or (ns == self._end and exchange > self._last):
            self._end, self._last = ns, exchange

    def begin(self, exchange: Exchange) -> None:
        """Take in an exchange, at the time when it began."""
        self.add(exchange._begun(), exchange.number)

    def cover(self, exchange: Exchange) -> None:
        """Take in an exchange, from its beginning to its end."""
        self.add(exchange._begun(), exchange.number)
        self.add(exchange._ended(), exchange.number)

    def merge(self, later: Span) -> None:
        """Add another span, as :meth:`add` adds a time."""
        if not later._is_empty:
            self.add(later._begin, later._first)
            self.add(later._end, later._last)

    @property
    def numbers(self) -> list[int]:
        """The numbers of the first and the last exchange, without a duplicate."""
        return [] if self._is_empty else sorted({self._first, self._last})

    def rate(self, count: int) -> float | None:
        """The rate per second between the first and the last; None if no time passed."""
        if self._is_empty or self._end <= self._begin:
            return None
        return count * SECOND / (self._end - self._begin)


class Depth:  # noqa: PLW1641 - it changes
    """The number of requests of a connection in flight: sent, and not yet answered.

    The depth is measured for every answered request, at the time when it is complete. It counts the request
    itself and the earlier ones whose response had not begun then. Brokers answer in the order of the
    requests, so exchanges come in that order too. An earlier exchange is remembered only if its response came
    after the latest request. So at most ``Limits.pending_requests`` are remembered, whatever the times are.

    Times are kept as bytes: there is a depth for each connection, and lists take three times the memory.
    """

    __slots__ = (
        *("_first_response_ns", "_has_latest", "_has_response", "_head", "_latest_ns", "_waiting"),
        *("count", "deepest", "limit", "total"),
    )

    def __init__(
        self,
        count: int = 0,
        total: int = 0,
        deepest: int = 0,
        first_response_ns: int | None = None,
        limit: int = _DEEPEST,
        latest_ns: int | None = None,
        waiting: list[int] | None = None,
        head: list[tuple[int, int]] | None = None,
    ) -> None:
        self.count = count
        self.total = total
        self.deepest = deepest
        self.limit = limit
        self._has_response = first_response_ns is not None
        self._first_response_ns = 0 if first_response_ns is None else first_response_ns
        self._has_latest = latest_ns is not None
        self._latest_ns = 0 if latest_ns is None else latest_ns
        """The latest time of a request."""
        self._waiting = b"" if waiting is None else _packed(waiting)
        """Times of the responses that came after the latest request, sorted."""
        self._head = b"" if head is None else _packed([number for each in head for number in each])
        """Requests that were sent before the first response came, with their depth as known here. Requests
        that were in flight before this part add to it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Depth) and self._parts() == other._parts()

    def __repr__(self) -> str:
        return f"Depth{self._parts()}"

    def __reduce__(self) -> tuple[type[Depth], tuple[object, ...]]:
        return Depth, self._parts()

    def _parts(self) -> tuple[object, ...]:
        latest_ns = self._latest_ns if self._has_latest else None
        counts = self.count, self.total, self.deepest
        return (*counts, self.first_response_ns, self.limit, latest_ns, self.waiting, self.head)

    @property
    def first_response_ns(self) -> int | None:
        """When the first response came; None before it."""
        return self._first_response_ns if self._has_response else None

    @property
    def waiting(self) -> list[int]:
        """Times of the responses that came after the latest request, sorted."""
        return _unpacked(self._waiting)

    @property
    def head(self) -> list[tuple[int, int]]:
        """Requests that were sent before the first response came, with their depth."""
        numbers = _unpacked(self._head)
        return list(zip(numbers[::2], numbers[1::2], strict=True))

    @property
    def mean(self) -> float | None:
        """The mean over the requests."""
        return self.total / self.count if self.count else None

    def add(self, request_ns: int, response_ns: int, counts: bool = True) -> None:
        """Count an exchange by the times when its request was complete and its response began. If ``counts``
        is false, it is in flight but has no depth of its own."""
        self._drop(request_ns)
        if counts:
            self._count(request_ns, len(self._waiting) // _BYTES + 1)
        if not self._has_response:
            self._has_response, self._first_response_ns = True, response_ns
        self._waiting = _with(self._waiting, response_ns)
        if len(self._waiting) > self.limit * _BYTES:
            self._waiting = self._waiting[-self.limit * _BYTES :]

    def merge(self, later: Depth) -> None:
        """Add the later part of the same connection."""
        begun = later.head
        for request_ns, depth in begun:
            self._drop(request_ns)
            self._count(request_ns, depth + len(self._waiting) // _BYTES)
        self.count += later.count - len(begun)
        self.total += later.total - sum([depth for _, depth in begun])
        self.deepest = max(self.deepest, later.deepest)
        if later._has_latest:
            self._drop(later._latest_ns)
        self._waiting = _packed(sorted([*self.waiting, *later.waiting])[-self.limit :])
        if not self._has_response:
            self._has_response, self._first_response_ns = later._has_response, later._first_response_ns

    def _count(self, request_ns: int, depth: int) -> None:
        self.count += 1
        self.total += depth
        self.deepest = max(self.deepest, depth)
        before = not self._has_response or request_ns < self._first_response_ns
        if before and len(self._head) < self.limit * 2 * _BYTES:
            self._head += _bytes_of(request_ns) + _bytes_of(depth)

    def _drop(self, now_ns: int) -> None:
        """Forget the responses that had come by now."""
        if not self._has_latest or now_ns > self._latest_ns:
            self._has_latest, self._latest_ns = True, now_ns
        if self._waiting:
            place = _place(self._waiting, now_ns)
            self._waiting = b"" if place == len(self._waiting) else self._waiting[place:]


def _place(packed: bytes, value: int) -> int:
    """The number of bytes of the packed sorted numbers up to ``value``."""
    raw, low, high = packed, 0, len(packed) // _BYTES
    while low < high:
        middle = (low + high) >> 1
        if number(raw, middle * _BYTES) > value:
            high = middle
        else:
            low = middle + 1
    return low * _BYTES


def _with(packed: bytes, value: int) -> bytes:
    """Sorted numbers with another one."""
    if not packed:  # as in most connections: they have one request in flight
        return _bytes_of(value)
    place = _place(packed, value)
    if place == len(packed):
        return packed + _bytes_of(value)
    return packed[:place] + _bytes_of(value) + packed[place:]


def _bytes_of(value: int) -> bytes:
    room = bytearray(_BYTES)
    raw = room
    put(raw, 0, value)
    return bytes(room)


def _packed(values: list[int]) -> bytes:
    room = bytearray(_BYTES * len(values))
    raw, at = room, 0
    for value in values:
        put(raw, at, value)
        at += _BYTES
    return bytes(room)


def _unpacked(packed: bytes) -> list[int]:
    raw, at, values = packed, 0, []
    while at < len(packed):
        values.append(number(raw, at))
        at += _BYTES
    return values
