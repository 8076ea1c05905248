"""Clients that ask brokers that do not lead: the number of refusals, and when the leader was known.

A refusal or two after each move of a leader is normal: clients learn of the move from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from kdissect.analysis.cluster_fields import real_id
from kdissect.analysis.cluster_statements import NOT_LEADER
from kdissect.analysis.counters import Span
from kdissect.analysis.declared import (
    BROKER_COLUMN,
    EXCHANGE,
    PARTITION_COLUMN,
    SPEAKER_COLUMNS,
    TOPIC_COLUMN,
    column,
    first_and_last,
    time_column,
)
from kdissect.analysis.fold import Row, Statistic, most
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.packed import packed
from kdissect.analysis.rows import Rows
from kdissect.analysis.speakers import address
from kdissect.analysis.versions import replica_id_of
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.names import is_metadata_topic
from kdissect.protocol.errors import error_name

MOST = 8


class _Key(NamedTuple):
    topic: Topic
    partition: int
    client: str
    client_id: str | None
    broker: str
    api: str
    error: str


@packed
@dataclass(slots=True)
class _Refusals:
    count: int = 0
    span: Span = field(default_factory=Span)
    sent_ns: int | None = None
    exchanges: list[int] = field(default_factory=list)

    def merge(self, later: _Refusals) -> None:
        self.count += later.count
        self.span.merge(later.span)
        self.sent_ns = most(self.sent_ns, later.sent_ns)
        self.exchanges = (self.exchanges + later.exchanges)[:MOST]


class StaleLeaders(Statistic):
    """The statistic ``stale_leaders``."""

    apis = frozenset(("Produce", "Fetch"))
    name = "stale_leaders"
    about = "requests that brokers refused because they do not lead the partition"
    columns = (
        TOPIC_COLUMN,
        PARTITION_COLUMN,
        *SPEAKER_COLUMNS,
        BROKER_COLUMN,
        column("api", "text", "API of the request"),
        column("error", "text", ", ".join(NOT_LEADER)),
        column("refusals", "int64", "number of refused requests"),
        column("exchanges", "int64s", "the first of these exchanges", unit=EXCHANGE),
        time_column("sent_ns", "when the last of these requests was sent, if captured"),
        *first_and_last("refusal"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._labels = Labels(self.latest, limits)
        self._rows: Rows[tuple[Any, ...], _Refusals] = Rows(_Refusals, self.room)

    def _exchange(self, exchange: Exchange) -> None:
        api = exchange.api
        if api not in ("Produce", "Fetch") or exchange.error not in NOT_LEADER or exchange.response is None:
            return
        if api == "Fetch" and exchange.request is not None and replica_id_of(exchange.request.body()) >= 0:
            return  # brokers learn the leader from their controller
        for topic in exchange.response.body().get("responses") or ():
            name, topic_id = topic.get("name") or topic.get("topic"), real_id(topic.get("topicId"))
            if is_metadata_topic(name, topic_id):
                continue
            label = self._labels.topic(name, None if name else topic_id)
            for each in (*(topic.get("partitions") or ()), *(topic.get("partitionResponses") or ())):
                error = error_name(each.get("errorCode", 0))
                if error in NOT_LEADER:
                    self._refused(exchange, label, each.get("partitionIndex", each.get("index", -1)), error)

    def _refused(self, exchange: Exchange, label: Topic, partition: int, error: str) -> None:
        client, api = address(exchange.client), exchange.api or ""
        key = _Key(label, partition, client, exchange.client_id, exchange.broker, api, error)
        row = self._rows.row(key)
        if row is not None:
            sent_ns = exchange.request.frame.last_ns if exchange.request is not None else None
            one = _Refusals(1, sent_ns=sent_ns, exchanges=[exchange.number])
            one.span.add(exchange.ended_ns, exchange.number)
            row.merge(one)

    def merge(self, later: Self) -> None:
        self._labels.merge(later._labels)
        self._rows.merge(later._rows)

    @property
    def left_out(self) -> int:
        return self._rows.left_out

    def result(self) -> list[Row]:
        rows = self._labels.by_name(self._rows.rows, _Refusals)
        return [
            {
                "topic": topic,
                "partition": partition,
                "client": client,
                "client_id": client_id,
                "broker": broker,
                "api": api,
                "error": error,
                "refusals": row.count,
                "exchanges": row.exchanges,
                "sent_ns": row.sent_ns,
                "first_ns": row.span.first_ns,
                "last_ns": row.span.last_ns,
            }
            for (topic, partition, client, client_id, broker, api, error), row in sorted(
                rows.items(), key=lambda each: tuple(str(part) for part in each[0])
            )
        ]
