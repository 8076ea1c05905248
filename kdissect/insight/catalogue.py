"""All rules. A module of rules is one line here."""

from __future__ import annotations

from kdissect.insight.rule import RULES
from kdissect.insight.rules import (
    capture,
    groups,
    latency,
    logs,
    network,
    quotas,
    share,
    streams,
    transactions,
)

__all__ = [
    "RULES",
    "capture",
    "groups",
    "latency",
    "logs",
    "network",
    "quotas",
    "share",
    "streams",
    "transactions",
]
