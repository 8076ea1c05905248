"""Rules on brokers that copy from each other."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kdissect.analysis.cluster import ClusterBrokers, ClusterChanges, ClusterPartitions, ClusterTopics
from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.racks import Racks
from kdissect.analysis.replication import Replication
from kdissect.analysis.stale_leaders import StaleLeaders
from kdissect.analysis.stalls import Stalls
from kdissect.analysis.tcp import Tcp
from kdissect.capture.files import read_packets
from kdissect.exchange import Exchange
from kdissect.insight.finding import NOTICE, WARNING, Finding
from kdissect.limits import Limits
from tests.analysis.folds import events_of, made
from tests.dissecting import dissect
from tests.insight.judged import CAPTURES
from tests.insight.made import WHOLE, row, said, said_by


def follower(gap_s: float = 0.5, **more: Any) -> tuple[type[Replication], Row]:
    values = {
        "node_id": 2,
        "broker": "10.0.0.1:9092",
        "fetches": 100,
        "gap_max_ns": int(gap_s * SECOND),
        "gap_from_ns": 10 * SECOND,
        "lag_max": 0,
        "exchanges": [4],
        "first_ns": 0,
        "last_ns": 90 * SECOND,
    }
    return Replication, row(Replication, **{**values, **more})


def test_writes_that_wait_for_a_follower_are_told_from_three_on() -> None:
    (found,) = said("replication-slow", follower(held_writes=3, held_ns=2 * SECOND))
    assert (found.subject.broker, found.count) == ("2", 3)
    assert "took up to 2.0 s" in found.message
    assert said("replication-slow", follower(held_writes=2, held_ns=2 * SECOND)) == []


def throttle(at_s: float, what: str, after: str | None, **more: Any) -> tuple[type[ClusterChanges], Row]:
    values = {"ns": round(at_s * SECOND), "what": "config-changed", "subject": what, "after": after}
    return ClusterChanges, row(ClusterChanges, exchange=9, by="tool", **{**values, **more})


RATES = (
    throttle(9.9, "broker 1 leader.replication.throttled.rate", "50000"),
    throttle(9.9, "broker 2 follower.replication.throttled.rate", "30000"),
    throttle(90, "broker 2 follower.replication.throttled.rate", None),
)
REPLICAS = "topic orders follower.replication.throttled.replicas"


def throttled(
    *given: tuple[type[Any], Row],
    count: int = 3,
    at_s: float = 10,
    topic: str = "T",
    copied: tuple[int, int] = (10, 240_000),
) -> list[Finding]:
    """What is said of slow writes, and of throttles, if broker 2 copied so many bytes in the 10 s from then
    on."""
    wrote = [
        {
            "topic": topic,
            "from_ns": round(at_s * SECOND),
            "to_ns": round(at_s * SECOND) + 2 * SECOND,
            "exchange": at,
        }
        for at in range(20, 20 + count)
    ]
    known = ClusterTopics, row(ClusterTopics, topic="orders", topic_id="T")
    other = follower(slow_writes=wrote, node_id=3)
    second, size = copied
    slowed = follower(slow_writes=wrote, copied=[(second * SECOND, size)])
    return said("replication-slow", slowed, other, known, *given)


def test_writes_that_wait_while_copying_is_throttled() -> None:
    begin = throttle(10, REPLICAS, "0:2")
    (found,) = throttled(*RATES, begin)
    assert (found.subject.topic, found.count, found.cost_ns) == ("orders", 3, 2 * SECOND)
    assert "Broker 2 could copy at most 30,000 bytes/s of limited topics, and copied 24,000" in found.message
    assert [each.text for each in found.steps] == ["a throttle was set by tool"]
    assert "--verify" in found.fix
    assert throttled(*RATES, begin, topic="orders"), "older requests name the topic"
    end = throttle(20, REPLICAS, None)
    assert throttled(*RATES, begin, end, at_s=20)
    for silent in (
        throttled(*RATES, begin, count=2),
        throttled(*RATES, begin, at_s=8.9),
        throttled(*RATES, begin, end, at_s=20.1),
        throttled(*RATES, begin, topic="other"),
        throttled(begin),
        throttled(*RATES),
        throttled(*RATES, throttle(10, REPLICAS, "0:2", cluster_id="k")),
    ):
        assert not silent


def test_a_throttle_slows_no_write_unless_its_rate_was_reached() -> None:
    begin = throttle(10, REPLICAS, "0:2")
    assert not throttled(*RATES, begin, copied=(10, 239_999))
    assert throttled(*RATES, begin, copied=(0, 240_000))
    assert not throttled(*RATES, begin, copied=(20, 240_000))  # later
    assert not throttled(*RATES, begin, at_s=20, copied=(0, 240_000))  # long before
    removed = throttle(9.95, "broker 2 follower.replication.throttled.rate", None)
    assert not throttled(*RATES[:2], removed, begin)
    raised = throttle(11, "broker 2 follower.replication.throttled.rate", "30001")
    assert not throttled(*RATES[:2], raised, begin)
    low = throttle(9.9, "broker 1 leader.replication.throttled.rate", "20000")
    leader = ClusterBrokers, row(ClusterBrokers, node_id=1, host="10.0.0.1", port=9092)
    assert not throttled(low, begin)  # nobody knows which broker leads
    (found,) = throttled(low, leader, begin)
    assert "Other brokers could copy at most 20,000 bytes/s of limited topics from broker 1" in found.message
    assert not throttled(*RATES, begin, copied=(10, 0))


def test_each_throttle_of_a_topic_counts() -> None:
    first = throttle(10, REPLICAS, "0:2"), throttle(15, REPLICAS, None)
    leaders = REPLICAS.replace("follower", "leader")
    again = throttle(40, REPLICAS, "0:2"), throttle(40, leaders, "0:1")
    (found,) = throttled(*RATES, *first, *again, at_s=45, copied=(40, 240_000))
    assert found.steps[0].ns == 40 * SECOND
    half = throttle(43, leaders, None)
    assert throttled(*RATES, *first, *again, half, at_s=45, copied=(40, 240_000))
    over = half, throttle(44, REPLICAS, None)
    assert not throttled(*RATES, *first, *again, *over, at_s=45, copied=(40, 240_000))


def test_throttles_of_several_topics_are_told_apart() -> None:
    other = REPLICAS.replace("orders", "clicks")
    names = REPLICAS, other
    begin, end = [throttle(10, name, "0:2") for name in names], [throttle(20, name, None) for name in names]
    for given in (begin, [*begin, *end], [*begin, end[1]], [*reversed(begin), *end]):
        (found,) = throttled(*RATES, *given)
        assert found.subject.topic == "orders"
    assert not throttled(*RATES, *begin, end[0], at_s=30)


def test_a_follower_lags_by_records_or_by_time() -> None:
    assert said("follower-lags", follower(lag_max=10_000))
    assert said("follower-lags", follower(lag_max=9_999)) == []
    assert said("follower-lags", follower(10))
    assert said("follower-lags", follower(9)) == []
    assert said("follower-lags", follower(2.5, held_writes=1, held_ns=SECOND))
    assert said("follower-lags", follower(2.4, held_writes=1, held_ns=SECOND)) == []


@pytest.mark.parametrize(
    ("before", "after", "at_s", "severity"),
    [
        ("1,3", "1,3,2", 5, NOTICE),
        ("1,3", "1,3,12", 5, WARNING),  # another node
        ("1,2", "2,1", 5, WARNING),  # it had the replica
        ("1,3", "1,3,2", 91, WARNING),
        (None, "1,2", 5, WARNING),
    ],
)
def test_a_follower_that_is_given_replicas_has_much_to_copy(
    before: str | None, after: str, at_s: float, severity: str
) -> None:
    moved = (
        ClusterChanges,
        row(ClusterChanges, ns=at_s * SECOND, what="replicas-changed", before=before, after=after),
    )
    (found,) = said("follower-lags", follower(lag_max=10_000), moved)
    assert found.severity == severity
    assert ("reassignment" in found.cause) == (severity == NOTICE)


@pytest.mark.parametrize(
    ("moved_in", "leader", "severity"), [("k", "1", NOTICE), ("l", "1", WARNING), ("k", "3", WARNING)]
)
def test_replicas_that_a_node_of_another_cluster_is_given_do_not_count(
    moved_in: str, leader: str, severity: str
) -> None:
    """If there are several clusters, the one of the leader must be known."""
    moved = row(ClusterChanges, ns=5 * SECOND, what="replicas-changed", before="1", after="1,2")
    nodes = [
        (ClusterBrokers, node(1, host)[1] | {"cluster_id": id})
        for id, host in (("k", "10.0.0.1"), ("l", "10.0.0.2"))
    ]
    late = follower(lag_max=10_000, broker=f"10.0.0.{leader}:9092")
    (found,) = said("follower-lags", late, (ClusterChanges, moved | {"cluster_id": moved_in}), *nodes)
    assert found.severity == severity


def test_a_short_time_between_two_fetches_is_no_step_on_the_way() -> None:
    (found,) = said("follower-lags", follower(0.9, lag_max=10_000))
    assert not found.steps
    (found,) = said("follower-lags", follower(1, lag_max=10_000))
    assert [each.text for each in found.steps] == ["it sends no Fetch for 1.0 s"]


def node(number: int, host: str) -> tuple[type[ClusterBrokers], Row]:
    return ClusterBrokers, row(ClusterBrokers, node_id=number, host=host, port=9092, from_ns=0)


def stall(host: str, from_s: float, to_s: float) -> tuple[type[Stalls], Row]:
    from_ns, to_ns = round(from_s * SECOND), round(to_s * SECOND)
    made = {"alone": 1, "from_ns": from_ns, "to_ns": to_ns, "stalled_ns": to_ns - from_ns}
    return Stalls, row(Stalls, broker=f"{host}:9092", **made)


@pytest.mark.parametrize("rule", ["follower-lags", "replication-slow"])
def test_who_waits_for_a_leader_that_stands_still_does_not_lag(rule: str) -> None:
    nodes = node(1, "10.0.0.1"), node(2, "10.0.0.2")
    late = follower(4, held_writes=3, held_ns=2 * SECOND)  # from 10 to 14 s
    assert said(rule, late, *nodes)[0].because is None
    assert said(rule, late, *nodes, stall("10.0.0.1", 11, 13)) == []  # the leader did not answer it
    assert said(rule, late, *nodes, stall("10.0.0.1", 11, 12.9))[0].because is None
    found = said_by((rule, "broker-stalled"), late, *nodes, stall("10.0.0.2", 11, 13))
    assert found[rule][0].because == found["broker-stalled"][0].key
    assert said(rule, late, *nodes, stall("10.0.0.3", 10, 14))[0].because is None


@pytest.mark.parametrize("rule", ["follower-lags", "replication-slow"])
def test_the_only_unknown_broker_that_stood_still_is_the_follower_whose_address_nobody_tells(
    rule: str,
) -> None:
    late = follower(4, held_writes=3, held_ns=2 * SECOND)
    both = (rule, "broker-stalled")
    found = said_by(both, late, node(1, "10.0.0.1"), stall("10.0.0.3", 11, 13))
    assert found[rule][0].because == found["broker-stalled"][0].key
    two = said_by(both, late, node(1, "10.0.0.1"), stall("10.0.0.3", 11, 13), stall("10.0.0.4", 12, 13))
    assert two[rule][0].because is None
    told = said_by(both, late, node(2, "10.0.0.2"), stall("10.0.0.3", 11, 13))
    assert told[rule][0].because is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, True),
        ({"client_id": "broker-3-fetcher-0"}, False),  # another follower
        ({"broker": "10.0.0.3:9092"}, False),  # its connection to another leader
        ({"outage_from_ns": 15 * SECOND}, False),
    ],
)
def test_a_follower_does_not_lag_by_itself_while_the_network_is_cut(
    change: dict[str, Any], told: bool
) -> None:
    cut = {"connection": 4, "client": "10.0.0.2:5000", "broker": "10.0.0.1:9092", "exchanges": 5}
    cut |= {"client_id": "broker-2-fetcher-0", "outage_from_ns": 9 * SECOND, "outage_ns": 5 * SECOND}
    late = follower(4, held_writes=3, held_ns=2 * SECOND)  # from 10 to 14 s
    cut |= {"first_ns": 0, "last_ns": 90 * SECOND}
    goes_on = {**cut, "connection": 5, "client": "10.0.0.8:1", "broker": "10.0.0.9:9092", "client_id": "x"}
    others = row(Tcp, **{**goes_on, "outage_from_ns": None, "outage_ns": 0})
    links = (Tcp, row(Tcp, **{**cut, **change})), (Tcp, others)
    found = said_by(("follower-lags", "network-outage"), late, *links)
    assert (found["follower-lags"][0].because == found["network-outage"][0].key) == told


def test_a_follower_that_has_nothing_to_fetch_does_not_lag() -> None:
    moved = ClusterChanges, row(ClusterChanges, ns=12 * SECOND, what="leader-moved", subject="orders-0")
    assert said("follower-lags", follower(30), moved) == []


def test_a_log_that_is_cut_is_told() -> None:
    (found,) = said("log-truncated", follower(truncations=1))
    assert found.count == 1
    assert said("log-truncated", follower()) == []


# -- the table ------------------------------------------------------------------------------------------


def fetch(at_s: float, connection: int = 0, offset: int = 5, high_watermark: int = 5) -> Exchange:
    ns = int(at_s * SECOND)
    asked = {"partition": 0, "fetchOffset": offset, "partitionMaxBytes": 1, "logStartOffset": 0}
    told = {
        "partitionIndex": 0,
        "errorCode": 0,
        "highWatermark": high_watermark,
        "lastStableOffset": -1,
        "logStartOffset": 0,
        "abortedTransactions": None,
        "records": None,
    }
    return made(
        "Fetch",
        5,
        {
            "replicaId": 2,
            "maxWaitMs": 500,
            "minBytes": 1,
            "maxBytes": 1,
            "isolationLevel": 0,
            "topics": [{"topic": "orders", "partitions": [asked]}],
        },
        {"throttleTimeMs": 0, "responses": [{"topic": "orders", "partitions": [told]}]},
        (ns, ns + 1),
        connection,
    )


def rows(*exchanges: Exchange) -> list[Row]:
    found = Replication()
    for each in exchanges:
        found.feed(each)
    return found.result()


def test_a_gap_is_one_of_a_connection() -> None:
    (one,) = rows(fetch(1), fetch(2), fetch(7), fetch(8))
    assert (one["node_id"], one["fetches"], one["gap_max_ns"], one["gap_from_ns"]) == (
        2,
        4,
        5 * SECOND,
        2 * SECOND,
    )
    (other,) = rows(fetch(1), fetch(2), fetch(7, 1), fetch(8, 1))
    assert other["gap_max_ns"] == SECOND


def test_slow_writes_that_all_must_confirm_are_rows_with_their_topics() -> None:
    def write(seconds: float, acks: int = -1) -> Exchange:
        asked: dict[str, Any] = {"transactionalId": None, "acks": acks, "timeoutMs": 9, "topicData": []}
        asked["topicData"] = [{"name": "orders", "partitionData": [{"index": 0, "records": None}]}]
        ns = SECOND, SECOND + round(seconds * SECOND)
        return made("Produce", 8, asked, {"responses": [], "throttleTimeMs": 0}, ns)

    (one,) = rows(fetch(0.5), write(1.5), write(0.9), write(1.5, acks=1))
    (slow,) = one["slow_writes"]
    assert (slow["topic"], slow["from_ns"]) == ("orders", SECOND)
    assert slow["to_ns"] == pytest.approx(2.5 * SECOND, abs=SECOND / 1000)


def _wrote(from_ns: int, to_ns: int) -> Exchange:
    asked: dict[str, Any] = {"transactionalId": None, "acks": -1, "timeoutMs": 9, "topicData": []}
    return made("Produce", 8, asked, {"responses": [], "throttleTimeMs": 0}, (from_ns, to_ns))


def test_what_is_copied_around_slow_writes_is_counted() -> None:
    wrote = _wrote(21 * SECOND, 23 * SECOND)
    fetches = [fetch(at_s, at_s % 2) for at_s in (9, 15, 16, 25, 30)]
    assert fetches[0].response is not None
    size = fetches[0].response.frame.size
    (one,) = rows(*fetches, wrote)
    assert [tuple(each) for each in one["copied"]] == [(10 * SECOND, 2 * size), (20 * SECOND, size)]
    (none,) = rows(*fetches)
    assert none["copied"] == []


def test_what_is_copied_takes_of_the_memory_for_facts() -> None:
    """Without slow writes, nobody needs to know."""
    found = Replication(Limits(rows=3))
    for at_s in range(5, 60, 10):
        found.feed(fetch(at_s))
    assert found.left_out == 0
    found.feed(_wrote(21 * SECOND, 33 * SECOND))
    assert found.left_out == 3
    assert [ns for ns, _ in found.result()[0]["copied"]] == [10 * SECOND, 20 * SECOND]


@pytest.mark.timeout(60)
def test_a_write_that_a_clock_makes_last_for_years_costs_no_memory() -> None:
    (one,) = rows(fetch(9), fetch(15), _wrote(0, 100 * 31_557_600 * SECOND))
    assert [ns for ns, _ in one["copied"]] == [0, 10 * SECOND]


def test_lag_is_what_others_have() -> None:
    (one,) = rows(fetch(1, offset=5, high_watermark=500), fetch(2, offset=400, high_watermark=500))
    assert one["lag_max"] == 495


def test_consumers_are_no_followers() -> None:
    consumer = fetch(1)
    assert consumer.request is not None
    assert rows(consumer)
    assert all(each["node_id"] >= 0 for each in rows(consumer))


# -- racks ----------------------------------------------------------------------------------------------


def reads(rack: str | None, broker: int, sent: int = 2_000_000) -> tuple[type[Racks], Row]:
    values = {"topic": "orders", "partition": 0, "client": "10.0.0.9", "client_id": "billing", "rack": rack}
    times = {"first_ns": 1, "last_ns": 9, "fetches": 3}
    return Racks, row(Racks, **values, **times, broker=f"10.0.0.{broker}:9092", bytes=sent)


def cluster(
    isr: str = "1,2", racks: tuple[str | None, str | None] = ("a", "b")
) -> list[tuple[type[Any], Row]]:
    brokers = [
        (ClusterBrokers, row(ClusterBrokers, node_id=node, host=f"10.0.0.{node}", port=9092, rack=rack))
        for node, rack in zip((1, 2), racks, strict=True)
    ]
    held = row(ClusterPartitions, topic="orders", partition=0, leader=1, isr=isr, replicas="1,2")
    return [*brokers, (ClusterPartitions, held)]


def test_a_consumer_that_reads_past_a_nearer_copy_is_told() -> None:
    (found,) = said("cross-rack-fetch", *cluster(), reads("b", 1))
    assert (found.severity, found.subject.client_id) == ("notice", "billing")
    assert (
        found.message
        == "billing in rack b read 2.0 MB from a, although a replica in sync is in its own rack."
    )


def test_a_consumer_without_a_rack_is_told_as_information() -> None:
    (found,) = said("cross-rack-fetch", *cluster(), reads(None, 1))
    assert found.severity == "info"


def test_a_consumer_that_reads_near_or_cannot_is_not_told() -> None:
    assert said("cross-rack-fetch", *cluster(), reads("a", 1)) == []
    assert said("cross-rack-fetch", *cluster(isr="1"), reads("b", 1)) == []
    assert said("cross-rack-fetch", *cluster(), reads("b", 1, 999_999)) == []
    assert said("cross-rack-fetch", *cluster(racks=("a", "a")), reads("b", 1)) == []
    assert said("cross-rack-fetch", *cluster(racks=(None, None)), reads(None, 1)) == []


def test_the_rack_that_a_consumer_names_is_kept() -> None:
    found = Racks()
    for event in events_of("java43-basic"):
        found.feed(event)
    rows = found.result()
    assert {each["rack"] for each in rows} == {None}
    assert sum(each["bytes"] for each in rows) > 0


@pytest.mark.parametrize("kind", [Racks, StaleLeaders, Replication])
def test_parts_are_the_whole(kind: type[Racks] | type[StaleLeaders] | type[Replication]) -> None:
    path = CAPTURES / "incidents" / "controlled-shutdown.pcapng.gz"
    events = list(dissect(iter(read_packets([path]))))

    def fed(some: list[Any]) -> Any:
        found = kind()
        for event in some:
            found.feed(event)
        return found

    whole = fed(events).result()
    assert whole
    for at in (100, 740, 1935):
        parts = pickle.loads(pickle.dumps(fed(events[:at])))
        parts.merge(fed(events[at:]))
        assert parts.result() == whole


@pytest.mark.parametrize(
    ("gap_s", "held_writes", "told"),
    [(13.9, 0, False), (14, 0, True), (6, 5, True), (60, 5, True)],
)
def test_silence_of_everybody_counts_for_no_follower_that_nobody_waits_for(
    gap_s: float, held_writes: int, told: bool
) -> None:
    context = WHOLE._replace(silences=((12 * SECOND, 16 * SECOND),))
    late = follower(gap_s, held_writes=held_writes, held_ns=2 * SECOND)
    assert bool(said("follower-lags", late, context=context)) == told
