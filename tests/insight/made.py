"""Rows of facts made by hand, and what rules say of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kdissect.analysis.fold import MILLISECOND, SECOND, Row, Statistic
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import JudgingContext
from kdissect.insight.finding import Finding
from kdissect.insight.judge import judge
from kdissect.insight.page import page

T0 = 1_800_000_000 * SECOND
MS, S = MILLISECOND, SECOND
WHOLE = JudgingContext(first_ns=0, last_ns=100 * SECOND, exchanges=1000, connections=5, kafka=5)
"""A capture of which nothing is missing."""
Facts = Mapping[Any, list[Row]]
"""Rows by statistic."""
Pair = tuple[type[Statistic], Row]
_LISTS = ("texts", "int64s")
_COUNTS = ("int32", "int64")


def row(statistic: type[Statistic], **values: Any) -> Row:
    """A row with these values; other lists are empty, counts of what is rare 0, all else null."""
    known: Row = {}
    for column in statistic.columns:
        empty: Any = [] if column.type in _LISTS else None
        known[column.name] = 0 if column.rare and column.type in _COUNTS else empty
    assert values.keys() <= known.keys(), values.keys() - known.keys()
    return known | values


def zeros(statistic: type[Statistic], **values: Any) -> Row:
    """The same with numbers 0 and lists empty, in the first minute from :data:`T0` on."""
    empty: dict[str, Any] = {"text": None, "bool": False, "texts": [], "int64s": [], "json": []}
    known = {each.name: empty.get(each.type, 0) for each in statistic.columns}
    minute = {name: ns for name, ns in (("first_ns", T0), ("last_ns", T0 + 60 * S)) if name in known}
    return row(statistic, **{**known, **minute, **values})


def said(
    id: str, *given: Facts | Pair, context: JudgingContext = WHOLE, **thresholds: float
) -> list[Finding]:
    """What a rule says of those of the rows that it needs."""
    return judge({id: RULES[id]}, _facts((id,), given), context, {id: thresholds}).findings


def unjudged(id: str, *given: Facts | Pair, context: JudgingContext = WHOLE) -> list[str]:
    """Why a rule does not judge those of the rows that it needs."""
    return [each.why for each in judge({id: RULES[id]}, _facts((id,), given), context).not_judged]


def said_by(ids: tuple[str, ...], *given: Pair) -> dict[str, list[Finding]]:
    """What several rules say of rows in the first minute from :data:`T0` on, each fit to be read."""
    found: dict[str, list[Finding]] = {}
    rules = {id: RULES[id] for id in ids}
    for each in judge(rules, _facts(ids, given), JudgingContext(T0, T0 + 60 * S)).findings:
        found.setdefault(each.id, []).append(each)
        assert each.message.endswith(".")
        assert len(each.message) < 400
        assert each.cause
        assert each.fix
        assert each.first_ns is not None
    return found


def _facts(ids: tuple[str, ...], given: tuple[Facts | Pair, ...]) -> dict[type[Statistic], list[Row]]:
    facts: dict[type[Statistic], list[Row]] = {need: [] for id in ids for need in RULES[id].needs}
    for each in given:
        for statistic, rows in ({each[0]: [each[1]]} if isinstance(each, tuple) else each).items():
            facts.get(statistic, []).extend(rows)
    return facts


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
