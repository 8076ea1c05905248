"""All rules. A module of rules is one line here."""

from __future__ import annotations

from kdissect.insight.rule import RULES
from kdissect.insight.rules import (
    capture,
    delivery,
    latency,
    logs,
    loops,
    network,
    offsets,
    quotas,
    reach,
    readiness,
    transactions,
)

__all__ = [
    "RULES",
    "capture",
    "delivery",
    "latency",
    "logs",
    "loops",
    "network",
    "offsets",
    "quotas",
    "reach",
    "readiness",
    "transactions",
]
