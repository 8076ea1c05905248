from __future__ import annotations

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


def test_parts_make_the_same_as_the_whole() -> None:
    exchanges = [(produced(at, 100 * (at % 3)), 100 * (at % 3)) for at in range(1, 30)]
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
