"""The brokers from which consumers fetch, with the rack that each consumer names (KIP-392)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from kdissect.analysis.counters import Span
from kdissect.analysis.declared import (
    BROKER_COLUMN,
    EXCHANGE,
    SPEAKER_COLUMNS,
    TOPIC_COLUMN,
    column,
    first_and_last,
)
from kdissect.analysis.fold import Row, Statistic
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.packed import packed
from kdissect.analysis.rows import Rows
from kdissect.analysis.shared_parts import record_sets
from kdissect.analysis.speakers import address
from kdissect.analysis.topics import replica_id
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits

MOST = 8


@packed
@dataclass(slots=True)
class _RackFetches:
    fetches: int = 0
    bytes: int = 0
    exchanges: list[int] = field(default_factory=list)
    span: Span = field(default_factory=Span)

    def add(self, exchange: Exchange, size: int) -> None:
        """Count a Fetch that brought records of this size."""
        self.fetches += 1
        self.bytes += size
        if len(self.exchanges) < MOST:
            self.exchanges.append(exchange.number)
        self.span.add(exchange.begun_ns, exchange.number)

    def merge(self, later: _RackFetches) -> None:
        self.fetches += later.fetches
        self.bytes += later.bytes
        self.exchanges = (self.exchanges + later.exchanges)[:MOST]
        self.span.merge(later.span)


class Racks(Statistic):
    """The statistic ``racks``: a row for each consumer, partition and broker that sent it records."""

    apis = frozenset(("Fetch",))
    name = "racks"
    about = "from which brokers consumers in which rack fetch"
    columns = (
        TOPIC_COLUMN,
        column("partition", "int32", "the partition"),
        *SPEAKER_COLUMNS,
        column("rack", "text", "the rack that the client reports; null if it reports none"),
        BROKER_COLUMN,
        column("fetches", "int64", "Fetches that brought records"),
        column("bytes", "int64", "bytes of the records"),
        column("exchanges", "int64s", "the first of these Fetches", unit=EXCHANGE),
        *first_and_last("Fetch"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._labels = Labels(self.latest, limits)
        self._rows: Rows[tuple[Any, ...], _RackFetches] = Rows(_RackFetches, self.room)
        """The fetches by topic, partition, client, client id, rack and broker."""

    def _exchange(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        if request is None or response is None or exchange.api != "Fetch" or replica_id(exchange) >= 0:
            return
        whose: tuple[str | None, ...] | None = None
        for each in record_sets(exchange, self.limits):
            place = each.place
            if place.message is not response or not place.data:
                continue
            if whose is None:
                rack = request.body().get("rackId") or None
                whose = address(exchange.client), exchange.client_id, rack, exchange.broker
            topic: Topic = self._labels.topic(place.topic, None if place.topic else place.topic_id)
            row = self._rows.row((topic, place.partition, *whose))
            if row is not None:
                row.add(exchange, len(place.data))

    def merge(self, later: Self) -> None:
        self._labels.merge(later._labels)
        self._rows.merge(later._rows)

    @property
    def left_out(self) -> int:
        return self._rows.left_out

    def result(self) -> list[Row]:
        rows = self._labels.by_name(self._rows.rows, _RackFetches)
        return [
            {
                "topic": topic,
                "partition": partition,
                "client": client,
                "client_id": client_id,
                "rack": rack,
                "broker": broker,
                "fetches": row.fetches,
                "bytes": row.bytes,
                "exchanges": [*row.exchanges],
                "first_ns": row.span.first_ns,
                "last_ns": row.span.last_ns,
            }
            for (topic, partition, client, client_id, rack, broker), row in sorted(
                rows.items(), key=lambda each: tuple(str(part) for part in each[0])
            )
        ]
