"""The connections, and the clients that made them, as columns of figures. Nothing here draws."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kdissect.analysis.fold import Row
from kdissect.present.form import bars
from kdissect.present.no_kafka import NoKafka
from kdissect.present.sanitise import sanitise
from kdissect.session.conversation import Connection
from kdissect.tui.feed.index import Index, Places
from kdissect.tui.lists.figures import (
    Column,
    Figures,
    Text,
    address,
    graded,
    grave_tone,
    in_bytes,
    listed,
    number,
    rare,
    time_span,
    words,
)

SPARKS = 16
"""Bars that say when a connection had how many exchanges."""

BY_CONNECTION, BY_CLIENT = ("connections",), ("clients",)


def connection_columns(sparks: Text) -> tuple[Column, ...]:
    """Columns of ``connections``; ``sparks`` gives the bars of a row."""
    return (
        number("Conn", "connection"),
        address("Client", "client"),
        words("Client id", "client_id", 3, most=28),
        address("Broker", "broker", 5),
        Column("State", _state, _state, 0, False, is_most_first=False),
        number("Requests", "requests"),
        number("Responses", "responses", 9),
        in_bytes("To broker", "request_bytes", 4),
        in_bytes("From", "response_bytes", 4),
        time_span("p50", "p50_ns"),
        time_span("p99", "p99_ns"),
        time_span("Max", "max_ns", 7),
        number("In fl.", "in_flight_max", 2),
        *graded(),
        rare("Gap B", "gap_bytes", 6),
        rare("Skip B", "skipped_bytes", 6),
        Column("Activity", sparks, None, 8, False),
        words("Software", "software", 4, most=32),
    )


CLIENT_COLUMNS = (
    address("Client", "client"),
    words("Client id", "client_id"),
    words("Software", "software", 1),
    words("Version", "software_version", 1, most=14),
    number("Conns", "connections"),
    number("Requests", "exchanges"),
    in_bytes("To broker", "request_bytes", 2),
    in_bytes("From", "response_bytes", 2),
    listed("Speaks", "apis", 3, most=200),
)


def _state(row: Row) -> str:
    """How it ended; what else it speaks than Kafka, and why TLS stays dark."""
    end = row["end"] or "going on"
    if row["protocol"] == "kafka":
        return end
    speaks = row.get("tls") if row["protocol"] == "tls" else None
    return f"{end} ({sanitise(speaks or row['protocol'] or '?')})"


def why_nothing(packets: int, over: Iterable[Connection]) -> list[str]:
    """Why there is no exchange, by the connections that are over, or dark by now: some lines."""
    found = NoKafka()
    for each in over:
        found.add(each)
    return found.lines(packets)


def connection_key(row: Row) -> object:
    """Of both tables."""
    if "connection" in row:
        return row["connection"]
    return row["client"], row["client_id"], row["software"], row["software_version"]


def connection_tone(row: Row) -> str | None:
    """Red with fatal errors, amber with others or where bytes are missing, dim what is not Kafka."""
    if tone := grave_tone(row):
        return tone
    if row.get("gap_bytes") or row.get("skipped_bytes"):
        return "table--warning"
    return "table--dim" if row.get("protocol", "kafka") != "kafka" else None


def figures() -> Figures:
    """The rows, empty."""
    return Figures((), connection_key, connection_tone)


class Activity:
    """How many exchanges there were in each of :data:`SPARKS` parts of the capture's time, by connection."""

    def __init__(self, index: Index, places: Places) -> None:
        connection, times = index.column("connection")[places], index.column("time_ns")[places]
        self._counts = np.zeros((0, SPARKS), np.int64)
        if len(places):
            whole = index.column("time_ns")
            first, last = int(whole.min()), int(whole.max())
            share = (times.astype(np.float64) - first) / max(1, last - first)  # perhaps 2^64 apart
            part = np.minimum((share * SPARKS).astype(np.int64), SPARKS - 1)
            most = int(connection.max()) + 1
            cells = connection.astype(np.int64) * SPARKS + part
            self._counts = np.bincount(cells, minlength=most * SPARKS).reshape(-1, SPARKS)

    def text(self, connection: int) -> str:
        """The bars of a connection."""
        if connection >= len(self._counts) or not self._counts[connection].any():
            return ""
        return bars(self._counts[connection].tolist())
