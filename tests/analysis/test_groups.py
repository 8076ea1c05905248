"""Groups, members and rebalances, against the broker's log and against what the cases say was done."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

from kdissect.analysis.fold import MILLISECOND
from kdissect.analysis.membership import HEARTBEATS
from tests.analysis.folds import fold, logged, made, rows_of
from tests.lab import Case

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
    rows = by(rows_of("rebalances", case), "group", "generation", "member_id")
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
    rows = by(rows_of("rebalances", case), "group", "generation", "member_id")
    whole = {key: times for key, times in took.items() if len(times) == 2}
    assert whole or Case(case).info()["name"] in ("java43-share-2", "streams-protocol-2", "zk39-ibp28")
    for key, times in whole.items():
        assert rows[key]["duration_ns"] >= sum(times.values())
        assert rows[key]["duration_ns"] == rows[key]["sync_ns"] - rows[key]["join_ns"]
    assert {key for key, row in rows.items() if row["duration_ns"] is not None} == set(whole)


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
    assert (removed["member_id"], removed["instance_id"]) == ("", "inst-1")
    assert {row["leave_reason"] for row in left if row is not removed} == {"the consumer is being closed"}
    stays = rows_of("rebalances", "java43-groups")
    assert "rebalance enforced by user" in {row["reason"] for row in stays}
    for group, generation in {(row["group"], row["generation"]) for row in stays}:
        here = [row for row in stays if (row["group"], row["generation"]) == (group, generation)]
        joined = [row for row in here if row["join_ns"] is not None]
        assert sum(bool(row["leader"]) for row in joined) == 1
        if group.endswith(("eager", "sticky")) and all(row["assigned"] is not None for row in here):
            assert sum(row["assigned"] for row in here) == 6  # all partitions of the topic


def test_a_group_rebalances_from_the_first_join_to_the_last_sync() -> None:
    stays = [row for row in rows_of("rebalances", "java43-groups") if row["join_ns"] is not None]
    for row in rows_of("groups", "java43-groups"):
        durations = []
        for generation in sorted({stay["generation"] for stay in stays if stay["group"] == row["group"]}):
            here = [s for s in stays if (s["group"], s["generation"]) == (row["group"], generation)]
            ends = [stay["sync_ns"] for stay in here if stay["sync_ns"] is not None]
            begin = min(stay["join_ns"] for stay in here)
            durations.append(max(ends) - begin if ends else None)
        assert row["rebalances"] == len(durations)
        assert row["rebalance_last_ns"] == durations[-1]
        assert row["rebalance_max_ns"] == max(each for each in durations if each is not None)


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
    stays = rows_of("rebalances", case)
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
