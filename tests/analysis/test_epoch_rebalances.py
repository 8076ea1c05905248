"""Rebalances of groups of heartbeats, made by hand: who has a partition in between, and for how long."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.fold import Row
from kdissect.analysis.group_rebalance import _Signs
from kdissect.analysis.triggers import DID_NOT_POLL
from kdissect.capture.files import read_packets
from kdissect.exchange import Exchange
from tests.analysis import connected
from tests.analysis.folds import fold, made
from tests.cli.run import CAPTURES
from tests.dissecting import dissect

MS = 1_000_000
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
Held = tuple[int, ...]


def _held(partitions: Held) -> list[dict[str, Any]]:
    return [{"topicId": TOPIC_ID, "partitions": list(partitions)}] if partitions else []


def beat(
    at: float,
    member: str,
    epoch: int,
    told: int,
    owned: Held | None = None,
    given: Held | None = None,
    api: str = "ConsumerGroupHeartbeat",
    instance: str | None = None,
    interval_ms: int = 300_000,
) -> Exchange:
    """A heartbeat at a time in milliseconds, answered after one: with the epoch ``told``, and perhaps with
    what the member is given. ``owned`` is what it says that it has."""
    asked: dict[str, Any] = {"groupId": "g", "memberId": member, "memberEpoch": epoch, "rackId": None}
    asked |= {"client_id": member, "subscribedTopicNames": ["orders"] if epoch == 0 else None}
    assignment = None if given is None else {"topicPartitions": _held(given)}
    answered: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": None}
    answered |= {"memberId": member, "memberEpoch": told, "heartbeatIntervalMs": 5000}
    if api == "ConsumerGroupHeartbeat":
        topics = None if owned is None else _held(owned)
        asked |= {"instanceId": instance, "rebalanceTimeoutMs": interval_ms if epoch == 0 else -1}
        asked |= {"subscribedTopicRegex": None, "serverAssignor": None, "topicPartitions": topics}
    times = round(at * MS), round((at + 1) * MS)
    return made(api, 1, asked, answered | {"assignment": assignment}, times, ord(member))


def told(name: str, events: list[Exchange]) -> list[Row]:
    events.sort(key=lambda each: each.messages[-1].frame.last_ns)
    for number, each in enumerate(events, 1):
        each.number = number
    return fold(name, events).result()


def joined_by_a_second() -> list[Exchange]:
    """B joins at 10 s, A gives partition 1 back at 14 s, and B says at 18 s that it has it."""
    return [
        beat(1, "a", 0, 1, (), (0, 1)),
        beat(3, "a", 1, 1, (0, 1)),
        beat(9_000, "a", 1, 1),
        beat(10_000, "b", 0, 2, (), ()),
        beat(12_000, "a", 1, 1, None, (0,)),
        beat(14_000, "a", 1, 2, (0,)),
        beat(15_000, "b", 2, 2),
        beat(17_000, "b", 2, 2, None, (1,)),
        beat(18_000, "b", 2, 2, (1,)),
        beat(19_000, "a", 2, 2),
    ]


def test_a_partition_waits_from_its_release_to_its_new_owner_and_no_longer() -> None:
    *_, row = told("rebalances", joined_by_a_second())
    assert (row["generation"], row["trigger"], row["completed"]) == (2, "new-member", True)
    assert (row["members"], row["partitions"], row["moved"], row["revoked"]) == (2, 2, 1, 1)
    assert (row["begin_ns"], row["synced_ns"]) == (10_000 * MS, 18_001 * MS)
    assert row["stopped_ns"] == 4_000 * MS


def test_what_is_told_once_more_changes_nothing() -> None:
    """As a new coordinator does when a member tells it all."""
    again = [beat(60_000, "b", 2, 2, (1,), (1,)), beat(61_000, "a", 2, 2, (0,), (0,))]
    assert told("rebalances", joined_by_a_second() + again) == told("rebalances", joined_by_a_second())


def test_a_static_member_that_restarts_gets_what_it_had_and_begins_nothing() -> None:
    restarted = [
        beat(30_000, "b", -2, -2, instance="i"),
        beat(33_000, "c", 0, 2, (), (1,), instance="i"),
        beat(33_100, "c", 2, 2, (1,)),
        beat(36_000, "c", -2, -2, instance="i"),
        beat(39_000, "d", 0, 2, (), (1,), instance="i"),
        beat(39_100, "d", 2, 2, (1,)),
        beat(60_000, "a", 2, 2),
    ]
    rows = told("rebalances", joined_by_a_second() + restarted)
    assert [row["generation"] for row in rows] == [1, 2]
    assert (rows[-1]["completed"], rows[-1]["stopped_ns"]) == (True, 4_000 * MS)


def test_a_static_member_whose_return_raises_the_epoch_has_what_it_had() -> None:
    restarted = [
        beat(30_000, "b", -2, -2, instance="i"),
        beat(33_000, "c", 0, 3, (), (1,), instance="i"),
        beat(37_000, "c", 3, 3, (1,)),
        beat(38_000, "a", 2, 3),
        beat(60_000, "a", 3, 3),
    ]
    row = told("rebalances", joined_by_a_second() + restarted)[-1]
    assert (row["trigger"], row["moved"], row["completed"]) == ("static-restart", 0, True)


def test_a_member_that_leaves_need_not_say_what_it_has() -> None:
    left = told("rebalances", [*joined_by_a_second(), beat(30_000, "b", -1, -1), beat(31_000, "a", 2, 3)])
    assert (left[-1]["trigger"], left[-1]["trigger_member"]) == ("member-left", "b")


def test_what_nobody_says_that_he_has_waits_to_the_end() -> None:
    events = [each for each in joined_by_a_second() if each.request is not None]
    *_, row = told("rebalances", events[:8])
    assert (row["completed"], row["stopped_ns"]) == (False, 3_001 * MS)


def test_who_comes_to_a_later_epoch_has_given_back_what_it_should() -> None:
    """The heartbeat that says so was not captured."""
    seen = [
        beat(14_000, "a", 1, 2) if index == 5 else each for index, each in enumerate(joined_by_a_second())
    ]
    steps = told("rebalance_steps", seen)
    assert [row["ns"] // MS for row in steps if row["step"] == "revoked"] == [14_000]
    *_, row = told("rebalances", joined_by_a_second())
    assert row["completed"] is True


def test_a_new_epoch_keeps_what_it_does_not_change() -> None:
    stays = {
        (row["generation"], row["member_id"]): row["assigned"] for row in told("stays", joined_by_a_second())
    }
    assert stays == {(1, "a"): 1, (2, "a"): 1, (2, "b"): 1}


def test_members_of_a_share_group_have_a_partition_together() -> None:
    share = "ShareGroupHeartbeat"
    events = [
        beat(1, "a", 0, 1, None, (0,), share),
        beat(10_000, "b", 0, 2, None, (), share),
        beat(15_000, "b", 2, 2, None, (0,), share),
        beat(16_000, "a", 1, 2, None, None, share),
    ]
    *_, row = told("rebalances", events)
    assert (row["generation"], row["completed"], row["moved"], row["stopped_ns"]) == (2, True, 0, 0)


def fetch(at: float, member: str) -> Exchange:
    asked = {"replicaId": -1, "maxWaitMs": 500, "minBytes": 1, "maxBytes": 1, "isolationLevel": 0}
    asked |= {"client_id": member, "topics": []}  # type: ignore[dict-item]
    times = round(at * MS), round((at + 1) * MS)
    return made("Fetch", 4, asked, {"throttleTimeMs": 0, "responses": []}, times, ord(member))


def commit(at: float, member: str, epoch: int) -> Exchange:
    place = {"partitionIndex": 0, "committedOffset": 5, "committedMetadata": ""}
    asked = {"groupId": "g", "generationIdOrMemberEpoch": epoch, "memberId": member, "retentionTimeMs": -1}
    asked |= {"client_id": member, "topics": [{"name": "orders", "partitions": [place]}]}
    answer = {"topics": [{"name": "orders", "partitions": [{"partitionIndex": 0, "errorCode": 0}]}]}
    times = round(at * MS), round((at + 1) * MS)
    return made("OffsetCommit", 3, asked, {"throttleTimeMs": 0, **answer}, times, ord(member))


def alone_for(seconds: int, back: bool = True, committed: float = 1_000, left: int = 0) -> list[Exchange]:
    """A, whose poll interval is 20 s, fetches without end, leaves after so long, and may join again."""
    end = seconds * 1000 + left
    events = [beat(1, "a", 0, 1, (), (0, 1), interval_ms=20_000), beat(3, "a", 1, 1, (0, 1))]
    events += [beat(at, "a", 1, 1) for at in range(5_000, end, 5_000)]
    events += [fetch(at, "a") for at in range(100, end, 100)]
    events += [commit(committed, "a", 1), beat(end, "a", -1, -1)]
    return [*events, *([beat(end + 10, "a", 0, 3, (), (0, 1), interval_ms=20_000)] if back else [])]


def _places(events: list[Exchange]) -> set[tuple[str | None, int]]:
    return {(each.api, each.begun_ns) for each in events}


def did_not_poll(events: list[Exchange]) -> bool:
    return any(row["detail"] == DID_NOT_POLL for row in told("rebalance_steps", events))


def test_a_member_that_fetches_by_itself_leaves_and_is_back_was_not_polled() -> None:
    """So does librdkafka, also where the group is empty meanwhile."""
    assert did_not_poll(alone_for(19))
    assert not did_not_poll(alone_for(18)), "it joined less than its interval before"
    assert not did_not_poll(alone_for(19, back=False)), "it just left"
    assert did_not_poll(alone_for(19, committed=7_000 - 2))
    assert not did_not_poll(alone_for(19, committed=7_000)), "it was polled then"
    beats = [each for each in alone_for(23) if each.api == "ConsumerGroupHeartbeat"]
    for last_ms, alive in ((5_000, False), (10_000, True)):
        gone = [each for each in beats if last_ms * MS < each.begun_ns < 23_000 * MS]
        kept = [each for each in alone_for(23) if (each.api, each.begun_ns) not in _places(gone)]
        assert did_not_poll(kept) == alive, "it was silent for more than three heartbeats"
    other = alone_for(19)
    other[-1].connection = 9
    assert not did_not_poll(other), "another process may have joined"


def test_partitions_that_a_member_has_without_being_seen_to_be_given_them_leave_the_numbers_unknown() -> None:
    events = joined_by_a_second()
    events[7].response, events[7].missing = None, "gap"
    *_, row = told("rebalances", events)
    assert (row["generation"], row["trigger"], row["completed"]) == (2, "new-member", True)
    assert (row["members"], row["partitions"], row["moved"]) == (None, None, None)


def test_what_is_lost_before_all_members_have_come_leaves_the_numbers_unknown() -> None:
    """The answer with the new epoch to a member that leaves later was not captured."""
    events = [
        beat(1, "a", 0, 1, (), (0, 1)),
        beat(2, "a", 1, 1, (0, 1)),
        beat(10_000, "b", 0, 2, (), ()),
        beat(12_000, "a", 1, 2),
        beat(15_000, "b", -1, -1),
        beat(16_000, "a", 2, 3),
    ]
    events[3].response, events[3].missing = None, "gap"
    second = told("rebalances", events)[1]
    assert (second["generation"], second["members"], second["partitions"]) == (2, None, None)


@pytest.mark.parametrize("gaps", [0, 9])
def test_nobody_is_missing_for_sure_if_a_request_to_leave_may_be(gaps: int) -> None:
    """Nothing is heard of A after B has joined, to the end of the capture."""
    events = joined_by_a_second()[:4]
    events += [beat(at, "b", 2, 2) for at in (15_000, 20_000)]
    for number, each in enumerate(events, 1):
        each.number = number
    ends = (connected.over(ord(each), gaps=gaps)._replace(end_ns=30_000 * MS) for each in "ab")
    *_, row = fold("rebalances", [*events, *ends]).result()
    assert (row["missing"], row["waited_for"]) == ((None, []) if gaps else (["a"], ["a"]))


@pytest.mark.parametrize("gaps", [0, 9])
def test_a_rebalance_is_not_taken_for_a_later_one_whose_epoch_came_after_missing_bytes(gaps: int) -> None:
    """B joins, and its heartbeat that tells epoch 2 may be missing altogether. Then A is put out, of which no
    message tells."""
    events = joined_by_a_second()[:5]
    events[3] = beat(10_000, "b", 0, 1, (), ())
    events += [beat(22_000, "b", 1, 3, None, (0, 1)), beat(22_100, "b", 3, 3, (0, 1))]
    events += [beat(27_000, "b", 3, 3)]
    for number, each in enumerate(events, 1):
        each.number = number
    over = connected.over(ord("b"), gaps=gaps)._replace(end_ns=30_000 * MS)
    rows = fold("rebalances", [*events, over]).result()
    joined = next(row for row in rows if row["trigger_member"] == "b")
    unknown = (None, None, None)
    assert (joined["generation"], joined["completed"], joined["stopped_ns"]) == (
        unknown if gaps else (3, False, 12_100 * MS)
    )
    assert [row["trigger"] for row in rows if row["generation"] == 3] == [None if gaps else "new-member"]


def died_at_twenty_seconds(fetches: str) -> list[Exchange]:
    """B joins, its last heartbeat comes at 19 s and its last Fetch at 20 s. A learns at 35 s of the new
    epoch, and has the partition of B at 36 s.

    :param fetches: the members whose fetches were captured.
    """
    beats = [beat(at, "b", 2, 2) for at in (18_400, 18_800, 19_000)]
    later = [beat(35_000, "a", 2, 3, None, (0, 1)), beat(36_000, "a", 3, 3, (0, 1)), beat(41_000, "a", 3, 3)]
    ends = {"a": 41_000, "b": 20_000}
    reads = [fetch(at, each) for each in fetches for at in range(18_100, ends[each] + 1, 10)]
    return [*joined_by_a_second(), *beats, *reads, *later]


@pytest.mark.parametrize(("fetches", "stopped_ms"), [("ab", 15_999), ("a", 999), ("", 999)])
def test_a_partition_of_a_silent_member_waits_from_its_last_fetch(fetches: str, stopped_ms: int) -> None:
    """Without its fetches, from the time at which the coordinator told of its end."""
    *_, row = told("rebalances", died_at_twenty_seconds(fetches))
    assert (row["trigger"], row["trigger_member"], row["moved"]) == ("session-timeout", "b", 1)
    assert row["stopped_ns"] == stopped_ms * MS
    assert (row["stopped_members"], row["stopped_partitions"]) == (["b"], 1)


def test_a_partition_that_a_silent_member_had_and_nobody_takes_waits_to_the_end() -> None:
    events = died_at_twenty_seconds("ab")
    lost = _places([beat(36_000, "a", 3, 3), beat(41_000, "a", 3, 3)])
    *_, row = told("rebalances", [each for each in events if (each.api, each.begun_ns) not in lost])
    assert (row["completed"], row["stopped_ns"]) == (False, 21_000 * MS)
    assert (row["stopped_members"], row["stopped_partitions"]) == (["b"], 1)


def test_a_member_that_gives_a_partition_back_stops_with_that() -> None:
    *_, row = told("rebalances", joined_by_a_second() + [fetch(at, "a") for at in range(3, 9_000, 10)])
    assert (row["stopped_ns"], row["stopped_members"], row["stopped_partitions"]) == (4_000 * MS, ["a"], 1)


def classic_beat(at: float, member: str, generation: int) -> Exchange:
    asked: dict[str, Any] = {"groupId": "g", "generationId": generation, "memberId": member}
    asked |= {"client_id": member, "groupInstanceId": None}
    times = round(at * MS), round((at + 1) * MS)
    return made("Heartbeat", 4, asked, {"throttleTimeMs": 0, "errorCode": 0}, times, ord(member))


def classic_leave(at: float, member: str) -> Exchange:
    one = {"memberId": member, "groupInstanceId": None, "reason": "the consumer is being closed"}
    asked: dict[str, Any] = {"groupId": "g", "client_id": member, "members": [one]}
    answer = {"memberId": member, "groupInstanceId": None, "errorCode": 0}
    times = round(at * MS), round((at + 1) * MS)
    told: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": 0, "members": [answer]}
    return made("LeaveGroup", 5, asked, told, times, ord(member))


def test_a_classic_member_that_leaves_a_group_on_its_way_to_the_newer_protocol_is_not_missing() -> None:
    events = [
        *(classic_beat(at, "c", 1) for at in (1_000, 4_000)),
        beat(5_000, "a", 0, 2, (), ()),
        beat(5_100, "a", 2, 2, None, (0,)),
        beat(5_200, "a", 2, 2, (0,)),
        *(classic_beat(at, "c", 2) for at in (7_000, 10_000)),
        classic_leave(12_000, "c"),
        beat(15_000, "a", 2, 3, None, (0, 1)),
        beat(15_100, "a", 3, 3, (0, 1)),
        beat(60_000, "a", 3, 3),
    ]
    rows = [row for row in told("rebalances", events) if row["types"] == ["consumer"]]
    assert [(row["generation"], row["trigger"], row["trigger_member"]) for row in rows] == [
        (2, "new-member", "a"),
        (3, "member-left", "c"),
    ]
    assert rows[1]["trigger_reason"] == "the consumer is being closed"
    assert (rows[1]["begin_ns"], rows[1]["members"], rows[1]["members_before"]) == (12_000 * MS, 1, 2)
    assert [(row["completed"], row["missing"]) for row in rows] == [(True, None)] * 2
    alone = [each for each in events if each.api != "ConsumerGroupHeartbeat"]
    assert not [row for row in told("rebalances", alone) if row["types"] == ["consumer"]]
    before = [classic_leave(4_500, "c"), *(each for each in events if each.connection != ord("c"))]
    before = [classic_beat(1_000, "c", 1), *before]
    rows = [row for row in told("rebalances", before) if row["types"] == ["consumer"]]
    assert [row["trigger"] for row in rows][:1] == ["new-member"]


def test_a_leave_of_a_classic_member_begins_one_rebalance() -> None:
    """It is not told once more as a rebalance of the classic protocol, which never finishes it."""
    packets = read_packets([CAPTURES / "consumer-group-kip848.pcapng"])
    rows = fold("rebalances", dissect(iter(packets))).result()
    leaves = [row for row in rows if row["trigger"] == "member-left" and row["group"].endswith("mig")]
    assert [row["types"] for row in leaves] == [["consumer"]]


def test_the_last_sign_of_a_member_is_its_last_request_or_answer_until_a_time() -> None:
    signs = _Signs()
    for ns, answered_ns in ((10, 50), (20, 30), (60, None), (90, 70)):  # at last the clock was set back
        signs.add(ns, answered_ns)
    asked = (9, 10, 29, 30, 49, 50, 60, 89, 90)
    assert [signs.last_until(ns) for ns in asked] == [None, 10, 20, 30, 30, 50, 60, 60, 70]
