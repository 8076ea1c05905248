"""All rules. A module of rules is one line here."""

from __future__ import annotations

from kdissect.insight.rule import RULES
from kdissect.insight.rules import capture, delivery, loops, offsets, reach, readiness

__all__ = ["RULES", "capture", "delivery", "loops", "offsets", "reach", "readiness"]
