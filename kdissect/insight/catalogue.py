"""All rules. A module of rules is one line here."""

from __future__ import annotations

from kdissect.insight.rule import RULES
from kdissect.insight.rules import capture, latency, network, quotas

__all__ = ["RULES", "capture", "latency", "network", "quotas"]
from kdissect.insight.rules import transactions

__all__ = ["RULES", "capture", "transactions"]
from kdissect.insight.rules import logs

__all__ = ["RULES", "capture", "logs"]
