"""Rules on whether clients reach brokers, and speak what is spoken there."""

from __future__ import annotations

from kdissect.insight.rules.reach import addresses, closed, others, ports

__all__ = ["addresses", "closed", "others", "ports"]
