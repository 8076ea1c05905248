"""Transactions of which not all was captured, against the coordinator's own records."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kdissect.analysis.fold import MILLISECOND, Row
from tests.analysis.folds import fold
from tests.analysis.lossy import WAYS, captures, taken_away
from tests.lab import Case
from tests.shared import requires_shared

CASES = (
    "exactly-once-v2",
    "hanging-transaction",
    "producer-fenced",
    "transaction-timeout",
    "transactions-commit-abort",
)
WORDS = {
    "commit": "committed",
    "abort": "aborted",
    "fenced": "fenced",
    "timeout": "timed-out",
    "open": "open",
}


@pytest.mark.parametrize("way", ["whole", *WAYS])
@requires_shared
def test_what_is_told_is_what_the_coordinator_did(way: str) -> None:
    told = total = 0
    for path in captures(*CASES):
        rows = fold("transactions", taken_away(path, way)).result()
        known = json.loads((path.parent / "truth.json").read_text())["facts"]["transactions"]
        begun = [row["begin_ns"] for row in rows if row["begin_ns"] is not None]
        if way == "no first third":  # what began later is told
            from_ms = min(begun, default=1 << 63) / MILLISECOND - 5
            known = [each for each in known if each["begin_ms"] > from_ms]
        total += len(known)
        for row in rows:
            found = truth_of(row, known)
            if found is not None:
                assert wrong(row, found) is None, (path, row)
                told += row["outcome"] == WORDS[found["outcome"]] and row["partitions"] is not None
            else:
                assert row["begin_ns"] is None or row["outcome"] == "unknown", (path, row)
    if way.startswith("2 %"):
        assert told >= 0.9 * total
    elif way in ("whole", "no first third"):
        assert told == total


@pytest.mark.parametrize("case", ["sweep-39", "sweep-44"])
def test_requests_that_brokers_refused_ended_nothing(case: str) -> None:
    """Nonsense, by a client that goes on with it."""
    path = Case(case).capture
    rows = fold("transactions", taken_away(path, "requests only")).result()
    assert {row["outcome"] for row in rows} == {"unknown"}
    assert {row["asked"] for row in rows} >= {None, "abort"}


def truth_of(row: Row, known: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The transaction of a row: by producer, epoch and time."""
    same = [
        each
        for each in known
        if each["transactional_id"] == row["transactional_id"]
        and each["producer_id"] == row["producer_id"]
        and each["epoch"] == row["producer_epoch"]
    ]
    if row["version"] == "TV2":
        return same[0] if len(same) == 1 else None
    at = row["begin_ns"] if row["begin_ns"] is not None else row["last_ns"]
    near = [each for each in same if each["begin_ms"] - 10 <= at / MILLISECOND <= each["end_ms"] + 10]
    return min(near, key=lambda each: abs(each["begin_ms"] - at / MILLISECOND), default=None)


def wrong(row: Row, truth: dict[str, Any]) -> str | None:
    """What a row says that is not so."""
    if row["begin_ns"] is not None and abs(row["begin_ns"] / MILLISECOND - truth["begin_ms"]) > 50:
        return "begin"
    asked = truth["outcome"] in ("commit", "abort")
    if row["end_ns"] is not None and asked:
        ends = (truth["prepare_ms"], truth["end_ms"])
        if min(abs(row["end_ns"] / MILLISECOND - each) for each in ends) > 50:
            return "end"
    if row["outcome"] not in ("unknown", WORDS[truth["outcome"]]):
        return "outcome"
    data = [each for each in truth["partitions"] if not each.startswith("__consumer_offsets-")]
    if row["partitions"] not in (None, len(data)):
        return "partitions"
    if truth.get("records") is not None and row["records"] not in (None, truth["records"]):
        return "records"
    return None
