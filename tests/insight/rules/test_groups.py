"""Rules on groups: what captures of real trouble make them say, and what must not."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.group_rebalance import CONNECTION_ENDED, CONNECTION_OPEN, NOT_JOINED
from kdissect.analysis.groups import Members
from kdissect.analysis.rebalances import Rebalances, RebalanceSteps
from kdissect.analysis.triggers import DID_NOT_FETCH, DID_NOT_POLL
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import SLEPT, JudgingContext
from kdissect.insight.finding import CRITICAL, INFO, LIKELY, NOTICE, WARNING, Finding
from kdissect.insight.judge import judge
from kdissect.insight.rules.groups.words import POLL_TIMEOUT
from tests.insight import made
from tests.insight.judged import CAPTURES, judged_file

GROUPS = sorted(id for id, rule in RULES.items() if rule.category in ("groups", "share", "streams"))
MS = 1_000_000


@cache
def said(case: str) -> tuple[Finding, ...]:
    """What these rules say of an incident, worst first."""
    findings = judged_file(CAPTURES / "incidents" / f"{case}.pcapng.gz").findings
    return tuple(each for each in findings if each.id in GROUPS)


def one(case: str, id: str) -> Finding:
    (found,) = (each for each in said(case) if each.id == id)
    return found


@pytest.mark.parametrize("id", GROUPS)
def test_every_rule_has_a_page(id: str) -> None:
    page = RULES[id].page
    assert page.what
    assert page.why
    assert page.do
    assert page.sources


EXPECTED = {
    "assignor-mismatch": [("assignor-mismatch", "basket-new")],
    "fenced-instance-id": [("static-member-conflict", "first")],
    "idle-members": [("idle-members", None)],
    "kip848-member-silent": [
        ("session-timeout", "feeder-c-2"),
        ("member-epoch-fenced", "feeder-c-2"),
        ("commit-after-rebalance", "feeder-c-2"),
        ("records-read-twice", None),
    ],
    "max-poll-exceeded": [
        ("poll-interval-exceeded", "mailer-1"),
        ("rebalance-storm", None),
        ("records-read-twice", None),
    ],
    "member-killed": [("session-timeout", "fraud-2"), ("rebalance-long", None), ("records-read-twice", None)],
    "rolling-restart-dynamic": [
        ("rolling-restart", None),
        ("eager-stop-the-world", None),
        ("records-read-twice", None),
    ],
    "rolling-restart-static": [],
    "share-delivery-limit": [("share-poison", None), ("share-redelivery", None)],
    "shared-group-id": [
        ("subscriptions-differ", None),
        ("rebalance-storm", None),
        ("eager-stop-the-world", None),
        ("records-read-twice", None),
    ],
    "streams-thread-replaced": [
        ("rebalance-storm", None),
        ("rebalance-missing-member", None),
        ("rebalance-long", None),
        ("records-read-twice", None),
    ],
}
"""Of each incident, whole: the rules that speak, and whom they name."""


@pytest.mark.parametrize("case", EXPECTED)
def test_what_is_said_of_an_incident(case: str) -> None:
    assert [(each.id, each.subject.client_id) for each in said(case)] == EXPECTED[case]


SILENT: tuple[str, ...] = (
    "basic-kafka43",
    "sasl-scram",
    "midstream",
    "loss",
    "errors",
    "transactions-kafka39",
)
SILENT += ("share-group-kafka43",)


@pytest.mark.parametrize("name", SILENT)
def test_healthy_groups_are_not_accused(name: str) -> None:
    findings = judged_file(CAPTURES / f"{name}.pcapng").findings
    found = {each.id for each in findings if each.id in GROUPS}
    assert found <= {"records-read-twice"}  # true here: offsets went back, or were never committed


@pytest.mark.parametrize(
    ("case", "cause", "effect"),
    [
        ("max-poll-exceeded", "poll-interval-exceeded", "rebalance-storm"),
        ("member-killed", "session-timeout", "rebalance-long"),
        ("kip848-member-silent", "session-timeout", "member-epoch-fenced"),
        ("streams-thread-replaced", "rebalance-missing-member", "rebalance-long"),
        ("shared-group-id", "subscriptions-differ", "rebalance-storm"),
        ("share-delivery-limit", "share-poison", "share-redelivery"),
    ],
)
def test_a_cause_explains_its_effect(case: str, cause: str, effect: str) -> None:
    assert one(case, effect).because == one(case, cause).key
    assert one(case, cause).because is None


def test_messages_say_who_and_how_long() -> None:
    assert one("max-poll-exceeded", "poll-interval-exceeded").message.startswith(
        "mailer-1 left the group 2 times because it did not ask for records within 4.00 s"
    )
    assert "for 6.01 s (it may be silent for 6.00 s)" in one("member-killed", "session-timeout").message
    steps = one("member-killed", "session-timeout").steps
    assert [each.text for each in steps] == ["fraud-2 was heard of for the last time", "fraud-2 was removed"]
    assert round((steps[1].ns - steps[0].ns) / SECOND, 2) == 6.01
    fenced = one("kip848-member-silent", "member-epoch-fenced").message
    assert fenced.startswith("feeder-c-2 was told that it is no longer a member")
    assert "Its connection had ended" in one("member-killed", "session-timeout").message
    assert "stayed open" in one("kip848-member-silent", "session-timeout").message
    assert "waited 7.87 s" in one("streams-thread-replaced", "rebalance-long").message
    assert one("member-killed", "rebalance-long").message.startswith(
        "Nobody read 2 of 6 partitions (those of fraud-2) for 6.28 s: "
    )


# -- edges, over rows made by hand ----------------------------------------------------------------------


def told(id: str, **rows: list[Row]) -> list[Finding]:
    """What one rule says of rows, by the name of their statistic."""
    needs = {each: rows.get(each.name, []) for each in RULES[id].needs}
    return judge({id: RULES[id]}, needs, JudgingContext(first_ns=0, last_ns=600 * SECOND)).findings


def rebalance(at_s: float, **values: Any) -> Row:
    """A rebalance of a group of two that takes a tenth of a second."""
    at = round(at_s * SECOND)
    row: Row = {
        "group": "g",
        "generation": int(at_s) + 2,
        "types": ["classic"],
        "protocol": "cooperative-sticky",
        "trigger": "new-member",
        "trigger_confidence": "certain",
        "trigger_member": "m",
        "trigger_client_id": "c",
        "trigger_client": "10.0.0.1:5",
        "trigger_reason": None,
        "trigger_exchange": 7,
        "begin_ns": at,
        "notified_ns": at,
        "last_join_ns": at,
        "joined_ns": at + 100 * MS,
        "assigned_ns": at + 100 * MS,
        "synced_ns": at + 100 * MS,
        "join_phase_ns": 100 * MS,
        "assign_phase_ns": 0,
        "sync_phase_ns": 0,
        "stopped_ns": 100 * MS,
        "stopped_members": [],
        "stopped_partitions": None,
        "waited_for": [],
        "missing": [],
        "members": 2,
        "members_before": 2,
        "joined": 0,
        "left": 0,
        "partitions": 4,
        "moved": 0,
        "revoked": 0,
        "delay_ns": None,
        "completed": True,
        "errors": 0,
        "exchanges": [7],
    }
    return row | values


def member(name: str, first_s: float = 0, last_s: float = 600, **values: Any) -> Row:
    """A member that lives through the capture."""
    row: Row = {
        "group": "g",
        "member_id": f"{name}-id",
        "instance_id": None,
        "types": ["classic"],
        "client_id": name,
        "client": "10.0.0.1:5",
        "offers": ["range"],
        "subscribed": ["orders"],
        "session_timeout_ms": 45_000,
        "rebalance_timeout_ms": 300_000,
        "first_generation": 1,
        "last_generation": 1,
        "left": None,
        "leave_reason": None,
        "left_ns": None,
        "first_ns": round(first_s * SECOND),
        "last_ns": round(last_s * SECOND),
    }
    return row | values


@pytest.mark.parametrize(("stopped_ms", "count"), [(4_999, 0), (5_000, 1)])
def test_the_edge_of_a_long_rebalance(stopped_ms: int, count: int) -> None:
    assert len(told("rebalance-long", rebalances=[rebalance(9, stopped_ns=stopped_ms * MS)])) == count


@pytest.mark.parametrize(("stopped_ms", "count"), [(5_100, 0), (9_999, 0), (10_000, 1)])
def test_in_newer_groups_partitions_change_hands_with_heartbeats(stopped_ms: int, count: int) -> None:
    row = rebalance(9, types=["consumer"], stopped_ns=stopped_ms * MS, sync_phase_ns=11 * SECOND)
    found = told("rebalance-long", rebalances=[row])
    assert len(found) == count
    if found:
        assert found[0].message.startswith("Nobody read the partitions that moved for 10.00 s")
        assert found[0].message.endswith("took 11.00 s to give partitions back and to take them over.")
        assert found[0].threshold == 10


@pytest.mark.parametrize(
    ("before", "earlier", "severity"),
    [
        (0, "member-left", NOTICE),
        (1, "member-left", CRITICAL),
        (0, "poll-interval", CRITICAL),
        (None, "member-left", CRITICAL),
    ],
)
def test_a_job_that_joins_an_empty_group_now_and_then_disturbs_nobody(
    before: int | None, earlier: str, severity: str
) -> None:
    """Unless the group is empty because a member failed."""
    lives = [member(f"m{at}", 9 * at, 9 * at + 4, client_id="cron") for at in range(5)]
    rows: list[Row] = []
    for at in range(5):
        known = {"generation": 2 * at + 1, "trigger_member": f"m{at}-id", "trigger_client_id": "cron"}
        rows.append(rebalance(9 * at, members_before=before, **known))
        emptied = {"generation": 2 * at + 2, "trigger": earlier, "members": 0, "members_before": 1}
        rows.append(rebalance(9 * at + 4, **known | emptied))
    if earlier == "member-left":
        rows = rows[::2]  # other groups without members have no row
    (found,) = told("rebalance-storm", rebalances=rows, members=lives)
    assert found.severity == severity
    assert found.message.endswith("nobody had to wait for that.") == (severity == NOTICE)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"stopped_members": ["b-id"], "stopped_partitions": 2},
            "Nobody read 2 of 4 partitions (those of b)",
        ),
        ({"stopped_members": ["b-id"], "stopped_partitions": 1}, "Nobody read 1 of 4 partitions (that of b)"),
        (
            {"stopped_members": ["a-id", "b-id"], "stopped_partitions": 3, "partitions": None},
            "Nobody read 3 partitions (those of a and b)",
        ),
        ({"stopped_members": ["a-id", "b-id"], "stopped_partitions": 4}, "Nobody read partitions"),
        ({"protocol": "range"}, "Nobody read partitions"),
        ({}, "Nobody read the partitions that moved"),
        ({"protocol": None, "completed": False}, "The group waited"),
        ({"members_before": None, "joined_ns": 15 * SECOND, "synced_ns": 15 * SECOND}, "Members waited"),
    ],
)
def test_a_long_rebalance_says_whose_partitions_nobody_read(values: dict[str, Any], words: str) -> None:
    rows = [rebalance(9, stopped_ns=6 * SECOND, **values)]
    (found,) = told("rebalance-long", rebalances=rows, members=[member("a"), member("b")])
    assert found.message.startswith(f"{words} for 6.00 s: ")


@pytest.mark.parametrize(
    ("before", "words"), [("range", "Nobody read partitions"), ("cooperative-sticky", "The group waited")]
)
def test_an_unfinished_rebalance_stops_all_only_if_the_members_are_eager(before: str, words: str) -> None:
    open_one = rebalance(9, protocol=None, completed=False, stopped_ns=6 * SECOND)
    (found,) = told("rebalance-long", rebalances=[rebalance(1, protocol=before), open_one])
    assert found.message.startswith(f"{words} for 6.00 s: ")


@pytest.mark.parametrize(("end_s", "count"), [(139, 0), (140, 0), (141, 1)])
def test_a_pause_of_the_capture_is_no_long_rebalance(end_s: int, count: int) -> None:
    row = rebalance(10, synced_ns=140 * SECOND, stopped_ns=130 * SECOND)
    context = JudgingContext(0, 600 * SECOND, silences=(((end_s - 120) * SECOND, end_s * SECOND),))
    needs: dict[Any, list[Row]] = {
        each: [row] if each.name == "rebalances" else [] for each in RULES["rebalance-long"].needs
    }
    judged = judge({"rebalance-long": RULES["rebalance-long"]}, needs, context)
    assert (len(judged.findings), len(judged.not_judged)) == (count, 1 - count)


def held(**values: Any) -> Row:
    """A member waits for the coordinator, and nobody knows who was in the group before."""
    usual = {"members_before": None, "missing": None, "trigger": "new-member", "stopped_ns": 20 * SECOND}
    ends = {"last_join_ns": 10 * SECOND, "joined_ns": 30 * SECOND, "generation": 2}
    return rebalance(10, **{**usual, **ends, **values})


def test_a_member_waits_for_one_that_was_gone_before_the_capture_began() -> None:
    (found,) = told("rebalance-long", rebalances=[held()])
    assert (found.severity, found.confidence) == (CRITICAL, LIKELY)
    assert found.message.startswith(
        "Members waited for 20.00 s: the rebalance of generation 2 took long. The coordinator waited 20.00 s "
        "after all known members had asked to join. The coordinator may have waited for a member that the "
        "capture does not show: one that"
    )
    assert told("rebalance-long", rebalances=[held(generation=None, completed=False)])
    assert told("rebalance-long", rebalances=[held(joined_ns=15 * SECOND)])
    for other in (
        {"generation": 1},  # a group that starts waits on purpose (group.initial.rebalance.delay.ms)
        {"joined_ns": 15 * SECOND - 1},
        {"types": ["consumer"]},
        {"last_join_ns": None},
        {"stopped_ns": 5 * SECOND - 1},
    ):
        assert not told("rebalance-long", rebalances=[held(**other)])


def test_the_start_of_a_group_is_no_long_rebalance() -> None:
    row = rebalance(9, stopped_ns=20 * SECOND, members_before=0)
    assert not told("rebalance-long", rebalances=[row])


@pytest.mark.parametrize(
    ("hold_ms", "missing", "count"), [(999, ["m"], 0), (1_000, ["m"], 1), (9_000, [], 0)]
)
def test_the_edge_of_a_missing_member(hold_ms: int, missing: list[str], count: int) -> None:
    row = rebalance(9, joined_ns=9 * SECOND + hold_ms * MS, missing=missing)
    found = told("rebalance-missing-member", rebalances=[row])
    assert len(found) == count
    assert all("more for m, which was gone" in each.message for each in found)


def test_several_missing_members_are_told_together() -> None:
    row = rebalance(9, joined_ns=10 * SECOND, missing=["m", "n"])
    (found,) = told("rebalance-missing-member", rebalances=[row])
    assert "more for m and n, which were gone" in found.message


@pytest.mark.parametrize(
    ("silent_s", "session_ms", "count"), [(9.9, 6_000, 0), (10, 6_000, 1), (14.9, 45_000, 0), (15, 45_000, 1)]
)
def test_where_the_capture_ends_first_a_silent_member_is_missing(
    silent_s: float, session_ms: int, count: int
) -> None:
    last_s = 100 - silent_s
    lost = member("m", 0, last_s, session_timeout_ms=session_ms)
    row = rebalance(
        last_s + 1, joined_ns=None, synced_ns=None, completed=False, stopped_ns=round((silent_s - 1) * SECOND)
    )
    row["missing"] = ["m-id"]
    told_of = told("rebalance-missing-member", rebalances=[row], members=[lost])
    assert len(told_of) == count
    assert not told("rebalance-missing-member", rebalances=[row])


def test_a_group_that_grows_or_is_shut_down_is_no_storm() -> None:
    grows = [rebalance(20 * each, trigger_client_id=f"c-{each}") for each in range(1, 8)]
    shrinks = [
        rebalance(200 + each, trigger="member-left", trigger_client_id=f"c-{each}") for each in range(8)
    ]
    members = [member(f"c-{each}") for each in range(8)]
    assert not told("rebalance-storm", rebalances=[*grows, *shrinks], members=members)


@pytest.mark.parametrize(("times", "count"), [(2, 0), (3, 1)])
def test_the_edge_of_a_storm(times: int, count: int) -> None:
    rows = [rebalance(20 + 10 * each, trigger="session-timeout") for each in range(times)]
    assert len(told("rebalance-storm", rebalances=rows)) == count


def test_findings_name_the_generations_that_they_are_about() -> None:
    rows = [rebalance(20 + each, trigger="session-timeout", generation=3 + each) for each in range(3)]
    (found,) = told("rebalance-storm", rebalances=rows)
    assert "3 times in 2.00 s (generations 3 to 5): each time because a member sent nothing" in found.message
    rows = [
        rebalance(20 + each, generation=each, members=3, protocol="range", stopped_ns=SECOND)
        for each in (1, 2, 5, 7, 8, 9)
    ]
    (found,) = told("eager-stop-the-world", rebalances=rows)
    assert found.message.startswith("In 6 rebalances (generations 1, 2, 5 and 1 more) all members")
    (found,) = told(
        "eager-stop-the-world", rebalances=[*rows[:3], *rows[3:] * 2, rows[0] | {"generation": None}]
    )
    assert found.message.startswith("In 10 rebalances all members"), "of one the number is not known"


def test_rebalances_far_apart_are_no_storm() -> None:
    rows = [rebalance(101 * each, trigger="session-timeout") for each in range(1, 5)]
    assert not told("rebalance-storm", rebalances=rows)


def step(kind: str, at_s: float, **values: Any) -> Row:
    row: Row = {
        "group": "g",
        "generation": 11,
        "member_id": "m",
        "client_id": "slow",
        "client": "10.0.0.1:5",
        "step": kind,
        "ns": round(at_s * SECOND),
        "exchange": 3,
        "after_ns": None,
        "revoking": None,
        "silent_ns": None,
        "detail": None,
    }
    return row | values


@pytest.mark.parametrize(("delay_s", "count"), [(4.9, 0), (5.1, 1)])
def test_the_edge_of_a_slow_member(delay_s: float, count: int) -> None:
    """Once, it must be five seconds."""
    row = rebalance(9, waited_for=["m"], join_phase_ns=round(delay_s * SECOND) + 100 * MS)
    steps = [step("notified", 9), step("joined", 9 + delay_s)]
    found = told("rebalance-slow-member", rebalances=[row], rebalance_steps=steps)
    assert [each.subject.client_id for each in found] == ["slow"] * count


def test_a_member_that_is_told_late_and_joins_at_once_is_not_slow() -> None:
    row = rebalance(9, waited_for=["m"], join_phase_ns=6 * SECOND)
    steps = [step("notified", 14.9), step("joined", 15)]
    assert not told("rebalance-slow-member", rebalances=[row], rebalance_steps=steps)


@pytest.mark.parametrize(("delay_s", "count"), [(0.9, 0), (1, 1)])
def test_a_member_that_was_told_to_join_and_did_not_is_slow_and_not_gone(delay_s: float, count: int) -> None:
    """Clients in Go that work long on records go on with heartbeats until they are put out."""
    row = rebalance(9, joined_ns=10 * SECOND, missing=["m"], waited_for=["m"])
    steps = [step("notified", 10 - delay_s), step("expired", 10, detail=NOT_JOINED)]
    found = told("rebalance-slow-member", rebalances=[row], rebalance_steps=steps)
    assert [each.subject.client_id for each in found] == ["slow"] * count
    assert all("did not within 1.00 s, though its connection stayed open" in each.message for each in found)
    assert not told("rebalance-missing-member", rebalances=[row], rebalance_steps=steps)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"detail": NOT_JOINED}, "which did not. Its connection stayed open: the process was busy, paused"),
        ({"detail": f"{NOT_JOINED}: {CONNECTION_ENDED} (rst)"}, "which was gone"),
        ({"detail": NOT_JOINED, "client": None}, "which was gone"),
    ],
)
def test_a_member_that_did_not_join_is_gone_only_if_its_connection_is(
    values: dict[str, Any], words: str
) -> None:
    row = rebalance(9, joined_ns=10 * SECOND, missing=["m"], waited_for=["m"])
    steps = [step("expired", 10, **values)]
    (found,) = told("rebalance-missing-member", rebalances=[row], rebalance_steps=steps)
    assert words in found.message
    assert not told("rebalance-slow-member", rebalances=[row], rebalance_steps=steps)


def stay(name: str, **values: Any) -> Row:
    row: Row = {
        "group": "g",
        "generation": 1,
        "member_id": f"{name}-id",
        "types": ["classic"],
        "protocol": "range",
        "assigned": 1,
        "heartbeats": 100,
        "heartbeat_p50_ns": 3 * SECOND,
        "heartbeat_max_ns": 3 * SECOND,
        "first_ns": 0,
        "last_ns": 500 * SECOND,
    }
    return row | values


@pytest.mark.parametrize(("gap_s", "count"), [(22, 0), (23, 1)])
def test_the_edge_of_a_heartbeat_gap(gap_s: int, count: int) -> None:
    stays = [stay("c", heartbeat_max_ns=gap_s * SECOND)]
    assert len(told("heartbeat-gap", stays=stays, members=[member("c")])) == count


@pytest.mark.parametrize(("end_s", "count"), [(500, 0), (501, 1)])
def test_a_pause_of_the_capture_is_no_gap_of_heartbeats(end_s: int, count: int) -> None:
    (stays, members) = ([stay("c", heartbeat_max_ns=130 * SECOND)], [member("c")])
    context = JudgingContext(0, 600 * SECOND, silences=((300 * SECOND, end_s * SECOND),))
    rows = {"stays": stays, "members": members}
    needs = {each: rows[each.name] for each in RULES["heartbeat-gap"].needs}
    judged = judge({"heartbeat-gap": RULES["heartbeat-gap"]}, needs, context)
    assert (len(judged.findings), len(judged.not_judged)) == (count, 1 - count)


@pytest.mark.parametrize(("every_s", "count"), [(15, 0), (16, 1)])
def test_the_edge_of_the_heartbeat_interval(every_s: int, count: int) -> None:
    stays = [stay("c", heartbeat_p50_ns=every_s * SECOND)]
    assert len(told("heartbeat-interval-too-long", stays=stays, members=[member("c")])) == count


@pytest.mark.parametrize(("counts", "found"), [((3, 2), 0), ((4, 2), 1), ((40, 30), 0), ((40, 20), 1)])
def test_the_edge_of_skew(counts: tuple[int, ...], found: int) -> None:
    stays = [stay(f"c{at}", assigned=count) for at, count in enumerate(counts)]
    members = [member(f"c{at}") for at in range(len(counts))]
    assert len(told("assignment-skew", stays=stays, members=members)) == found


def test_a_generation_that_the_next_one_overtook_is_not_judged() -> None:
    """Of groups of heartbeats the next may begin before the last member hears of this one."""
    stays = [stay("c0", assigned=3), stay("c1", assigned=0)]
    members = [member("c0"), member("c1")]
    after = rebalance(-1, generation=stays[0]["generation"] + 1)
    assert told("assignment-skew", stays=stays, members=members)
    assert not told("assignment-skew", stays=stays, members=members, rebalances=[after])


def test_members_that_read_different_topics_are_not_compared() -> None:
    members = [member("c0"), member("c1", subscribed=["returns"])]
    assert not told("assignment-skew", stays=[stay("c0", assigned=9), stay("c1")], members=members)


@pytest.mark.parametrize(("lives", "found"), [(4, 0), (5, 1)])
def test_the_edge_of_churn(lives: int, found: int) -> None:
    members = [
        member("c", 10 * at, 10 * at + 8, member_id=f"m{at}", left="LeaveGroup") for at in range(lives)
    ]
    assert len(told("member-id-churn", members=members)) == found


def test_members_of_one_name_that_start_and_stop_together_are_no_churn() -> None:
    members = [member("rdkafka", 0, 60 + at, member_id=f"m{at}", left="LeaveGroup") for at in range(9)]
    assert not told("member-id-churn", members=members)


def test_members_that_share_a_topic_do_not_differ() -> None:
    both = [member("a", subscribed=["x", "y"]), member("b", subscribed=["y"])]
    assert not told("subscriptions-differ", members=both)
    (found,) = told("subscriptions-differ", members=[*both, member("c", subscribed=["z"])])
    assert found.subject.group == "g"


@pytest.mark.parametrize(("held_s", "found"), [(9, 0), (10, 1)])
def test_the_edge_of_slow_giving_back(held_s: int, found: int) -> None:
    steps = [step("assigned", 1, revoking=2), step("revoked", 1 + held_s)]
    assert len(told("reconcile-slow", rebalance_steps=steps)) == found
    lossy = JudgingContext(first_ns=0, last_ns=600 * SECOND, gap_bytes=1)
    rule = RULES["reconcile-slow"]
    facts = {need: steps if need is RebalanceSteps else [] for need in rule.needs}
    assert not judge({rule.id: rule}, facts, lossy).findings, "what says so may be lost"


def test_assignors_that_differ_for_long() -> None:
    members = [member("a"), member("b", offers=["cooperative-sticky", "range"])]
    assert len(told("assignor-mismatch", members=members)) == 1
    assert not told("assignor-mismatch", members=[members[0], member("b", 0, 59, offers=["sticky"])])


def error(name: str, api: str, **values: Any) -> Row:
    row: Row = {
        "error": name,
        "error_class": "retriable",
        "api": api,
        "broker": "10.0.0.2:9092",
        "client": "10.0.0.1",
        "client_id": "c",
        "group": "g",
        "transactional_id": None,
        "topic": None,
        "partition": None,
        "count": 1,
        "first_exchange": 1,
        "last_exchange": 1,
        "first_ns": SECOND,
        "last_ns": SECOND,
    }
    return row | values


def test_a_coordinator_that_moved() -> None:
    assert len(told("coordinator-moved", errors=[error("NOT_COORDINATOR", "Heartbeat")])) == 1
    loading = error("COORDINATOR_LOAD_IN_PROGRESS", "JoinGroup", last_ns=5 * SECOND)
    assert not told("coordinator-moved", errors=[loading])
    (slow,) = told("coordinator-moved", errors=[loading | {"last_ns": 6 * SECOND}])
    assert slow.message.startswith("No broker was ready")


def test_a_commit_is_refused_once_for_all_its_partitions() -> None:
    def said(*rows: Row) -> str:
        (found,) = told("coordinator-moved", errors=list(rows), members=[member("c", first_s=-9)])
        return found.message.removeprefix("The coordinator of the group changed. ")

    commit = [error("NOT_COORDINATOR", "OffsetCommit", topic="t", partition=each) for each in range(3)]
    heartbeat = error("NOT_COORDINATOR", "Heartbeat")
    assert said(*commit) == "1 commit of 3 partitions was refused by 10.0.0.2:9092."
    assert said(heartbeat | {"count": 2}) == "Members were refused 2 times by 10.0.0.2:9092."
    assert said(heartbeat, *commit) == (
        "Members were refused 1 time and 1 commit of 3 partitions was refused by 10.0.0.2:9092."
    )
    again = [row | {"count": 2, "last_exchange": 2} for row in commit]
    assert said(*again) == "2 commits of 3 partitions were refused by 10.0.0.2:9092."
    later = [row | {"first_exchange": each} for each, row in enumerate(commit)]
    assert said(*later) == "Commits of 3 partitions were refused by 10.0.0.2:9092."


@pytest.mark.parametrize(
    ("values", "severity"),
    [
        ({}, WARNING),
        ({"last_ns": 31 * SECOND - 1}, NOTICE),
        ({"error": "COORDINATOR_LOAD_IN_PROGRESS"}, NOTICE),
        ({"api": "JoinGroup"}, NOTICE),
    ],
)
def test_a_group_that_never_gets_a_coordinator_is_worth_a_warning(
    values: dict[str, Any], severity: str
) -> None:
    """The topic of coordinators wants three copies, and the cluster has one broker."""
    never = error("COORDINATOR_NOT_AVAILABLE", "FindCoordinator", last_ns=31 * SECOND, count=6) | values
    (found,) = told("coordinator-moved", errors=[never])
    assert found.severity == severity
    assert ("could not be made" in found.cause) == (severity == WARNING)
    (served,) = told("coordinator-moved", errors=[never], members=[member("c")])
    assert served.severity == NOTICE


def test_two_refusals_far_apart_are_not_one_time_without_a_coordinator() -> None:
    refused = error("COORDINATOR_NOT_AVAILABLE", "FindCoordinator", last_ns=31 * SECOND, count=6)
    assert told("coordinator-moved", errors=[refused])
    assert not told("coordinator-moved", errors=[refused | {"count": 5}])
    assert not told("coordinator-moved", errors=[refused | {"last_ns": 3_600 * SECOND}])
    later = refused | {"client_id": "d", "first_ns": 3_600 * SECOND, "last_ns": 3_620 * SECOND}
    (found,) = told("coordinator-moved", errors=[refused | {"last_ns": 11 * SECOND}, later])
    assert (found.measure, found.severity) == (20, NOTICE), "each of two clients waited for seconds only"


def test_a_short_time_without_a_coordinator_is_told_of_one_whose_topic_cannot_be_made() -> None:
    never = error("COORDINATOR_NOT_AVAILABLE", "FindCoordinator", last_ns=6 * SECOND, count=6)
    unmade = error("INVALID_REPLICATION_FACTOR", "CreateTopics", group=None, topic="__consumer_offsets")
    (found,) = told("coordinator-moved", errors=[never, unmade])
    assert found.severity == WARNING
    assert "The cluster cannot make __consumer_offsets (INVALID_REPLICATION_FACTOR)." in found.message
    for other in ({"topic": "__transaction_state"}, {"error": "NOT_CONTROLLER"}, {"api": "Metadata"}):
        (found,) = told("coordinator-moved", errors=[never, unmade | other])
        assert (found.severity, "cannot make" in found.message) == (NOTICE, False)


def test_a_time_without_a_coordinator_begins_with_what_is_ordinary_still() -> None:
    first = error("COORDINATOR_NOT_AVAILABLE", "FindCoordinator", last_ns=5 * SECOND, count=4)
    later = first | {"first_ns": 5 * SECOND, "last_ns": 7 * SECOND, "count": 3}
    (found,) = told("coordinator-moved", errors=[first, later])
    assert (found.measure, found.count) == (6, 7)
    assert not told("coordinator-moved", errors=[first, later | {"client_id": "d"}])


def test_so_is_a_transactional_id() -> None:
    never = error("COORDINATOR_NOT_AVAILABLE", "FindCoordinator", last_ns=31 * SECOND, group=None, count=6)
    assert not told("coordinator-moved", errors=[never])
    (found,) = told("coordinator-moved", errors=[never | {"transactional_id": "pay"}])
    assert (found.subject.transactional_id, found.subject.group, found.severity) == ("pay", None, WARNING)
    assert "coordinator of the transactional id pay" in found.message
    assert found.filter == 'transactional_id == "pay"'


@pytest.mark.parametrize(
    ("gaps", "types", "found"), [(0, "consumer", 1), (9, "consumer", 0), (9, "classic", 1)]
)
def test_a_rebalance_whose_end_may_be_lost_is_not_unfinished(gaps: int, types: str, found: int) -> None:
    open_one = rebalance(9, types=[types], completed=False, stopped_ns=10 * SECOND)
    needs = {each: [open_one] if each.name == "rebalances" else [] for each in RULES["rebalance-long"].needs}
    context = JudgingContext(first_ns=0, last_ns=600 * SECOND, gap_bytes=gaps)
    assert len(judge({"rebalance-long": RULES["rebalance-long"]}, needs, context).findings) == found


@pytest.mark.parametrize(
    ("responses", "group", "completed", "found"),
    [(88, "g", False, 0), (89, "g", False, 1), (88, "g", True, 1), (88, "other", False, 1)],
)
def test_a_rebalance_of_which_sides_were_not_captured_is_not_unfinished(
    responses: int, group: str, completed: bool, found: int
) -> None:
    row = rebalance(9, types=["classic"], completed=completed, stopped_ns=10 * SECOND)
    seen = {"client": "10.0.0.1:9", "requests": 100, "responses": responses}
    known = {"rebalances": [row], "members": [member("m", group=group)], "connections": [seen]}
    assert len(told("rebalance-long", **known)) == found


@pytest.mark.parametrize(("gaps", "silent_s", "found"), [(0, 5.9, 1), (9, 5.9, 0), (9, 6.0, 1)])
def test_where_bytes_are_missing_a_member_may_have_left(gaps: int, silent_s: float, found: int) -> None:
    rule = RULES["session-timeout"]
    expired = step("expired", 60, member_id="m-id", silent_ns=round(silent_s * SECOND))
    given = {"rebalance_steps": [expired], "members": [member("m", session_timeout_ms=6_000)]}
    rows = {need: given.get(need.name, []) for need in rule.needs}
    context = JudgingContext(first_ns=0, last_ns=600 * SECOND, gap_bytes=gaps)
    assert len(judge({rule.id: rule}, rows, context).findings) == found


@pytest.mark.parametrize(
    ("detail", "lossy", "silent_s", "found"),
    [
        (f"{CONNECTION_ENDED} (rst)", "10.0.0.1:5000", 120, 0),
        (f"{CONNECTION_ENDED} (rst)", "10.0.0.2:5000", 120, 1),  # another's bytes are missing
        (CONNECTION_OPEN, "10.0.0.1:5000", 120, 1),
        (None, "10.0.0.1:5000", 120, 1),
        (f"{CONNECTION_ENDED} (rst)", None, 120, 0),  # nothing was captured for a while
        (f"{CONNECTION_ENDED} (rst)", None, 45, 1),
    ],
)
def test_nor_is_a_session_known_whose_length_nobody_tells(
    detail: str | None, lossy: str | None, silent_s: int, found: int
) -> None:
    rule = RULES["session-timeout"]
    silent = {"member_id": "m-id", "silent_ns": silent_s * SECOND, "client": "10.0.0.1:5000"}
    expired = step("expired", 200, detail=detail, **silent)
    given = {"rebalance_steps": [expired], "connections": [{"client": lossy, "gap_bytes": 9}]}
    rows = {need: given.get(need.name, []) for need in rule.needs}
    silences = ((90 * SECOND, 150 * SECOND),) if lossy is None else ()
    context = JudgingContext(first_ns=0, last_ns=600 * SECOND, gap_bytes=9, silences=silences)
    judged = judge({rule.id: rule}, rows, context)
    assert (len(judged.findings), bool(judged.not_judged)) == (found, not found)


def test_where_the_clock_was_set_nobody_was_silent_for_so_long() -> None:
    silent = {"member_id": "m-id", "silent_ns": 3_600 * SECOND, "client": "10.0.0.1:5000"}
    rows = {
        RebalanceSteps: [
            step("expired", 3_700, **silent),
            step("left", 3_650, detail=DID_NOT_POLL, **silent),
        ],
        Members: [member("m")],
    }
    whole = JudgingContext(first_ns=0, last_ns=4_000 * SECOND)
    wrong = ((200 * SECOND, 3_600 * SECOND),)
    for id in ("session-timeout", "poll-interval-exceeded"):
        assert made.said(id, rows, context=whole)
        for context in (whole._replace(silences=wrong), whole._replace(set_back=wrong)):
            assert not made.said(id, rows, context=context)
            assert made.unjudged(id, rows, context=context) == [SLEPT]
    known = {**rows, RebalanceSteps: [step("left", 3_650, member_id="m-id", detail=POLL_TIMEOUT)]}
    assert made.said("poll-interval-exceeded", known, context=whole._replace(silences=wrong))


@pytest.mark.parametrize(("joined_s", "found"), [(0.5, 1), (3, 0)])
def test_a_coordinator_that_is_made_at_first_use_has_not_moved(joined_s: float, found: int) -> None:
    refused = [error("NOT_COORDINATOR", "JoinGroup", first_ns=SECOND, last_ns=2 * SECOND)]
    begun = [rebalance(joined_s, joined_ns=round(joined_s * SECOND))]
    new = member("new", 3.0)
    assert len(told("coordinator-moved", errors=refused, rebalances=begun, members=[new])) == found
    assert len(told("coordinator-moved", errors=refused, members=[member("old")])) == 0
    later = [refused[0] | {"first_ns": 2 * SECOND}]
    assert len(told("coordinator-moved", errors=later, members=[member("old")])) == 1


@pytest.mark.parametrize(("stopped_s", "named"), [(12, True), (9, False)])
def test_a_long_stop_follows_from_the_member_that_was_lost_and_not_from_restarts(
    stopped_s: int, named: bool
) -> None:
    """Restarts at the same time have nothing to do with it if most of it passed before anybody noticed."""
    lost = rebalance(30, trigger="session-timeout", stopped_ns=stopped_s * SECOND, members_before=2)
    lost |= {
        "trigger_client_id": "slow",
        "joined_ns": 34 * SECOND,
        "assigned_ns": 35 * SECOND,
        "synced_ns": 35 * SECOND,
    }
    expired = step("expired", 30, silent_ns=11 * SECOND)
    restarts = [
        member("one", 1, 20, client_id="one", left="LeaveGroup", left_ns=20 * SECOND),
        member("two", 21, 90, client_id="one"),
        member("three", 1, 40, client_id="two", left="LeaveGroup", left_ns=40 * SECOND),
        member("four", 41, 90, client_id="two"),
    ]
    rules = {id: RULES[id] for id in ("rebalance-long", "session-timeout", "rolling-restart")}
    facts: dict[Any, list[Row]] = {need: [] for each in rules.values() for need in each.needs}
    facts |= {Rebalances: [lost], RebalanceSteps: [expired], Members: restarts}
    found = judge(rules, facts, JudgingContext(first_ns=0, last_ns=600 * SECOND)).findings
    by_id = {each.id: each for each in found}
    assert by_id.keys() == rules.keys()
    cause = "session-timeout" if named else "rolling-restart"
    assert by_id["rebalance-long"].because == by_id[cause].key


@pytest.mark.parametrize(("count", "found"), [(2, 0), (3, 1)])
def test_the_edge_of_being_refused(count: int, found: int) -> None:
    rows = [error("GROUP_MAX_SIZE_REACHED", "JoinGroup", count=count)]
    assert len(told("group-refused", errors=rows)) == found


def refused(until_s: float = 1, **values: Any) -> Row:
    """The client of :func:`error`, that was never a member."""
    return member("c", 0.5, until_s, **{"first_generation": None, **values})


def test_who_gives_up_at_the_first_refusal_is_told_and_why() -> None:
    rows = [error("INVALID_SESSION_TIMEOUT", "JoinGroup")]
    (found,) = told("group-refused", errors=rows, members=[refused(session_timeout_ms=1_000)])
    assert found.message == (
        "c asked to join and was refused: the broker does not allow its session timeout of 1.00 s "
        "(INVALID_SESSION_TIMEOUT)."
    )
    assert not told("group-refused", errors=rows, members=[refused(2)])  # it goes on
    assert not told("group-refused", errors=rows, members=[refused(first_generation=3)])


def test_a_streams_application_with_another_topology_is_refused() -> None:
    name = "app-StreamThread-1-consumer"
    wrong = {"client_id": name, "count": 3, "last_ns": 9 * SECOND}
    rows = [error("INVALID_REQUEST", "StreamsGroupHeartbeat", **wrong)]
    (found,) = told("group-refused", errors=rows)
    assert found.message == (
        f"{name} asked to join 3 times and was refused each time: the coordinator does not accept what it "
        "tells of itself (INVALID_REQUEST)."
    )
    assert found.cause.startswith("A streams group keeps the topology")
    assert "a new application.id" in found.fix
    assert found.client_ids == (name, "app-StreamThread-1-producer")
    (other,) = told("group-refused", errors=[error("INVALID_REQUEST", "JoinGroup", count=3)])
    assert not other.cause.startswith("A streams group")
    assert other.client_ids == ()
    assert not told("group-refused", errors=[row | {"count": 2} for row in rows])


def test_what_follows_from_another_topology_is_told_below_it() -> None:
    """The threads are replaced for ever, and ask for a topic that none of them can make."""
    found = judged_file(CAPTURES / "incidents" / "streams-topology-changed.pcap.gz").findings
    severe = [each for each in found if each.severity in (CRITICAL, WARNING)]
    refused = {each.key for each in severe if each.id == "group-refused"}
    assert len(refused) == 2
    assert {each.id for each in severe if each.because in refused} >= {
        "connection-churn",
        "unknown-topic-loop",
    }
    assert not [each.id for each in severe if each.because is None and each.id != "group-refused"]


def test_a_member_that_a_full_group_puts_out_is_told_if_it_goes() -> None:
    rows = [error("GROUP_MAX_SIZE_REACHED", "JoinGroup")]
    was = {"first_generation": 1, "last_generation": 1}
    assert told("group-refused", errors=rows, members=[refused(**was)])
    assert told("group-refused", errors=rows, members=[refused(2, **was, left="LeaveGroup")])
    assert not told("group-refused", errors=rows, members=[refused(2, **was)])  # it is in


@pytest.mark.parametrize(
    ("holder", "found"),
    [
        ({}, 1),
        ({"last_s": 1}, 0),  # it died, and its session had not ended
        ({"left_ns": 3 * SECOND}, 0),
        ({"left_ns": 60 * SECOND}, 1),
        ({"instance_id": "pod-1"}, 0),
        ({"first_generation": None}, 0),
    ],
)
def test_one_refusal_shows_two_processes_if_the_other_lives_on(holder: dict[str, Any], found: int) -> None:
    rows = [error("UNRELEASED_INSTANCE_ID", "ConsumerGroupHeartbeat")]
    both = [refused(instance_id="pod-0"), member("old", **{"instance_id": "pod-0", **holder})]
    told_of = told("static-member-conflict", errors=rows, members=both)
    assert len(told_of) == found
    assert all("The one that came later was refused 1 time" in each.message for each in told_of)
    assert len(told("static-member-conflict", errors=[rows[0] | {"count": 3}])) == 1


@pytest.mark.parametrize(("last_s", "found"), [(0.5, 0), (600, 1)])
def test_a_restart_that_comes_before_the_session_has_ended_is_no_second_process(
    last_s: float, found: int
) -> None:
    rows = [error("UNRELEASED_INSTANCE_ID", "ConsumerGroupHeartbeat") | {"count": 9}]
    both = [refused(instance_id="pod-0"), member("old", instance_id="pod-0", last_s=last_s)]
    assert len(told("static-member-conflict", errors=rows, members=both)) == found


def test_a_commit_of_who_was_never_a_member_is_no_loss() -> None:
    rows = [error("UNKNOWN_MEMBER_ID", "OffsetCommit")]
    assert not told("commit-after-rebalance", errors=rows)
    (found,) = told("commit-after-rebalance", errors=rows, members=[member("c")])
    assert "it was no longer a member of the group" in found.message


def test_a_commit_in_an_old_generation_does_not_show_that_its_member_is_none_any_more() -> None:
    rows = [error("ILLEGAL_GENERATION", "TxnOffsetCommit")]
    (found,) = told("commit-after-rebalance", errors=rows, members=[member("c")])
    assert "the group had rebalanced since" in found.message
    assert "no longer a member" not in found.message


def test_severities_are_the_catalogues() -> None:
    severities = {id: RULES[id].severity for id in GROUPS}
    assert {id for id, each in severities.items() if each == CRITICAL} == {
        *("rebalance-storm", "rebalance-long", "poll-interval-exceeded", "session-timeout"),
        *("static-member-conflict", "share-poison", "double-ownership"),
    }
    assert {id for id, each in severities.items() if each == INFO} == {
        "idle-members",
        "group-mixed-protocols",
    }
    assert {id for id, each in severities.items() if each == NOTICE} == {
        *("heartbeat-gap", "heartbeat-interval-too-long", "eager-stop-the-world", "assignment-skew"),
        *("coordinator-moved", "rolling-restart", "share-redelivery", "share-rejected"),
        *("streams-followup-rebalance", "connect-delayed-rebalance", "records-read-twice"),
        "connect-config-behind",
    }
    assert {id for id, each in severities.items() if each == WARNING} == {
        *("rebalance-missing-member", "rebalance-slow-member", "assignor-mismatch", "member-id-churn"),
        *("commit-after-rebalance", "member-epoch-fenced", "reconcile-slow", "group-refused"),
        *("subscriptions-differ", "share-lock-expired", "share-ack-refused", "streams-restoring"),
        *("streams-status", "streams-corrupted", "connect-zombie"),
    }


def test_a_lone_member_that_goes_and_comes_again_and_again_is_a_storm() -> None:
    members = [member("c", 10 * at, 10 * at + 8, member_id=f"m{at}", left="LeaveGroup") for at in range(4)]
    rows = [
        rebalance(10 * at, trigger_client_id="c", trigger_member=f"m{at}", members_before=0)
        for at in range(4)
    ]
    (found,) = told("rebalance-storm", rebalances=rows, members=members)
    assert found.count == 3  # not its first join


def restarted(name: str, at_s: float, ids: tuple[str, str]) -> list[Row]:
    """A member that left at a time, and the one that took its place five seconds later."""
    old = member(name, 0, at_s, member_id=ids[0], left="LeaveGroup", left_ns=round(at_s * SECOND))
    return [old, member(name, at_s + 5, 600, member_id=ids[1])]


def test_members_of_one_name_that_are_restarted_in_turn() -> None:
    members = [row for at in range(3) for row in restarted("rdkafka", 60 + 20 * at, (f"a{at}", f"b{at}"))]
    (found,) = told("rolling-restart", members=members)
    assert found.count == 3
    rows = [
        rebalance(60 + 20 * at + late, trigger=word, trigger_client_id="rdkafka", trigger_member=f"{id}{at}")
        for at in range(3)
        for late, word, id in ((0, "member-left", "a"), (5, "new-member", "b"))
    ]
    assert not told("rebalance-storm", rebalances=rows, members=members)


def test_two_that_are_restarted_at_once_are_not_restarted_in_turn() -> None:
    members = [*restarted("a", 60, ("a0", "a1")), *restarted("b", 61, ("b0", "b1"))]
    assert not told("rolling-restart", members=members)


def test_a_client_that_left_before_and_after_it_was_known_is_told_once() -> None:
    steps = [step("left", at, detail=POLL_TIMEOUT, member_id=f"m-{at}") for at in (30, 50)]
    known = [member("slow", rebalance_timeout_ms=10_000, member_id="m-50")]
    (found,) = told("poll-interval-exceeded", rebalance_steps=steps, members=known)
    assert found.message.startswith(
        "slow left the group 2 times because it did not ask for records within 10.00 s"
    )
    nameless = [{**each, "client_id": None} for each in steps]
    two = told("poll-interval-exceeded", rebalance_steps=nameless)
    assert [each.subject.member_id for each in two] == ["m-30", "m-50"]
    assert len({each.key for each in two}) == 2


def test_a_member_that_gives_no_reason_is_likely_to_have_exceeded_its_poll_interval() -> None:
    steps = [step("left", 30, detail=DID_NOT_POLL)]
    (found,) = told("poll-interval-exceeded", rebalance_steps=steps)
    assert (found.confidence, found.subject.client_id) == ("likely", "slow")
    assert not told("poll-interval-exceeded", rebalance_steps=[step("left", 30)])
    known = [member("slow", rebalance_timeout_ms=10_000, member_id=steps[0]["member_id"])]
    (found,) = told("poll-interval-exceeded", rebalance_steps=steps, members=known)
    assert "did not ask for records within 10.00 s" in found.message
    (found,) = told(
        "poll-interval-exceeded", rebalance_steps=[step("left", 30, detail=DID_NOT_FETCH)], members=known
    )
    assert "did not ask for records in time" in found.message
