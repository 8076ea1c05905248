"""The versions that a broker offers (ApiVersions) and answers, seen on connections.

Each connection asks, and brokers of one release offer the same on all of them. The offer is kept once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from kdissect.analysis.answers import KnownAnswers
from kdissect.analysis.packed import packed

MOST_VERSIONS = 4_096
"""The most versions of one client on one connection: more than all APIs have."""
Ranges = Mapping[int, tuple[int, int]]
"""The lowest and the highest offered version of each API key. Many connections share one mapping, so it must
not be changed."""
_MOST_SHARED = 256
"""Offers of more APIs are not shared: no broker has so many."""


def ranges_of(answer: Mapping[str, Any]) -> Ranges:
    """The offers in the body of an answer to ApiVersions. The body may lack fields."""
    if not answer:
        return {}
    told = tuple(
        (each["apiKey"], (each["minVersion"], each["maxVersion"]))
        for each in answer.get("apiKeys") or ()
        if None not in (each.get("apiKey"), each.get("minVersion"), each.get("maxVersion"))
    )
    return _shared_ranges(told) if len(told) <= _MOST_SHARED else dict(told)


@lru_cache(maxsize=64)
def _shared_ranges(ranges: tuple[tuple[int, tuple[int, int]], ...]) -> Ranges:
    """The offers, shared by all connections with the same ones: brokers of one release offer the same."""
    return dict(ranges)


ranges_in = KnownAnswers(ranges_of).of
"""``ranges_in(exchange, response)``: the offers in an answer to ApiVersions."""


class _BrokerOffer(NamedTuple):
    """The versions of an API that a broker offers, and the exchange that told them."""

    number: int
    low: int
    high: int


@packed
@dataclass(slots=True)
class OffersSeen:
    """The versions that a broker offers, by API key, and those that it answered. The last exchange with an
    offer counts."""

    number: int = -1
    """The last exchange with offers."""
    ranges: Ranges = field(default_factory=dict)
    """Its offers."""
    others: dict[int, _BrokerOffer] = field(default_factory=dict)
    """Offers of other APIs in earlier exchanges."""
    answered: dict[int, int] = field(default_factory=dict)
    """The highest version of each API that it answered without refusing it."""

    def offers(self, api_key: int) -> tuple[int, int] | None:
        """The lowest and the highest version; None if unknown."""
        found = self.ranges.get(api_key)
        if found is not None:
            return found
        other = self.others.get(api_key)
        return None if other is None else (other.low, other.high)

    def take_offers(self, number: int, ranges: Ranges) -> None:
        """Note the offers of an exchange."""
        if ranges is self.ranges:  # as in most exchanges
            self.number = max(self.number, number)
            return
        if not ranges or (number == self.number and ranges == self.ranges):
            return
        if number == self.number:
            self.ranges = {
                api_key: max(self.ranges.get(api_key, (-1, -1)), ranges.get(api_key, (-1, -1)))
                for api_key in {**self.ranges, **ranges}
            }
        elif number > self.number:
            before = self.number, self.ranges
            self.number, self.ranges = number, ranges
            self._take_earlier_offers(*before)
        else:
            self._take_earlier_offers(number, ranges)
        for api_key in [each for each in self.others if each in self.ranges]:
            del self.others[api_key]

    def _take_earlier_offers(self, number: int, ranges: Ranges) -> None:
        """Note the offers of an exchange before the last."""
        for api_key, (low, high) in ranges.items():
            if api_key not in self.ranges:
                self._other(api_key, _BrokerOffer(number, low, high))

    def _other(self, api_key: int, offer: _BrokerOffer) -> None:
        before = self.others.get(api_key)
        if before is None or offer > before:
            self.others[api_key] = offer

    def take_answer(self, api_key: int, api_version: int) -> None:
        """Note an answer to a request of this version."""
        if api_key in self.answered or len(self.answered) < MOST_VERSIONS:
            self.answered[api_key] = max(api_version, self.answered.get(api_key, api_version))

    def merge(self, other: OffersSeen) -> None:
        for api_key, api_version in other.answered.items():
            self.take_answer(api_key, api_version)
        self.take_offers(other.number, other.ranges)
        for api_key, offer in other.others.items():
            if api_key not in self.ranges:
                self._other(api_key, offer)
