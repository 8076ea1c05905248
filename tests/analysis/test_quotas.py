from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kdissect.analysis.fold import SECOND
from kdissect.analysis.quotas import Quota
from kdissect.exchange import Exchange
from tests.analysis.folds import events_of, made, rows_of
from tests.shared import requires_shared, shared

ASKED: dict[str, Any] = {"transactionalId": None, "acks": 1, "timeoutMs": 1, "topicData": []}


def produced(at_s: float, throttle_ms: int) -> Exchange:
    at = int(at_s * SECOND)
    return made("Produce", 7, ASKED, {"responses": [], "throttleTimeMs": throttle_ms}, (at, at + 1))


def fetched(at_s: float, throttle_ms: int, bytes_of_records: int) -> Exchange:
    """A Fetch and its answer; one that is throttled has no records."""
    at = int(at_s * SECOND)
    asked = {"replicaId": -1, "maxWaitMs": 1, "minBytes": 1, "maxBytes": 1, "isolationLevel": 0, "topics": []}
    topic = {"topic": "t" * bytes_of_records, "partitions": []}
    answer = {"throttleTimeMs": throttle_ms, "responses": [topic]}
    return made("Fetch", 4, asked, answer, (at, at + 1))


def told(quota: Quota) -> tuple[object, ...]:
    return tuple(getattr(quota, name) for name in Quota.__slots__)


def test_who_is_not_throttled_shows_no_quota() -> None:
    quota = Quota()
    quota.add(produced(1, 0), 0)
    assert (quota.rate, quota.estimate) == (None, None)


def test_the_quota_is_what_the_bytes_are_over_the_window_and_the_wait() -> None:
    quota = Quota()
    for at in range(40):
        quota.add(produced(1 + at, 500 if at > 20 else 0), 500 if at > 20 else 0)
    size = produced(1, 0).request_size
    assert size is not None
    assert quota.estimate == pytest.approx(40 * size / 39.5, rel=0.01)
    assert quota.rate == pytest.approx(40 * size / 39, rel=0.01)


def test_what_a_throttled_fetch_holds_back_counts_before_the_wait() -> None:
    """30,000 bytes, and as many again that were measured at the beginning of the wait."""
    quota = Quota()
    for at_s, wait_ms, size in ((1, 0, 30_000), (1.1, 10_000, 0)):
        quota.add(fetched(at_s, wait_ms, size), wait_ms)
    assert quota.estimate is None  # what is held back is not known yet
    quota.add(fetched(11.2, 0, 30_000), 0)
    assert quota.estimate == pytest.approx(60_000 / 20.5, rel=0.01)


def test_a_fetch_that_brings_nothing_after_the_wait_shows_no_quota() -> None:
    quota = Quota()
    for at_s, wait_ms, size in ((1, 10_000, 0), (11, 10_000, 0), (21, 0, 0)):
        quota.add(fetched(at_s, wait_ms, size), wait_ms)
    assert quota.estimate is None
    quota.add(fetched(30, 0, 20_000), 0)
    assert quota.estimate == pytest.approx(20_000 / 20.5, rel=0.05)


@pytest.mark.parametrize("of", [produced, lambda at, wait: fetched(at, wait, 0 if wait else 100 * at)])
def test_parts_make_the_same_as_the_whole(of: Callable[[int, int], Exchange]) -> None:
    exchanges = [(of(at, 100 * (at % 3)), 100 * (at % 3)) for at in range(1, 30)]
    whole = Quota()
    for each in exchanges:
        whole.add(*each)
    for cut in range(30):
        first, second = Quota(), Quota()
        for at, each in enumerate(exchanges):
            (first if at < cut else second).add(*each)
        first.merge(second)
        assert told(first) == told(whole)


def test_nobody_is_throttled_in_the_lab() -> None:
    assert events_of("java43-groups")
    assert all(row["quota_bytes_per_s"] is None for row in rows_of("srt,client_id", "java43-groups"))


@requires_shared
def test_a_quota_of_15_000_bytes_a_second_is_told() -> None:
    from kdissect.reading import read
    from tests.analysis.folds import fold

    events = read(shared("testdata/incidents/producer-quota/capture.pcapng.gz"))
    rows = [row for row in fold("srt,client_id", events).result() if row["api"] == "Produce"]
    told = {row["client_id"]: row["quota_bytes_per_s"] for row in rows}
    assert told["free-client"] is None
    assert told["log-shipper"] == pytest.approx(15_000, rel=0.1)
