"""What is found in the captures of trouble that are shipped, and in the healthy one."""

from __future__ import annotations

from functools import cache

from kdissect.insight.finding import Finding
from tests.insight.judged import CAPTURES, judged_file


@cache
def found_in(case: str) -> tuple[Finding, ...]:
    """The findings of a capture in ``captures/incidents``, but for those of the capture itself."""
    path = CAPTURES / "incidents" / f"{case}.pcapng.gz"
    return tuple(each for each in judged_file(path).findings if each.category != "capture")


def of_rule(case: str, id: str) -> list[Finding]:
    """Those of a rule."""
    return [each for each in found_in(case) if each.id == id]
