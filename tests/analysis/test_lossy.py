"""Clusters, quorums, producers and deliveries of which not all was captured: what is told is what the whole
capture tells, or is not told."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kdissect.analysis.fold import Row
from kdissect.dissect import Event
from tests.amount import some
from tests.analysis.folds import fold
from tests.analysis.lossy import WAYS, taken_away, whole

CAPTURES = Path(__file__).parents[2] / "captures" / "incidents"
CASES = ("leader-killed", "controlled-shutdown")
KEYS = {
    "cluster_brokers": ("node_id", "host", "port"),
    "cluster_topics": ("topic",),
    "cluster_partitions": ("topic", "partition", "leader_epoch"),
    "cluster_changes": ("what", "subject", "after"),
    "producers": ("producer_id", "client_id", "client", "topic", "partition"),
    "quorum": ("node_id", "cluster_id"),
    "delivery": ("topic", "partition", "consumer", "client"),
}
"""What makes rows of the whole and of a part the same."""
SAME = {
    "cluster_brokers": ("rack",),
    "cluster_topics": ("partitions", "replication"),
    "cluster_partitions": ("leader", "replicas"),
    "producers": ("magic", "codecs"),
    "quorum": ("role",),
}
"""What may be null, but not another value."""
NO_MORE = {
    "producers": (
        *("requests", "batches", "records", "bytes", "resent", "resent_appended", "absorbed", "gaps"),
        *("lost_sequences", "overtaken", "epochs"),
    ),
    "quorum": ("elections",),
    "delivery": ("sets", "records", "read_again"),
}
"""What may be less, but not more."""


TOPIC_ID = 22
"""Characters of one."""


def path_of(case: str) -> Path:
    return CAPTURES / f"{case}.pcapng.gz"


@cache
def part_of(case: str, way: str) -> tuple[Event, ...]:
    return tuple(taken_away(path_of(case), way))


def by_key(name: str, rows: list[Row]) -> dict[tuple[Any, ...], list[Row]]:
    known = [key for key in KEYS[name] if not rows or key in rows[0]]
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in known), []).append(row)
    return found


def columns(name: str, which: dict[str, tuple[str, ...]], row: Row) -> tuple[str, ...]:
    return tuple(each for each in which.get(name, ()) if each in row)


@pytest.mark.parametrize("case", some(CASES, 1))
@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_told_that_is_not_so(way: str, name: str, case: str) -> None:
    known = by_key(name, fold(name, whole(path_of(case))).result())
    for key, rows in by_key(name, fold(name, part_of(case, way)).result()).items():
        if _is_nameless(way, name, key):
            continue
        assert key in known, key
        for row in rows:
            for column in columns(name, SAME, row):
                allowed = [each[column] for each in known[key]]
                assert row[column] in (None, -1, *allowed), (key, column, row[column], allowed)
            for column in columns(name, NO_MORE, row):
                most = max((each[column] or 0 for each in known[key]), default=0)
                assert (row[column] or 0) <= most, (key, column, row[column], most)


def _is_nameless(way: str, name: str, key: tuple[Any, ...]) -> bool:
    """Whether only the other direction says who it is, or what the topic is called."""
    if name not in ("delivery", "producers") or not way.endswith("only"):
        return False
    return None in key or any(isinstance(each, str) and len(each) == TOPIC_ID for each in key)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("way", [each for each in WAYS if each.startswith("2 %")])
def test_nearly_all_is_told_where_little_is_lost(way: str, case: str) -> None:
    def records(rows: list[Row]) -> int:
        return sum(row["records"] for row in rows)

    for name in ("delivery", "producers"):
        told = records(fold(name, part_of(case, way)).result())
        assert told >= 0.9 * records(fold(name, whole(path_of(case))).result())


@pytest.mark.parametrize("case", CASES)
def test_one_direction_tells_no_times_between_the_two(case: str) -> None:
    for way in ("requests only", "responses only"):
        for row in fold("delivery", part_of(case, way)).result():
            times = [value for name, value in row.items() if name.startswith(("send", "ack", "produce"))]
            assert times == [None] * len(times), (way, row)


@pytest.mark.parametrize("case", CASES)
def test_what_was_sent_after_the_beginning_was_lost_is_delivered(case: str) -> None:
    """Times of what is told are among those of the whole."""
    known = by_key("delivery", fold("delivery", whole(path_of(case))).result())
    found = by_key("delivery", fold("delivery", part_of(case, "no first third")).result())
    assert found
    for key, (row,) in found.items():
        (other,) = known[key]
        for name in ("send_to_fetched_max_ns",):
            assert row[name] is None or row[name] <= other[name] * 1.01, (key, name)
