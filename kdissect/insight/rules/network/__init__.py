"""Rules on the network between clients and brokers, and on the connections themselves."""

from __future__ import annotations

from kdissect.insight.rules.network import abandoned, carrying, outages

__all__ = ["abandoned", "carrying", "outages"]
