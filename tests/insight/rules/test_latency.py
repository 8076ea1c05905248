"""Rules on time that brokers take, and on requests that wait for others."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.cluster import ClusterBrokers
from kdissect.analysis.connections import Connections
from kdissect.analysis.fold import Row
from kdissect.analysis.pace import Pace
from kdissect.analysis.producers import Producers
from kdissect.analysis.stalls import Spikes, Stalls
from kdissect.analysis.tcp import Tcp
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import JudgingContext
from kdissect.insight.finding import INFO, WARNING, Finding
from kdissect.insight.judge import judge
from tests.analysis.test_pace import beat, fed
from tests.insight.judged import CAPTURES, judged_file
from tests.insight.made import MS, T0, Pair, S, check_pages, row, said, said_by, unjudged, zeros
from tests.shared import requires_shared, shared

IDS = tuple(each.id for each in RULES.values() if each.category == "latency")


def pace(**values: Any) -> tuple[type[Pace], Row]:
    return Pace, zeros(
        Pace, **{"broker": "b:1", "client": "c", "client_id": "app", "api": "Produce", **values}
    )


def test_each_has_its_page() -> None:
    check_pages("latency")


@pytest.mark.parametrize("name", ["basic-kafka43.pcapng", "consumer-group-kip848.pcapng", "loss.pcapng"])
def test_healthy_captures_have_no_warning(name: str) -> None:
    graver = [
        each for each in judged_file(CAPTURES / name).findings if each.id in IDS and each.severity != INFO
    ]
    assert not graver


def slow(slow_ms: float, usual_ms: float = 2, count: int = 50, api: str = "Produce") -> list[Finding]:
    rows = [
        pace(broker=f"b:{node}", broker_count=count, broker_p50_ns=int(ms * MS), api=api)
        for node, ms in enumerate((usual_ms, usual_ms, slow_ms))
    ]
    return said_by(("slow-broker",), *rows).get("slow-broker", [])


def test_a_broker_that_takes_three_times_as_long_as_the_others_is_slow() -> None:
    (found,) = slow(7)
    assert (found.subject.broker, found.measure, found.severity) == ("b:2", 7, WARNING)
    assert not slow(6.9)  # less than 5 ms more
    assert not slow(29, usual_ms=10)  # less than three times
    assert slow(30, usual_ms=10)
    assert not slow(7, count=49)
    assert not slow(70, api="JoinGroup")


def test_a_broker_is_compared_with_those_that_were_asked_at_the_same_time() -> None:
    """One that stopped soon was cold all the time."""

    def asked(node: int, ms: int, until_s: int) -> Pair:
        counted = {"broker_count": 50, "broker_p50_ns": ms * MS, "last_ns": T0 + until_s * S}
        return pace(broker=f"b:{node}", api="Produce", **counted)

    cold, others = asked(2, 70, 29), (asked(0, 2, 60), asked(1, 2, 60))
    assert not said("slow-broker", cold, *others)
    assert unjudged("slow-broker", cold, *others) == [
        "no other broker was asked the same during the same time"
    ]
    assert said("slow-broker", asked(2, 70, 30), *others)
    assert said("slow-broker", cold, asked(0, 2, 60), asked(1, 2, 29))
    assert not unjudged("slow-broker", asked(2, 2, 29), *others)


def test_a_broker_is_compared_by_what_clients_asked_at_the_same_time() -> None:
    """Of one broker the client that asked most came early, of the other late. Both asked both brokers."""

    def asked(node: int, ms: int, client_id: str, count: int) -> Pair:
        late = 40 * S * (client_id == "late")
        times = {"first_ns": T0 + late, "last_ns": T0 + late + 20 * S}
        counted = {"broker_count": count, "broker_p50_ns": ms * MS, "client_id": client_id, **times}
        return pace(broker=f"b:{node}", api="Metadata", **counted)

    slow = asked(1, 70, "early", 60), asked(1, 70, "late", 50)
    assert said("slow-broker", *slow, asked(2, 2, "early", 50), asked(2, 2, "late", 60))
    assert not said("slow-broker", *slow, asked(2, 70, "early", 50), asked(2, 2, "late", 60))
    assert not said("slow-broker", *slow, asked(2, 2, "late", 60))


def test_what_one_client_writes_is_not_compared_with_what_others_write() -> None:
    """Large batches that all replicas confirm take long at any broker."""

    def asked(node: int, ms: int, client_id: str, api: str = "Produce") -> Pair:
        counted = {"broker_count": 50, "broker_p50_ns": ms * MS, "client_id": client_id}
        return pace(broker=f"b:{node}", api=api, **counted)

    assert not said("slow-broker", asked(1, 70, "large"), asked(2, 2, "small"), asked(3, 2, "small"))
    assert said("slow-broker", asked(1, 70, "large", "Metadata"), asked(2, 2, "small", "Metadata"))
    (found,) = said("slow-broker", asked(1, 70, "large"), asked(2, 2, "large"), asked(1, 70, "small"))
    assert "for half of the Produce requests of large, where" in found.message
    assert 'client_id == "large"' in found.filter


def test_several_clients_that_agree_need_few_writes_each() -> None:
    def wrote(client: int, slow_ms: float = 30, count: int = 17, until_s: int = 60) -> list[Pair]:
        who = {"api": "Produce", "client": f"c{client}", "client_id": f"app-{client}"}
        slow = pace(broker="b:1", broker_count=count, broker_p50_ns=int(slow_ms * MS), **who)
        times = {"first_ns": T0, "last_ns": T0 + until_s * S}
        usual = [
            pace(broker=f"b:{node}", broker_count=count, broker_p50_ns=2 * client * MS, **who, **times)
            for node in (2, 3)
        ]
        return [slow, *usual]

    (found,) = said("slow-broker", *wrote(1), *wrote(2), *wrote(3))
    assert (found.subject.broker, found.client_ids) == ("b:1", ("app-1", "app-2", "app-3"))
    assert (
        "takes 30 ms for half of the Produce requests of app-1, where the others take 2 ms" in found.message
    )
    assert "for each of 3 clients; at the least, it takes 30 ms instead of 6 ms" in found.message
    assert not said("slow-broker", *wrote(1), *wrote(2))  # too few clients
    assert not said("slow-broker", *wrote(1), *wrote(2), *wrote(3, count=9))
    assert not said("slow-broker", *wrote(1, count=16), *wrote(2, count=16), *wrote(3, count=16))
    assert not said("slow-broker", *wrote(1), *wrote(2), *wrote(3), *wrote(4, slow_ms=12))  # one disagrees
    assert said("slow-broker", *wrote(1), *wrote(2), *wrote(3), *wrote(4, slow_ms=12, count=9))
    assert not said("slow-broker", *wrote(1), *wrote(2), *wrote(3, until_s=29))  # at another time


def test_one_broker_alone_is_not_compared() -> None:
    assert not said_by(("slow-broker",), pace(broker_count=99, broker_p50_ns=S))


def spike(**values: Any) -> tuple[type[Spikes], Row]:
    made = {"api": "Produce", "from_ns": T0, "to_ns": T0 + S, "count": 50, "slow": 4, "p50_ns": MS}
    made |= {"worst_ns": 300 * MS, "p99_ns": 250 * MS, "brokers": ["b:1"], "clients": ["c", "d"]}
    made |= {"exchanges": [5, 6, 7, 8]}
    return Spikes, zeros(Spikes, **{**made, **values})


def test_times_of_one_api_are_told_together() -> None:
    ((found,),) = said_by(("latency-spike",), spike(), spike(from_ns=T0 + 9 * S, to_ns=T0 + 10 * S)).values()
    assert (found.count, found.measure, found.subject.broker) == (8, 250, "b:1")
    assert (found.first_ns, found.last_ns) == (T0, T0 + 10 * S)


@pytest.mark.parametrize(("slow", "told"), [(2, False), (3, True)])
def test_no_spike_is_told_below_the_limit(slow: int, told: bool) -> None:
    exchanges = [*(beat(100 + at, 1) for at in range(90)), *(beat(5_000 + at, 150) for at in range(slow))]
    assert bool(said_by(("latency-spike",), *((Spikes, row) for row in fed(Spikes(), *exchanges)))) == told


def stall(**values: Any) -> tuple[type[Stalls], Row]:
    made = {
        "broker": "b:1",
        "from_ns": T0,
        "to_ns": T0 + 2 * S,
        "stalled_ns": 2 * S,
        "waiting": 2,
        "alone": 1,
    }
    return Stalls, zeros(
        Stalls, **{**made, "connections": [1, 2], "exchanges": [7, 8], "clients": ["x"], **values}
    )


def test_a_broker_that_answers_nobody_stands_still() -> None:
    ((found,),) = said_by(("broker-stalled",), stall(), stall(from_ns=T0 + 5 * S)).values()
    assert (found.subject.broker, found.count, found.measure) == ("b:1", 2, 2)
    assert found.exchanges == (7, 8)


@pytest.mark.parametrize(("clients", "lasted_ms", "apart_ms"), [(20, 10_000, 20), (48, 1_460, 30)])
def test_a_stall_is_told_though_its_last_requests_wait_for_less_than_a_second(
    clients: int, lasted_ms: int, apart_ms: int
) -> None:
    late = [beat(10 + at * apart_ms, lasted_ms - at * apart_ms, at + 1) for at in range(clients)]
    rows = fed(Stalls(), beat(0, 1), *late)
    assert said_by(("broker-stalled",), *((Stalls, row) for row in rows))


def told_at(node: int, port: int) -> tuple[type[ClusterBrokers], Row]:
    return ClusterBrokers, zeros(ClusterBrokers, node_id=node, host="b", port=port, from_ns=0)


def test_a_broker_that_stands_still_with_its_listener_of_controllers_is_told_once() -> None:
    inner = {"broker": "b:9", "connections": [3], "exchanges": [9]}

    def told(*rows: tuple[type[Any], Row]) -> list[Finding]:
        return said_by(("broker-stalled",), stall(), told_at(1, 1), *rows)["broker-stalled"]

    (found,) = told(stall(**inner, from_ns=T0 + S))
    assert (found.subject.broker, found.count, found.cost_ns) == ("b:1", 1, 2 * S)
    assert "none of 3 connections" in found.message
    assert found.exchanges == (7, 8, 9)
    for apart in ({"to_ns": T0 + 3 * S + 1}, {"from_ns": T0 + 2 * S}, {"broker": "other:9"}):
        assert len(told(stall(**{**inner, **apart}))) == 2
    again = {"from_ns": T0 + 10 * S, "to_ns": T0 + 13 * S}
    (found,) = told(stall(**again), stall(**inner, from_ns=T0 + 2 * S - 1))
    assert (found.count, found.cost_ns) == (2, 4 * S), "only one of its listeners was waited for then"
    (found,) = told(stall(**inner), stall(**inner | again))
    assert (found.subject.broker, found.count, found.cost_ns) == ("b:1", 2, 4 * S)
    assert len(told(stall(**inner), stall(broker="b:2"), told_at(2, 2))) == 3, "it may be either's"
    assert len(told(stall(**inner), told_at(1, 9), stall(broker="b:2"), told_at(2, 2))) == 2, "it is told"


def test_brokers_of_two_clusters_with_one_number_stand_still_each_by_itself() -> None:
    def told(other: str) -> list[Finding]:
        places = [
            (kind, {**each, "cluster_id": id}) for (kind, each), id in zip(TWO, ("k", other), strict=True)
        ]
        rows = stall(), stall(broker="b:2", connections=[3], exchanges=[9]), *places
        return said_by(("broker-stalled",), *rows)["broker-stalled"]

    assert len(told("k")) == 1
    assert len(told("l")) == 2


TWO = told_at(1, 1), told_at(1, 2)


def test_many_requests_in_flight_are_the_effect_of_a_broker_that_stood_still() -> None:
    """They stand on a connection that began long before."""
    values = {"broker": "b:1", "client": "c:1", "client_id": "app", "in_flight_max": 60, "connection": 4}
    for first_ns, last_ns, is_effect in ((T0 - 60 * S, T0 + 60 * S, True), (T0 - 60 * S, T0 - S, False)):
        many = Connections, row(Connections, **values, first_ns=first_ns, last_ns=last_ns)
        found = said_by(("broker-stalled", "too-many-in-flight"), stall(), told_at(1, 1), many)
        because = found["broker-stalled"][0].key if is_effect else None
        assert [each.because for each in found["too-many-in-flight"]] == [because]


def test_a_broker_may_have_waited_for_another_one() -> None:
    """A follower that stands still holds up all writes with acks=all, and commits."""
    for_others = stall(alone=0)
    assert not said_by(("broker-stalled",), for_others)
    assert not said_by(("broker-stalled",), for_others, told_at(1, 1), told_at(2, 2))
    assert said_by(("broker-stalled",), for_others, told_at(1, 1)), "there is no other one"


def first_request(connection: int, ready_s: float, **more: Any) -> tuple[type[Tcp], Row]:
    """A connection that began a second before the stall and was ready so long after that began."""
    setup_ns = round((1 + ready_s) * S)
    values = {"connection": connection, "opening": "answered", "setup_ns": setup_ns, **more}
    return Tcp, zeros(Tcp, outage_from_ns=None, first_ns=T0 - S, **values)


def test_a_broker_that_starts_does_not_stand_still() -> None:
    """It accepts connections before it is ready to answer."""
    first = first_request(1, 2)
    assert not said_by(("broker-stalled",), stall(), first, first_request(2, 2.1))
    assert said_by(("broker-stalled",), stall(), first, first_request(2, 1.9)), "it was served before"
    assert said_by(("broker-stalled",), stall(), first, first_request(2, 2, opening=None))
    assert said_by(("broker-stalled",), stall(), first)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({}, True),
        ({"broker": "b:2"}, False),
        ({"ready_s": 0}, False),  # it had answered nothing before
        ({"last_ns": T0 + 2 * S}, False),
        ({"closed_by": "broker"}, False),  # as one does that has started anew
        ({"opening": None}, False),
    ],
)
def test_a_broker_that_ran_before_and_after_does_not_start(other: dict[str, Any], told: bool) -> None:
    values = {"broker": "b:1", "closed_by": None, "last_ns": T0 + 3 * S, "ready_s": -0.5, **other}
    rows = stall(), first_request(1, 2), first_request(2, 2), first_request(3, **values)
    assert bool(said_by(("broker-stalled",), *rows)) == told


def test_a_listener_that_only_brokers_use_stands_still_with_the_one_of_clients() -> None:
    """The cluster tells of neither."""
    inner = stall(broker="b:9", connections=[3], exchanges=[9], clients=["1", "raft-client-2"])
    (found,) = said_by(("broker-stalled",), inner, stall())["broker-stalled"]
    assert (found.subject.broker, found.count) == ("b:1", 1)
    assert "none of 3 connections" in found.message
    for other in ({"clients": ["1", "app"]}, {"broker": "other:9"}, {"to_ns": T0 + 4 * S}):
        rows = stall(), (Stalls, {**inner[1], **other})
        assert len(said_by(("broker-stalled",), *rows)["broker-stalled"]) == 2


def test_a_stall_is_told_from_a_second_on() -> None:
    assert said_by(("broker-stalled",), stall(stalled_ns=S))
    assert not said_by(("broker-stalled",), stall(stalled_ns=S - 1))


def test_where_the_network_was_cut_nobody_stood_still() -> None:
    cut = Tcp, zeros(Tcp, connection=2, outage_ns=3 * S, outage_from_ns=T0 - S)
    assert not said_by(("broker-stalled",), stall(), cut)
    elsewhere = Tcp, zeros(Tcp, connection=9, outage_ns=3 * S, outage_from_ns=T0 - S)
    assert said_by(("broker-stalled",), stall(), elsewhere)


def test_where_the_capture_slept_nobody_stood_still() -> None:
    rule = RULES["broker-stalled"]
    _, row = stall(from_ns=T0, to_ns=T0 + 3_600 * S, stalled_ns=3_600 * S)
    rows = {need: [row] if need is Stalls else [] for need in rule.needs}
    whole = JudgingContext(T0, T0 + 3_700 * S)
    assert judge({rule.id: rule}, rows, whole).findings
    asleep = whole._replace(silences=((T0 + S, T0 + 3_599 * S),))
    assert not judge({rule.id: rule}, rows, asleep).findings
    quiet = whole._replace(silences=((T0 + S, T0 + 61 * S),))
    assert judge({rule.id: rule}, rows, quiet).findings


def queue(seconds: list[tuple[int, int, int]], latency_ns: int, **values: Any) -> tuple[type[Pace], Row]:
    count = sum(each[1] for each in seconds)
    made = {"behind_seconds": seconds, "behind_count": count, "behind_max_ns": 90 * MS}
    made |= {"behind_first_ns": T0, "behind_last_ns": T0 + S, "behind_exchanges": [3, 4]}
    return pace(**{**made, "latency_sum_ns": latency_ns, **values})


def waits(each: int, seconds: int, total_ms: int = 100) -> list[tuple[int, int, int]]:
    """In every third second."""
    return [(T0 // S + 3 * at, each, total_ms * MS) for at in range(seconds)]


def test_requests_that_wait_again_and_again_are_told() -> None:
    ((found,),) = said_by(("head-of-line",), queue(waits(10, 3), 1_500 * MS)).values()
    assert (found.subject.client_id, found.subject.broker) == ("app", "b:1")
    assert (found.count, found.measure, found.because) == (30, 20, None)
    assert not said_by(("head-of-line",), queue(waits(10, 3), 1_501 * MS))
    assert not said_by(("head-of-line",), queue(waits(9, 3), 900 * MS))
    assert not said_by(("head-of-line",), queue(waits(10, 3), 900 * MS, api="Fetch"))


def test_waits_begin_when_they_weigh() -> None:
    """Short ones come before, as of a client that sends much: all but a tenth of the time comes later."""
    early = [(T0 // S + at, 30, 10 * MS) for at in range(10)]
    late = [(T0 // S + 20 + at, 10, S) for at in range(3)]
    ((found,),) = said_by(("head-of-line",), queue([*early, *late], 10 * S)).values()
    assert found.first_ns == T0 + 21 * S


def test_a_burst_is_no_queue() -> None:
    assert not said_by(("head-of-line",), queue([(T0 // S, 50, S), (T0 // S + 1, 50, S)], 3 * S))


def slow_from(at: int, seconds: int) -> tuple[type[Spikes], Row]:
    return spike(from_ns=T0 + at * S, to_ns=T0 + (at + seconds) * S, brokers=["b:1"])


def test_what_waited_while_the_broker_was_slow_for_everybody_is_no_queue() -> None:
    """And while what had come in that time was worked off."""
    row = queue([(T0 // S + at, 10, S) for at in range(8)], 9 * S)
    found = said_by(("head-of-line", "latency-spike"), row, slow_from(0, 3))
    assert found.keys() == {"latency-spike"}
    elsewhere = spike(from_ns=T0, to_ns=T0 + 3 * S, brokers=["b:2"])
    assert "head-of-line" in said_by(("head-of-line", "latency-spike"), row, elsewhere)


def test_waits_that_go_on_after_a_slow_time_are_a_queue() -> None:
    row = queue([(T0 // S + at, 10, S) for at in (0, 1, 2, 9, 12, 15, 18, 21)], 9 * S)
    assert said_by(("head-of-line",), row, slow_from(0, 3))


def test_a_broker_that_was_slow_half_of_the_time_does_not_excuse_a_queue() -> None:
    waited = [(T0 // S + at, 10, S) for at in range(8)]
    assert said_by(("head-of-line",), queue(waited, 9 * S, last_ns=T0 + 16 * S), slow_from(0, 8))
    assert not said_by(("head-of-line",), queue(waited, 9 * S, last_ns=T0 + 17 * S), slow_from(0, 8))


def test_what_waited_while_the_broker_stood_still_is_its_effect() -> None:
    held = stall(from_ns=T0 - S, to_ns=T0 + 9 * S, stalled_ns=10 * S)
    found = said_by(("head-of-line", "broker-stalled"), queue(waits(10, 3), 600 * MS), held)
    assert found["head-of-line"][0].because == found["broker-stalled"][0].key
    found = said_by(("head-of-line", "broker-stalled"), queue(waits(10, 8), 600 * MS), held)
    assert found["head-of-line"][0].because is None


@pytest.mark.parametrize(
    ("api", "clusters", "is_cause"),
    [
        ("Produce", (), True),  # no cluster is told
        ("Metadata", (), False),
        ("Produce", ("k", "k"), True),
        ("Produce", ("k", "l"), False),
        ("Produce", ("k", "k", "l"), True),
        ("Produce", ("k", None, "l"), False),
    ],
)
def test_only_writes_wait_for_another_broker_of_the_cluster(
    api: str, clusters: tuple[str | None, ...], is_cause: bool
) -> None:
    held = stall(broker="b:2", from_ns=T0 - S, to_ns=T0 + 9 * S, stalled_ns=10 * S)
    nodes = [
        (ClusterBrokers, told_at(at, at)[1] | {"cluster_id": cluster})
        for at, cluster in enumerate(clusters, 1)
        if cluster is not None
    ]
    both = ("head-of-line", "broker-stalled")
    found = said_by(both, queue(waits(10, 3), 600 * MS, api=api), held, *nodes)
    assert found["head-of-line"][0].because == (found["broker-stalled"][0].key if is_cause else None)


@pytest.mark.parametrize(
    ("values", "acks", "api", "is_cause"),
    [
        ({}, "all", "Produce", True),
        ({"rto_like": 2}, "all", "Produce", False),
        ({"client_id": "app-2"}, "all", "Produce", False),
        ({"broker": "b:2"}, "all", "Produce", False),
        ({}, "1", "Produce", False),
        ({}, "all", "Metadata", False),
    ],
)
def test_writes_wait_for_a_follower_whose_segments_get_lost(
    values: dict[str, Any], acks: str, api: str, is_cause: bool
) -> None:
    lossy = {"broker": "b:1", "client": "10.0.0.2:7", "client_id": "broker-2-fetcher-0", "exchanges": 900}
    lossy |= {"retransmitted_segments": 20, "packets": 900, "rto_like": 3}
    rows = (
        (Tcp, zeros(Tcp, **{**lossy, **values})),
        (Producers, zeros(Producers, client_id="app", acks=[acks])),
    )
    found = said_by(("head-of-line", "packet-loss"), queue(waits(10, 3), 600 * MS, api=api), *rows)
    assert found["head-of-line"][0].because == (found["packet-loss"][0].key if is_cause else None)


def polled(api: str, count: int, of: int) -> Finding:
    late = pace(api=api, count=of, polled_count=count, polled_max_ns=400 * MS, polled_exchanges=[9])
    late[1].update(behind_first_ns=T0, behind_last_ns=T0)
    ((found,),) = said_by(("long-poll-blocks-others",), late).values()
    return found


def test_behind_long_polls_only_what_must_not_wait_is_grave() -> None:
    assert polled("Heartbeat", 5, 10).severity == WARNING
    assert polled("Heartbeat", 4, 4).severity == INFO
    assert polled("Heartbeat", 5, 11).severity == INFO
    assert polled("ListOffsets", 20, 100).severity == WARNING
    assert polled("ListOffsets", 19, 19).severity == INFO
    assert polled("Metadata", 500, 500).severity == INFO


def test_a_wait_or_two_as_when_a_consumer_begins_are_nothing() -> None:
    late = pace(api="ListOffsets", count=9, polled_count=2, polled_max_ns=249 * MS, polled_exchanges=[9])
    late[1].update(behind_first_ns=T0, behind_last_ns=T0)
    assert not said_by(("long-poll-blocks-others",), late)
    late[1].update(polled_max_ns=250 * MS)
    assert said_by(("long-poll-blocks-others",), late)
    late[1].update(polled_max_ns=249 * MS, polled_count=3)
    assert said_by(("long-poll-blocks-others",), late)


def test_records_that_are_held_back_for_more_are_told() -> None:
    def held(count: int, of: int) -> bool:
        values = {"held_min_bytes": 10_000, "held_max_wait_ms": 500, "held_exchanges": [3]}
        times = {"held_first_ns": T0, "held_last_ns": T0 + S}
        some = pace(api="Fetch", count=of, held_count=count, **values, **times)
        return bool(said_by(("fetch-waits-for-min-bytes",), some))

    assert held(20, 1_000)
    assert not held(19, 1_000)
    assert held(5, 16)
    assert not held(5, 17)


def test_a_consumer_that_is_away_for_a_second_is_told() -> None:
    def away(count: int, p90: int) -> bool:
        return bool(said_by(("slow-consumer-loop",), pace(api="Fetch", away_count=count, away_p90_ns=p90)))

    assert away(10, S)
    assert not away(9, S)
    assert not away(10, S - 1)


@requires_shared
def test_a_broker_that_was_stopped_twice_is_blamed_and_nobody_else() -> None:
    found = judged_file(shared("testdata/incidents/broker-paused/capture.pcapng.gz")).findings
    ours = {each.id: each for each in found if each.id in IDS and each.severity != INFO}
    assert ours.keys() == {"broker-stalled", "head-of-line"}
    assert ours["broker-stalled"].count == 2
    assert ours["broker-stalled"].measure == pytest.approx(3.5, abs=0.1)
    assert ours["head-of-line"].because == ours["broker-stalled"].key
