"""Connections whose bytes were not all captured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kdissect.analysis.connections import Connections
from kdissect.analysis.fold import Row, address
from kdissect.insight.rule import Facts


def with_gaps(facts: Facts, name: str) -> set[Any]:
    """What a column says of connections that lack bytes. The rule needs
    :class:`~kdissect.analysis.connections.Connections`.

    :param name: the column, such as ``connection`` or ``client``.
    """
    return {row[name] for row in facts.rows(Connections) if row["gap_bytes"]}


def not_known(missing: str) -> str:
    """Why a rule does not judge a connection that lacks bytes.

    :param missing: what may be among the missing bytes.
    """
    return f"bytes of a connection are missing, {missing} perhaps among them"


def without_gaps(facts: Facts, rows: list[Row], missing: str) -> list[Row]:
    """The rows of connections that lack no bytes. If there are others, the rule says that it cannot judge
    them. It needs :class:`~kdissect.analysis.connections.Connections`.

    :param rows: each with the number of its connection.
    :param missing: what may be among the missing bytes.
    """
    lossy = with_gaps(facts, "connection")
    kept = [row for row in rows if row["connection"] not in lossy]
    if len(kept) < len(rows):
        facts.cannot_judge(not_known(missing))
    return kept


def is_often_one_sided(facts: Facts, clients: Iterable[str]) -> bool:
    """Whether more than a tenth of the exchanges of these clients lacks a side. Then nobody can tell what
    they did not do: it may be what was not captured. Connections of which only the broker's side was
    captured may be anybody's, and count for all. On each connection one request may still wait. The rule
    needs :class:`~kdissect.analysis.connections.Connections`.

    :param clients: their addresses, with ports or without.
    """
    hosts = {address(client) for client in clients}
    rows = [
        row
        for row in facts.rows(Connections)
        if address(row["client"]) in hosts or (row["responses"] and not row["requests"])
    ]
    most = sum(max(row["requests"], row["responses"]) for row in rows)
    lacking = sum(max(0, abs(row["requests"] - row["responses"]) - 1) for row in rows)
    return bool(10 * lacking > most)
