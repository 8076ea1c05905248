"""Connections of clients, and what findings say of them alike."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from kdissect.analysis.fold import Row
from kdissect.analysis.speakers import address
from kdissect.insight.words import of_connections


def who(row: Row) -> tuple[str | None, str | None]:
    """Client id, or else the address."""
    return (row["client_id"], None) if row["client_id"] else (None, address(row["client"]))


def by_client(rows: list[Row]) -> dict[tuple[str | None, str | None], list[Row]]:
    """The connections of each client."""
    out: dict[tuple[str | None, str | None], list[Row]] = defaultdict(list)
    for row in rows:
        out[who(row)].append(row)
    return out


def about(rows: list[Row]) -> dict[str, Any]:
    """What findings on connections say alike."""
    connections = [row["connection"] for row in rows]
    return {
        "first_ns": min(row["first_ns"] for row in rows),
        "last_ns": max(row["last_ns"] for row in rows),
        "connections": connections,
        "filter": of_connections(connections),
    }
