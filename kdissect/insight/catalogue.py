"""All rules. A module of rules is one line here."""

from __future__ import annotations

from kdissect.insight.rule import RULES
from kdissect.insight.rules import (
    brokers,
    capture,
    cluster,
    latency,
    logs,
    network,
    quotas,
    replication,
    transactions,
)

__all__ = [
    "RULES",
    "brokers",
    "capture",
    "cluster",
    "latency",
    "logs",
    "network",
    "quotas",
    "replication",
    "transactions",
]
