"""The rule on brokers that answer at the address of another one."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.cluster import ClusterBrokers, ClusterPartitions
from kdissect.analysis.fold import Row
from kdissect.analysis.stale_leaders import StaleLeaders
from kdissect.insight.finding import CRITICAL, LIKELY, Finding
from tests.insight.judged import CAPTURES, judged_file
from tests.insight.made import T0, Facts, S, row, said

HERE = "10.0.0.1:9092"


def refused(
    refusals: int = 5, broker: str = HERE, error: str = "NOT_LEADER_OR_FOLLOWER", **values: Any
) -> Row:
    values = {"topic": "orders", "partition": 0, "first_ns": T0 + 5 * S, "last_ns": T0 + 10 * S} | values
    of = {"client": "10.0.0.7", "client_id": "app", "api": "Produce", "exchanges": [7, 8, 9]}
    return row(StaleLeaders, **(of | {"broker": broker, "error": error, "refusals": refusals} | values))


def node(number: int, host: str = "10.0.0.1", cluster: str = "c", **values: Any) -> Row:
    told = {"cluster_id": cluster, "from_ns": T0, "last_told_ns": T0 + 20 * S} | values
    return row(ClusterBrokers, node_id=number, host=host, port=9092, **told)


def led(leader: int, cluster: str = "c", **values: Any) -> Row:
    told = {"cluster_id": cluster, "from_ns": T0, "last_told_ns": T0 + 20 * S} | values
    return row(ClusterPartitions, topic="orders", partition=0, leader=leader, **told)


def found(refusals: list[Row], brokers: list[Row], partitions: list[Row]) -> list[Finding]:
    facts: Facts = {StaleLeaders: refusals, ClusterBrokers: brokers, ClusterPartitions: partitions}
    return said("wrong-broker", facts)


def test_two_brokers_with_one_address_are_told() -> None:
    (one,) = found([refused(4), refused(1, client_id="other")], [node(1), node(2)], [led(2)])
    assert (one.severity, one.confidence, one.subject.broker, one.count) == (CRITICAL, LIKELY, "2", 5)
    assert one.message == (
        "Brokers 1 and 2 tell clients the same address, 10.0.0.1:9092. Broker 2 does not seem to be the one "
        "that answers there: 5 requests for 1 partition that broker 2 leads were refused."
    )
    assert one.client_ids == ("app", "other")


def test_addresses_that_are_exchanged_are_told() -> None:
    brokers = [node(1, "10.0.0.2"), node(2)]
    (one,) = found([refused()], brokers, [led(2)])
    assert one.message.startswith(
        "The address that the cluster names for broker 2, 10.0.0.1:9092, seems to lead to another one: "
    )


@pytest.mark.parametrize(
    "rows",
    [
        ([refused(4)], [node(2)], [led(2)]),
        ([refused(error="FENCED_LEADER_EPOCH")], [node(2)], [led(2)]),
        ([refused(broker="10.0.0.3:9092")], [node(2)], [led(2)]),
        ([refused()], [node(2)], [led(3)]),
        ([refused()], [node(2)], [led(2, cluster="d")]),
        ([refused()], [node(2)], []),
        ([refused(last_ns=T0 + 10 * S - 1)], [node(2)], [led(2)]),
    ],
)
def test_who_asks_elsewhere_or_seldom_tells_nothing_of_addresses(
    rows: tuple[list[Row], list[Row], list[Row]],
) -> None:
    assert not found(*rows)


@pytest.mark.parametrize(("from_s", "last_s", "is_told"), [(5, 10, True), (5.1, 10, False), (5, 9.9, False)])
def test_a_leader_or_an_address_that_just_changed_is_no_wrong_one(
    from_s: float, last_s: float, is_told: bool
) -> None:
    times: dict[str, Any] = {"from_ns": T0 + round(from_s * S), "last_told_ns": T0 + round(last_s * S)}
    assert bool(found([refused()], [node(2)], [led(2, **times)])) == is_told
    assert bool(found([refused()], [node(2, **times)], [led(2)])) == is_told


def test_a_cluster_whose_brokers_have_one_address_is_explained_by_it() -> None:
    every = judged_file(CAPTURES / "incidents" / "one-address-for-two.pcap.gz").findings
    (cause,) = [each for each in every if each.id == "wrong-broker"]
    assert cause.because is None
    stale = [each for each in every if each.id == "stale-leader"]
    assert stale
    assert {each.because for each in stale} == {cause.key}
