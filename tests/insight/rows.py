"""Rows of statistics for rules, in which all is well but what a test says."""

from __future__ import annotations

from typing import Any

from kdissect.analysis.fold import MILLISECOND, SECOND, Row, Statistic
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import Context
from kdissect.insight.finding import Finding
from kdissect.insight.judge import judge
from kdissect.insight.page import page

T0 = 1_800_000_000 * SECOND
MS, S = MILLISECOND, SECOND


def row(statistic: type[Statistic], **values: Any) -> Row:
    """A row with these values; numbers are 0, lists empty, texts null."""
    empty: dict[str, Any] = {"text": None, "bool": False, "texts": [], "int64s": [], "json": []}
    known = {each.name: empty.get(each.type, 0) for each in statistic.columns}
    assert values.keys() <= known.keys(), values.keys() - known.keys()
    return {**known, "first_ns": T0, "last_ns": T0 + 60 * S, **values}


def said(*rows: tuple[type[Statistic], Row], ids: tuple[str, ...]) -> dict[str, list[Finding]]:
    """What these rules say of these rows."""
    rules = {id: RULES[id] for id in ids}
    facts: dict[type[Statistic], list[Row]] = {need: [] for each in rules.values() for need in each.needs}
    for statistic, values in rows:
        facts[statistic].append(values)
    found: dict[str, list[Finding]] = {}
    for each in judge(rules, facts, Context(T0, T0 + 60 * S)).findings:
        found.setdefault(each.id, []).append(each)
        assert each.message.endswith(".")
        assert len(each.message) < 400
        assert each.cause
        assert each.fix
        assert each.first_ns is not None
    return found


def check_pages(category: str) -> None:
    """Each rule of a category has a page with all of its parts."""
    rules = [each for each in RULES.values() if each.category == category]
    assert rules
    for each in rules:
        written = page(each.id)
        assert written.what.endswith(".")
        assert written.why.endswith(".")
        assert written.do.endswith(".")
        assert written.sources
