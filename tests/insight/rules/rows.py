"""Rows of statistics for tests of rules: what a test does not name is as where nothing is wrong."""

from __future__ import annotations

from typing import Any

from kdissect.analysis.fold import SECOND, Row, Statistic
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import Context
from kdissect.insight.finding import Finding
from kdissect.insight.judge import judge

WHOLE = Context(first_ns=0, last_ns=100 * SECOND, exchanges=1000, connections=5, kafka=5)


def row(statistic: type[Statistic], **values: Any) -> Row:
    """A row; columns that are not given are 0, an empty list, or null."""
    out: Row = {}
    for column in statistic.columns:
        empty: Any = None
        if column.type in ("int64s", "texts"):
            empty = []
        elif column.rare and column.type in ("int32", "int64"):
            empty = 0
        out[column.name] = empty
    assert set(values) <= set(out)
    return {**out, **values}


def said(
    rule: str, *rows: tuple[type[Statistic], Row], context: Context = WHOLE, **limits: float
) -> list[Finding]:
    """What a rule says of rows."""
    each = RULES[rule]
    told: dict[type[Statistic], list[Row]] = {need: [] for need in each.needs}
    for statistic, values in rows:
        told[statistic].append(values)
    return judge({rule: each}, told, context, {rule: limits}).findings
