"""What is found in what was captured so far, as rows that go to the screens."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from kdissect.analysis.fold import Row
from kdissect.dissect import Event
from kdissect.insight.finding import Finding
from kdissect.insight.judge import Judge
from kdissect.limits import DEFAULTS, Limits
from kdissect.present.findings_text import captured_text, judged_text, measured


class Judging:
    """A judge, and its findings as rows.

    :param thresholds: those that are configured, by rule.
    :param ignored: rules that are not run, by id or pattern.
    """

    def __init__(
        self,
        limits: Limits = DEFAULTS,
        thresholds: Mapping[str, Mapping[str, float]] | None = None,
        ignored: Collection[str] = (),
    ) -> None:
        self._judge = Judge(limits)
        self._thresholds, self._ignored = thresholds, ignored

    def feed(self, event: Event) -> None:
        """Take in the next event."""
        self._judge.feed(event)

    def rows(self) -> tuple[list[Row], Row]:
        """What is found as of now: worst first, each effect below its cause; and what was looked at.

        A row of the first has the ``finding``, what was measured as a text, and how ``deep`` it stands below
        a cause.
        """
        judged = self._judge.judged(self._thresholds, self._ignored)
        looked_at = {
            "captured": captured_text(judged.context),
            "judged": judged_text(judged),
            "short": f"judged {judged.rules}, not {len(judged.not_judged)}",
            "first_ns": judged.context.first_ns,
        }
        return list(_rows(judged.findings)), looked_at


def _rows(findings: Iterable[Finding]) -> Iterator[Row]:
    depths: dict[str, int] = {}
    for each in findings:
        deep = depths[each.key] = 0 if each.because not in depths else depths[each.because] + 1
        yield {"finding": each, "measure": measured(each), "deep": deep}
