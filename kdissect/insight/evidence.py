"""Findings by the exchanges that show them: what ``finding`` and ``finding.severity`` of a filter ask for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kdissect.insight.finding import SEVERITIES, Finding

RANKS = {name: rank for rank, name in enumerate(reversed(SEVERITIES))}
"""Severities as numbers, the worst the highest."""


class Sign(NamedTuple):
    """What a finding is, for those who only ask for it."""

    id: str
    rank: int
    """One of :data:`RANKS`."""


class EvidenceIndex:
    """Tells of which findings an exchange is evidence."""

    def __init__(self) -> None:
        self._signs: dict[int, list[Sign]] = {}
        self._of_connections: dict[int, list[Sign]] = {}
        """Of findings that name connections only."""

    def learn(self, findings: Iterable[Finding]) -> None:
        """Know these findings, instead of those before."""
        self._signs.clear()
        self._of_connections.clear()
        for each in findings:
            sign = sign_of(each)
            for number in each.exchanges:
                self._signs.setdefault(number, []).append(sign)
            for number in () if each.exchanges else each.connections:
                self._of_connections.setdefault(number, []).append(sign)

    def of(self, exchange: int, connection: int) -> list[Sign]:
        """What an exchange of a connection shows."""
        return [*self._signs.get(exchange, ()), *self._of_connections.get(connection, ())]

    def __bool__(self) -> bool:
        """Whether any finding has an exchange or a connection."""
        return bool(self._signs or self._of_connections)


def sign_of(finding: Finding) -> Sign:
    """What is asked of a finding."""
    return Sign(finding.id, RANKS[finding.severity])
