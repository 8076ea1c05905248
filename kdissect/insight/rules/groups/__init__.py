"""Rules on groups and their rebalances."""

from __future__ import annotations

from kdissect.insight.rules.groups import assigned, members, owned, rebalancing, refused, silent

__all__ = ["assigned", "members", "owned", "rebalancing", "refused", "silent"]
