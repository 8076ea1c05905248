"""What began a rebalance, where clients give no reason: their sequence decides, or nobody is named."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kdissect.analysis.fold import Row
from kdissect.analysis.group_rebalance import CONNECTION_ENDED, NOT_JOINED
from kdissect.session.conversation import Connection
from tests.analysis.connected import over
from tests.analysis.folds import fold, made
from tests.analysis.grouped import MS, Client, worker

A, B = Client("a", 50_001), Client("b", 50_002)
GIVEN: dict[str, tuple[int, ...]] = {"m-a": (0, 1)}


def rows(events: Iterable[Any], *over: Connection) -> list[Row]:
    ordered = sorted(events, key=lambda each: each.messages[-1].frame.last_ns)
    for number, event in enumerate(ordered, 1):
        event.number = number
    return fold("rebalances", [*ordered, *over]).result()


def last(events: Iterable[Any]) -> tuple[Any, ...]:
    row = rows(events)[-1]
    return row["generation"], row["trigger"], row["trigger_confidence"], row["trigger_client_id"]


def alone() -> list[Any]:
    """A is the only member."""
    return [
        *A.enter(0, 500, 1, "m-a", ("m-a",)),
        A.sync(501, 1, "m-a", GIVEN),
        *A.beats(3_000, 9_000, 1, "m-a"),
    ]


def two() -> list[Any]:
    """A and B are members of generation 2, which A leads."""
    both = ("m-a", "m-b")
    return [
        *alone(),
        *B.enter(9_500, 12_003, 2, "m-b"),
        A.beat(12_000, 1, "m-a", 27),
        A.join(12_002, 12_003, 2, "m-a", roster=both),
        A.sync(12_005, 2, "m-a", {"m-a": (0,), "m-b": (1,)}),
        B.sync(12_005, 2, "m-b"),
    ]


@pytest.mark.parametrize(
    ("offset", "trigger"), [(9, "config-changed"), (8, "leader-rejoined"), (7, "leader-rejoined")]
)
def test_a_worker_that_has_read_more_configurations_joins_because_of_them(offset: int, trigger: str) -> None:
    """The others had read up to 8; one that was behind them does not count."""

    def join(at: int, generation: int, config_offset: int, by: Client = A, **more: Any) -> Any:
        who = {
            "member": f"m-{by.name}",
            "asks_as": f"m-{by.name}",
            "assignor": "default",
            "leader": "m-a",
            **more,
        }
        return by.join(at, at + 3, generation, metadata=worker(f"http://{by.name}", config_offset), **who)

    both = ("m-a", "m-b")
    events = [
        *alone(),
        join(9_500, 2, 8, B, asks_as=""),
        A.beat(9_501, 1, "m-a", 27),
        join(9_502, 2, 6, roster=both),
        A.sync(9_510, 2, "m-a", {"m-a": (0,), "m-b": (1,)}),
        B.sync(9_510, 2, "m-b"),
        *A.beats(9_600, 12_000, 2, "m-a"),
        *B.beats(9_600, 12_000, 2, "m-b"),
        join(12_500, 3, offset, roster=both),
        B.beat(12_501, 2, "m-b", 27),
        join(12_502, 3, offset, B),
    ]
    assert last(events) == (3, trigger, "likely", "a")


def test_who_joins_anew_begins_it() -> None:
    first, second = rows(two())
    assert (first["trigger"], first["trigger_client_id"], first["members_before"]) == ("new-member", "a", 0)
    assert (second["trigger"], second["trigger_client_id"], second["trigger_member"]) == (
        "new-member",
        "b",
        "m-b",
    )
    assert (second["begin_ns"], second["notified_ns"]) == (9_502 * MS, 12_001 * MS)
    assert (second["joined"], second["left"], second["moved"], second["revoked"]) == (1, 0, 1, 1)


def test_that_nobody_asked_and_a_member_was_silent_is_a_session_timeout() -> None:
    events = [*two(), *A.beats(15_000, 21_000, 2, "m-a"), B.beat(15_000, 2, "m-b")]
    events += [A.beat(26_000, 2, "m-a", 27), A.join(26_002, 26_003, 3, "m-a", roster=("m-a",))]
    assert last(events) == (3, "session-timeout", "likely", "b")


def test_a_member_that_was_heard_of_just_before_is_not_accused() -> None:
    """Something that was not captured began it."""
    events = [*two(), *A.beats(15_000, 21_000, 2, "m-a"), *B.beats(15_000, 21_000, 2, "m-b")]
    events += [A.beat(24_000, 2, "m-a", 27), A.join(24_002, 24_003, 3, "m-a", roster=("m-a",))]
    row = rows(events)[-1]
    assert (row["generation"], row["trigger"], row["begin_ns"]) == (3, None, None)


def test_a_member_that_fetches_nothing_for_its_poll_interval_and_leaves_exceeded_it() -> None:
    events = [*two(), *(B.fetch(at) for at in range(12_100, 14_000, 100))]
    events += [*A.beats(15_000, 33_000, 2, "m-a"), *B.beats(15_000, 33_000, 2, "m-b"), B.leave(34_500, "m-b")]
    events += [A.beat(36_000, 2, "m-a", 27), A.join(36_002, 36_003, 3, "m-a", roster=("m-a",))]
    assert last(events) == (3, "poll-interval", "likely", "b")


def test_a_member_that_fetches_until_it_leaves_just_left() -> None:
    events = [*two(), *(B.fetch(at) for at in range(12_100, 34_000, 100))]
    events += [*A.beats(15_000, 33_000, 2, "m-a"), *B.beats(15_000, 33_000, 2, "m-b"), B.leave(34_500, "m-b")]
    events += [A.beat(36_000, 2, "m-a", 27), A.join(36_002, 36_003, 3, "m-a", roster=("m-a",))]
    assert last(events) == (3, "member-left", "certain", "b")


def test_a_client_that_fetches_by_itself_and_joins_again_on_its_connection_exceeded_it() -> None:
    """librdkafka goes on fetching; it commits nothing, leaves, and joins when it is polled again."""
    events = [*two(), *(B.fetch(at) for at in range(12_100, 34_000, 100))]
    events += [*A.beats(15_000, 33_000, 2, "m-a"), *B.beats(15_000, 33_000, 2, "m-b"), B.leave(34_500, "m-b")]
    events += [A.beat(36_000, 2, "m-a", 27), A.join(36_002, 36_003, 3, "m-a", roster=("m-a",))]
    events += B.enter(40_000, 45_000, 4, "m-c")
    found = {row["generation"]: row["trigger"] for row in rows(events)}
    assert found[3] == "poll-interval"


def refused_commit(at_ms: float, member: str = "", client: Client = B) -> Any:
    """A commit that does not name its member any more, and is told that nobody of that name is one."""
    asked = {"groupId": "g", "generationIdOrMemberEpoch": -1, "memberId": member, "retentionTimeMs": -1}
    asked["topics"] = [{"name": "orders", "partitions": [COMMITTED]}]
    answer = {"topics": [{"name": "orders", "partitions": [{"partitionIndex": 0, "errorCode": 25}]}]}
    out = made("OffsetCommit", 3, asked, {"throttleTimeMs": 0, **answer}, times(at_ms), client.port)
    out.client_endpoint = bytes((10, 0, 0, 9)) + client.port.to_bytes(2, "big")
    return out


COMMITTED = {"partitionIndex": 0, "committedOffset": 5, "committedMetadata": ""}


def times(at_ms: float) -> tuple[int, int]:
    return round(at_ms * MS), round(at_ms * MS) + MS


def left_after(quiet_ms: float, *more: Any) -> list[Any]:
    """B fetched nothing for so long, and left within its poll interval."""
    events = [*two(), *A.beats(15_000, 21_000, 2, "m-a"), *B.beats(15_000, 21_000, 2, "m-b")]
    events += [B.fetch(22_500 - quiet_ms - 1), B.leave(22_500, "m-b"), *more]
    return [*events, A.beat(24_000, 2, "m-a", 27), A.join(24_002, 24_003, 3, "m-a", roster=("m-a",))]


def test_a_client_that_leaves_and_goes_on_to_commit_was_not_polled() -> None:
    """With aiokafka, the rebalance timeout of a JoinGroup is not the poll interval."""
    unpolled, left = (3, "poll-interval", "likely", "b"), (3, "member-left", "certain", "b")
    assert last(left_after(2_000, refused_commit(22_505))) == unpolled
    assert last(left_after(2_000, refused_commit(22_505, "m-b"))) == unpolled
    assert last(left_after(1_999, refused_commit(22_505))) == left, "it fetched a moment before"
    assert last(left_after(2_000)) == left, "it may have done so on purpose"
    assert last(left_after(2_000, refused_commit(23_502))) == left, "it began to do something else"
    assert last(left_after(2_000, refused_commit(22_505, client=A))) == left
    assert last(left_after(2_000, refused_commit(22_000))) == left, "it had been refused before"


def test_the_only_member_that_leaves_since_it_was_not_polled_leaves_a_generation_of_nobody() -> None:
    fetches = [A.fetch(at) for at in range(600, 2_000, 100)]
    leaves = [*alone(), *fetches, *A.beats(12_000, 21_000, 1, "m-a"), A.leave(22_500, "m-a")]
    back = A.enter(26_000, 26_500, 3, "m-c", ("m-c",))
    empty = [(2, "poll-interval", 0)]
    for events, then in ((leaves, empty), ([*leaves, *back], [*empty, (3, "new-member", 1)])):
        found = [(row["generation"], row["trigger"], row["members"]) for row in rows(events)]
        assert found == [(1, "new-member", 1), *then]
    fetching = [*leaves, *(A.fetch(at) for at in range(2_000, 22_000, 100))]
    assert [row["generation"] for row in rows(fetching)] == [1]


def test_a_member_that_wants_other_topics() -> None:
    other = Client("a", 50_001, topics=("orders", "returns"))
    events = [*alone(), other.join(10_000, 10_001, 2, "m-a", roster=("m-a",))]
    assert last(events) == (2, "subscription-changed", "likely", "a")


def test_a_leader_that_joins_again_without_a_reason() -> None:
    events = [*alone(), A.join(10_000, 10_001, 2, "m-a", roster=("m-a",))]
    assert last(events) == (2, "leader-rejoined", "likely", "a")


def test_the_generation_of_an_empty_group_is_skipped() -> None:
    """The last member left: that was generation 2; generation 3 begins with the JoinGroup."""
    events = [*alone(), A.leave(10_000, "m-a"), *B.enter(20_000, 23_000, 3, "m-b", ("m-b",))]
    row = rows(events)[-1]
    assert (row["generation"], row["trigger"], row["begin_ns"]) == (3, "new-member", 20_002 * MS)
    assert (row["members_before"], row["joined"], row["missing"]) == (0, 1, [])


def test_a_generation_that_was_not_captured_leaves_who_began_the_next_unknown() -> None:
    events = [*two(), A.join(30_000, 30_001, 4, "m-a", roster=("m-a", "m-b"))]
    row = rows(events)[-1]
    assert (row["generation"], row["trigger"], row["members"]) == (4, None, 2)


def test_a_lone_member_that_was_silent_is_told_when_it_comes_back() -> None:
    events = [*alone(), A.beat(40_000, 1, "m-a", 25), *A.enter(40_010, 43_000, 3, "m-b", ("m-b",))]
    assert last(events)[:2] == (3, "new-member")
    ordered = sorted(events, key=lambda each: each.messages[-1].frame.last_ns)
    (step,) = [row for row in fold("rebalance_steps", ordered).result() if row["step"] == "expired"]
    assert (step["client_id"], step["silent_ns"]) == ("a", 31_000 * MS)


def died_out(events: Iterable[Any]) -> list[tuple[Any, Any]]:
    ordered = sorted(events, key=lambda each: each.messages[-1].frame.last_ns)
    steps = fold("rebalance_steps", ordered).result()
    return [(row["client_id"], row["silent_ns"]) for row in steps if row["step"] == "expired"]


def test_a_lone_member_that_died_is_told_when_another_comes_to_the_empty_group() -> None:
    """Its last heartbeat was after 9 s, and its session lasts 10 s."""
    again = [*B.enter(30_000, 33_000, 3, "m-b", ("m-b",))]
    assert died_out([*alone(), *again]) == [("a", 21_001 * MS)]
    assert last([*alone(), *again])[:2] == (3, "new-member")
    assert died_out([*alone(), A.leave(10_000, "m-a"), *again]) == []
    # So soon after its last heartbeat it may have been something else.
    assert died_out([*alone(), *B.enter(17_998, 21_000, 3, "m-b", ("m-b",))]) == []
    assert died_out([*alone(), *B.enter(17_999, 21_000, 3, "m-b", ("m-b",))]) == [("a", 9_000 * MS)]


def test_a_request_to_leave_is_the_trigger_though_earlier_bytes_of_its_connection_are_missing() -> None:
    """No later bytes can be: the request was the last one on the connection."""
    events = [*two(), *A.beats(15_000, 18_000, 2, "m-a"), *B.beats(15_000, 18_000, 2, "m-b")]
    events += [B.leave(19_000, "m-b"), A.beat(21_000, 2, "m-a", 27)]
    events += [A.join(21_002, 21_003, 3, "m-a", roster=("m-a",)), A.sync(21_005, 3, "m-a", GIVEN)]
    ended = over(connection=B.port, gaps=1)._replace(end_ns=19_500 * MS)
    row = rows(events, ended)[-1]
    assert (row["generation"], row["trigger"], row["trigger_client_id"]) == (3, "member-left", "b")
    lost = [each for each in events if each.api != "LeaveGroup"]
    assert rows(lost, ended)[-1]["trigger"] is None


@pytest.mark.parametrize(("gaps", "end", "is_told"), [(0, "fin", True), (9, "fin", False), (9, "open", True)])
def test_a_lone_member_whose_request_to_leave_may_be_missing_did_not_die(
    gaps: int, end: str, is_told: bool
) -> None:
    ended = over(connection=A.port, gaps=gaps)._replace(end=end, end_ns=10_000 * MS)
    events = sorted(
        [*alone(), *B.enter(30_000, 33_000, 3, "m-b", ("m-b",))],
        key=lambda each: each.messages[-1].frame.last_ns,
    )
    steps = fold("rebalance_steps", [*events, ended]).result()
    assert [row["client_id"] for row in steps if row["step"] == "expired"] == ["a"] * is_told


def test_who_is_waited_for_and_never_comes() -> None:
    """B is gone; C's join begins it, and the coordinator waits for B until its session is over."""
    c = Client("c", 50_003)
    events = [*two(), *A.beats(15_000, 18_000, 2, "m-a"), B.beat(15_000, 2, "m-b")]
    events += [*c.enter(20_000, 25_000, 3, "m-c"), A.beat(21_000, 2, "m-a", 27)]
    events += [A.join(21_002, 25_000, 3, "m-a", roster=("m-a", "m-c"))]
    row = rows(events)[-1]
    assert (row["trigger"], row["trigger_client_id"], row["missing"]) == ("new-member", "c", ["m-b"])
    assert row["joined_ns"] - row["last_join_ns"] == 3_998 * MS
    assert row["completed"] is False


def test_whether_the_connection_of_a_member_that_did_not_join_had_ended() -> None:
    """B is told to join again while C joins, and does not."""
    c = Client("c", 50_003)
    events = [*two(), *A.beats(15_000, 18_000, 2, "m-a"), *B.beats(15_000, 18_000, 2, "m-b")]
    events += [*c.enter(20_000, 25_000, 3, "m-c"), A.beat(21_000, 2, "m-a", 27), B.beat(21_000, 2, "m-b", 27)]
    events += [A.join(21_002, 25_000, 3, "m-a", roster=("m-a", "m-c"))]
    events += [A.sync(25_005, 3, "m-a", {"m-a": (0,), "m-c": (1,)}), c.sync(25_005, 3, "m-c")]
    ordered = sorted(events, key=lambda each: each.messages[-1].frame.last_ns)
    for number, event in enumerate(ordered, 1):
        event.number = number
    for end_ms, detail in ((24_000, f"{NOT_JOINED}: {CONNECTION_ENDED} (fin)"), (25_500, NOT_JOINED)):
        ended = over(connection=B.port)._replace(end_ns=end_ms * MS)
        steps = fold("rebalance_steps", [*ordered, ended]).result()
        assert [(row["member_id"], row["detail"]) for row in steps if row["step"] == "expired"] == [
            ("m-b", detail)
        ]
        assert [row["generation"] for row in steps if row["step"] == "notified" and row["member_id"] == "m-b"]


def test_a_member_that_gave_up_what_it_had_and_joins_again() -> None:
    """KIP-429: what it told to have is more than it was given, so it gives the rest up and rejoins."""
    had = [("orders", (0, 1))]
    both = ("m-a", "m-b")
    events = [
        *alone(),
        *B.enter(9_500, 12_003, 2, "m-b"),
        A.beat(12_000, 1, "m-a", 27),
        A.join(12_002, 12_003, 2, "m-a", roster=both, owned=had, assignor="cooperative-sticky"),
        A.sync(12_005, 2, "m-a", {"m-a": (0,), "m-b": ()}),
        B.sync(12_005, 2, "m-b"),
        A.join(12_008, 13_000, 3, "m-a", roster=both, assignor="cooperative-sticky"),
        B.beat(12_990, 2, "m-b", 27),
        B.join(12_992, 13_000, 3, "m-b"),
    ]
    assert last(events) == (3, "followup-revoke", "likely", "a")


def test_a_request_to_leave_may_be_among_the_last_bytes_of_a_connection_that_are_missing() -> None:
    """Then it is unknown who began what came next, and whether the member left."""
    joins = Client("c", 50_003)
    events = [*two(), *A.beats(15_000, 18_000, 2, "m-a"), *B.beats(15_000, 18_000, 2, "m-b")]
    events += joins.enter(20_500, 21_003, 3, "m-c")
    events += [A.beat(21_000, 2, "m-a", 27), A.join(21_002, 21_003, 3, "m-a", roster=("m-a", "m-c"))]
    events += [A.sync(21_005, 3, "m-a", {"m-a": (0,), "m-c": (1,)}), joins.sync(21_005, 3, "m-c")]
    ended = over(connection=B.port)._replace(end_ns=20_000 * MS)
    row = rows(events, ended)[-1]
    assert (row["trigger"], row["trigger_client_id"], row["missing"]) == ("new-member", "c", ["m-b"])
    row = rows(events, ended._replace(gaps=1))[-1]
    assert (row["generation"], row["trigger"], row["trigger_client_id"], row["missing"]) == (
        3,
        None,
        None,
        None,
    )
    assert row["completed"] is True
    for how in ("open", "evicted"):
        assert rows(events, ended._replace(gaps=1, end=how))[-1]["trigger"] == "new-member"


def test_a_group_that_waits_for_a_member_that_it_refuses_stands_still_to_the_end() -> None:
    """Who began it is unknown: a group that a broker loads with more members than it allows."""
    events = [*two(), *A.beats(15_000, 18_000, 2, "m-a"), *B.beats(15_000, 18_000, 2, "m-b")]
    events += [A.beat(21_000, 2, "m-a", 27), B.beat(21_000, 2, "m-b", 27)]
    events += [B.join(21_002, 21_003, member="m-b", error=81), A.join(21_004, None, member="m-a")]
    row = rows([*events, A.fetch(40_000)])[-1]
    assert (row["generation"], row["trigger"], row["begin_ns"], row["completed"]) == (None, None, None, False)
    assert (row["waited_for"], row["members_before"]) == (["m-b"], 2)
    assert row["stopped_ns"] == (40_001 - 21_001) * MS, "from when its members were told to join again"
