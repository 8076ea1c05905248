"""A difference between two captures, one row of ``kdissect diff``."""

from __future__ import annotations

from typing import NamedTuple

from kdissect.insight.finding import Finding

VERDICTS = WORSE, BETTER, CHANGED, ONLY_AFTER, ONLY_BEFORE, SAME = (
    *("worse", "better", "changed", "only-after", "only-before", "same"),
)
FINDING = "finding"
"""The area of findings; the others are those of the profile."""
SEEN = "seen"
"""What is measured first of a subject that is on one side only: how often."""


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
    counts: tuple[int | None, int | None] = (None, None)
    """How many exchanges or batches were counted on either side; None where unknown."""
    filters: tuple[str | None, str | None] = (None, None)
    """The display filter that shows its exchanges on either side; None where there are none."""
    members: tuple[str, str] = ("", "")
    """Of a set (versions, codecs, software) what it has on either side."""
    findings: tuple[Finding | None, Finding | None] = (None, None)
    """What it is about, where it is about a finding."""

    @property
    def is_compared(self) -> bool:
        """Whether it tells of both sides. What is measured of a subject on one side only does not."""
        return self.significant or self.verdict not in (ONLY_AFTER, ONLY_BEFORE)

    @property
    def ratio(self) -> float | None:
        """``after / before``; None where one of them is 0 or unknown."""
        return self.after / self.before if self.before and self.after else None
