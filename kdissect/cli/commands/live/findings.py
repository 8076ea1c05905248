"""Findings during a capture."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from kdissect.dissect import Event
from kdissect.insight.catalogue import RULES
from kdissect.insight.finding import Finding
from kdissect.insight.judge import Judge
from kdissect.limits import Limits

EVERY_SECONDS = 1.0
SHARE = 20
"""Judging may take one part in this many of the time."""


class LiveFindings:
    """Judges the events so far every second, or less often if judging takes long.

    :param judged: returns the findings so far.
    """

    def __init__(
        self,
        limits: Limits,
        judged: Callable[[Judge], list[Finding]],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.current: list[Finding] = []
        """The findings of the last judgement."""
        self.is_new = False
        """Whether the last event started a judgement."""
        for each in RULES.values():
            _ = each.page  # read its file now: a process that captures may be confined later
        self._judge = Judge(limits)
        self._judged = judged
        self._now = now
        self._due = now() + EVERY_SECONDS
        self._known: set[str] = set()
        """Keys of the findings that go on."""

    def feed(self, event: Event) -> Iterator[Finding]:
        """Take in the next event, and give findings that are new."""
        self._judge.feed(event)
        begun = self._now()
        self.is_new = begun >= self._due
        if not self.is_new:
            return iter(())
        self.current = self._judged(self._judge)
        ended = self._now()
        self._due = ended + max(EVERY_SECONDS, SHARE * (ended - begun))
        open_ones = {each.key for each in self.current if each.resolved_ns is None}
        new = [each for each in self.current if each.key in open_ones - self._known]
        self._known = open_ones
        return iter(new)
