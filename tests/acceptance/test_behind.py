"""What requests wait behind earlier ones, against the brokers' own times of the same requests.

``totalTimeMs`` of a broker's request log runs from when it took the request from the connection, which it
does only when the one before it is answered, until its response was sent.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from math import ceil
from pathlib import Path

import kdissect
from kdissect.analysis.fold import MILLISECOND
from kdissect.analysis.waits import split
from kdissect.exchange import Exchange
from tests.acceptance.test_request_log import LOGGED_CASES
from tests.analysis.folds import logged
from tests.shared import requires_shared, shared


def off_ms(exchange: Exchange, total_ms: float, with_wait: bool = False) -> float:
    """How far what kdissect calls the time since the request's turn is from what the broker says."""
    taken = exchange.latency_ns if with_wait else exchange.served_ns
    assert taken is not None
    return taken / MILLISECOND - total_ms


def percentile(values: list[float], percent: int) -> float:
    return sorted(values)[ceil(percent * len(values) / 100) - 1]


def of_the_lab(with_wait: bool = False) -> list[float]:
    found = []
    for case in LOGGED_CASES:
        for _, line, exchange in logged(case):
            if "totalTimeMs" in line and exchange.latency_ns is not None:
                found.append(abs(off_ms(exchange, line["totalTimeMs"], with_wait)))
    return found


def test_without_the_wait_latencies_are_what_the_brokers_say() -> None:
    found = of_the_lab()
    assert len(found) > 5_000
    assert percentile(found, 50) <= 0.2
    assert percentile(found, 90) <= 1.5
    assert percentile(found, 99) <= 15
    assert percentile(of_the_lab(with_wait=True), 99) > 50


def test_half_a_second_behind_a_long_poll_is_no_work() -> None:
    """ListOffsets behind a Fetch that the broker held back as it was asked to."""
    found = {exchange.number: (line, exchange) for _, line, exchange in logged("zk39-ibp28")}
    line, exchange = found[355]
    assert (exchange.api, line["totalTimeMs"]) == ("ListOffsets", 3.644)
    assert exchange.latency_ns is not None
    assert exchange.latency_ns > 500 * MILLISECOND
    assert exchange.behind_correlation_id == found[353][1].correlation_id
    work_ns = split(exchange).broker_ns
    assert work_ns is not None
    assert work_ns < 4 * MILLISECOND


DELAY = "testdata/incidents/network-delay"


@cache
def times_of_far() -> dict[tuple[str, int], float]:
    """Port and correlation id of each request of the client ``far``: ms by the broker's log."""
    with gzip.open(shared(f"{DELAY}/broker-times.ndjson.gz"), "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return {
        (str(row["client_port"]), row["correlation"]): row["totalTimeMs"]
        for row in rows
        if row["client_id"] == "far"
    }


def far(name: str) -> list[tuple[Exchange, float]]:
    """The exchanges of the far client that are in a capture and in the log."""
    found, path = [], Path(shared(f"{DELAY}/{name}"))
    for exchange in kdissect.read(path):
        key = exchange.client.rpartition(":")[2], exchange.correlation_id
        if exchange.client_id == "far" and key in times_of_far() and exchange.latency_ns is not None:
            found.append((exchange, times_of_far()[key]))
    assert len(found) > 250
    return found


@requires_shared
def test_the_network_of_a_far_client_is_no_wait_at_either_end() -> None:
    """60 ms lie between client and broker, each way: captured at the client, latencies have them, and neither
    waits nor the broker's time do; captured at the broker, none has. One request waited; both say so."""
    at_client, at_broker = far("capture-client.pcapng"), far("capture-broker.pcapng.gz")
    assert percentile([off_ms(*each, with_wait=True) for each in at_client], 50) > 119
    assert abs(percentile([off_ms(*each) for each in at_client], 50)) < 2
    assert abs(percentile([off_ms(*each) for each in at_broker], 50)) < 0.5
    waited = [
        [(each.correlation_id, round((each.behind_ns or 0) / MILLISECOND)) for each, _ in some if waits(each)]
        for some in (at_client, at_broker)
    ]
    assert waited[0] == waited[1]
    assert len(waited[0]) == 1


def waits(exchange: Exchange) -> bool:
    return (exchange.behind_ns or 0) > MILLISECOND
