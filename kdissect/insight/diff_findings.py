"""Findings of two captures → those that are new, gone, grown and shrunk.

Two findings are the same if rule and subject are the same. Addresses of clients and ids of members change
from run to run, so they do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from kdissect.analysis.profile import stem
from kdissect.insight.difference import BETTER, CHANGED, FINDING, SAME, WORSE, Difference
from kdissect.insight.finding import INFO, SEVERITIES, Finding
from kdissect.insight.judge import CaptureReport
from kdissect.insight.rule import CAPTURE

GROWN = 1.5
"""The factor from which on a measure counts as larger."""


class _KnownFinding(NamedTuple):
    """A rule's findings on one subject, on one side."""

    worst: Finding
    sightings: int
    """The number of sightings in all of them."""


def changed_findings(
    before: CaptureReport, after: CaptureReport, lacks: Callable[[Finding], str | None]
) -> Iterator[Difference]:
    """All findings of both sides.

    :param lacks: returns, in words, the part of a finding's subject that does not occur after; None if all of
        it does.
    """
    named = [{(_key(each), each.subject.cluster_id) for each in side.findings} for side in (before, after)]
    parted = {key for key, cluster in named[0] if cluster} & {key for key, cluster in named[1] if cluster}
    old, new = _by_subject(before.findings, parted), _by_subject(after.findings, parted)
    unjudged = [{each.rule: each.why for each in side.not_judged} for side in (before, after)]
    for key in {**new, **old}:
        one, other = old.get(key), new.get(key)
        if one is None:
            assert other is not None
            yield _new(other.worst, unjudged[0].get(other.worst.id))
        elif other is None:
            yield _gone(one.worst, unjudged[1].get(one.worst.id), lacks(one.worst))
        else:
            yield _on_both(one, other)


def _by_subject(
    findings: Iterable[Finding], parted: set[tuple[str, ...]]
) -> dict[tuple[str, ...], _KnownFinding]:
    """The findings by subject.

    :param parted: the subjects for which both sides name clusters: there, each cluster is a subject.
    """
    out: dict[tuple[str, ...], _KnownFinding] = {}
    for each in findings:
        key = _key(each)
        if key in parted:
            key = (*key, each.subject.cluster_id or "")
        known = out.get(key)
        worst = each if known is None or _badness(each) > _badness(known.worst) else known.worst
        out[key] = _KnownFinding(worst, each.count + (0 if known is None else known.sightings))
    return out


def _key(each: Finding) -> tuple[str, ...]:
    subject = each.subject
    broker = (subject.broker or "").rpartition(":")[2]
    names = (subject.client_id, subject.group, subject.transactional_id, subject.principal)
    return (
        each.id,
        *(stem(name or "") for name in names),
        subject.topic or "",
        "" if subject.partition is None else str(subject.partition),
        broker,
    )


def _badness(each: Finding) -> tuple[int, float]:
    return -SEVERITIES.index(each.severity), each.measure or 0.0


def _matters(each: Finding) -> bool:
    """Whether a finding is trouble: not merely informative, and not about the capture itself."""
    return each.category != CAPTURE and each.severity != INFO


def _new(each: Finding, why_unjudged: str | None) -> Difference:
    text, verdict = f"new {each.severity}", WORSE if _matters(each) else CHANGED
    if why_unjudged is not None:
        text, verdict = f"not judged before ({why_unjudged})", CHANGED
    return _difference((None, each), (None, _value(each)), f"{text}: {each.message}", verdict)


def _gone(each: Finding, why_unjudged: str | None, lacking: str | None) -> Difference:
    """A finding that is gone.

    :param lacking: the part of its subject that does not occur after. Then nobody knows whether the trouble
        is over.
    """
    text, verdict = f"gone (was {each.severity})", BETTER if _matters(each) else CHANGED
    if why_unjudged is not None:
        text, verdict = f"not judged after ({why_unjudged})", CHANGED
    elif lacking is not None:
        text, verdict = f"{lacking} does not occur after (was {each.severity})", CHANGED
    return _difference((each, None), (_value(each), None), f"{text}: {each.message}", verdict)


def _value(each: Finding) -> float | None:
    return each.measure if each.unit else float(each.count)


def _on_both(one: _KnownFinding, other: _KnownFinding) -> Difference:
    old, new = one.worst, other.worst
    values = (old.measure, new.measure) if new.unit else (float(one.sightings), float(other.sightings))
    made = _difference((old, new), values, "", SAME)
    grown = _growth(old, new, made.ratio)
    if not grown:
        return made
    text = f"{'grown' if grown > 0 else 'shrunk'}: {new.message}"
    if old.severity != new.severity:
        text = f"{old.severity} → {new.severity}: {new.message}"
    verdict = CHANGED if not _matters(new) else WORSE if grown > 0 else BETTER
    return made._replace(delta_text=text, verdict=verdict, significant=True)


def _growth(old: Finding, new: Finding, ratio: float | None) -> int:
    """1 if it became worse, -1 if it became better, 0 if it did not change."""
    severities = SEVERITIES.index(old.severity) - SEVERITIES.index(new.severity)
    if severities:
        return 1 if severities > 0 else -1
    if ratio is None or not new.unit or old.unit != new.unit or 1 / GROWN < ratio < GROWN:
        return 0
    if new.threshold is not None and (new.measure or 0.0) < new.threshold:
        return 0  # a smaller measure may be worse
    return 1 if ratio > 1 else -1


def _difference(
    sides: tuple[Finding | None, Finding | None],
    values: tuple[float | None, float | None],
    text: str,
    verdict: str,
) -> Difference:
    old, new = sides
    each = new or old
    assert each is not None
    return Difference(
        FINDING,
        each.where,
        each.id,
        *values,
        each.unit or "times",
        text,
        verdict,
        verdict != SAME,
        SEVERITIES.index(each.severity),
        filters=(None if old is None else old.shown_by, None if new is None else new.shown_by),
        findings=sides,
    )
