"""How far the clocks of brokers are from that of the capture.

A broker dates records itself if their topic has ``message.timestamp.type=LogAppendTime``, and answers Produce
with that time. It took it after the request had come and before it answered. So the capture's times of both
give two bounds for the difference of the clocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kdissect.analysis.counters import Span
from kdissect.analysis.declared import BROKER_COLUMN, EXCHANGE, column, first_and_last
from kdissect.analysis.fold import MILLISECOND, OneTable, Row, least, most
from kdissect.analysis.packed import packed
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.protocol.apis import api_key

PRODUCE = api_key("Produce")


@packed
@dataclass(slots=True)
class _BrokerTimes:
    answers: int = 0
    low_least: int | None = None
    low_most: int | None = None
    high_least: int | None = None
    high_most: int | None = None
    span: Span = field(default_factory=Span)

    def merge(self, later: _BrokerTimes) -> None:
        self.answers += later.answers
        self.low_least = least(self.low_least, later.low_least)
        self.low_most = most(self.low_most, later.low_most)
        self.high_least = least(self.high_least, later.high_least)
        self.high_most = most(self.high_most, later.high_most)
        self.span.merge(later.span)


class BrokerClocks(OneTable[str, _BrokerTimes]):
    """A row for each address of a broker that dated records itself."""

    apis = frozenset(("Produce",))
    name = "broker_clocks"
    about = "how far the clocks of brokers are from that of the capture"
    columns = (
        BROKER_COLUMN,
        column("answers", "int64", "Produce responses with a time of the broker"),
        column("low_min_ms", "int64", "smallest lower bound of the difference: above 0 the broker is ahead"),
        column("low_max_ms", "int64", "largest lower bound of the difference"),
        column("high_min_ms", "int64", "smallest upper bound of the difference"),
        column("high_max_ms", "int64", "largest upper bound of the difference"),
        column("exchanges", "int64s", "the first and the last of these responses", unit=EXCHANGE),
        *first_and_last("response"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_BrokerTimes, limits)

    def _exchange(self, exchange: Exchange) -> None:
        if exchange.api_key != PRODUCE or exchange.request is None or exchange.response is None:
            return
        dated_ms = _dated(exchange)
        if dated_ms is None or (row := self._rows.row(exchange.broker)) is None:
            return
        low = dated_ms - exchange.response.frame.first_ns // MILLISECOND
        high = dated_ms - exchange.request.frame.last_ns // MILLISECOND
        row.answers += 1
        row.low_least, row.low_most = least(row.low_least, low), most(row.low_most, low)
        row.high_least, row.high_most = least(row.high_least, high), most(row.high_most, high)
        row.span.add(exchange.begun_ns, exchange.number)

    def result(self) -> list[Row]:
        return [
            {
                "broker": broker,
                "answers": row.answers,
                "low_min_ms": row.low_least,
                "low_max_ms": row.low_most,
                "high_min_ms": row.high_least,
                "high_max_ms": row.high_most,
                "exchanges": row.span.numbers,
                "first_ns": row.span.first_ns,
                "last_ns": row.span.last_ns,
            }
            for broker, row in sorted(self._rows.rows.items())
        ]


def _dated(exchange: Exchange) -> int | None:
    """The time, in milliseconds, that the broker gave to the first records of a request that it dated."""
    assert exchange.response is not None
    seen = exchange.response.survey()
    if seen is not None:
        return seen.appended_ms or None
    for topic in exchange.response.body().get("responses") or ():
        for each in topic.get("partitionResponses") or ():
            ms = each.get("logAppendTimeMs")
            if isinstance(ms, int) and ms > 0:
                return ms
    return None
