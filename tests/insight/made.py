"""Rows of facts made by hand, and what a rule says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kdissect.analysis.fold import Row, Statistic
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import Context
from kdissect.insight.finding import Finding
from kdissect.insight.judge import judge

SECOND = 1_000_000_000
NOTHING: dict[str, Any] = {"texts": [], "int64s": []}


def row(statistic: type[Statistic], **values: Any) -> Row:
    """A row with these values; other lists are empty, all else null."""
    names = {each.name for each in statistic.columns}
    assert set(values) <= names, set(values) - names
    defaults = {
        each.name: list(NOTHING[each.type]) if each.type in NOTHING else None for each in statistic.columns
    }
    return defaults | values


def said(
    id: str,
    rows: Mapping[Any, list[Row]],
    context: Context | None = None,
    **thresholds: float,
) -> list[Finding]:
    """What a rule says of rows; of statistics that are not given there are none."""
    rule = RULES[id]
    facts = {need: rows.get(need, []) for need in rule.needs}
    known = Context(first_ns=0, last_ns=100 * SECOND, exchanges=1) if context is None else context
    return judge({id: rule}, facts, known, {id: thresholds}).findings
