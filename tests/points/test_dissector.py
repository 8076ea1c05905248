"""Several capture points of one traffic: each exchange once, as the point nearest to the broker saw it."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import cache
from itertools import permutations
from pathlib import Path

import pytest

from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS
from kdissect.points.dissector import PointsDissector, dissector_of
from kdissect.reading import read
from tests.points.places import (
    BASIC,
    CAPTURES,
    MS,
    Told,
    brokers_of,
    elsewhere,
    packets_of,
    some,
    written,
)
from tests.shared import requires_shared, shared

SHIPPED = (
    "basic-kafka43.pcapng",
    "broker-0.9.pcap",
    "consumer-group-kip848.pcapng",
    "errors.pcapng",
    "midstream.pcapng",
    "sasl-scram.pcapng",
    "transactions-kafka39.pcapng",
)


@cache
def alone(name: str) -> Told:
    return Told(CAPTURES / name)


@pytest.fixture
def far(tmp_path: Path) -> str:
    """The basic capture as it is seen 50 ms away from the broker, by a clock that is 700 ms ahead."""
    packets = elsewhere(packets_of(BASIC), brokers_of(BASIC), away_ns=50 * MS, ahead_ns=700 * MS)
    return written(tmp_path / "far.pcapng", packets)


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("ahead_ms", [0, 800, -800])
def test_exchanges_are_those_of_the_point_at_the_broker(name: str, ahead_ms: int, tmp_path: Path) -> None:
    near = CAPTURES / name
    packets = elsewhere(packets_of(near), brokers_of(near), away_ns=5 * MS, ahead_ns=ahead_ms * MS)
    told = Told(near, written(tmp_path / "far.pcapng", packets))
    assert told.rows() == alone(name).rows()
    assert [each.number for each in sorted(told.exchanges, key=lambda each: each.number)] == list(
        range(1, len(told.exchanges) + 1)
    )
    assert {each.capture_point for each in told.exchanges} == {near.name.partition(".pcap")[0]}
    assert Counter(each.retransmitted for each in told.connections if not each.is_copy) == Counter(
        each.retransmitted for each in alone(name).connections
    )


def test_the_other_point_tells_what_the_network_took_and_how_the_clocks_differ(far: str) -> None:
    told = Told(BASIC, far)
    assert {each.between_ns for each in told.exchanges if each.between_ns is not None} == {100 * MS}
    assert sum(each.between_ns is None for each in told.exchanges if each.latency_ns is not None) < 10
    assert all(each.also_at == ["far"] for each in told.exchanges)
    ahead = {
        each.clock_ahead_ns for each in told.connections if each.capture_point == "far" and each.exchanges
    }
    assert ahead == {700 * MS}
    at_the_broker = [each for each in told.connections if each.capture_point == "basic-kafka43"]
    assert {each.clock_ahead_ns for each in at_the_broker} == {None}


def test_each_point_has_a_row_of_a_connection(far: str) -> None:
    told = Told(BASIC, far)
    points = {"basic-kafka43", "far"}
    found: dict[int, set[str | None]] = {}
    for each in told.connections:
        found.setdefault(each.connection, set()).add(each.capture_point)
    assert list(found) == list(range(len(alone(BASIC.name).connections)))
    assert all(each == points for each in found.values())
    assert all(each.is_copy == (each.capture_point == "far") for each in told.connections if each.exchanges)


def test_files_may_be_given_in_any_order(far: str, tmp_path: Path) -> None:
    packets = elsewhere(packets_of(BASIC), brokers_of(BASIC), away_ns=9 * MS, ahead_ns=-300 * MS)
    paths = [str(BASIC), far, written(tmp_path / "middle.pcapng", packets)]
    told = [Told(*each) for each in permutations(paths)]
    assert all(each.rows() == alone(BASIC.name).rows() for each in told)
    assert all(sorted(each.also_at) == ["far", "middle"] for each in told[0].exchanges)
    plain = [
        [(each.number, each.connection, each.client, each.correlation_id) for each in one.exchanges]
        for one in told
    ]
    assert all(each == plain[0] for each in plain)


def test_what_one_point_lacks_another_gives(tmp_path: Path) -> None:
    brokers, packets = brokers_of(BASIC), packets_of(BASIC)
    lossy = written(tmp_path / "near.pcapng", elsewhere(packets, brokers, drop=some(1, 0.05)))
    far = written(tmp_path / "far.pcapng", elsewhere(packets, brokers, away_ns=20 * MS))
    told = Told(lossy, far)
    whole = alone(BASIC.name)
    times = ("request_start_ns", "request_time_ns", "response_start_ns", "response_time_ns", "latency_ns")
    parts = ("behind_ns", "network_ns", "throttle_ns", "served_ns", "wait_ns", "broker_ns", "think_ns")
    transfers = ("request_transfer_ns", "response_transfer_ns")
    others = (*times, *parts, *transfers, "behind_correlation_id", "connection", "inferred")
    assert told.rows(*others) == whole.rows(*others)
    assert {each.capture_point for each in told.exchanges} == {"near", "far"}


def test_that_a_point_lacks_what_another_saw_is_said_once(tmp_path: Path) -> None:
    brokers, packets = brokers_of(BASIC), packets_of(BASIC)
    far = written(tmp_path / "far.pcapng", elsewhere(packets, brokers, away_ns=20 * MS, drop=some(2, 0.05)))
    found = [each for each in Told(BASIC, far).faults if each.kind == "seen-elsewhere"]
    assert len(found) == 1
    assert found[0].message.startswith("capture point far lacks ")
    assert not [each for each in Told(BASIC, _copy(tmp_path)).faults if each.kind == "seen-elsewhere"]


def test_a_client_that_one_point_has_alone_is_no_loss(tmp_path: Path) -> None:
    brokers, packets = brokers_of(BASIC), packets_of(BASIC)
    clients = sorted({each.client for each in alone(BASIC.name).connections})
    port = int(clients[0].rpartition(":")[2]).to_bytes(2, "big")
    one = written(tmp_path / "one.pcapng", elsewhere(packets, brokers, drop=lambda p: port in p.data[:60]))
    told = Told(BASIC, one)
    assert not [each for each in told.faults if each.kind == "seen-elsewhere"]


def _copy(folder: Path) -> str:
    packets = elsewhere(packets_of(BASIC), brokers_of(BASIC), away_ns=20 * MS)
    return written(folder / "copy.pcapng", packets)


def test_connections_that_one_point_has_are_rows_of_it(tmp_path: Path) -> None:
    whole = alone(BASIC.name)
    kept = next(each.client for each in whole.connections if each.exchanges > 5)
    port = int(kept.rpartition(":")[2]).to_bytes(2, "big")
    packets = elsewhere(
        packets_of(BASIC), brokers_of(BASIC), away_ns=20 * MS, drop=lambda p: port not in p.data
    )
    told = Told(BASIC, written(tmp_path / "client.pcapng", packets))
    assert told.rows() == whole.rows()
    assert all(each.also_at == (["client"] if each.client == kept else []) for each in told.exchanges)


@pytest.mark.parametrize("cuts", [(3, 3), (2, 5)])
def test_rotated_files_of_each_point_belong_together(cuts: tuple[int, int], tmp_path: Path) -> None:
    brokers, packets = brokers_of(BASIC), packets_of(BASIC)
    paths: list[str] = []
    for name, away, count in (("near", 0, cuts[0]), ("far", 20, cuts[1])):
        seen = elsewhere(packets, brokers, away_ns=away * MS)
        size = -(-len(seen) // count)
        for at in range(count):
            part = seen[at * size : (at + 1) * size]
            paths.append(written(tmp_path / f"{name}_{at:05}.pcapng", part))
    told = Told(*paths)
    assert told.rows() == alone(BASIC.name).rows()
    assert {each.capture_point for each in told.exchanges} == {"near_00000"}
    assert {each.capture_point for each in told.connections} == {"near_00000", "far_00000"}


def test_a_point_that_begins_later_and_ends_earlier_has_a_part(tmp_path: Path) -> None:
    packets = packets_of(BASIC)
    middle = packets[len(packets) // 3 : 2 * len(packets) // 3]
    far = written(tmp_path / "far.pcapng", elsewhere(middle, brokers_of(BASIC), away_ns=3 * MS))
    told = Told(BASIC, far)
    assert told.rows() == alone(BASIC.name).rows()
    seen = Counter(len(each.also_at) for each in told.exchanges)
    assert seen[0] > 10
    assert seen[1] > 10
    assert not [each for each in told.faults if each.kind == "seen-elsewhere"]


def test_memory_is_bounded_and_no_exchange_is_told_twice(far: str) -> None:
    from kdissect.capture.files import read_packets
    from kdissect.capture.points import find_points

    limits = DEFAULTS._replace(waiting_bytes=2_000)
    paths = (str(BASIC), far)
    points = find_points(paths)
    dissector = dissector_of(points, limits)
    assert isinstance(dissector, PointsDissector)
    events = [event for item in read_packets(paths, points=points) for event in dissector.feed(item)]
    events += dissector.close()
    numbers = [event.number for event in events if isinstance(event, Exchange)]
    assert len(numbers) == len(set(numbers))


@requires_shared
def test_a_client_far_away_and_its_broker() -> None:
    folder = shared("testdata/incidents/network-delay")
    client, broker = folder / "capture-client.pcapng", folder / "capture-broker.pcapng.gz"
    told, at_the_broker = Told(client, broker), Told(broker)
    assert told.rows() == at_the_broker.rows()
    assert not any(each.retransmitted for each in told.connections)
    assert {each.capture_point for each in told.exchanges} == {"capture-broker"}
    far = [each for each in told.exchanges if each.client_id == "far" and each.latency_ns is not None]
    assert all(each.also_at == ["capture-client"] for each in far)
    between = sorted(each.between_ns or 0 for each in far)
    assert between[len(between) // 2] == pytest.approx(120 * MS, rel=0.1)
    ahead = [each.clock_ahead_ns for each in told.connections if each.clock_ahead_ns is not None]
    assert ahead
    assert all(abs(each) < MS for each in ahead)
    with gzip.open(folder / "broker-times.ndjson.gz", "rt") as lines:
        truth = [json.loads(line) for line in lines]
    ours = {(each.client.rpartition(":")[2], each.correlation_id): each for each in told.exchanges}
    known = [each for each in truth if (str(each["client_port"]), each["correlation"]) in ours]
    assert len(known) > 0.9 * len(truth)


def test_a_single_point_is_dissected_as_ever() -> None:
    assert not isinstance(dissector_of(None), PointsDissector)
    assert all(each.seen is None for each in read([BASIC]))
