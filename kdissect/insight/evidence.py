"""Findings by the exchanges that show them, for the filter fields ``finding`` and ``finding.severity``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kdissect.insight.finding import SEVERITIES, Finding

RANKS = {name: rank for rank, name in enumerate(reversed(SEVERITIES))}
"""Severities as numbers; the worst has the highest."""


class Sign(NamedTuple):
    """The parts of a finding that a filter compares."""

    id: str
    rank: int
    """The severity, as one of :data:`RANKS`."""


class EvidenceIndex:
    """Looks up the findings that an exchange is evidence of."""

    def __init__(self) -> None:
        self._signs: dict[int, list[Sign]] = {}
        self._of_connections: dict[int, list[Sign]] = {}
        """Signs of findings that name connections only, by connection."""

    def learn(self, findings: Iterable[Finding]) -> None:
        """Replace the known findings with these."""
        self._signs.clear()
        self._of_connections.clear()
        for each in findings:
            sign = sign_of(each)
            for number in each.exchanges:
                self._signs.setdefault(number, []).append(sign)
            for number in () if each.exchanges else each.connections:
                self._of_connections.setdefault(number, []).append(sign)

    def of(self, exchange: int, connection: int) -> list[Sign]:
        """The signs of the findings that an exchange of a connection shows."""
        return [*self._signs.get(exchange, ()), *self._of_connections.get(connection, ())]

    def __bool__(self) -> bool:
        """Whether any finding names an exchange or a connection."""
        return bool(self._signs or self._of_connections)


def sign_of(finding: Finding) -> Sign:
    """The sign of a finding."""
    return Sign(finding.id, RANKS[finding.severity])
