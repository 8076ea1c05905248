"""All rules. A module of rules is one line here."""

from __future__ import annotations

from kdissect.insight.rule import RULES
from kdissect.insight.rules import (
    batching,
    capture,
    latency,
    logs,
    network,
    produce,
    quotas,
    security,
    transactions,
)

__all__ = [
    "RULES",
    "batching",
    "capture",
    "latency",
    "logs",
    "network",
    "produce",
    "quotas",
    "security",
    "transactions",
]
