"""Requests that clients repeat: of one kind, with the same outcome, on one connection.

A row is a connection, an API, an error (or none) and the object of the error. The longest stretch of requests
that follow each other at once (50 ms) shows loops without a pause. Without an error, only equal requests make
such a stretch. The longest stretch with at most a second between requests shows storms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from zlib import crc32

from kdissect.analysis.counters import Span
from kdissect.analysis.declared import (
    BROKER_COLUMN,
    CLIENT_COLUMN,
    CLIENT_ID_COLUMN,
    EXCHANGE,
    PARTITION_COLUMN,
    TOPIC_COLUMN,
    column,
    first_and_last,
)
from kdissect.analysis.fold import MILLISECOND, SECOND, Batched, OneTable, Row
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.rows import Rows
from kdissect.analysis.shared_parts import errors_of
from kdissect.analysis.topics import replica_id
from kdissect.analysis.waits import asked_wait
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.protocol.errors import error_name

AT_ONCE_NS = 50 * MILLISECOND
SOON_NS = SECOND
NEVER_THE_SAME = frozenset(
    ("Produce", "Fetch", "ShareFetch", "ShareAcknowledge", "OffsetCommit", "TxnOffsetCommit", "FetchSnapshot")
)
"""APIs whose requests, without an error, each are a new step, or wait for one."""
EVIDENCE = 3
SHORT_MS = 10
"""A Fetch with at most this ``maxWaitMs`` does not wait."""


class _Stretch:
    """Requests that follow one another."""

    __slots__ = ("content", "first_exchange", "first_ns", "last_ns", "requests")

    def __init__(self, requests: int, first_ns: int, last_ns: int, first_exchange: int, content: int) -> None:
        self.requests = requests
        self.first_ns = first_ns
        self.last_ns = last_ns
        self.first_exchange = first_exchange
        self.content = content
        """A hash of the requests' content; 0 if it does not matter."""

    def parts(self) -> tuple[int, ...]:
        """The values for pickling."""
        return self.requests, self.first_ns, self.last_ns, self.first_exchange, self.content

    def joined(self, later: _Stretch) -> _Stretch:
        requests = self.requests + later.requests
        return _Stretch(requests, self.first_ns, later.last_ns, self.first_exchange, later.content)


class _LongestStretches:
    """The longest stretch, and those at both ends, which may continue in other parts of the capture."""

    __slots__ = ("best", "head", "tail")

    def __init__(self, parts: Sequence[tuple[int, ...] | None] = (None, None, None)) -> None:
        head, best, tail = parts
        self.head: _Stretch | None = None if head is None else _Stretch(*head)
        self.best: _Stretch | None = None if best is None else _Stretch(*best)
        self.tail: _Stretch | None = None if tail is None else _Stretch(*tail)

    def parts(self) -> tuple[tuple[int, ...] | None, ...]:
        """The values for pickling."""
        head, best, tail = self.head, self.best, self.tail
        return (
            None if head is None else head.parts(),
            None if best is None else best.parts(),
            None if tail is None else tail.parts(),
        )

    def go_on(self, ns: int, number: int, content: int, gap_ns: int) -> None:
        """Add the next request."""
        last = self.tail if self.tail is not None else self.head
        if last is None or content != last.content or ns - last.last_ns > gap_ns:
            self.add(_Stretch(1, ns, ns, number, content), gap_ns)
            return
        last.requests += 1
        last.last_ns = ns

    def add(self, later: _Stretch, gap_ns: int) -> None:
        """Add the next stretch; join it with the last one if it follows soon."""
        if self.head is None:
            self.head = later
            return
        last = self.tail if self.tail is not None else self.head
        if later.first_ns - last.last_ns <= gap_ns and later.content == last.content:
            if self.tail is not None:
                self.tail = last.joined(later)
            else:
                self.head = last.joined(later)
            return
        self._compare(self.tail)
        self.tail = later

    def _compare(self, one: _Stretch | None) -> None:
        if one is not None and (self.best is None or one.requests > self.best.requests):
            self.best = one

    def merge(self, later: _LongestStretches, gap_ns: int) -> None:
        """Add the stretches of a later part."""
        if later.head is not None:
            self.add(later.head, gap_ns)
        if later.tail is not None:
            self._compare(self.tail)
            self._compare(later.best)
            self.tail = later.tail

    def longest(self) -> _Stretch | None:
        """The first of the longest stretches."""
        found = self.head
        for each in (self.best, self.tail):
            if each is not None and (
                found is None
                or each.requests > found.requests
                or (each.requests == found.requests and each.first_ns < found.first_ns)
            ):
                found = each
        return found


class _Repeat:
    __slots__ = (
        *("at_once", "broker", "client", "client_id", "count", "exchanges", "replica_id", "soon"),
        *("span",),
    )

    def __init__(
        self,
        client: str = "",
        broker: str = "",
        client_id: str | None = None,
        replica_id: int = -1,
        count: int = 0,
        exchanges: Sequence[int] = (),
        span: tuple[int | None, ...] = (None, None, None, None),
        at_once: Sequence[tuple[int, ...] | None] = (None, None, None),
        soon: Sequence[tuple[int, ...] | None] = (None, None, None),
    ) -> None:
        self.client = client
        self.broker = broker
        self.client_id = client_id
        self.replica_id = replica_id
        self.span = Span(*span)
        self.count = count
        self.at_once = _LongestStretches(at_once)
        self.soon = _LongestStretches(soon)
        self.exchanges = list(exchanges)

    def __reduce__(self) -> tuple[type[_Repeat], tuple[object, ...]]:
        # One call for all values: there is a row for each API of each connection.
        whose = self.client, self.broker, self.client_id, self.replica_id, self.count, self.exchanges
        return _Repeat, (*whose, self.span._parts(), self.at_once.parts(), self.soon.parts())

    def add(self, exchange: Exchange, code: int) -> None:
        """Count an exchange with this error code, or 0."""
        request, api, number = exchange.request, exchange._api(), exchange.number
        assert request is not None
        content = 0
        if api == "Fetch":
            self.replica_id = max(self.replica_id, replica_id(exchange))
        elif not code:
            content = crc32(request.frame.payload[request.body_start :])
        ns = request.frame.last_ns
        self.client, self.broker = exchange._client_address(), exchange._broker_address()
        if exchange._client_id() is not None:
            self.client_id = exchange._client_id()
        self.span.add(ns, number)
        self.count += 1
        if not code or not exchange.behind_ns:
            # A request that was sent before the last refusal is no new try.
            self.at_once.go_on(ns, number, content, AT_ONCE_NS)
        self.soon.go_on(ns, number, 0, SOON_NS)
        if len(self.exchanges) < EVIDENCE:
            self.exchanges.append(number)

    def merge(self, later: _Repeat) -> None:
        self.client, self.broker = later.client or self.client, later.broker or self.broker
        self.client_id = later.client_id if later.client_id is not None else self.client_id
        self.replica_id = max(self.replica_id, later.replica_id)
        self.span.merge(later.span)
        self.count += later.count
        self.at_once.merge(later.at_once, AT_ONCE_NS)
        self.soon.merge(later.soon, SOON_NS)
        self.exchanges = (self.exchanges + later.exchanges)[:EVIDENCE]


_Key = tuple[Topic, int, str, int, int]
"""Topic, connection, API, error code, partition (-1 for none)."""


class Repeats(Batched, OneTable[_Key, _Repeat]):
    """The statistic ``repeats``."""

    name = "repeats"
    about = "per connection: which requests are repeated, how fast, and with what result"
    row_bytes = 1_800
    columns = (
        column("connection", "int64", "number of the connection"),
        CLIENT_COLUMN,
        BROKER_COLUMN,
        CLIENT_ID_COLUMN,
        column("replica_id", "int32", "id of the follower that sends the Fetch; -1 for clients"),
        column("api", "text", "Kafka's newest name of the API"),
        column("error", "text", "the error in the responses; null without an error"),
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        column("count", "int64", "requests; a request counts once for each error in its response", kept=True),
        column(
            "at_once",
            "int64",
            "longest series of requests that each begin within 50 ms of the one before. Without an error: "
            "equal requests. With an error: requests that began after the answer to the one before",
        ),
        column("at_once_ns", "int64", "time from the first request of that series to the last"),
        column("soon", "int64", "longest series of requests that each begin within 1 s of the one before"),
        column("soon_ns", "int64", "time from the first request of that series to the last"),
        *first_and_last("such request"),
        column(
            "exchanges", "int64s", "the first of these requests, and the first of the series", unit=EXCHANGE
        ),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_Repeat, limits)
        self._labels = Labels(self.latest, limits)

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        _count(exchanges, self._rows, self._failed)

    def _failed(self, exchange: Exchange) -> None:
        """Count each error of an exchange."""
        outcomes: set[tuple[Topic, int, int]] = set()
        for error in errors_of(exchange):
            topic = self._labels.topic(error.topic, error.topic_id)
            outcomes.add((topic, error.code, error.partition if error.partition is not None else -1))
        for topic, code, partition in sorted(outcomes):
            row = self._rows.row((topic, exchange.connection, exchange.api or "", code, partition))
            if row is not None:
                row.add(exchange, code)

    def merge(self, later: Repeats) -> None:
        self._labels.merge(later._labels)
        super().merge(later)

    def result(self) -> list[Row]:
        return list(self.result_rows())

    def result_rows(self) -> Iterator[Row]:
        self._labels.resolve_names()
        rows = self._labels.by_name(self._rows.rows, _Repeat)
        for key in sorted(rows, key=_order):
            yield _result(key, rows[key])


NOWHERE = Topic("", "")
"""For rows without a topic."""


def _count(
    exchanges: list[Exchange], rows: Rows[_Key, _Repeat], count_failed: Callable[[Exchange], None]
) -> None:
    """Count exchanges without errors, and have those with errors counted, in their order: if there is no room
    for all rows, the first are kept."""
    for exchange in exchanges:
        response = exchange.response
        if exchange.request is None or response is None:
            continue
        if exchange._error() is not None:
            count_failed(exchange)
        elif not response.is_cut:  # the answer is unknown if the capture lacks bytes of it
            api = exchange._api() or ""
            if api not in NEVER_THE_SAME or (api == "Fetch" and _is_idle(exchange)):
                row = rows.row((NOWHERE, exchange.connection, api, 0, -1))
                if row is not None:
                    row.add(exchange, 0)


def _is_idle(exchange: Exchange) -> bool:
    """Whether the exchange is a Fetch with an empty answer that came long before the end of its wait."""
    if exchange.request is None or exchange.response is None:
        return False
    longest, _ = asked_wait(exchange.request)
    latency = exchange.latency_ns
    if longest is None or latency is None or not (longest <= SHORT_MS or 2 * latency < longest * MILLISECOND):
        return False
    seen = exchange.response.survey()
    if seen is not None:
        return seen.records[::2] == seen.records[1::2]
    topics = exchange.response.body().get("responses")
    return topics is not None and not any(
        partition.get("records") for topic in topics for partition in topic.get("partitions") or ()
    )


def _order(key: tuple[int | str | None, ...]) -> tuple[int | str, ...]:
    topic, connection, api, code, partition = key
    return connection or 0, api or "", code or 0, topic or "", partition or 0


def _result(key: tuple[int | str | None, ...], row: _Repeat) -> Row:
    topic, connection, api, code, partition = key
    at_once, soon = row.at_once.longest(), row.soon.longest()
    evidence = [*row.exchanges, *([at_once.first_exchange] if at_once is not None else [])]
    return {
        "connection": connection,
        "client": row.client,
        "broker": row.broker,
        "client_id": row.client_id,
        "replica_id": row.replica_id,
        "api": api,
        "error": error_name(code) if isinstance(code, int) and code else None,
        "topic": topic,
        "partition": partition if isinstance(partition, int) and partition >= 0 else None,
        "count": row.count,
        "at_once": at_once.requests if at_once is not None else 0,
        "at_once_ns": at_once.last_ns - at_once.first_ns if at_once is not None else 0,
        "soon": soon.requests if soon is not None else 0,
        "soon_ns": soon.last_ns - soon.first_ns if soon is not None else 0,
        "first_ns": row.span.first_ns,
        "last_ns": row.span.last_ns,
        "exchanges": sorted(set(evidence)),
    }
