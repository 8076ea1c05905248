"""Rows of the table ``exchanges``, as folds get them."""

from __future__ import annotations

from typing import Any

from kdissect.spark.row_fold import StoredExchange

ROW: dict[str, Any] = {
    **dict.fromkeys(StoredExchange._fields),
    "number": 1,
    "api": "Fetch",
    "api_version": 17,
    "broker": "10.0.0.2:9092",
    "client": "10.0.0.1:5",
    "topics": [],
    "request_size": 10,
    "response_size": 20,
    "latency_ns": 100,
    "begun_ns": 1_000,
    "asked": {},
    "copies": [],
}


def row(**values: Any) -> StoredExchange:
    """A row with these values; what is not named is as usual."""
    return StoredExchange(**{**ROW, **values})
