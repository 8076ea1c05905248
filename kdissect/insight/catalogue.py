"""All rules. A module of rules is one line here."""

from __future__ import annotations

from kdissect.insight.rule import RULES
from kdissect.insight.rules import brokers, capture, cluster, replication

__all__ = ["RULES", "brokers", "capture", "cluster", "replication"]
