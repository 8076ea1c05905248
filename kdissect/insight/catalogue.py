"""All rules. A module of rules is one line here."""

from __future__ import annotations

from kdissect.insight.rule import RULES
from kdissect.insight.rules import (
    batching,
    capture,
    delivery,
    groups,
    latency,
    logs,
    loops,
    network,
    offsets,
    produce,
    quotas,
    reach,
    readiness,
    security,
    share,
    streams,
    transactions,
)

__all__ = [
    "RULES",
    "batching",
    "capture",
    "delivery",
    "groups",
    "latency",
    "logs",
    "loops",
    "network",
    "offsets",
    "produce",
    "quotas",
    "reach",
    "readiness",
    "security",
    "share",
    "streams",
    "transactions",
]
