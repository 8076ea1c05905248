"""A difference between two captures, one row of ``kdissect diff``."""

from __future__ import annotations

from typing import NamedTuple

VERDICTS = WORSE, BETTER, CHANGED, ONLY_AFTER, ONLY_BEFORE, SAME = (
    *("worse", "better", "changed", "only-after", "only-before", "same"),
)
FINDING = "finding"
"""The area of findings; the others are those of the profile."""


class Difference(NamedTuple):
    """Something that was measured in two captures."""

    area: str
    """``finding``, ``api``, ``broker``, ``client``, ``topic`` or ``group``."""
    subject: str
    what: str
    """What was measured; of a finding the id of its rule."""
    before: float | None
    after: float | None
    unit: str
    delta_text: str
    """What changed, for people."""
    verdict: str
    significant: bool
    rank: int = 0
    """Its place among findings."""

    @property
    def ratio(self) -> float | None:
        """``after / before``; None where one of them is 0 or unknown."""
        return self.after / self.before if self.before and self.after else None
