from __future__ import annotations

from kdissect.analysis.fold import Row
from kdissect.present.statistics import STATISTICS
from kdissect.tui.lists.groups import Timeline, figures, state

GROUP = [column.name for column in STATISTICS["groups"].columns]


def member(name: str, first: int, last: int, **more: object) -> Row:
    nothing: Row = {
        "instance_id": None,
        "client_id": None,
        "client": None,
        "left": None,
        "leave_reason": None,
    }
    given: Row = {
        "group": "g",
        "member_id": name,
        "heartbeats": 0,
        "commits": 0,
        "errors": 0,
        "left_ns": None,
    }
    return {**nothing, **given, "first_ns": first, "last_ns": last, **more}


def stay(name: str, generation: int, **more: object) -> Row:
    names = ("join_ns", "sync_ns", "duration_ns", "first_ns", "last_ns", "assigned", "protocol", "reason")
    nothing: Row = dict.fromkeys(names)
    return {**nothing, "group": "g", "member_id": name, "generation": generation, **more}


def lines(members: list[Row], stays: list[Row], width: int = 60) -> list[str]:
    timeline = Timeline(str)
    timeline.show("g", members, stays)
    return [timeline.cells(row, width)[-1] for row in range(len(timeline))]


def test_a_line_shows_when_a_member_was_there() -> None:
    first, second = lines([member("a", 0, 1000), member("b", 500, 1000)], [])
    assert set(first) == {"─"}
    assert second.count(" ") in (len(first) // 2, len(first) // 2 - 1)
    assert second.endswith("─")


def test_joins_generations_and_leaving_stand_in_the_line() -> None:
    stays = [
        stay("a", 12, join_ns=0, sync_ns=250, first_ns=250, last_ns=600),
        stay("a", 13, first_ns=600, last_ns=900),
    ]
    (line,) = lines([member("a", 0, 900, left="LeaveGroup", left_ns=1000)], stays)
    assert line.startswith("███")
    assert line.index("12") < line.index("13") < line.index("╳")
    assert line.index("12") == line.rindex("█") + 1
    assert line.endswith("╳")


def test_times_at_which_nothing_passes_and_numbers_of_any_length_fit() -> None:
    (line,) = lines([member("a", 5, 5)], [stay("a", 2_147_483_647, first_ns=5, last_ns=5)], width=20)
    assert line == "─  "
    assert lines([], []) == []


def test_only_the_group_that_was_asked_for() -> None:
    other = {**member("x", 0, 10), "group": "h"}
    assert len(lines([member("a", 0, 10), other], [])) == 1


def test_the_state_says_only_what_was_seen() -> None:
    group: Row = {"rebalances": 1, "rebalance_last_ns": None, "members": 2, "leaves": 0}
    assert state(group) == "joining"
    assert state({**group, "rebalance_last_ns": 5}) == "stable"
    assert state({**group, "rebalance_last_ns": 5, "leaves": 2}) == "all left"
    assert state({**group, "rebalances": 0, "members": 0}) == "no members"


def test_the_name_of_a_group_keeps_its_room_and_other_columns_go() -> None:
    name = "payments-settlement-reconciliation-consumers-eu"
    row: Row = dict.fromkeys((*GROUP, "first_ns", "last_ns"))
    row |= dict.fromkeys(("members", "leaves", "heartbeats", "commits", "committed_partitions", "errors"), 1)
    row |= {"group": name, "types": ["consumer"], "protocols": ["range"]}
    made = figures()
    made.show([row])
    assert made.cells(0, 78)[0] == name
    assert made.headings(78)[0].width >= len(name)
    assert "Rebalances" not in [heading.title for heading in made.headings(200)]  # nothing stands there
