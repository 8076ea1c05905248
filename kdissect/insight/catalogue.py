"""All rules. A module of rules is one line here."""

from __future__ import annotations

from kdissect.insight.rule import RULES
from kdissect.insight.rules import (
    batching,
    capture,
    groups,
    latency,
    logs,
    network,
    produce,
    quotas,
    security,
    share,
    streams,
    transactions,
)

__all__ = [
    "RULES",
    "batching",
    "capture",
    "groups",
    "latency",
    "logs",
    "network",
    "produce",
    "quotas",
    "security",
    "share",
    "streams",
    "transactions",
]
