"""Connections of clients, and the fields that their findings share."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from kdissect.analysis.fold import Row
from kdissect.analysis.speakers import address
from kdissect.insight.words import of_connections


def client_name(row: Row) -> tuple[str | None, str | None]:
    """The client id, or else the address."""
    return (row["client_id"], None) if row["client_id"] else (None, address(row["client"]))


def by_client(rows: list[Row]) -> dict[tuple[str | None, str | None], list[Row]]:
    """The connections of each client."""
    out: dict[tuple[str | None, str | None], list[Row]] = defaultdict(list)
    for row in rows:
        out[client_name(row)].append(row)
    return out


def common_fields(rows: list[Row]) -> dict[str, Any]:
    """The fields that findings on connections share."""
    connections = [row["connection"] for row in rows]
    return {
        "first_ns": min(row["first_ns"] for row in rows),
        "last_ns": max(row["last_ns"] for row in rows),
        "connections": connections,
        "filter": of_connections(connections),
    }
