"""Joins the findings of a rule that repeat for one subject."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps

from kdissect.insight.finding import MOST_EVIDENCE, SEVERITIES, Finding
from kdissect.insight.rule import Facts
from kdissect.insight.words import of_numbers

Judge = Callable[[Facts], Iterable[Finding]]

MOST_STEPS = 8


def once_per_subject(judge: Judge) -> Judge:
    """Make a rule give one finding for each subject."""

    @wraps(judge)
    def judged(facts: Facts) -> Iterator[Finding]:
        return join_repeated(judge(facts))

    return judged


def join_repeated(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, with those of one key joined: the worst of them, with all that the others add."""
    by_key: dict[str, list[Finding]] = {}
    for each in findings:
        by_key.setdefault(each.key, []).append(each)
    for several in by_key.values():
        yield several[0] if len(several) == 1 else _joined(several)


def _joined(several: list[Finding]) -> Finding:
    order = sorted(several, key=lambda each: each.first_ns or 0)
    worst = min(order, key=lambda each: (SEVERITIES.index(each.severity), -(each.cost_ns or 0), -each.count))
    costs = [each.cost_ns for each in order if each.cost_ns is not None]
    starts = [each.first_ns for each in order if each.first_ns is not None]
    ends = [each.last_ns for each in order if each.last_ns is not None]
    return worst.changed(
        message=f"{worst.message} That happened {len(several)} times; this is the worst one.",
        count=sum(each.count for each in order),
        cost_ns=sum(costs) if costs else None,
        first_ns=min(starts, default=None),
        last_ns=max(ends, default=None),
        resolved_ns=order[-1].resolved_ns,
        exchanges=_first(each.exchanges for each in order),
        packets=_first(each.packets for each in order),
        connections=_first(each.connections for each in order),
        filter=_filter(order, worst),
        steps=tuple(sorted({step for each in order for step in each.steps}))[:MOST_STEPS],
    )


def _filter(several: list[Finding], worst: Finding) -> str:
    """The filter that shows all of them, if each names exchanges by number."""
    if all(each.filter.startswith("number ") for each in several):
        return of_numbers(_first(each.exchanges for each in several))
    return worst.filter


def _first(parts: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(number for part in parts for number in part))[:MOST_EVIDENCE]
