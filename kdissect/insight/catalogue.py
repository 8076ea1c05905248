"""All rules. A module of rules is one line here."""

from __future__ import annotations

from kdissect.insight.rule import RULES
from kdissect.insight.rules import (
    batching,
    brokers,
    capture,
    cluster,
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
    records,
    replication,
    security,
    share,
    streams,
    transactions,
)

__all__ = [
    "RULES",
    "batching",
    "brokers",
    "capture",
    "cluster",
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
    "records",
    "replication",
    "security",
    "share",
    "streams",
    "transactions",
]
