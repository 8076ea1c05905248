"""Groups, members and rebalances, against the broker's log and against what the cases say was done."""

from __future__ import annotations

import base64
import json
from collections import Counter, defaultdict
from typing import Any

import pytest

from kdissect.analysis.fold import MILLISECOND
from kdissect.analysis.membership import HEARTBEATS
from kdissect.capture.files import read_packets
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.message import parse_request
from kdissect.model import Direction
from kdissect.session.conversation import Connection
from tests.analysis.folds import fold, frame, logged, made, rows_of
from tests.dissecting import dissect
from tests.kafka import request
from tests.lab import Case
from tests.shared import requires_shared, shared
from tests.tcp.segments import BROKER, CLIENT

GROUP_CASES = ["java43-groups", "java43-kip848", "java43-share-2", "streams-protocol-2", "streams-classic"]
GROUP_CASES += ["java43-admin", "kafka-python-3", "kafkajs-on-39", "sarama", "librdkafka-new", "zk39-ibp28"]


def by(rows: list[dict[str, Any]], *names: str) -> dict[Any, dict[str, Any]]:
    found = {tuple(row[name] for name in names): row for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("case", GROUP_CASES)
def test_generations_of_members_are_those_that_the_broker_gave(case: str) -> None:
    """Of classic groups by JoinGroup, of the others by the epoch in the answer to a heartbeat."""
    given: set[tuple[str, int, str]] = set()
    for each, _, exchange in logged(case):
        answer = each.response or {}
        if answer.get("errorCode") or exchange.response is None:
            continue
        if exchange.api == "JoinGroup":
            given.add((each.request["groupId"], answer["generationId"], answer["memberId"]))
        elif exchange.api in HEARTBEATS and answer["memberEpoch"] >= 0:
            member = each.request["memberId"] or answer["memberId"]
            given.add((each.request["groupId"], answer["memberEpoch"], member))
    assert given
    rows = by(rows_of("stays", case), "group", "generation", "member_id")
    assert given <= set(rows)
    # What is beyond them was joined before the capture began, and only named by a heartbeat.
    assert all(row["join_ns"] is None for key, row in rows.items() if key not in given)


@pytest.mark.parametrize("case", GROUP_CASES)
def test_a_rebalance_lasts_no_shorter_than_the_broker_took_for_it(case: str) -> None:
    took: defaultdict[Any, dict[str, int]] = defaultdict(dict)
    for each, line, exchange in logged(case):
        answer = each.response or {}
        if exchange.response is None or answer.get("errorCode"):
            continue
        if exchange.api == "JoinGroup":
            key = (each.request["groupId"], answer["generationId"], answer["memberId"])
        elif exchange.api == "SyncGroup":
            key = (each.request["groupId"], each.request["generationId"], each.request["memberId"])
        else:
            continue
        own = int((line["localTimeMs"] + line["remoteTimeMs"]) * MILLISECOND)
        took[key].setdefault(exchange.api, own)
    rows = by(rows_of("stays", case), "group", "generation", "member_id")
    whole = {key: times for key, times in took.items() if len(times) == 2}
    assert whole or Case(case).info()["name"] in ("java43-share-2", "streams-protocol-2", "zk39-ibp28")
    for key, times in whole.items():
        assert rows[key]["duration_ns"] >= sum(times.values())
        assert rows[key]["duration_ns"] == rows[key]["sync_ns"] - rows[key]["join_ns"]
    assert {key for key, row in rows.items() if row["completed"]} == set(whole)


@pytest.mark.parametrize("case", GROUP_CASES)
def test_what_members_did_is_what_the_broker_logged(case: str) -> None:
    did: defaultdict[Any, Counter[str]] = defaultdict(Counter)
    for each, _, exchange in logged(case):
        request, api = each.request or {}, exchange.api or ""
        group = request.get("groupId")
        if api in ("OffsetCommit", "TxnOffsetCommit"):
            did[group]["commits"] += 1
            did[group]["committed_partitions"] += sum(len(topic["partitions"]) for topic in request["topics"])
        elif api == "Heartbeat" or api in HEARTBEATS:
            did[group]["heartbeats"] += 1
            did[group]["joins"] += api in HEARTBEATS and request["memberEpoch"] == 0
        elif api == "JoinGroup":
            did[group]["joins"] += 1
    rows = fold("groups", [exchange for *_, exchange in logged(case)]).result()
    groups = by(rows, "group")
    members = rows_of("members", case)
    assert {(group,) for group in did} <= set(groups)
    for group, counts in did.items():
        for name in ("commits", "committed_partitions", "heartbeats", "joins"):
            assert groups[group,][name] == counts[name]
            assert sum(row[name] for row in members if row["group"] == group) == counts[name]


def test_classic_groups_of_three_assignors() -> None:
    """Three members each of a range, a sticky and a cooperative-sticky group, one after another."""
    groups = by(rows_of("groups", "java43-groups"), "group")
    kinds = {"eager": "range", "sticky": "sticky", "coop": "cooperative-sticky"}
    for name, assignor in kinds.items():
        row = groups[f"java43-groups-{name}",]
        assert (row["types"], row["protocols"], row["members"]) == (["classic"], [assignor], 3)
        assert row["rebalances"] == row["last_generation"] - row["first_generation"] + 1
        assert row["rebalance_max_ns"] > 100 * MILLISECOND
    members = rows_of("members", "java43-groups")
    left = [row for row in members if row["left"]]
    assert Counter(row["group"].rpartition("-")[2] for row in left) == {"eager": 3, "sticky": 3, "coop": 1}
    (removed,) = [row for row in left if row["group"].endswith("coop")]
    assert removed["leave_reason"] == "member was removed by an admin"
    assert (removed["client_id"], removed["instance_id"]) == ("coop1", "inst-1")
    assert {row["leave_reason"] for row in left if row is not removed} == {"the consumer is being closed"}
    stays = rows_of("stays", "java43-groups")
    assert "rebalance enforced by user" in {row["reason"] for row in stays}
    for group, generation in {(row["group"], row["generation"]) for row in stays}:
        here = [row for row in stays if (row["group"], row["generation"]) == (group, generation)]
        joined = [row for row in here if row["join_ns"] is not None]
        assert sum(bool(row["leader"]) for row in joined) == 1
        if group.endswith(("eager", "sticky")) and all(row["assigned"] is not None for row in here):
            assert sum(row["assigned"] for row in here) == 6  # all partitions of the topic


def test_a_group_rebalances_from_the_first_join_to_the_last_sync() -> None:
    stays = [row for row in rows_of("stays", "java43-groups") if row["join_ns"] is not None]
    for row in rows_of("groups", "java43-groups"):
        durations = []
        for generation in sorted({stay["generation"] for stay in stays if stay["group"] == row["group"]}):
            here = [s for s in stays if (s["group"], s["generation"]) == (row["group"], generation)]
            ends = [stay["sync_ns"] for stay in here if stay["sync_ns"] is not None]
            begin = min(stay["join_ns"] for stay in here)
            durations.append(max(ends) - begin if ends else None)
        assert row["rebalances"] == len(durations)
        if row["group"].endswith("coop"):
            assert durations.pop() is None  # which the next test is about
        else:
            assert (row["rebalance_last_completed"], row["not_finished"]) == (True, 0)
            assert row["rebalance_last_ns"] == durations[-1]
            assert row["rebalance_max_ns"] == max(each for each in durations if each is not None)


def test_a_rebalance_that_goes_on_is_one_with_its_time_so_far() -> None:
    """The coordinator waits for a static member that is gone; then everybody goes."""
    (row,) = [row for row in rows_of("groups", "java43-groups") if row["group"].endswith("coop")]
    assert 9_500 * MILLISECOND < row["rebalance_max_ns"] < 9_600 * MILLISECOND
    assert row["rebalance_last_ns"] == row["rebalance_max_ns"]
    assert (row["rebalances"], row["rebalance_last_completed"], row["not_finished"]) == (6, False, 1)
    stays = [row for row in rows_of("stays", "java43-groups") if row["completed"] is False]
    assert {(stay["group"], stay["generation"]) for stay in stays} == {(row["group"], 6)}
    assert len(stays) == 2
    assert all(9_400 * MILLISECOND < stay["duration_ns"] <= row["rebalance_max_ns"] for stay in stays)


def join(
    at: tuple[int, int],
    member: str = "m",
    generation: int | None = None,
    error: int = 0,
    instance: str | None = None,
    connection: int = 0,
    asks_as: str | None = None,
) -> Exchange:
    """A member asks to join, and is told a generation; None for no answer."""
    asked = {
        "groupId": "g",
        "sessionTimeoutMs": 45_000,
        "rebalanceTimeoutMs": 60_000,
        "memberId": member if asks_as is None else asks_as,
        "groupInstanceId": instance,
        "protocolType": "consumer",
        "protocols": [],
    }
    answer: dict[str, Any] = {
        "throttleTimeMs": 0,
        "errorCode": error,
        "generationId": generation,
        "protocolName": "range",
        "leader": "m",
        "memberId": member,
        "members": [],
    }
    return made("JoinGroup", 5, asked, None if generation is None else answer, at, connection)


def sync(at: tuple[int, int], generation: int, member: str = "m", error: int | None = 0) -> Exchange:
    """A member asks for its assignment; no error for no answer."""
    asked = {"groupId": "g", "generationId": generation, "memberId": member, "assignments": []}
    asked |= {"groupInstanceId": None}
    answer = {"throttleTimeMs": 0, "errorCode": error, "assignment": ""}
    return made("SyncGroup", 3, asked, None if error is None else answer, at)


def without_answer(exchange: Exchange, why: str) -> Exchange:
    exchange.missing = why
    return exchange


def group_of(events: list[Event]) -> dict[str, Any]:
    (row,) = fold("groups", events).result()
    return row


def rebalances_of(events: list[Event]) -> tuple[Any, ...]:
    row = group_of(events)
    return tuple(
        row[name] for name in ("rebalances", "rebalance_max_ns", "rebalance_last_ns", "not_finished")
    )


CLOSED = {"start_ns": 0, "end": "fin", "packets": 9, "bytes_to_broker": 9, "bytes_from_broker": 9}
CLOSED |= dict.fromkeys(("retransmitted", "gaps", "gap_bytes", "skipped_bytes", "exchanges"), 0)


def closed(connection: int, end_ns: int) -> Connection:
    names = {"client": "c:1", "broker": "b:9092", "protocol": "kafka", "client_id": None}
    return Connection(connection=connection, end_ns=end_ns, software=None, sasl=None, **CLOSED, **names)  # type: ignore[arg-type]


def test_a_join_that_still_waits_when_the_capture_ends_is_a_rebalance() -> None:
    events: list[Event] = [join((10, 20), generation=1), sync((21, 22), 1)]
    events += [without_answer(join((100, 0)), "capture ended")]
    assert rebalances_of(events) == (2, 12, 0, 1)
    later = made(
        "Metadata", 1, {"topics": None}, None, (350, 0)
    )  # a stranger's: the capture goes on to there
    assert rebalances_of([*events, later]) == (2, 250, 250, 1)
    (*_, row) = fold("stays", [*events, later]).result()
    assert (row["generation"], row["member_id"], row["join_ns"]) == (None, "m", 100)
    assert (row["sync_ns"], row["duration_ns"], row["completed"]) == (None, 250, False)


def test_a_join_waits_no_longer_than_its_connection() -> None:
    events: list[Event] = [without_answer(join((100, 0), connection=3), "connection closed")]
    events += [closed(3, 180), closed(4, 900)]
    assert rebalances_of(events) == (1, 80, 80, 1)
    one, two = fold("groups", events[:1]), fold("groups", events[1:])
    one.merge(two)
    assert one.result() == [group_of(events)]


@pytest.mark.parametrize("why", ["gap", "not captured", "evicted"])
def test_an_answer_that_was_not_captured_accuses_nobody(why: str) -> None:
    events: list[Event] = [without_answer(join((100, 0)), why), closed(0, 10**9)]
    assert rebalances_of(events) == (0, None, None, 0)
    events = [
        join((10, 20), generation=1),
        without_answer(sync((21, 0), 1, error=None), why),
        closed(0, 10**9),
    ]
    row = group_of(events)
    assert (row["rebalances"], row["rebalance_max_ns"], row["not_finished"]) == (1, None, 0)
    assert row["rebalance_last_completed"] is None


def test_a_join_that_was_asked_again_and_answered_does_not_wait() -> None:
    events: list[Event] = [without_answer(join((10, 0), asks_as=""), "connection closed"), closed(0, 50)]
    events += [join((60, 70), generation=1, connection=1), sync((71, 80), 1)]
    assert rebalances_of(events) == (1, 20, 20, 0)


def test_an_assignment_that_never_came_is_waited_for() -> None:
    events: list[Event] = [
        join((10, 20), generation=1),
        without_answer(sync((30, 0), 1, error=None), "capture ended"),
    ]
    assert rebalances_of([*events, closed(9, 100)]) == (1, 90, 90, 1)


def test_a_rebalance_that_the_next_overtakes_is_not_finished() -> None:
    refused = sync((30, 40), 1, error=27)  # REBALANCE_IN_PROGRESS: another joined
    events: list[Event] = [join((10, 20), generation=1), refused]
    events += [join((41, 50), generation=2), sync((51, 60), 2)]
    assert rebalances_of(events) == (2, 30, 19, 1)
    assert group_of(events)["rebalance_last_completed"] is True


def test_a_refused_join_is_no_rebalance() -> None:
    refused = join((10, 20), generation=-1, error=79)  # MEMBER_ID_REQUIRED
    assert rebalances_of([refused]) == (0, None, None, 0)


def test_a_static_member_that_comes_back_to_its_generation_makes_no_rebalance() -> None:
    """KIP-345: it is answered with the generation in force, under another member id."""
    events: list[Event] = [join((10, 20), "a-1", 1, instance="a"), sync((21, 22), 1, "a-1")]
    events += [join((5_000, 5_001), "a-2", 1, instance="a", asks_as=""), sync((5_002, 5_003), 1, "a-2")]
    assert rebalances_of(events) == (1, 12, 12, 0)
    assert group_of(events)["members"] == 1
    assert len(fold("members", events).result()) == 2


def test_what_a_filter_hides_completes_a_rebalance_all_the_same() -> None:
    whole = fold("groups", [join((10, 20), generation=1), sync((21, 22), 1)]).result()
    found = fold("groups", [join((10, 20), generation=1)])
    found.see(sync((21, 22), 1))
    (row,) = found.result()
    for name in ("rebalances", "rebalance_max_ns", "rebalance_last_completed", "not_finished"):
        assert row[name] == whole[0][name]


def removal(at: tuple[int, int], instance: str, error: int = 0) -> Exchange:
    """An administrator removes a static member, of which the request has the instance id only."""
    member = {"memberId": "", "groupInstanceId": instance, "reason": "enough"}
    answer = {"memberId": "", "groupInstanceId": instance, "errorCode": error}
    answered = {"throttleTimeMs": 0, "errorCode": 0, "members": [answer]}
    out = made("LeaveGroup", 5, {"groupId": "g", "members": [member]}, answered, at, 7)
    out.client_endpoint = out.broker_endpoint
    return out


@pytest.mark.parametrize(
    ("protocol_type", "error", "assigned"),
    [(None, 0, 0), ("consumer", 0, 0), ("connect", 0, None), (None, 27, None)],
)
def test_a_member_that_the_leader_left_out_was_assigned_nothing(
    protocol_type: str | None, error: int, assigned: int | None
) -> None:
    version = 3 if protocol_type is None else 5
    asked = {"groupId": "g", "generationId": 1, "memberId": "m", "groupInstanceId": None, "assignments": []}
    answer = {"throttleTimeMs": 0, "errorCode": error, "assignment": ""}
    if protocol_type is not None:
        asked |= {"protocolType": protocol_type, "protocolName": "range"}
        answer |= {"protocolType": protocol_type, "protocolName": "range"}
    synced = made("SyncGroup", version, asked, answer, (3, 4))
    (stay,) = fold("stays", [join((1, 2), generation=1), synced]).result()
    assert stay["assigned"] == assigned


def test_a_static_member_that_an_administrator_removes_is_one_row() -> None:
    events: list[Event] = [join((10, 20), "a-1", 1, instance="a"), sync((21, 22), 1, "a-1")]
    events += [
        join((30, 31), "a-2", 1, instance="a"),
        sync((32, 33), 1, "a-2"),
        removal((20_000, 20_001), "a"),
    ]
    old, new = fold("members", events).result()
    assert (old["member_id"], old["left"]) == ("a-1", None)
    assert (new["member_id"], new["left"], new["left_ns"]) == ("a-2", "LeaveGroup", 20_000)
    assert (new["first_ns"], new["last_ns"]) == (30, 32)  # its own requests
    row = group_of(events)
    assert (row["members"], row["leaves"], row["last_ns"]) == (1, 1, 20_000)
    parts = [fold("members", [event]) for event in events]
    for part in parts[1:]:
        parts[0].merge(part)
    assert parts[0].result() == [old, new]


def test_a_static_member_of_whom_nothing_else_is_known_has_a_row_of_its_own() -> None:
    (row,) = fold("members", [removal((5, 6), "a", error=25)]).result()
    assert (row["member_id"], row["instance_id"], row["left"], row["errors"]) == ("", "a", None, 1)
    assert (row["first_ns"], row["last_ns"]) == (5, 5)


@requires_shared
@pytest.mark.parametrize("case", ["rolling-restart-static", "fenced-instance-id", "member-killed"])
def test_rebalances_last_as_long_as_the_coordinator_says(case: str) -> None:
    folder = shared(f"testdata/incidents/{case}")
    truth = json.loads((folder / "truth.json").read_text())["facts"]["rebalances"]
    finished = [each["stable_ms"] - each["time_ms"] for each in truth if "stable_ms" in each]
    rows = fold("groups", dissect(read_packets([folder / "capture.pcapng.gz"]))).result()
    (row,) = [row for row in rows if row["rebalances"]]
    assert (row["rebalances"], row["not_finished"]) == (len(finished), 0)
    assert row["rebalance_max_ns"] / MILLISECOND == pytest.approx(max(finished), abs=50)


def test_consumer_groups_of_member_epochs() -> None:
    """KIP-848: three members, one static; and a classic group that is upgraded."""
    groups = by(rows_of("groups", "java43-kip848"), "group")
    assert {tuple(row["types"]) for row in groups.values()} == {("consumer",), ("classic", "consumer")}
    for row in groups.values():
        assert row["last_generation"] > row["first_generation"] >= 0
        # Which generations members were seen joining is only told of classic groups.
        assert (row["rebalances"] is None) == ("classic" not in row["types"])
    members = [row for row in rows_of("members", "java43-kip848") if row["types"] == ["consumer"]]
    assert {row["instance_id"] for row in members} > {None}
    ends = {row["left"] for row in members}
    assert "member epoch -1" in ends
    assert all(row["left"] == "member epoch -2" for row in members if row["instance_id"] and row["left"])


@pytest.mark.parametrize(
    ("case", "kind", "members"), [("java43-share-2", "share", 2), ("streams-protocol-2", "streams", 2)]
)
def test_share_and_streams_groups(case: str, kind: str, members: int) -> None:
    (row,) = [row for row in rows_of("groups", case) if row["types"]]
    assert (row["types"], row["members"], row["rebalances"]) == ([kind], members, None)
    stays = rows_of("stays", case)
    assert {tuple(stay["types"]) for stay in stays} == {(kind,)}
    assert any(stay["assigned"] for stay in stays)
    assert {stay["duration_ns"] for stay in stays} == {None}


def test_leaving_counts_where_the_broker_says_it_did() -> None:
    asked = {"groupId": "g", "members": []}
    members = [{"memberId": name, "groupInstanceId": None, "reason": f"{name} is tired"} for name in "ab"]
    answers = [{"memberId": "a", "groupInstanceId": None, "errorCode": 0}]
    answers += [{"memberId": "b", "groupInstanceId": None, "errorCode": 25}]
    exchange = made(
        "LeaveGroup",
        5,
        {**asked, "members": members},
        {"throttleTimeMs": 0, "errorCode": 0, "members": answers},
    )
    one, other = fold("members", [exchange]).result()
    assert (one["left"], one["leave_reason"], one["errors"]) == ("LeaveGroup", "a is tired", 0)
    assert (other["left"], other["leave_reason"], other["errors"]) == (None, None, 1)
    old = made("LeaveGroup", 1, {"groupId": "g", "memberId": "m"}, {"throttleTimeMs": 0, "errorCode": 0})
    (row,) = fold("members", [old]).result()
    assert (row["member_id"], row["left"]) == ("m", "LeaveGroup")


def test_a_topic_that_a_damaged_message_names_null_is_no_topic() -> None:
    asked: dict[str, Any] = {"groupId": "g", "memberId": "m", "memberEpoch": 1, "instanceId": None}
    asked |= {"rackId": None, "rebalanceTimeoutMs": -1, "serverAssignor": None, "topicPartitions": None}
    payload = request("ConsumerGroupHeartbeat", 0, **asked, subscribedTopicNames=["kept", "gone"])
    damaged = payload.replace(b"\x05gone", b"\0")
    exchange = Exchange(0, CLIENT, BROKER)
    exchange.request = parse_request(frame(Direction.TO_BROKER, damaged, 1))
    exchange.number = 1
    (row,) = fold("members", [exchange]).result()
    assert row["subscribed"] == ["kept"]


@pytest.mark.parametrize(
    ("metadata", "topics"),
    [
        ("0001 00000001 0001 74 ffffffff", ["t"]),  # as kafka-go writes it: version 1 without its own fields
        ("0001 00000001 0001 74 ffff", []),
        ("0001 00000002 0001 74", []),
        ("0001 00000001 0001 74 ffffffff 00000000", ["t"]),
        ("0000 00000001 0001 74 ffffffff 00000000", []),
    ],
)
def test_a_subscription_may_end_before_the_fields_of_its_version(metadata: str, topics: list[str]) -> None:
    asked: dict[str, Any] = {"groupId": "g", "sessionTimeoutMs": 9, "rebalanceTimeoutMs": 9, "memberId": "m"}
    protocol = {"name": "range", "metadata": base64.b64encode(bytes.fromhex(metadata)).decode()}
    asked |= {"protocolType": "consumer", "protocols": [protocol]}
    answer: dict[str, Any] = {"throttleTimeMs": 0, "errorCode": 0, "generationId": 1, "protocolName": "range"}
    answer |= {"leader": "m", "memberId": "m", "members": []}
    (row,) = fold("members", [made("JoinGroup", 2, asked, answer)]).result()
    assert row["subscribed"] == topics
