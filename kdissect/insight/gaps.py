"""Connections whose bytes were not all captured."""

from __future__ import annotations

from kdissect.analysis.connections import Connections
from kdissect.analysis.fold import Row
from kdissect.insight.rule import Facts


def without_gaps(facts: Facts, rows: list[Row], missing: str) -> list[Row]:
    """The rows of connections that lack no bytes. If there are others, the rule says that it cannot judge
    them. It needs :class:`~kdissect.analysis.connections.Connections`.

    :param rows: each with the number of its connection.
    :param missing: what may be among the missing bytes.
    """
    lossy = {row["connection"] for row in facts.rows(Connections) if row["gap_bytes"]}
    kept = [row for row in rows if row["connection"] not in lossy]
    if len(kept) < len(rows):
        facts.cannot_judge(f"bytes of a connection are missing, {missing} perhaps among them")
    return kept
