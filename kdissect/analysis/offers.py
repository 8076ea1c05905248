"""The ranges of versions that brokers offer in ApiVersions answers. Rules judge by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kdissect.analysis.counters import Span
from kdissect.analysis.declared import BROKER_COLUMN, EXCHANGE, column, first_and_last
from kdissect.analysis.fold import OneTable, Row
from kdissect.analysis.offers_seen import ranges_in
from kdissect.analysis.packed import packed
from kdissect.analysis.recent import Recent
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.protocol.apis import API_VERSIONS, api_name

Ranges = tuple[tuple[int, int, int], ...]
"""API key, lowest and highest version; ascending."""
_MOST_LAST = 1_024
"""The most brokers whose last offer is remembered."""


@packed
@dataclass(slots=True)
class _Offer:
    span: Span = field(default_factory=Span)

    def merge(self, later: _Offer) -> None:
        self.span.merge(later.span)


class Offers(OneTable[tuple[str, Ranges], _Offer]):
    """A row for each broker and offer: several if the offer changed."""

    apis = frozenset(("ApiVersions",))
    name = "offers"
    about = "which versions of which APIs each broker offers"
    row_bytes = 7_500
    columns = (
        BROKER_COLUMN,
        column("offered", "json", "the lowest and the highest version of each API"),
        column("exchanges", "int64s", "the first and the last response with these versions", unit=EXCHANGE),
        *first_and_last("such response"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_Offer, limits)
        self._last: Recent[str, tuple[Mapping[int, tuple[int, int]], _Offer]] = Recent(_MOST_LAST)
        """The last offer of each broker, with its row. Nearly all connections get the same one."""

    def _exchange(self, exchange: Exchange) -> None:
        if exchange.api_key != API_VERSIONS or exchange.response is None or exchange.error is not None:
            return
        if exchange.response.is_cut:
            return
        broker, offered = exchange.broker, ranges_in(exchange, exchange.response)
        known = self._last.get(broker)
        if known is not None and known[0] is offered:
            row: _Offer | None = known[1]
        else:
            row = self._rows.row((broker, _in_order(offered))) if offered else None
            if row is not None:
                self._last.keep(broker, (offered, row))
        if row is not None:
            row.span.add(exchange.begun_ns, exchange.number)

    def result(self) -> list[Row]:
        found = [
            {
                "broker": broker,
                "offered": {api_name(key): [low, high] for key, low, high in ranges},
                "exchanges": row.span.numbers,
                "first_ns": row.span.first_ns,
                "last_ns": row.span.last_ns,
            }
            for (broker, ranges), row in self._rows.rows.items()
        ]
        return sorted(found, key=lambda row: (row["broker"], row["first_ns"], row["exchanges"]))


def _in_order(offered: Mapping[int, tuple[int, int]]) -> Ranges:
    return tuple(sorted((key, *versions) for key, versions in offered.items()))
