"""Runs the rules over the rows of facts, links causes, and puts the worst first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kdissect.analysis.fold import Row, Statistic
from kdissect.insight.causes import linked
from kdissect.insight.context import Context
from kdissect.insight.finding import CONFIDENCES, SEVERITIES, Finding
from kdissect.insight.rule import Facts, Rule


class NotJudged(NamedTuple):
    """A rule that could say nothing."""

    rule: str
    why: str


class Judged(NamedTuple):
    """What the rules say."""

    findings: list[Finding]
    """Causes, worst first, each followed by what it explains."""
    not_judged: list[NotJudged]
    rules: int
    """How many rules could say something."""


def judge(
    rules: Mapping[str, Rule],
    rows: Mapping[type[Statistic], list[Row]],
    context: Context,
    thresholds: Mapping[str, Mapping[str, float]] | None = None,
) -> Judged:
    """Run the rules.

    :param rows: of every statistic that a rule needs.
    :param thresholds: those of the configuration, by rule.
    """
    found: list[Finding] = []
    silent: list[NotJudged] = []
    for each in rules.values():
        facts = Facts(each, rows, context, thresholds or {})
        found += each.judge(facts)
        if facts.not_judged is not None:
            silent.append(NotJudged(each.id, facts.not_judged))
    return Judged(_in_order(linked(found)), silent, len(rules) - len(silent))


def _in_order(findings: list[Finding]) -> list[Finding]:
    """Causes by how bad they are; below each what it explains."""
    effects: dict[str, list[Finding]] = {}
    for each in sorted(findings, key=_badness):
        if each.because is not None:
            effects.setdefault(each.because, []).append(each)
    out: list[Finding] = []

    def add(each: Finding) -> None:
        out.append(each)
        for effect in effects.pop(each.key, ()):
            add(effect)

    for each in sorted((each for each in findings if each.because is None), key=_badness):
        add(each)
    return out


def _badness(each: Finding) -> tuple[int, int, int, int, str]:
    return (
        SEVERITIES.index(each.severity),
        CONFIDENCES.index(each.confidence),
        -(each.cost_ns or 0),
        -each.count,
        each.key,
    )
