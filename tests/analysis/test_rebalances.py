"""Rebalances of real groups, against the log of their coordinator; and with packets missing."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kdissect.analysis.fold import Row
from kdissect.exchange import Exchange
from tests.analysis.folds import fold, rows_of
from tests.analysis.lossy import WAYS, taken_away

INCIDENTS = Path(__file__).parents[2] / "captures" / "incidents"
MILLISECOND = 1_000_000
NEAR = 50 * MILLISECOND


def path_of(case: str) -> Path:
    return INCIDENTS / f"{case}.pcapng.gz"


@cache
def table(text: str, case: str) -> tuple[Row, ...]:
    """A table of an incident."""
    return tuple(fold(text, taken_away(path_of(case), "whole")).result())


def told(case: str) -> list[tuple[Any, ...]]:
    names = ("generation", "trigger", "trigger_client_id", "members", "completed")
    return [tuple(row[name] for name in names) for row in table("rebalances", case)]


def test_a_member_that_exceeds_its_poll_interval() -> None:
    """As the coordinator's log has it: six generations, begun by joins and by leaves of mailer-1."""
    assert told("max-poll-exceeded") == [
        (1, "new-member", "mailer-1", 1, True),
        (2, "new-member", "mailer-2", 1, True),
        (3, "new-member", "mailer-1", 2, True),
        (4, "poll-interval", "mailer-1", 1, True),
        (5, "new-member", "mailer-1", 2, True),
        (6, "member-left", "mailer-1", 1, True),
    ]
    row = table("rebalances", "max-poll-exceeded")[3]
    assert row["trigger_reason"] == "consumer poll timeout has expired."
    assert row["trigger_confidence"] == "certain"
    assert row["join_phase_ns"] / MILLISECOND == pytest.approx(2_962, abs=50)


def test_a_member_that_was_killed_is_named_by_its_silence() -> None:
    *_, row = table("rebalances", "member-killed")
    assert (row["generation"], row["trigger"], row["trigger_client_id"]) == (3, "session-timeout", "fraud-2")
    assert row["trigger_confidence"] == "likely"
    assert (row["members_before"], row["members"], row["left"], row["missing"]) == (3, 2, 1, [])


def test_a_static_member_that_comes_back_begins_no_rebalance() -> None:
    assert [row[0] for row in told("rolling-restart-static")] == [1]
    assert [row[0] for row in told("fenced-instance-id")] == [1]


def test_who_was_waited_for_and_never_came() -> None:
    rows = table("rebalances", "streams-thread-replaced")
    assert [row["trigger"] for row in rows] == ["new-member"] * 4
    for row in rows[1:]:
        (missing,) = row["missing"]
        assert missing.startswith("st-StreamThread")
        assert row["joined_ns"] - row["last_join_ns"] > 7_000 * MILLISECOND


def test_a_silent_member_of_a_group_of_epochs() -> None:
    rows = [row for row in table("rebalances", "kip848-member-silent") if row["trigger"] != "member-left"]
    assert [(row["trigger"], row["trigger_client_id"]) for row in rows] == [
        ("new-member", "feeder-c-2"),
        ("new-member", "feeder-c-1"),
        ("session-timeout", "feeder-c-2"),
        ("new-member", "feeder-c-2"),
    ]
    assert [row["generation"] for row in rows] == [2, 3, 4, 5]
    assert all(row["completed"] for row in rows)


def test_one_that_was_not_finished() -> None:
    """The coordinator waited for inst-0, which had stopped without leaving; then an administrator removed
    members."""
    rows = [row for row in rows_of("rebalances", "java43-groups") if row["group"] == "java43-groups-coop"]
    *_, row, last = rows
    assert (last["generation"], last["trigger"], last["completed"]) == (None, "member-left", False)
    assert last["trigger_reason"] == "member was removed by an admin"
    assert (row["generation"], row["trigger"], row["trigger_client_id"]) == (6, "enforced", "coop1")
    assert (row["completed"], row["trigger_reason"]) == (False, "rebalance enforced by user")
    assert row["stopped_ns"] > 9_000 * MILLISECOND
    revoked = [row for row in rows if row["trigger"] == "followup-revoke"]
    assert [row["generation"] for row in revoked] == [3, 5]


def test_steps_follow_each_other() -> None:
    steps = [row for row in table("rebalance_steps", "member-killed") if row["generation"] == 3]
    assert [(row["client_id"], row["step"]) for row in steps if row["client_id"] == "fraud-1"] == [
        ("fraud-1", "notified"),
        ("fraud-1", "joined"),
        ("fraud-1", "assigned"),
        ("fraud-1", "synced"),
        ("fraud-1", "fetched"),
    ]
    (expired,) = [row for row in steps if row["step"] == "expired"]
    assert expired["client_id"] == "fraud-2"


def test_partitions_that_moved() -> None:
    rows = [row for row in table("assignments", "member-killed") if row["generation"] == 3]
    gained = [row for row in rows if row["change"] == "gained"]
    kept = [row for row in rows if row["change"] == "kept"]
    assert (len(gained) + len(kept), {row["topic"] for row in rows}) == (6, {"payments"})


# -- what is missing is not invented ------------------------------------------------------------------

EXACT: tuple[str, ...] = (
    "protocol",
    "trigger",
    "trigger_member",
    "trigger_client_id",
    "trigger_reason",
    "members",
)
EXACT += ("members_before", "joined", "left", "partitions", "moved", "revoked", "missing", "completed")
TIMES = ("begin_ns", "last_join_ns", "joined_ns", "assigned_ns")
LOSSY = ("member-killed", "max-poll-exceeded", "kip848-member-silent", "streams-thread-replaced")


def assert_true(rows: list[Row], case: str) -> None:
    """Every row is one of the whole capture, and nothing in it is wrong; null says nothing."""
    whole = {(row["group"], row["generation"]): row for row in table("rebalances", case)}
    for row in rows:
        if row["generation"] is None:
            continue
        truth = whole[row["group"], row["generation"]]
        for name in EXACT:
            assert row[name] in (None, truth[name]), (row["generation"], name)
        for name in TIMES:
            within = 3_200 * MILLISECOND if row["trigger"] == "session-timeout" else NEAR
            if row[name] is not None:
                assert abs(row[name] - truth[name]) <= within, (row["generation"], name)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", LOSSY)
def test_missing_packets_make_no_row_wrong(case: str, way: str) -> None:
    assert_true(fold("rebalances", taken_away(path_of(case), way)).result(), case)


@pytest.mark.parametrize("case", LOSSY)
def test_what_begins_later_is_told_where_the_beginning_is_missing(case: str) -> None:
    events = taken_away(path_of(case), "no first third")
    begin = min(event.messages[0].frame.first_ns for event in events if isinstance(event, Exchange))
    rows = fold("rebalances", events).result()
    later = [row for row in table("rebalances", case) if row["begin_ns"] > begin + NEAR]
    assert {row["generation"] for row in later} <= {row["generation"] for row in rows if row["trigger"]}
