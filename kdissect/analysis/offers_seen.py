"""What a broker offers (ApiVersions) and answers, as connections tell it.

Each connection asks, and brokers of one release offer the same on all of them. That is kept once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from kdissect.analysis.answers import KnownAnswers
from kdissect.analysis.packed import packed

MOST_VERSIONS = 4_096
"""Of one client on one connection: more than all APIs have."""
Ranges = Mapping[int, tuple[int, int]]
"""The lowest and the highest version that are offered, by API key. Those of many connections share one:
nobody changes it."""
_MOST_SHARED = 256
"""Offers of more APIs are not shared: no broker has so many."""


def ranges_of(answer: Mapping[str, Any]) -> Ranges:
    """What the body of an answer to ApiVersions offers. It may lack fields."""
    if not answer:
        return {}
    told = tuple(
        (each["apiKey"], (each["minVersion"], each["maxVersion"]))
        for each in answer.get("apiKeys") or ()
        if None not in (each.get("apiKey"), each.get("minVersion"), each.get("maxVersion"))
    )
    return _shared(told) if len(told) <= _MOST_SHARED else dict(told)


@lru_cache(maxsize=64)
def _shared(told: tuple[tuple[int, tuple[int, int]], ...]) -> Ranges:
    """The same for all connections: brokers of one release offer the same."""
    return dict(told)


ranges_in = KnownAnswers(ranges_of).of
"""``ranges_in(exchange, response)``: what an answer to ApiVersions offers."""


class _BrokerOffer(NamedTuple):
    """The versions of an API that a broker offers, and the exchange that told them."""

    number: int
    low: int
    high: int


@packed
@dataclass(slots=True)
class OffersSeen:
    """What a broker offers, by API key; the last exchange counts. And what it answered."""

    number: int = -1
    """The last exchange that told offers."""
    ranges: Ranges = field(default_factory=dict)
    """What that told."""
    others: dict[int, _BrokerOffer] = field(default_factory=dict)
    """What earlier exchanges told of other APIs."""
    answered: dict[int, int] = field(default_factory=dict)
    """The highest version that it answered, and did not refuse."""

    def offers(self, api_key: int) -> tuple[int, int] | None:
        """The lowest and the highest version; None where it is not known."""
        found = self.ranges.get(api_key)
        if found is not None:
            return found
        other = self.others.get(api_key)
        return None if other is None else (other.low, other.high)

    def told(self, number: int, ranges: Ranges) -> None:
        """An exchange told these offers."""
        if ranges is self.ranges:  # what most exchanges tell
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
            self._told_before(*before)
        else:
            self._told_before(number, ranges)
        for api_key in [each for each in self.others if each in self.ranges]:
            del self.others[api_key]

    def _told_before(self, number: int, ranges: Ranges) -> None:
        """An exchange before the last told these."""
        for api_key, (low, high) in ranges.items():
            if api_key not in self.ranges:
                self._other(api_key, _BrokerOffer(number, low, high))

    def _other(self, api_key: int, offer: _BrokerOffer) -> None:
        before = self.others.get(api_key)
        if before is None or offer > before:
            self.others[api_key] = offer

    def answers(self, api_key: int, api_version: int) -> None:
        """It answered a request of this version."""
        if api_key in self.answered or len(self.answered) < MOST_VERSIONS:
            self.answered[api_key] = max(api_version, self.answered.get(api_key, api_version))

    def merge(self, other: OffersSeen) -> None:
        for api_key, api_version in other.answered.items():
            self.answers(api_key, api_version)
        self.told(other.number, other.ranges)
        for api_key, offer in other.others.items():
            if api_key not in self.ranges:
                self._other(api_key, offer)
