"""How often clients ask for metadata, and for how many topics. Rules judge by this. Requests of brokers are
left out."""

from __future__ import annotations

from dataclasses import dataclass, field

from kdissect.analysis.counters import Span
from kdissect.analysis.declared import (
    EXCHANGE,
    SPEAKER_COLUMNS,
    column,
    first_and_last,
)
from kdissect.analysis.fold import OneTable, Row
from kdissect.analysis.pace import is_of_brokers
from kdissect.analysis.packed import packed
from kdissect.analysis.speakers import address
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.protocol.apis import api_key

METADATA = api_key("Metadata")


@packed
@dataclass(slots=True)
class _Asked:
    requests: int = 0
    all_topics: int = 0
    all_bytes: int = 0
    all_bytes_max: int = 0
    span: Span = field(default_factory=Span)
    all_span: Span = field(default_factory=Span)

    def merge(self, later: _Asked) -> None:
        self.requests += later.requests
        self.all_topics += later.all_topics
        self.all_bytes += later.all_bytes
        self.all_bytes_max = max(self.all_bytes_max, later.all_bytes_max)
        self.span.merge(later.span)
        self.all_span.merge(later.all_span)


class MetadataAsked(OneTable[tuple[str, str], _Asked]):
    """A row for each client and client id."""

    apis = frozenset(("Metadata",))
    name = "metadata_asked"
    about = "who asks for metadata, and of how many topics"
    columns = (
        *SPEAKER_COLUMNS,
        column("requests", "int64", "Metadata requests"),
        column("all_topics", "int64", "Metadata requests for every topic"),
        column("all_bytes", "int64", "bytes of the responses to requests for every topic"),
        column("all_bytes_max", "int64", "the largest of these responses", unit="bytes"),
        column("exchanges", "int64s", "the first and the last request for every topic", unit=EXCHANGE),
        *first_and_last("request"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_Asked, limits)

    def _exchange(self, exchange: Exchange) -> None:
        if exchange.api_key != METADATA or exchange.request is None or is_of_brokers(exchange):
            return
        row = self._rows.row((address(exchange.client), exchange.client_id or ""))
        if row is None:
            return
        ns = exchange.begun_ns
        row.requests += 1
        row.span.add(ns, exchange.number)
        seen = exchange.request.survey()
        if seen is not None and seen.mentions:
            return  # it names topics
        body = exchange.request.body()
        # Version 0 cannot say null: there an empty list means all topics.
        if "topics" in body and (body["topics"] is None or (not body["topics"] and not exchange.api_version)):
            row.all_topics += 1
            row.all_span.add(ns, exchange.number)
            if exchange.response is not None:
                row.all_bytes += exchange.response.frame.size
                row.all_bytes_max = max(row.all_bytes_max, exchange.response.frame.size)

    def result(self) -> list[Row]:
        return [
            {
                "client": client,
                "client_id": client_id or None,
                "requests": row.requests,
                "all_topics": row.all_topics,
                "all_bytes": row.all_bytes,
                "all_bytes_max": row.all_bytes_max,
                "exchanges": row.all_span.numbers,
                "first_ns": row.span.first_ns,
                "last_ns": row.span.last_ns,
            }
            for (client, client_id), row in sorted(self._rows.rows.items())
        ]
