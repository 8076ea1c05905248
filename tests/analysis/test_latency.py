"""The parts of latencies, and the connections below them."""

from __future__ import annotations

from functools import cache

import pytest

from kdissect.analysis.fold import MILLISECOND, Row
from kdissect.analysis.latency import PARTS
from kdissect.capture.files import read_packets
from kdissect.dissect import Event
from tests.analysis.folds import fold, rows_of
from tests.dissecting import dissect
from tests.shared import requires_shared, shared


@cache
def events(path: str) -> tuple[Event, ...]:
    return tuple(dissect(read_packets([shared(f"testdata/incidents/{path}")])))


@pytest.mark.parametrize("case", ["java43-groups", "zk39-ibp28"])
def test_the_parts_add_up(case: str) -> None:
    rows = rows_of("latency,broker,client_id", case)
    assert rows
    for row in rows:
        parts = [row[f"{name}_sum_ns"] or 0 for name in ("behind", "throttle", "network", "served")]
        assert sum(parts) == row["latency_sum_ns"]
        shares = [row[f"{name}_share_pct"] or 0 for name in ("behind", "throttle", "network", "served")]
        assert sum(shares) == pytest.approx(100, abs=0.1)
        for name in PARTS:
            ordered = [row[f"{name}_{end}_ns"] for end in ("p50", "p99", "max")]
            assert ordered == sorted(ordered) if ordered[0] is not None else not any(ordered)


def test_a_wait_behind_a_long_poll_is_told_apart() -> None:
    rows = [row for row in rows_of("latency", "zk39-ibp28") if row["api"] == "ListOffsets"]
    waited = [row for row in rows if row["behind_max_ns"] > 400 * MILLISECOND]
    assert waited
    for row in waited:
        assert row["behind_share_pct"] > 80
        assert row["broker_max_ns"] < 20 * MILLISECOND


def tcp(path: str) -> list[Row]:
    return fold("tcp", events(path)).result()


@requires_shared
def test_the_far_client_is_far_at_both_capture_points() -> None:
    for name, point in (("capture-client.pcapng", "client"), ("capture-broker.pcapng.gz", "broker")):
        rows = [row for row in tcp(f"network-delay/{name}") if row["client_id"] == "far"]
        assert len(rows) == 2
        for row in rows:
            assert row["rtt_min_ns"] == pytest.approx(120 * MILLISECOND, rel=0.1)
            assert row["captured_near"] == point
            assert row["retransmitted_segments"] == 0
        near = [row for row in tcp(f"network-delay/{name}") if row["client_id"] != "far"]
        assert all(row["rtt_min_ns"] < MILLISECOND for row in near)


@requires_shared
def test_no_broker_takes_the_time_of_the_network() -> None:
    for name in ("capture-client.pcapng", "capture-broker.pcapng.gz"):
        rows = fold("latency,client_id", events(f"network-delay/{name}")).result()
        (produce,) = [row for row in rows if (row["client_id"], row["api"]) == ("far", "Produce")]
        assert produce["broker_p50_ns"] < 5 * MILLISECOND


@requires_shared
def test_losses_are_those_of_the_client_that_has_them() -> None:
    for name in ("capture-client.pcapng", "capture-broker.pcapng.gz"):
        for row in tcp(f"packet-loss/{name}"):
            if row["client_id"] == "far" and row["packets"] > 100:
                assert row["retransmitted_segments"] >= 0.01 * row["packets"]
            else:
                assert row["retransmitted_segments"] == 0


@requires_shared
def test_probes_of_a_tail_are_no_losses() -> None:
    """14 segments were sent again, each answered by a D-SACK."""
    assert sum(row["retransmitted_segments"] for row in tcp("exactly-once-v2/capture.pcapng.gz")) == 0
