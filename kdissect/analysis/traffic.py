"""The number of exchanges, their bytes and durations, by API and by the requested groupings.

``traffic,topic`` counts an exchange for each of its topics, ``traffic,layer`` for each layer of its faults,
``traffic,error`` under the first error code of its response. An exchange without an error code is not
counted there. The metrics of a live capture are made from these rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from kdissect.analysis.counters import Grades, Span
from kdissect.analysis.declared import (
    COUNTER,
    HISTOGRAM,
    Metric,
    column,
    first_and_last,
    graded_errors,
    time_column,
)
from kdissect.analysis.first_names import FirstNames
from kdissect.analysis.fold import MILLISECOND, SECOND, Batched, OneTable, Row
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.speakers import address
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits

BUCKETS_NS = tuple(
    round(milliseconds * MILLISECOND)
    for milliseconds in (0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000)
)
"""The upper ends of the buckets of latencies, for metrics."""
HOUR_NS = 3_600 * SECOND

_NO_TOPICS: Sequence[str | None] = (None,)
_NO_LAYERS: Mapping[str | None, int] = {None: 0}
_API, _CLIENT_ID = ("api", "api"), ("client", "client_id")
_TOPIC = ("topic", "topic")


def _metric(name: str, about: str, *labels: tuple[str, str], direction: str = "") -> Metric:
    return Metric(name, COUNTER, about, labels, (("direction", direction),) if direction else ())


class _TrafficRow:
    """The values of a row."""

    __slots__ = (
        *("buckets", "errors", "exchanges", "faults", "latency", "record_bytes", "request_bytes"),
        *("requests", "response_bytes", "span", "unanswered"),
    )

    def __init__(self) -> None:
        self.exchanges = 0
        self.requests = 0
        self.unanswered = 0
        self.request_bytes = 0
        self.response_bytes = 0
        self.record_bytes: int | None = None
        self.faults = 0
        self.errors = Grades()
        self.latency = Histogram()
        self.buckets = [0] * (len(BUCKETS_NS) + 1)
        self.span = Span()

    def add(self, exchange: ExchangeColumns) -> None:
        """Count an exchange."""
        asked, answered, latency = exchange.request_size, exchange.response_size, exchange.latency_ns
        self.exchanges += 1
        if asked is not None:
            self.requests += 1
            self.request_bytes += asked
        if answered is None:
            self.unanswered += 1
        else:
            self.response_bytes += answered
            if exchange.error is not None:
                self.errors.add(exchange.error_class)
        if latency is not None:
            self.latency.add(latency)
            self.buckets[bisect_left(BUCKETS_NS, latency)] += 1
        self.span.add(exchange.begun_ns, exchange.number)

    def merge(self, later: _TrafficRow) -> None:
        self.exchanges += later.exchanges
        self.requests += later.requests
        self.unanswered += later.unanswered
        self.request_bytes += later.request_bytes
        self.response_bytes += later.response_bytes
        if later.record_bytes is not None:
            self.record_bytes = (self.record_bytes or 0) + later.record_bytes
        self.faults += later.faults
        self.errors.merge(later.errors)
        self.latency.merge(later.latency)
        self.buckets = [mine + theirs for mine, theirs in zip(self.buckets, later.buckets, strict=True)]
        self.span.merge(later.span)


class ExchangeColumns(Protocol):
    """The columns of an exchange that are read here. A row of the table ``exchanges`` has them too, so stored
    rows are counted like exchanges."""

    @property
    def number(self) -> int: ...
    @property
    def api(self) -> str | None: ...
    @property
    def api_version(self) -> int | None: ...
    @property
    def broker(self) -> str: ...
    @property
    def client(self) -> str: ...
    @property
    def client_id(self) -> str | None: ...
    @property
    def principal(self) -> str | None: ...
    @property
    def groups(self) -> Sequence[str] | None: ...
    @property
    def transactional_ids(self) -> Sequence[str] | None: ...
    @property
    def topics(self) -> Sequence[str]: ...
    @property
    def error(self) -> str | None: ...
    @property
    def error_class(self) -> str | None: ...
    @property
    def request_size(self) -> int | None: ...
    @property
    def response_size(self) -> int | None: ...
    @property
    def latency_ns(self) -> int | None: ...
    @property
    def begun_ns(self) -> int: ...


def _joined(names: Sequence[str] | None) -> str | None:
    return None if names is None else ", ".join(names)


Read = Callable[[Any], str | int | None]
"""Reads a grouping's value from an exchange, or from its stored row."""
_READS: Mapping[str, Read] = {
    "api_version": lambda exchange: exchange.api_version,
    "hour": lambda exchange: exchange.begun_ns // HOUR_NS * HOUR_NS,
    "broker": lambda exchange: exchange.broker,
    "client": lambda exchange: address(exchange.client),
    "client_id": lambda exchange: exchange.client_id,
    "principal": lambda exchange: exchange.principal,
    "groups": lambda exchange: _joined(exchange.groups),
    "transactional_ids": lambda exchange: _joined(exchange.transactional_ids),
    "topics": lambda exchange: _joined(exchange.topics),
    "error": lambda exchange: exchange.error,
    "error_class": lambda exchange: exchange.error_class,
}
"""The values that an exchange has only once; the class comes with the error."""
GROUPINGS = (*(name for name in _READS if name != "error_class"), "topic", "layer")
"""The groupings of rows beyond the API."""
_Key = tuple[str | int | None, ...]
"""The API, then the values of the requested groupings, with topic and layer at the end."""


class Traffic(Batched, OneTable[_Key, _TrafficRow]):
    """The statistic ``traffic``. ``by`` has some of the :data:`GROUPINGS`."""

    name = "traffic"
    about = "exchanges, bytes, errors and latencies per API"
    columns = (
        column("api", "text", "Kafka's newest name of the API; null for responses whose request is missing"),
        column("api_version", "int16", "version of the API; null unless asked for (traffic,api_version)"),
        time_column("hour", "when the hour began; null unless asked for (traffic,hour)"),
        column("broker", "text", "address:port of the broker; null unless asked for (traffic,broker)"),
        column("client", "text", "address of the client; null unless asked for (traffic,client)"),
        column("client_id", "text", "the client's id; null unless asked for (traffic,client_id)"),
        column("principal", "text", "who logged in; null unless asked for (traffic,principal)"),
        column("groups", "text", "groups that the exchange names; null unless asked for (traffic,groups)"),
        column(
            "transactional_ids",
            "text",
            "transactional ids that the exchange names; null unless asked for (traffic,transactional_ids)",
        ),
        column(
            "topics", "text", "all topics of the exchange, joined; null unless asked for (traffic,topics)"
        ),
        column("error", "text", "the first error of the response; null unless asked for (traffic,error)"),
        column("error_class", "text", "fatal, retriable or routine; null unless asked for (traffic,error)"),
        column("topic", "text", "the topic, by its name at that time; null unless asked for (traffic,topic)"),
        column("layer", "text", "layer of the faults; null unless asked for (traffic,layer)"),
        column(
            "exchanges",
            "int64",
            "number of exchanges",
            metrics=(
                _metric("topic_requests", "Exchanges that name a topic.", _TOPIC, _API),
                _metric(
                    "errors",
                    "Responses with an error.",
                    *(_API, ("error", "error"), ("class", "error_class")),
                ),
            ),
        ),
        column(
            "requests",
            "int64",
            "exchanges whose request was seen",
            metrics=(
                _metric("requests", "Requests seen.", _API),
                _metric("client_requests", "Requests by client id.", _CLIENT_ID),
            ),
        ),
        column("unanswered", "int64", "exchanges without a response, including those with acks=0", rare=True),
        *(
            column(
                f"{direction}_bytes",
                "int64",
                f"bytes of the {direction}s without their sizes",
                metrics=(
                    _metric("bytes", "Bytes of messages.", _API, direction=direction),
                    _metric(
                        "client_bytes", "Bytes of messages by client id.", _CLIENT_ID, direction=direction
                    ),
                ),
            )
            for direction in ("request", "response")
        ),
        column(
            "record_bytes",
            "int64",
            "bytes of record sets of the topic; null without any, and unless asked for (traffic,topic)",
            rare=True,
            metrics=(
                _metric("topic_record_bytes", "Bytes of record sets.", _TOPIC, _API)._replace(
                    tells_zero=True
                ),
            ),
        ),
        column(
            "faults",
            "int64",
            "faults of the layer; null unless asked for (traffic,layer)",
            rare=True,
            metrics=(_metric("faults", "Faults in exchanges.", ("layer", "layer")),),
        ),
        *graded_errors("exchanges with an error code"),
        column("answered", "int64", "exchanges with request and response; all times are from these"),
        column("latency_sum_ns", "int64", "sum of latency_ns"),
        column("p50_ns", "int64", "median of latency_ns (within 0.4 %)"),
        column("p95_ns", "int64", "95th percentile of latency_ns (within 0.4 %)"),
        column("p99_ns", "int64", "99th percentile of latency_ns (within 0.4 %)"),
        column("max_ns", "int64", "the longest latency_ns"),
        column(
            "buckets",
            "int64s",
            "how many latencies were up to 0.5, 1, 2.5, 5 … 10,000, 30,000 ms, and how many longer",
            rare=True,
            metrics=(
                Metric(
                    "latency_seconds",
                    HISTOGRAM,
                    "From the request's last byte to the response's first.",
                    (_API,),
                    ends_ns=BUCKETS_NS,
                    total="latency_sum_ns",
                ),
            ),
        ),
        *first_and_last("beginning of an exchange"),
    )
    groupings = GROUPINGS
    reads: ClassVar[Mapping[str, Read]] = _READS
    """For each grouping column, the function that reads its value from an exchange."""

    def __init__(self, limits: Limits = DEFAULTS, by: tuple[str, ...] = ()) -> None:
        super().__init__(_TrafficRow, limits)
        asked = {*by, "error_class"} if "error" in by else {*by}
        self._asked = tuple(name for name in self.reads if name in asked)
        self._by_topic, self._by_layer = "topic" in by, "layer" in by
        self._by_error = "error" in by
        self._by_api = not asked and not self._by_topic and not self._by_layer
        """Whether rows are grouped by API alone."""
        self._first: FirstNames | None = None

    def keep_first(self, names: FirstNames) -> None:
        self._first = names

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        if not self._by_api or self._first is not None:
            for exchange in exchanges:
                self._take(exchange)
            return
        for exchange in exchanges:
            plain = self._rows.row((exchange.api, None, None))
            if plain is not None:
                plain.add(exchange)

    def _take(self, exchange: Exchange) -> None:
        if self._by_layer:
            layers: Counter[str | None] = Counter(fault.layer for fault in exchange.faults)
            if layers:
                self.count(exchange, layers)
            return
        key = self.count(exchange)
        if key is not None and self._by_topic:
            for place in exchange.record_sets():
                row = self._rows.row((*key, self._name("topic", place.topic or place.topic_id), None))
                if row is not None:
                    row.record_bytes = (row.record_bytes or 0) + len(place.data)

    def count(self, exchange: ExchangeColumns, layers: Mapping[str | None, int] = _NO_LAYERS) -> _Key | None:
        """Count an exchange, or its stored row.

        :param layers: the number of its faults in each layer.
        :returns: the key of its rows, without topic and layer; None if it is not counted.
        """
        if self._by_error and exchange.error is None:
            return None
        read = [("api", exchange.api), *((each, self.reads[each](exchange)) for each in self._asked)]
        first = self._first
        key = tuple(
            value if first is None or not isinstance(value, str) else first.name(column, value)
            for column, value in read
        )
        for topic in exchange.topics if self._by_topic else _NO_TOPICS:
            for layer, faults in layers.items():
                row = self._rows.row((*key, self._name("topic", topic), layer))
                if row is not None:
                    row.add(exchange)
                    row.faults += faults
        return key

    def _name(self, column: str, name: str | None) -> str | None:
        return name if self._first is None else self._first.name(column, name)

    def result(self) -> list[Row]:
        rows = sorted(self._rows.rows.items(), key=lambda each: _order(each[0]))
        return [self._row(key, row) for key, row in rows]

    def _row(self, key: _Key, row: _TrafficRow) -> Row:
        p50, p95, p99 = row.latency.percentiles(50, 95, 99)
        return {
            **dict.fromkeys(("api", *self.reads, "topic", "layer")),
            **dict(zip(("api", *self._asked, "topic", "layer"), key, strict=True)),
            "exchanges": row.exchanges,
            "requests": row.requests,
            "unanswered": row.unanswered,
            "request_bytes": row.request_bytes,
            "response_bytes": row.response_bytes,
            "record_bytes": row.record_bytes,
            "faults": row.faults if self._by_layer else None,
            **row.errors.columns(),
            "answered": row.latency.count,
            "latency_sum_ns": row.latency.total,
            "p50_ns": p50,
            "p95_ns": p95,
            "p99_ns": p99,
            "max_ns": row.latency.most,
            "buckets": list(row.buckets),
            "first_ns": row.span.first_ns,
            "last_ns": row.span.last_ns,
        }


def _order(key: _Key) -> tuple[bool, tuple[tuple[int, str], ...]]:
    parts = ((part, "") if isinstance(part, int) else (0, part or "") for part in key)
    return key[0] is None, tuple(parts)
