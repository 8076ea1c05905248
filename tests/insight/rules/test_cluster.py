"""Rules on topics and partitions."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.cluster import ClusterBrokers, ClusterChanges, ClusterPartitions
from kdissect.analysis.fold import MILLISECOND, SECOND, Row
from kdissect.analysis.lag import Lag
from kdissect.analysis.stale_leaders import StaleLeaders
from kdissect.insight.context import SLEPT
from kdissect.insight.finding import LIKELY, WARNING
from tests.insight.judged import CAPTURES, judged_file
from tests.insight.made import WHOLE, row, said, unjudged

SILENT_IDS = {
    "isr-shrunk",
    "partition-offline",
    "leader-flaps",
    "unclean-election",
    "stale-leader",
    "leader-moved",
}


def change(what: str, at_s: float, **more: Any) -> tuple[type[ClusterChanges], Row]:
    values = {
        "ns": int(at_s * SECOND),
        "what": what,
        "subject": "orders-0",
        "topic": "orders",
        "partition": 0,
        "exchange": 7,
        "told_by": "Metadata",
    }
    return ClusterChanges, row(ClusterChanges, **{**values, **more})


def moved(at_s: float, before: str, after: str, **more: Any) -> tuple[type[ClusterChanges], Row]:
    return change("leader-moved", at_s, before=before, after=after, node_id=int(before), **more)


def partition(
    leader: int, from_s: float, to_s: float | None = None, **more: Any
) -> tuple[type[ClusterPartitions], Row]:
    values = {
        "topic": "orders",
        "partition": 0,
        "leader": leader,
        "replicas": "1,2",
        "preferred": leader == 1,
        "from_ns": int(from_s * SECOND),
        "to_ns": None if to_s is None else int(to_s * SECOND),
        "source_exchange": 3,
    }
    return ClusterPartitions, row(ClusterPartitions, **{**values, **more})


def stale(
    refusals: int, first_s: float, last_s: float, error: str = "NOT_LEADER_OR_FOLLOWER"
) -> tuple[type[StaleLeaders], Row]:
    values = {
        "topic": "orders",
        "partition": 0,
        "client": "10.0.0.9",
        "client_id": "billing",
        "broker": "10.0.0.1:9092",
        "api": "Produce",
        "error": error,
        "refusals": refusals,
        "exchanges": [1],
        "first_ns": int(first_s * SECOND),
        "last_ns": int(last_s * SECOND),
    }
    return StaleLeaders, row(StaleLeaders, **values)


def test_partitions_that_move_together_are_one_finding() -> None:
    rows = [moved(1, "1", "2"), moved(1.5, "1", "3", subject="orders-1", partition=1)]
    (found,) = said("leader-moved", *rows)
    assert (found.subject.broker, found.subject.topic, found.count) == ("1", "orders", 2)
    assert found.message.startswith(
        "The leadership of 2 partitions (orders-0, orders-1) moved from broker 1 to brokers"
    )


def test_who_asked_for_a_move_is_told_apart() -> None:
    found = said(
        "leader-moved", moved(1, "1", "2", by="ops@10.0.0.5"), moved(2, "1", "2", subject="orders-1")
    )
    assert len(found) == 1  # of one broker and topic
    assert "That happened 2 times" in found[0].message
    (one,) = said("leader-moved", moved(1, "1", "2", by="ops@10.0.0.5"))
    assert one.message.endswith("ops@10.0.0.5 asked for it.")


@pytest.mark.parametrize(("end_s", "count"), [(190, 0), (191, 1)])
def test_nobody_knows_how_long_a_partition_had_no_leader_while_the_capture_paused(
    end_s: int, count: int
) -> None:
    paused = WHOLE._replace(silences=((60 * SECOND, end_s * SECOND),))
    rows = partition(-1, 50, 190)
    assert len(said("partition-offline", rows, context=paused)) == count
    assert bool(unjudged("partition-offline", rows, context=paused)) == (not count)


def test_a_leader_that_is_found_again_did_not_move() -> None:
    assert said("leader-moved", change("leader-moved", 2, before="none", after="1")) == []


def test_a_leader_flaps_with_the_third_move_that_nobody_asked_for() -> None:
    rows = [moved(1, "1", "2"), moved(200, "2", "1"), moved(400, "1", "2")]
    (found,) = said("leader-flaps", *rows)
    assert (found.subject.topic, found.subject.partition, found.count) == ("orders", 0, 3)
    assert said("leader-flaps", *rows[:2]) == []
    assert said("leader-flaps", *rows[:2], moved(400, "1", "2", by="ops@10.0.0.5")) == []
    assert said("leader-flaps", *rows[:2], moved(702, "1", "2")) == []
    assert said("leader-flaps", *rows, change("broker-gone", 399, node_id=1)) == []


def test_a_leader_that_goes_and_comes_back_does_not_flap() -> None:
    rows = [
        each
        for at in (1, 100, 200, 300)
        for each in (moved(at, "1", "none"), change("leader-moved", at + 10, before="none", after="1"))
    ]
    assert said("leader-flaps", *rows) == []
    between = [
        moved(1, "1", "2"),
        moved(100, "2", "none"),
        change("leader-moved", 101, before="none", after="1"),
    ]
    assert said("leader-flaps", *between, moved(200, "1", "2"))[0].count == 3


def test_a_copy_out_of_sync_says_how_long() -> None:
    shrunk = change("isr-shrunk", 10, before="1,2", after="1", node_id=2)
    grown = change("isr-grown", 14, before="1", after="1,2", node_id=2)
    (found,) = said("isr-shrunk", shrunk, grown)
    assert (found.subject.broker, found.subject.topic) == ("2", "orders")
    assert (found.first_ns, found.resolved_ns) == (10 * SECOND, 14 * SECOND)
    assert "until 4.0 s later" in found.message
    (still,) = said("isr-shrunk", shrunk)
    assert still.resolved_ns is None
    assert found.severity == still.severity == WARNING


def test_copies_of_two_clusters_are_told_apart_by_address() -> None:
    def at(cluster: str, host: str) -> tuple[type[ClusterBrokers], Row]:
        return ClusterBrokers, row(
            ClusterBrokers, cluster_id=cluster, node_id=2, host=host, port=9092, from_ns=0
        )

    places = at("a", "10.0.0.2"), at("b", "10.9.0.2")
    for id, what, values in (
        ("isr-shrunk", "isr-shrunk", {"before": "1,2", "after": "1", "node_id": 2}),
        ("leader-moved", "leader-moved", {"before": "2", "after": "1", "node_id": 2}),
    ):
        rows = [change(what, 10, cluster_id=cluster, **values) for cluster in ("a", "b")]
        both = said(id, *rows, *places)
        assert [each.subject.broker for each in both] == ["10.0.0.2:9092", "10.9.0.2:9092"]
        assert [each.subject.broker for each in said(id, rows[0], places[0])] == ["2"]


def test_a_leader_that_moves_in_two_clusters_does_not_move_to_and_fro() -> None:
    rows = [moved(at, "1", "2", cluster_id="a") for at in (10,)]
    rows += [
        moved(at, before, after, cluster_id="b") for at, before, after in ((20, "2", "1"), (30, "1", "3"))
    ]
    assert said("leader-flaps", *rows) == []
    assert said("leader-flaps", *rows, moved(40, "3", "1", cluster_id="b"))


def test_where_the_clock_was_set_back_nobody_knows_whether_a_copy_is_out_of_sync() -> None:
    rows = change("isr-shrunk", 70, before="1,2", after="1", node_id=2), change("isr-grown", 14, after="1,2")
    back = WHOLE._replace(set_back=((20 * SECOND, 60 * SECOND),), ends_earlier=True)
    assert said("isr-shrunk", *rows)
    assert not said("isr-shrunk", *rows, context=back)
    assert unjudged("isr-shrunk", *rows, context=back) == [SLEPT]


def test_after_a_pause_nobody_knows_how_long_a_copy_was_out_of_sync() -> None:
    shrunk = change("isr-shrunk", 10, before="1,2", after="1", node_id=2)
    grown = change("isr-grown", 414, before="1", after="1,2", node_id=2)
    paused = WHOLE._replace(last_ns=500 * SECOND, silences=((20 * SECOND, 400 * SECOND),))
    (found,) = said("isr-shrunk", shrunk, grown, context=paused)
    assert "until later." in found.message


def test_a_partition_is_offline_after_five_seconds() -> None:
    (found,) = said("partition-offline", partition(-1, 10, 15), partition(1, 15))
    assert (found.measure, found.subject.partition) == (5.0, 0)
    assert said("partition-offline", partition(-1, 10, 14.9)) == []
    assert said("partition-offline", partition(-1, 10), context=WHOLE._replace(last_ns=12 * SECOND)) == []
    assert said("partition-offline", partition(-1, 10, 16), change("topic-created", 5)) == []
    lost = change("leader-moved", 10, before="2", after="none", node_id=2)
    assert said("partition-offline", partition(-1, 10, 16), lost)[0].subject.broker == "2"


def test_partitions_of_a_topic_are_offline_together() -> None:
    (found,) = said("partition-offline", partition(-1, 10, 20), partition(-1, 12, 20, partition=1))
    assert (found.count, found.subject.partition) == (2, None)


@pytest.mark.parametrize(
    ("topics", "others", "findings"), [(3, {}, 3), (4, {}, 1), (4, {"before": "3"}, 4), (4, {"ns": 9}, 4)]
)
def test_many_topics_that_lose_their_leader_with_one_broker_are_one_finding(
    topics: int, others: dict[str, Any], findings: int
) -> None:
    names = [f"q{number}" for number in range(topics)]
    lost = [change("leader-moved", 10, before="2", after="none", topic=name) for name in names[:-1]]
    lost.append(change("leader-moved", 10, **{"before": "2", "after": "none", "topic": names[-1], **others}))
    rows = [partition(-1, 10, 20 + at, topic=name, replicas="2")[1] for at, name in enumerate(names)]
    found = said("partition-offline", *((ClusterPartitions, each) for each in rows), *lost)
    assert len(found) == findings
    if findings == 1:
        assert (found[0].subject.broker, found[0].subject.topic, found[0].count) == ("2", None, 4)
        assert found[0].message == (
            "4 partitions of 4 topics (q0, q1, q2 and q3) had no leader for up to 13.0 s: nobody could write "
            "there or read from there. Their only copies are on broker 2."
        )
        assert found[0].filter == "number in {3}"


def test_topics_of_two_clusters_that_lose_their_leader_are_told_apart() -> None:
    names = [f"q{number}" for number in range(4)]
    lost = [change("leader-moved", 10, before="2", after="none", topic=name) for name in names]
    rows = [partition(-1, 10, 20, topic=each, cluster_id=f"c{at % 2}") for at, each in enumerate(names)]
    assert len(said("partition-offline", *rows, *lost)) == 4


@pytest.mark.parametrize(
    ("replicas", "words"),
    [
        ("2", "Its only copy is on broker 2."),
        ("2,3", "Its copies are on broker 2, 3."),
        (None, "from there."),
    ],
)
def test_where_the_copies_of_a_partition_are_is_told(replicas: str | None, words: str) -> None:
    (found,) = said("partition-offline", partition(-1, 10, 20, replicas=replicas))
    assert found.message.endswith(words)


@pytest.mark.parametrize(
    ("moved", "went", "told"),
    [
        ({}, {}, True),
        ({"after": "1"}, {}, False),  # it was in sync
        ({"after": "none"}, {}, False),
        ({"ns": 4 * SECOND}, {}, False),  # who was in sync then is not known
        ({"exchange": 9}, {}, False),  # the group went back before
        ({}, {"rewinds": 0}, False),
        ({}, {"rewound_by": "admin"}, False),
        ({}, {"partition": 1}, False),
        ({}, {"cluster_id": "other"}, False),
        ({}, {"rewound_ns": 63 * SECOND}, True),
        ({}, {"rewound_ns": 64 * SECOND}, False),  # for another reason
    ],
)
def test_an_election_after_which_consumers_go_back_was_unclean(
    moved: dict[str, Any], went: dict[str, Any], told: bool
) -> None:
    leads = change("leader-moved", 3, **{"before": "2", "after": "3", **moved})
    in_sync = (
        change("isr-grown", 3, before="1,2", after="3"),
        change("isr-shrunk", 3, before="1,2", after="3"),
    )
    back = {"group": "g", "topic": "orders", "partition": 0, "rewinds": 1, "rewound_by": "c"}
    back |= {"committers": ["c"], "rewound_from": 607, "rewound_to": 549, "rewind_exchange": 8}
    back |= {"rewound_ns": 8 * SECOND}
    found = said("unclean-election", leads, *in_sync, (Lag, row(Lag, **{**back, **went})))
    assert [each.confidence for each in found] == [LIKELY] * told
    assert all("from offset 607 to 549" in each.message for each in found)
    assert said("unclean-election", leads, *in_sync) == []


def test_where_the_clock_was_set_back_nobody_knows_whether_consumers_went_back() -> None:
    """By their times, the commits after the change of the clock come before those that were earlier."""
    leads, in_sync = change("leader-moved", 3, before="2", after="3"), change("isr-grown", 3, before="1,2")
    back = {"group": "g", "topic": "orders", "partition": 0, "rewinds": 1, "rewound_by": "c"}
    back |= {"committers": ["c"], "rewound_from": 607, "rewound_to": 549, "rewind_exchange": 8}
    went = Lag, row(Lag, **back, rewound_ns=8 * SECOND)
    set_back = WHOLE._replace(set_back=((20 * SECOND, 60 * SECOND),), ends_earlier=True)
    assert said("unclean-election", leads, in_sync, went)
    assert not said("unclean-election", leads, in_sync, went, context=set_back)
    assert unjudged("unclean-election", leads, in_sync, went, context=set_back) == [SLEPT]


def test_an_unclean_election_is_told() -> None:
    elected = change("unclean-election", 3, before="1", after="2")
    (found,) = said("unclean-election", elected)
    assert "are lost" in found.message
    gone = change("leader-moved", 2, before="2", after="none")
    assert said("unclean-election", elected, change("leader-moved", 2, before="1", after="none"))
    assert said("unclean-election", elected, gone, change("leader-moved", 2.5, before="none", after="1"))
    assert said("unclean-election", elected, gone) == [], "it led last, so nobody has more"


def test_the_last_replica_of_a_partition_does_not_fall_out_of_sync() -> None:
    assert said("isr-shrunk", change("isr-shrunk", 3, before="1,2", after="1", node_id=2))
    assert said("isr-shrunk", change("isr-shrunk", 3, before="2", after=None, node_id=2)) == []


def test_leaders_that_stay_elsewhere_are_told() -> None:
    well = [partition(1, 0, partition=each) for each in range(4)]
    (found,) = said("leader-not-preferred", *well, partition(2, 40, partition=4))
    assert found.measure == 20
    assert said("leader-not-preferred", *well, partition(2, 41, partition=4)) == []  # not for 60 s
    assert (
        said("leader-not-preferred", *well, partition(1, 0, partition=5), partition(2, 0, partition=4)) == []
    )


def test_what_somebody_changes_is_told_of_whom() -> None:
    by = "alice (ops@10.0.0.5)"
    asked = {"by": by, "told_by": "IncrementalAlterConfigs"}
    rows = [change("config-changed", at, **asked) for at in (1, 2)] + [change("acl-changed", 3, **asked)]
    (found,) = said("config-changed", *rows)
    assert (found.subject.client_id, found.subject.client, found.count) == ("ops", "10.0.0.5", 3)
    assert "config-changed 2, acl-changed" in found.message
    assert said("config-changed", change("config-changed", 1)) == []
    own = change("topic-created", 1, by="1@10.0.0.1", topic="__consumer_offsets", told_by="CreateTopics")
    assert said("config-changed", own) == []


def test_a_topic_that_was_only_asked_for_is_told() -> None:
    (found,) = said("topic-created-by-metadata", change("topic-created", 1, by="billing@10.0.0.9"))
    assert (found.subject.topic, found.subject.client_id) == ("orders", "billing")
    made = change("topic-created", 1, by="billing@10.0.0.9", told_by="CreateTopics")
    assert said("topic-created-by-metadata", made) == []


@pytest.mark.parametrize(
    ("rows", "is_told"),
    [
        ((stale(5, 1, 1.4),), True),
        ((stale(4, 1, 1.4),), False),
        ((stale(2, 10, 12), partition(2, 10)), True),  # two seconds after the leader was told
        ((stale(2, 10, 11.9), partition(2, 10)), False),
        ((stale(1, 13, 13), partition(2, 10)), False),
    ],
)
def test_a_client_that_goes_on_asking_is_told(rows: tuple[Any, ...], is_told: bool) -> None:
    assert bool(said("stale-leader", *rows)) is is_told


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("NOT_LEADER_OR_FOLLOWER", "which that broker does not lead; the leader was broker 2"),
        ("FENCED_LEADER_EPOCH", "did not know that its leader had been elected anew"),
        ("UNKNOWN_LEADER_EPOCH", "the client knew and that broker did not"),
    ],
)
def test_a_broker_that_knows_another_election_may_lead(error: str, words: str) -> None:
    (found,) = said("stale-leader", stale(9, 11, 12, error), partition(2, 10))
    assert words in found.message
    assert ("does not lead" in found.message) == (error == "NOT_LEADER_OR_FOLLOWER")


@pytest.mark.parametrize(("leader", "told"), [(1, False), (2, True)])
def test_a_client_that_asks_the_right_broker_is_not_accused(leader: int, told: bool) -> None:
    late = stale(9, 11, 12, "NOT_LEADER_OR_FOLLOWER")
    host, _, port = late[1]["broker"].rpartition(":")
    asked = ClusterBrokers, row(ClusterBrokers, node_id=1, host=host, port=int(port), from_ns=0)
    assert bool(said("stale-leader", late, partition(leader, 10), asked)) is told


def test_nor_one_that_asks_a_broker_that_led_in_between() -> None:
    late = stale(10, 11, 30, "NOT_LEADER_OR_FOLLOWER")
    host, _, port = late[1]["broker"].rpartition(":")
    asked = ClusterBrokers, row(ClusterBrokers, node_id=1, host=host, port=int(port), from_ns=0)
    moves = partition(2, 10), partition(1, 20), partition(2, 25)
    assert not said("stale-leader", late, *moves, asked)
    assert said("stale-leader", late, partition(1, 5), partition(2, 10), asked)


@pytest.mark.parametrize(("lasted_s", "told"), [(0.299, False), (0.3, True)])
def test_what_was_on_its_way_together_is_refused_together(lasted_s: float, told: bool) -> None:
    assert bool(said("stale-leader", stale(9, 11, 11 + lasted_s), partition(2, 10))) is told


@pytest.mark.parametrize(("sent_s", "told"), [(11, False), (11.001, True)])
def test_what_was_sent_before_the_first_refusal_came_is_no_going_on(sent_s: float, told: bool) -> None:
    """The requests of a throttled client wait long for their refusals."""
    late = stale(5, 11, 19)
    late[1]["sent_ns"] = round(sent_s * SECOND)
    assert bool(said("stale-leader", late, partition(2, 10))) is told


def test_one_refusal_a_client_is_how_it_learns() -> None:
    found = judged_file(CAPTURES / "incidents" / "controlled-shutdown.pcapng.gz").findings
    assert "stale-leader" not in {each.id for each in found}


@pytest.mark.parametrize(
    "name", ["basic-kafka43.pcapng", "loss.pcapng", "incidents/healthy-cluster-idle.pcapng.gz"]
)
def test_a_healthy_cluster_is_not_accused(name: str) -> None:
    assert not {each.id for each in judged_file(CAPTURES / name).findings} & SILENT_IDS


def test_a_moment_is_no_outage() -> None:
    assert said("partition-offline", partition(-1, 10, 10 + 100 * MILLISECOND / SECOND)) == []
