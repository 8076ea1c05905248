"""All rules. A module of rules is one line here."""

from __future__ import annotations

from kdissect.insight.rule import RULES
from kdissect.insight.rules import (
    capture,
    latency,
    logs,
    network,
    quotas,
    transactions,
)

__all__ = [
    "RULES",
    "capture",
    "latency",
    "logs",
    "network",
    "quotas",
    "transactions",
]
