"""What the rules say of captures and events."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kdissect.capture.files import read_packets
from kdissect.dissect import Event
from kdissect.insight.context import JudgingContext
from kdissect.insight.finding import Finding
from kdissect.insight.judge import Judge, Judged
from tests.dissecting import dissect

CAPTURES = Path(__file__).parents[2] / "captures"
"""The captures that are shipped."""


def judged(events: Iterable[Event]) -> Judged:
    """What all rules say of events."""
    judge = Judge()
    for event in events:
        judge.feed(event)
    return judge.judged()


def judged_file(*paths: Path) -> Judged:
    """The same of a capture."""
    return judged(dissect(iter(read_packets(list(paths)))))


def findings_of(*paths: Path, id: str) -> list[Finding]:
    """The findings of one rule in a capture."""
    return [each for each in judged_file(*paths).findings if each.id == id]


def context_of(events: Iterable[Event]) -> JudgingContext:
    """What events cover."""
    judge = Judge(rules=())
    for event in events:
        judge.feed(event)
    return judge.context()
