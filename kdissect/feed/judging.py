"""The findings in the capture so far, as rows for the screens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from kdissect.analysis.fold import Row
from kdissect.analysis.latest import Latest
from kdissect.analysis.moments import Moment, Moments
from kdissect.analysis.room import Room
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.insight.finding import Finding
from kdissect.insight.judge import Judge
from kdissect.limits import DEFAULTS, Limits
from kdissect.present.findings_text import captured_text, judged_text, measured
from kdissect.present.form import plural

MOST_MARKS = 500
"""The largest number of marks of one kind, evenly over time: more do not fit on any screen."""


class Judging:
    """A judge, its findings as rows, and the events beside them.

    :param thresholds: the configured thresholds, by rule.
    :param ignored: rules that are not run, by id or pattern.
    """

    def __init__(
        self,
        limits: Limits = DEFAULTS,
        thresholds: Mapping[str, Mapping[str, float]] | None = None,
        ignored: Collection[str] = (),
    ) -> None:
        self._judge = Judge(limits)
        self._latest = Latest()
        self._moments = Moments(Room(limits), self._latest)
        self._thresholds, self._ignored = thresholds, ignored

    def feed(self, event: Event) -> None:
        """Take in the next event."""
        self._judge.feed(event)
        if isinstance(event, Exchange):
            self._latest.see(event)
            self._moments.see(event, True)

    def rows(self, packets: int | None = None) -> tuple[list[Row], Row]:
        """The current findings, worst first, each effect below its cause; and the row about the judging.

        A finding's row has the ``finding``, the measured values as a text, and its depth below a cause
        (``deep``).

        :param packets: the number of packets read, of any kind.
        """
        judged = self._judge.judged(self._thresholds, self._ignored, packets)
        looked_at = {
            "captured": captured_text(judged.context),
            "judged": judged_text(judged),
            "short": f"{plural(judged.rules, 'rule')} judged, {len(judged.not_judged):,} not",
            "first_ns": judged.context.first_ns,
            "is_unread": judged.context.is_unread,
        }
        return list(_rows(judged.findings)), looked_at

    def marks(self) -> list[Row]:
        """The events by time: ``ns``, ``kind``, ``text``, and the number of similar ones (``count``)."""
        return list(_thinned(sorted(self._moments.moments())))


def _thinned(moments: list[Moment]) -> Iterator[Row]:
    """A row for each event; close events of one kind share a row if there are many."""
    if not moments:
        return
    first, length = moments[0].ns, max(1, (moments[-1].ns - moments[0].ns) // MOST_MARKS + 1)
    kinds = Counter(moment.kind for moment in moments)
    found: dict[tuple[str, int], Row] = {}
    for ns, kind, text in moments:
        slot = (ns - first) // length if kinds[kind] > MOST_MARKS else ns
        row = found.setdefault((kind, slot), {"ns": ns, "kind": kind, "text": text, "count": 0})
        row["count"] += 1
    yield from found.values()


def _rows(findings: Iterable[Finding]) -> Iterator[Row]:
    depths: dict[str, int] = {}
    for each in findings:
        deep = depths[each.key] = 0 if each.because not in depths else depths[each.because] + 1
        yield {"finding": each, "measure": measured(each), "deep": deep}
