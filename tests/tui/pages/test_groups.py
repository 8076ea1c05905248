from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kdissect.analysis.fold import Row
from kdissect.present.form import Clock
from kdissect.present.statistics import STATISTICS
from kdissect.settings.words import READ_SO
from kdissect.tui.app import Kdissect
from kdissect.tui.lists.members import MemberLines, MemberStatistics, began_ns
from kdissect.tui.pages.groups import GroupsPage, figures, state, text_of
from kdissect.tui.pages.statistics import OF_ALL_CLUSTERS
from kdissect.tui.pages.story import StoryPage
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, running, settle, shown_after
from tests.two_clusters import EAST, WEST, two_clusters
from tests.two_clusters import GROUP as GROUP_OF_BOTH

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
        "joins": 1,
        "heartbeats": 0,
        "commits": 0,
        "errors": 0,
        "left_ns": None,
    }
    return {**nothing, **given, "first_ns": first, "last_ns": last, **more}


def stay(name: str, generation: int, **more: object) -> Row:
    names = ("join_ns", "sync_ns", "duration_ns", "completed", "first_ns", "last_ns", "assigned")
    nothing: Row = dict.fromkeys((*names, "protocol", "reason"))
    row: Row = {**nothing, "group": "g", "member_id": name, "generation": generation, **more}
    if row["sync_ns"] is not None and row["join_ns"] is not None:
        row |= {"duration_ns": row["sync_ns"] - row["join_ns"], "completed": True}
    return row


def lines(members: list[Row], stays: list[Row], width: int = 60) -> list[str]:
    timeline = MemberLines(str)
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
    (line,) = lines([member("a", 0, 1000, left="LeaveGroup", left_ns=1000)], stays)
    assert line.startswith("███")
    assert line.index("12") < line.index("13") < line.index("╳")
    assert line.index("12") == line.rindex("█") + 1
    assert line.endswith("╳")


def test_a_rebalance_that_is_not_finished_has_a_sign_of_its_own_and_says_so() -> None:
    stays = [stay("a", 3, first_ns=0, last_ns=10)]
    stays += [stay("a", 4, join_ns=500, duration_ns=500, completed=False, first_ns=1000, last_ns=1000)]
    timeline = MemberLines(str)
    timeline.show("g", [member("a", 0, 500)], stays)
    line = timeline.cells(0, 60)[-1]
    assert line.index("▒") == len(line) // 2
    assert "█" not in line
    assert "joining for 500 ns, not finished" in timeline.text(0)


def test_what_a_stranger_did_later_does_not_squeeze_the_lines() -> None:
    alone = lines([member("a", 0, 1000)], [stay("a", 1, join_ns=0, sync_ns=500, first_ns=500, last_ns=1000)])
    stranger = member("", 21_000, 21_000, joins=0, client_id="admin")
    removed = member("a", 0, 1000, instance_id="i", left="LeaveGroup", left_ns=21_000)
    stays = [stay("a", 1, join_ns=0, sync_ns=500, first_ns=500, last_ns=1000)]
    second, first = lines([stranger, removed], stays)
    assert first[:-1] == alone[0][:-1]
    assert first.endswith("›")
    assert second == " " * (len(second) - 1) + "›"
    assert lines([stranger], [])[0].strip() == "─"  # nobody else is there


def test_a_static_member_that_came_back_has_one_line() -> None:
    first = member("i-1", 0, 400, instance_id="i", heartbeats=2, client_id="old")
    second = member("i-2", 600, 1000, instance_id="i", heartbeats=3, client_id="new")
    stays = [stay("i-1", 1, join_ns=0, sync_ns=100, first_ns=100, last_ns=400)]
    stays += [stay("i-2", 1, join_ns=600, sync_ns=700, first_ns=700, last_ns=1000)]
    timeline = MemberLines(str)
    timeline.show("g", [first, second], stays)
    assert len(timeline) == 1
    assert timeline.member(0)["heartbeats"] == 5
    assert timeline.member(0)["client_id"] == "new"
    assert timeline.cells(0, 60)[-1].count("1") == 2


def test_times_at_which_nothing_passes_and_numbers_of_any_length_fit() -> None:
    (line,) = lines([member("a", 5, 5)], [stay("a", 2_147_483_647, first_ns=5, last_ns=5)], width=20)
    assert line == "─  "
    assert lines([], []) == []


def test_only_the_group_that_was_asked_for() -> None:
    other = {**member("x", 0, 10), "group": "h"}
    assert len(lines([member("a", 0, 10), other], [])) == 1


def test_the_state_says_only_what_was_seen() -> None:
    group: Row = {"rebalances": 1, "rebalance_last_completed": False, "members": 2, "leaves": 0}
    assert state(group) == "joining"
    assert state({**group, "rebalance_last_completed": None}) == "stable"  # that it goes on was not seen
    assert state({**group, "rebalance_last_completed": True}) == "stable"
    assert state({**group, "rebalance_last_completed": True, "leaves": 2}) == "all left"
    assert state({**group, "rebalance_last_completed": None, "members": 0}) == "no members"


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


def test_the_time_so_far_of_a_rebalance_is_called_so() -> None:
    row: Row = dict.fromkeys((*GROUP, "first_ns", "last_ns"))
    row |= dict.fromkeys(("members", "leaves", "heartbeats", "commits", "committed_partitions", "errors"), 1)
    row |= {"group": "g", "types": [], "protocols": [], "rebalances": 1}
    row |= {"rebalance_last_ns": 9_540_000_000, "rebalance_last_completed": False}
    made = figures()
    made.show([row])
    assert "9.54 s, not finished" in made.cells(0, 200)


def test_stops_and_silence_have_shapes_of_their_own_and_only_the_line_has_colours() -> None:
    steps = [
        {"group": "g", "member_id": "a", "step": "notified", "ns": 200},
        {"group": "g", "member_id": "a", "step": "fetched", "ns": 500},
        {"group": "g", "member_id": "b", "step": "expired", "ns": 800},
    ]
    timeline = MemberLines(str)
    timeline.show("g", [member("a", 0, 1000), member("b", 0, 300)], [], MemberStatistics(steps=steps))
    first, second = (timeline.cells(at, 60)[-1] for at in range(2))
    assert first.count("░") in range(len(first) * 3 // 10, len(first) * 3 // 10 + 3)
    assert second.index("†") == len(second) * 8 // 10
    assert set(timeline.inks) <= set("█▒░†")


def test_what_members_own_is_that_of_the_rebalance_that_is_shown() -> None:
    changes = [
        ("a", 1, 0, None),
        ("a", 1, 1, None),
        ("a", 2, 0, "kept"),
        ("a", 2, 1, "lost"),
        ("b", 2, 1, "gained"),
    ]
    given = [
        {
            "group": "g",
            "member_id": who,
            "generation": generation,
            "topic": "t",
            "partition": at,
            "change": change,
        }
        for who, generation, at, change in changes
    ]
    lag = [
        {"group": "g", "topic": "t", "partition": at, "ns": ns, "lag": lag}
        for ns in (1, 2)
        for at, lag in ((0, ns), (1, 10 * ns))
    ]
    chosen = {"begin_ns": 100, "generation": 2, "completed": True, "stopped_ns": None, "notified_ns": None}
    chosen |= dict.fromkeys(("last_join_ns", "joined_ns", "assigned_ns", "synced_ns"), 500)
    timeline = MemberLines(str)
    members = [member("a", 0, 1000), member("b", 0, 1000)]
    timeline.show("g", members, [], MemberStatistics(assignments=given, lag=lag))
    for width in (78, 120):  # on a screen of 80 columns too
        assert [timeline.cells(at, width)[1:3] for at in range(2)] == [["0", "2"], ["1", "20"]]
    timeline.show("g", members, [], MemberStatistics(assignments=given, lag=lag), chosen)
    assert [timeline.cells(at, 120)[1] for at in range(2)] == ["0 -1", "+1"]
    assert "▼" in timeline.headings(120)[-1].title


def test_keys_go_from_rebalance_to_rebalance_and_without_any_to_other_screens() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "incidents" / "member-killed.pcapng.gz"), 160, 48) as pilot:
            await press(pilot, "4")
            text = await shown_after(pilot, "right_square_bracket")
            page = pilot.app.screen
            assert isinstance(page, GroupsPage)
            assert page.chosen == 0
            assert f"(1 of {len(page.rebalances)})" in text
            assert "Next rebalance" in text.splitlines()[-1]
            await press(pilot, "right_square_bracket")
            assert page.chosen == 1
            await press(pilot, "left_square_bracket")
            assert page.chosen == 0
            assert "no rebalance before this" in await shown_after(pilot, "left_square_bracket")
            assert page.chosen == 0
            await press(pilot, "escape")
            await press(pilot, "less_than_sign")
            assert page.chosen == len(page.rebalances) - 1
            assert "no rebalance after this" in await shown_after(pilot, "right_square_bracket")
        async with running(
            app_of(CAPTURES / "incidents" / "healthy-cluster-idle.pcapng.gz"), 160, 48
        ) as pilot:
            await press(pilot, "4")
            await press(pilot, "right_square_bracket")
            assert not isinstance(pilot.app.screen, GroupsPage)

    asyncio.run(run())


def test_the_story_of_a_group_opens_at_the_rebalance_that_is_chosen() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "incidents" / "member-killed.pcapng.gz"), 160, 48) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            groups, story = app.pages["groups"], app.pages["story"]
            assert isinstance(groups, GroupsPage)
            assert isinstance(story, StoryPage)
            await press(pilot, "4", "left_square_bracket", "i")
            times = [story.rows.row(at)["line"].ns for at in range(len(story.rows))]
            began, at = began_ns(groups.rebalances[-1]), story.list_pane.cursor
            assert times[at - 1] < began <= times[at]
            assert at > 0
            await press(pilot, "escape", "escape", "i")  # all of the time
            assert groups.chosen is None
            assert story.list_pane.cursor == 0

    asyncio.run(run())


@pytest.mark.parametrize(
    ("filter", "said"),
    [
        ("api == Metadata", "No consumer group is in what the filter shows."),
        ("api == OffsetCommit", "no rebalance is in what the filter shows"),
    ],
)
def test_under_a_filter_what_is_missing_is_missing_in_what_it_shows(filter: str, said: str) -> None:
    """Nothing is said of the capture then: the filter may hide what the capture has."""

    async def run() -> None:
        async with running(app_of(CAPTURES / "incidents" / "member-killed.pcapng.gz"), 140, 40) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            text = await shown_after(pilot, "4")
            assert "3 rebalances" in text
            assert "in what the filter shows" not in text
            app.shown.write(filter)
            await settle(pilot)
            text = await shown_after(pilot)
            assert said in text
            assert "no rebalance was captured" not in text

    asyncio.run(run())


def test_a_filter_hides_neither_the_cause_nor_the_end_of_a_rebalance() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "incidents" / "member-killed.pcapng.gz"), 140, 40) as pilot:
            app = pilot.app
            assert isinstance(app, Kdissect)
            whole = await shown_after(pilot, "4")
            app.shown.write("error")  # neither JoinGroup nor SyncGroup of generation 3 has one
            await settle(pilot)
            told = "14.207670  generation 3  partitions stood still up to 6.28 s  session-timeout by fraud-2"
            text = await shown_after(pilot)
            assert told in whole
            assert told in text
            text = await shown_after(pilot, "left_square_bracket")
            assert "began 14.207670: session-timeout by fraud-2 (likely)" in text

    asyncio.run(run())


def test_the_times_of_a_rebalance_say_what_they_measure() -> None:
    row: Row = dict.fromkeys(column.name for column in STATISTICS["rebalances"].columns)
    row |= {"group": "g", "generation": 5, "trigger": "member-left", "begin_ns": 0, "completed": True}
    row |= {"stopped_ns": 6_190_000, "join_phase_ns": 2_740_000_000, "sync_phase_ns": 1_000_000}
    text = "\n".join(line.text for line in text_of([row], 0, Clock("r", 0), 200))
    assert "generation 5  partitions stood still up to 6.19 ms" in text
    assert "until all joined 2.74 s · sync 1.00 ms" in text
    assert any("first JoinGroup to last SyncGroup" in each for each in READ_SO["groups"])


def test_the_number_of_the_last_generation_stands_before_the_sign_of_leaving() -> None:
    members = [member("a", 0, 100, left_ns=100)]
    stays = [stay("a", 4, join_ns=0, sync_ns=1), stay("a", 5, join_ns=97, sync_ns=98)]
    (line,) = lines(members, stays)
    assert line.endswith("5╳")


@pytest.mark.parametrize("width", [80, 120])
def test_groups_of_one_name_in_two_clusters_are_told_apart(width: int, tmp_path: Path) -> None:
    async def run() -> None:
        async with running(app_of(*two_clusters(tmp_path)), width, 24) as pilot:
            for keys in (("4",), ("3", "g", "g")):
                text = await shown_after(pilot, *keys)
                assert "Cluster" in text.splitlines()[2]
                lines = [line for line in text.splitlines() if line.startswith(GROUP_OF_BOTH)]
                assert len(lines) == len(set(lines))
                assert {line.split()[1][:4] for line in lines} == {EAST[:4], WEST[:4]}
            await press(pilot, "4")
            page = pilot.app.screen
            assert isinstance(page, GroupsPage)
            found = []
            for key in ("home", "down"):
                text = await shown_after(pilot, key)
                assert "1 rebalance" in text
                assert [len(page.rebalances), len(page.timeline)] == [1, 1]
                found.append((page.rebalances[0]["cluster_id"], page.timeline.member(0)["cluster_id"]))
            assert found == [(EAST, EAST), (WEST, WEST)]
            await press(pilot, "left_square_bracket", "up")
            assert page.chosen is None  # a rebalance of the other group
            assert OF_ALL_CLUSTERS in " ".join((await shown_after(pilot, "enter")).split())
            await press(pilot, "escape")
            page.members_pane.focus()
            assert OF_ALL_CLUSTERS in " ".join((await shown_after(pilot, "enter")).split())
            await press(pilot, "escape")
            assert OF_ALL_CLUSTERS not in " ".join((await shown_after(pilot, "1")).split())

    asyncio.run(run())


def test_a_cluster_is_not_named_without_need() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "incidents/lag-grows.pcapng.gz"), 120, 24) as pilot:
            for keys in (("4",), ("3", "g", "g")):
                assert "Cluster" not in (await shown_after(pilot, *keys)).splitlines()[2]
            assert "clusters" not in await shown_after(pilot, "enter")

    asyncio.run(run())
