"""The statistic ``quorum``."""

from __future__ import annotations

from random import Random

import pytest

from kdissect.analysis.fold import SECOND
from kdissect.analysis.quorum import Quorum
from kdissect.exchange import Exchange
from tests.analysis.folds import made, rows_of
from tests.analysis.quorums import fetch, quorum_of, refused


def heartbeat(at_s: float, is_fenced: bool = False, epoch: int = 7) -> Exchange:
    ns = int(at_s * SECOND)
    return made(
        "BrokerHeartbeat",
        1,
        {
            "brokerId": 3,
            "brokerEpoch": epoch,
            "currentMetadataOffset": 1,
            "wantFence": False,
            "wantShutDown": False,
        },
        {
            "throttleTimeMs": 0,
            "errorCode": 0,
            "isCaughtUp": True,
            "isFenced": is_fenced,
            "shouldShutDown": False,
        },
        (ns, ns + 1),
    )


def test_votes_and_leaders_of_a_real_quorum() -> None:
    rows = {row["node"]: row for row in rows_of("quorum", "cluster43-combined")}
    assert set(rows) == {1, 2, 3}
    assert rows[3]["role"] == "leader"
    assert rows[3]["leader_since_ns"] is not None
    assert (rows[1]["prevotes"], rows[1]["votes_asked"], rows[1]["elections"]) == (2, 2, 1)
    assert all(row["lag_offsets"] == 0 for row in rows.values())


def test_a_late_heartbeat_is_counted_and_a_new_life_is_none() -> None:
    quorum = Quorum()
    for each in (
        heartbeat(1),
        heartbeat(3),
        heartbeat(8),
        heartbeat(60, epoch=9),
        heartbeat(62, True, epoch=9),
    ):
        quorum.feed(each)
    (row,) = quorum.result()
    assert (row["role"], row["heartbeats"], row["heartbeat_late"]) == ("broker", 5, 1)
    assert row["heartbeat_max_ns"] == 5 * SECOND
    assert row["heartbeat_gap_ns"] == heartbeat(3).begun_ns
    assert row["fenced"] is True


PAUSED = (fetch(1), fetch(2), fetch(14, 100), fetch(15, 50), fetch(16), fetch(17, 20), fetch(19))


@pytest.mark.parametrize("cut", [None, *range(len(PAUSED) + 1)])
def test_the_longest_time_for_which_a_controller_was_behind_is_kept(cut: int | None) -> None:
    row = quorum_of(*PAUSED, cut=cut)
    assert (row["behind_from_ns"], row["behind_max_ns"]) == (2 * SECOND, 13 * SECOND)
    assert (row["behind_max_offsets"], row["behind_exchange"]) == (100, 14 * SECOND)
    assert (row["lag_offsets"], row["lag_ns"]) == (0, 0)


def test_a_controller_that_was_never_seen_to_lack_none_is_behind_since_it_was_seen() -> None:
    row = quorum_of(fetch(3, 30), fetch(9, 20))
    assert (row["behind_from_ns"], row["behind_max_ns"], row["behind_max_offsets"]) == (
        3 * SECOND,
        6 * SECOND,
        30,
    )
    assert quorum_of(fetch(3), fetch(9, 8))["behind_max_ns"] == 0


def describe(at_s: float, offset: int, caught_ms: int) -> Exchange:
    """What the leading controller says of another."""
    ns = int(at_s * SECOND)
    states = [
        {"replicaId": 1, "logEndOffset": 100, "lastFetchTimestamp": 90_000, "lastCaughtUpTimestamp": 90_000},
        {
            "replicaId": 3,
            "logEndOffset": offset,
            "lastFetchTimestamp": -1,
            "lastCaughtUpTimestamp": caught_ms,
        },
    ]
    partition = {
        "partitionIndex": 0,
        "errorCode": 0,
        "leaderId": 1,
        "leaderEpoch": 4,
        "highWatermark": 100,
        "currentVoters": states,
        "observers": [],
    }
    name = "__cluster_metadata"
    return made(
        "DescribeQuorum",
        1,
        {"topics": [{"topicName": name, "partitions": [{"partitionIndex": 0}]}]},
        {"errorCode": 0, "topics": [{"topicName": name, "partitions": [partition]}]},
        (ns, ns + 1),
    )


def test_the_leader_says_since_when_another_controller_is_behind() -> None:
    quorum = Quorum()
    quorum.feed(describe(60, 40, 70_000))
    row = {each["node"]: each for each in quorum.result()}[3]
    assert (row["lag_offsets"], row["behind_from_ns"], row["behind_max_ns"]) == (60, 40 * SECOND, 20 * SECOND)


def test_what_the_leader_has_not_heard_of_since_it_leads_is_not_known_to_be_behind() -> None:
    quorum = Quorum()
    quorum.feed(describe(60, -1, -1))
    row = {each["node"]: each for each in quorum.result()}[3]
    assert (row["role"], row["lag_offsets"], row["behind_max_offsets"]) == ("voter", None, 0)


def test_parts_add_up_to_the_whole_also_if_the_clock_goes_back() -> None:
    chance = Random(7)
    times = [fetch(at_s, lacks=30 * (at_s % 3)) for at_s in range(12)]
    several = [*times, *refused(3, 6), *refused(8, 9, leader=2, epoch=2)]
    for _ in range(200):
        some = chance.sample(several, 12)
        cut = chance.randrange(13)
        assert quorum_of(*some, cut=cut) == quorum_of(*some)
