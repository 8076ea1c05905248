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
from kdissect.analysis.fold import Row, Rows, Statistic
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.packed import packed
from kdissect.analysis.shared_parts import record_sets
from kdissect.analysis.speakers import address
from kdissect.analysis.versions import replica_id_of
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
        if exchange.api != "Fetch" or exchange.request is None or exchange.response is None:
            return
        request = exchange.request.body()
        if replica_id_of(request) >= 0:
            return
        whose = address(exchange.client), exchange.client_id, request.get("rackId") or None, exchange.broker
        for each in record_sets(exchange, self.limits):
            place = each.place
            if place.message is not exchange.response or not place.data:
                continue
            topic: Topic = self._labels.topic(place.topic, None if place.topic else place.topic_id)
            row = self._rows.row((topic, place.partition, *whose))
            if row is not None:
                one = _RackFetches(1, len(place.data), [exchange.number])
                one.span.add(exchange.begun_ns, exchange.number)
                row.merge(one)

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
