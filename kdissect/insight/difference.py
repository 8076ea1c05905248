"""The difference between two captures: a row of ``kdissect diff``."""

from __future__ import annotations

from typing import NamedTuple

from kdissect.insight.finding import Finding

VERDICTS = WORSE, BETTER, CHANGED, ONLY_AFTER, ONLY_BEFORE, SAME = (
    *("worse", "better", "changed", "only-after", "only-before", "same"),
)
FINDING = "finding"
"""The area of findings; the others are those of the profile."""
SEEN = "seen"
"""The first measure of a subject that only one side has: how often it was seen."""


class Difference(NamedTuple):
    """A measure of two captures."""

    area: str
    """``finding``, ``api``, ``broker``, ``client``, ``topic`` or ``group``."""
    subject: str
    what: str
    """The measure; for a finding, the id of its rule."""
    before: float | None
    after: float | None
    unit: str
    delta_text: str
    """The change, for people."""
    verdict: str
    significant: bool
    rank: int = 0
    """The place among findings."""
    counts: tuple[int | None, int | None] = (None, None)
    """How many exchanges or batches were counted on each side; None if unknown."""
    filters: tuple[str | None, str | None] = (None, None)
    """The display filter that shows the exchanges on each side; None if there are none."""
    members: tuple[str, str] = ("", "")
    """The members of a set (versions, codecs, software) on each side."""
    findings: tuple[Finding | None, Finding | None] = (None, None)
    """The finding on each side, if this is about a finding."""

    @property
    def is_compared(self) -> bool:
        """Whether it compares both sides. Measures of a subject that only one side has do not."""
        return self.significant or self.verdict not in (ONLY_AFTER, ONLY_BEFORE)

    @property
    def ratio(self) -> float | None:
        """``after / before``; None if one of them is 0 or unknown."""
        return self.after / self.before if self.before and self.after else None
