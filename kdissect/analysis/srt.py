"""Service response times: how long brokers take to answer, by API and version.

The response time of an exchange is ``latency_ns``. It lasts from the packet that completed the request to the
packet with the response's first byte, both at the capture point. For the waits (of a long poll, and behind an
earlier request of the connection) and the broker's work see :mod:`kdissect.analysis.waits`. For percentiles
see :mod:`kdissect.analysis.histogram`.
"""

from __future__ import annotations

from kdissect.analysis.declared import BANDS, column
from kdissect.analysis.fold import OneTable, Row
from kdissect.analysis.groupings import GROUPINGS, ApiRowKey, key_columns, key_values, order_of
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.quotas import Quota
from kdissect.analysis.rows import Rows
from kdissect.analysis.speakers import address
from kdissect.analysis.waits import Wait, served_in_brief, split, waited_in_brief
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Endpoint, endpoint_text
from kdissect.session.briefs import NOT_KNOWN, Brief, Interest
from kdissect.session.throttling import told_ms

_NOT_KNOWN = NOT_KNOWN
_NONE, _WAITED_OUT = Wait.NONE, Wait.WAITED_OUT


class _ServiceTimes:
    """The values of a row."""

    __slots__ = (
        *("latency", "may_wait", "quota", "throttle_max_ms", "throttle_ms", "throttled"),
        *("unanswered", "waited_out", "work"),
    )

    def __init__(self) -> None:
        self.latency = Histogram()
        self.work = Histogram()
        self.unanswered = 0
        self.may_wait = 0
        self.waited_out = 0
        self.throttled = 0
        self.throttle_ms = 0
        self.throttle_max_ms = 0
        self.quota = Quota()

    def add(self, exchange: Exchange) -> None:
        """Count an exchange."""
        latency, response = exchange._latency(), exchange.response
        if latency is None or response is None:
            self.unanswered += 1
            return
        throttle = told_ms(response)
        wait, _, broker_ns = split(exchange)
        self.latency.add(latency)
        if broker_ns is not None:
            self.work.add(broker_ns)
        self._answered(wait is not _NONE, wait is _WAITED_OUT, throttle)
        self.quota.add(exchange, throttle)

    def add_brief(self, brief: Brief) -> None:
        """Count an exchange in brief."""
        if brief.response_data is None:
            self.unanswered += 1
            return
        throttle = max(0, brief.throttle_ms)
        self.latency.add_one(brief.response_first_ns - brief.request_ns)
        waited = waited_in_brief(brief)
        if waited != _NOT_KNOWN:
            served = served_in_brief(brief)
            self.work.add_one(served - min(served, waited) if waited else served)
        self._answered(waited != 0, waited > 0, throttle)
        self.quota.add_brief(brief, throttle)

    def _answered(self, may_wait: bool, waited_out: bool, throttle: int) -> None:
        self.may_wait += may_wait
        self.waited_out += waited_out
        if throttle > 0:
            self.throttled += 1
            self.throttle_ms += throttle
            self.throttle_max_ms = max(self.throttle_max_ms, throttle)

    def merge(self, later: _ServiceTimes) -> None:
        self.latency.merge(later.latency)
        self.work.merge(later.work)
        self.unanswered += later.unanswered
        self.may_wait += later.may_wait
        self.waited_out += later.waited_out
        self.throttled += later.throttled
        self.throttle_ms += later.throttle_ms
        self.throttle_max_ms = max(self.throttle_max_ms, later.throttle_max_ms)
        self.quota.merge(later.quota)


class ResponseTimes(OneTable[ApiRowKey, _ServiceTimes]):
    """The statistic ``srt``. ``by`` has some of the :data:`~kdissect.analysis.groupings.GROUPINGS`."""

    name = "srt"
    about = "response times per API and version; long-poll waits apart"
    columns = (
        *key_columns("srt"),
        column("count", "int64", "exchanges with request and response; all times are from these"),
        column("min_ns", "int64", "the shortest latency_ns; may be negative, as captured"),
        column("p50_ns", "int64", "median of latency_ns (within 0.4 %)"),
        column("p90_ns", "int64", "90th percentile of latency_ns (within 0.4 %)"),
        column("p99_ns", "int64", "99th percentile of latency_ns (within 0.4 %)"),
        column("max_ns", "int64", "the longest latency_ns"),
        column("mean_ns", "int64", "mean of latency_ns, rounded down"),
        column(
            "unanswered",
            "int64",
            "requests without a response in the capture, including those with acks=0",
            rare=True,
            kept=True,
        ),
        column(
            "may_wait",
            "int64",
            "exchanges in which the broker may have waited because the client asked it to",
            rare=True,
        ),
        column("waited_out", "int64", "exchanges in which the broker waited for all of max_wait", rare=True),
        column(
            "work_count",
            "int64",
            "exchanges whose broker_ns is known (the time without requested waits, quotas, network and "
            "other requests)",
        ),
        column("work_p50_ns", "int64", "median of broker_ns (within 0.4 %)"),
        column("work_p90_ns", "int64", "90th percentile of broker_ns (within 0.4 %)"),
        column("work_p99_ns", "int64", "99th percentile of broker_ns (within 0.4 %)"),
        column("work_max_ns", "int64", "the longest broker_ns"),
        column("throttled", "int64", "responses with a throttle time", rare=True),
        column("throttle_ms", "int64", "sum of these throttle times, ms", rare=True),
        column("throttle_max_ms", "int64", "the longest throttle time, ms", rare=True),
        column(
            "throttled_bytes_per_s",
            "float64",
            "if throttled: bytes per second that quotas count (Produce requests, Fetch responses)",
            unit="bytes",
            rare=True,
        ),
        column(
            "quota_bytes_per_s",
            "float64",
            "an estimate of the quota, from these bytes and the throttle times; null if not throttled",
            unit="bytes",
            rare=True,
        ),
        column(
            "bands",
            "int64s",
            "number of latencies below 100 µs, 316 µs, 1 ms … 3.16 s (two bands per power of ten), and of "
            "longer ones (within 0.4 %)",
            unit=BANDS,
        ),
    )
    groupings = GROUPINGS

    def __init__(self, limits: Limits = DEFAULTS, by: tuple[str, ...] = ()) -> None:
        super().__init__(_ServiceTimes, limits)
        self._by = by
        self._known: dict[tuple[int, int], _ServiceTimes] = {}
        """Without groupings, the rows of exchanges in brief by API key and version. They are found without
        the rows' own keys."""

    @property
    def briefs(self) -> Interest:
        names = "topic" in self._by
        return Interest(errors=False, records=False, names=names, bodies=False, faults=False)

    def _exchange(self, exchange: Exchange) -> None:
        api = exchange.api
        if api is None:
            return  # a response without its request has no time
        first = exchange._first()
        if not self._by:
            self._add(exchange, (first.api_key, api, first.api_version, None, None, None, None))
            return
        ends = exchange.client_endpoint, exchange.broker_endpoint
        for topic in (exchange.topics if "topic" in self._by else ()) or (None,):
            key = self._key((exchange.api_key, api, exchange.api_version), ends, exchange.client_id, topic)
            self._add(exchange, key)

    def _add(self, exchange: Exchange, key: ApiRowKey) -> None:
        row = self._rows.row(key)
        if row is not None:
            row.add(exchange)

    def _take_briefs(self, briefs: list[Brief]) -> None:
        if self._by:
            super()._take_briefs(briefs)
        else:
            _count_briefs(briefs, self._known, self._rows)

    def _brief(self, brief: Brief) -> None:
        if not self._by:
            self._take_briefs([brief])
            return
        form, ends = brief.form, brief.ends
        for topic in (brief.topics() if "topic" in self._by else ()) or (None,):
            api = form.key, form.name, form.version
            row = self._rows.row(self._key(api, ends, brief.client_id, topic))
            if row is not None:
                row.add_brief(brief)

    def _key(
        self,
        api: tuple[int | None, str, int | None],
        ends: tuple[Endpoint, Endpoint],
        client_id: str | None,
        topic: str | None,
    ) -> ApiRowKey:
        by = self._by
        client, broker = ends
        return (
            *api,
            endpoint_text(broker) if "broker" in by else None,
            address(endpoint_text(client)) if "client" in by else None,
            client_id if "client_id" in by else None,
            topic,
        )

    def result(self) -> list[Row]:
        return [
            _result(key, row) for key, row in sorted(self._rows.rows.items(), key=lambda e: order_of(e[0]))
        ]


def _count_briefs(
    briefs: list[Brief], known: dict[tuple[int, int], _ServiceTimes], rows: Rows[ApiRowKey, _ServiceTimes]
) -> None:
    """Count exchanges in brief by API and version alone.

    :param known: the rows found so far, by API key and version.
    """
    for brief in briefs:
        form = brief.form
        row = known.get(form.api)
        if row is None:
            row = rows.row((form.key, form.name, form.version, None, None, None, None))
            if row is None:
                continue
            known[form.api] = row
        row.add_brief(brief)


def _result(key: ApiRowKey, row: _ServiceTimes) -> Row:
    p50, p90, p99 = row.latency.percentiles(50, 90, 99)
    work_50, work_90, work_99 = row.work.percentiles(50, 90, 99)
    return {
        **key_values(key),
        "count": row.latency.count,
        "min_ns": row.latency.least,
        "p50_ns": p50,
        "p90_ns": p90,
        "p99_ns": p99,
        "max_ns": row.latency.most,
        "mean_ns": row.latency.mean,
        "unanswered": row.unanswered,
        "may_wait": row.may_wait,
        "waited_out": row.waited_out,
        "work_count": row.work.count,
        "work_p50_ns": work_50,
        "work_p90_ns": work_90,
        "work_p99_ns": work_99,
        "work_max_ns": row.work.most,
        "throttled": row.throttled,
        "throttle_ms": row.throttle_ms,
        "throttle_max_ms": row.throttle_max_ms,
        "throttled_bytes_per_s": row.quota.rate,
        "quota_bytes_per_s": row.quota.estimate,
        "bands": row.latency.bands(),
    }
