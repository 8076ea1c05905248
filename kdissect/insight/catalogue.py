"""All rules. A module of rules is one line here."""

from __future__ import annotations

from kdissect.insight.rule import RULES

__all__ = ["RULES"]
