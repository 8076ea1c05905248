"""Rules on lag and offsets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kdissect.analysis.cluster import ClusterBrokers, ClusterChanges, ClusterPartitions
from kdissect.analysis.connections import Connections
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import SECOND, Row, Statistic
from kdissect.analysis.groups import Members
from kdissect.analysis.lag import Lag
from kdissect.analysis.offsets_asked import OffsetsAsked
from kdissect.analysis.pace import Pace
from kdissect.analysis.positions import Positions
from kdissect.analysis.repeats import Repeats
from kdissect.analysis.transactions import Transactions
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import JudgingContext
from kdissect.insight.finding import (
    CERTAIN,
    CRITICAL,
    INFO,
    LIKELY,
    NOTICE,
    WARNING,
    Finding,
    FindingSubject,
    key_of,
)
from kdissect.insight.judge import judge
from kdissect.insight.rules import lag as lag_rules
from tests.insight import made
from tests.insight.made import T0, said_by, unjudged, zeros
from tests.insight.rules.shipped import found_in, of_rule

GRADES = {
    "consumer-falling-behind": (CRITICAL, LIKELY),
    "stuck-offset": (CRITICAL, LIKELY),
    "consumer-stalled": (CRITICAL, LIKELY),
    "consumer-stopped": (WARNING, LIKELY),
    "partition-lags": (WARNING, LIKELY),
    "data-lost-to-retention": (CRITICAL, CERTAIN),
    "offset-reset": (CRITICAL, CERTAIN),
    "offset-rewound": (NOTICE, CERTAIN),
    "commits-too-often": (NOTICE, CERTAIN),
    "never-commits": (INFO, CERTAIN),
    "no-offset": (WARNING, LIKELY),
    "offsets-lost": (WARNING, CERTAIN),
}


@pytest.mark.parametrize("id", GRADES)
def test_severities_are_those_of_the_catalogue(id: str) -> None:
    assert (RULES[id].severity, RULES[id].confidence) == GRADES[id]
    assert RULES[id].page.what
    assert RULES[id].page.do


def said(id: str, rows: dict[Any, list[Row]], context: JudgingContext | None = None) -> list[Finding]:
    """What one rule says of rows."""
    every = {each: rows.get(each, []) for each in RULES[id].needs}
    return judge({id: RULES[id]}, every, context or JudgingContext(first_ns=0, last_ns=100 * SECOND)).findings


def lag(**values: Any) -> Row:
    row: Row = dict.fromkeys(column.name for column in Lag.columns)
    row |= {"group": "g", "topic": "t", "partition": 0, "commits": 20, "points": 30, "exchanges": [1, 2]}
    row |= {
        "first_ns": 0,
        "last_ns": 30 * SECOND,
        "rewinds": 0,
        "committers": ["c"],
        "lag_first": 0,
        "lag": 0,
    }
    return row | values


def position(**values: Any) -> Row:
    row: Row = dict.fromkeys(column.name for column in Positions.columns)
    row |= {"connection": 3, "client": "10.0.0.1:5000", "client_id": "c", "group": "g", "topic": "t"}
    row |= {"partition": 0, "replica_id": -1, "position": 7, "high_watermark": 50, "lag": 43, "fetches": 40}
    row |= {
        "records": 100,
        "rewinds": 0,
        "stalled": 0,
        "starved": 0,
        "out_of_range": 0,
        "log_start_offset": 0,
    }
    return row | {"first_ns": 0, "last_ns": SECOND, "fetched_last_ns": SECOND} | values


def member(**values: Any) -> Row:
    row: Row = dict.fromkeys(column.name for column in Members.columns)
    row |= {"group": "g", "client_id": "c", "types": ["classic"], "first_ns": 0, "last_ns": 100 * SECOND}
    return row | {"commits": 0} | values


FALLING = {"lag": 2_000, "lag_first": 100, "lag_per_s": 60.0, "rising": 1.0, "written_per_s": 100.0}
FALLING |= {"last_ns": 80 * SECOND}


@pytest.mark.parametrize(
    ("change", "fires"),
    [
        ({}, True),
        ({"lag": 1_000}, True),
        ({"lag": 999, "written_per_s": 101.0}, False),
        ({"lag": 400, "lag_first": 10, "written_per_s": 20.0, "lag_per_s": 10.0}, True),
        ({"lag_first": 1_001}, False),
        ({"points": 15}, False),
        ({"rising": 0.5}, False),
        ({"commits": 4}, False),
        ({"last_ns": 70 * SECOND}, True),
        ({"first_ns": 9 * SECOND, "last_ns": 69 * SECOND}, False),  # it stopped more than 30 s before the end
        ({"first_ns": 3 * SECOND, "last_ns": 68 * SECOND}, True),  # which is less than half of its time
        ({"lag_per_s": 5.0}, False),
        ({"lag_per_s": -60.0}, False),
        ({"lag": None}, False),
    ],
)
def test_a_group_falls_behind_where_its_lag_keeps_growing(change: dict[str, Any], fires: bool) -> None:
    row = lag(**{**FALLING, "committed_per_s": 40.0, **change})
    assert [each.subject.group for each in said("consumer-falling-behind", {Lag: [row]})] == ["g"] * fires


@pytest.mark.parametrize(
    ("commits", "fetched_to", "fires"),
    [
        (2, 4_000, True),
        (2, 4_001, False),  # it has more than half of what it has not committed
        (1, 4_000, False),
        (2, None, True),
        (5, 5_000, True),
    ],
)
def test_a_group_that_commits_seldom_falls_behind_where_it_does_not_even_fetch(
    commits: int, fetched_to: int | None, fires: bool
) -> None:
    behind = lag(**FALLING, committed_per_s=40.0, log_end=5_000, committed=3_000) | {"commits": commits}
    rows = {Lag: [behind], Positions: [position(fetched_to=fetched_to)]}
    assert bool(said("consumer-falling-behind", rows)) == fires
    rows = {Lag: [behind], Positions: []}  # who knows what it fetched
    assert bool(said("consumer-falling-behind", rows)) == (commits >= 5)


def test_falling_behind_is_told_of_a_topic_once() -> None:
    rows = [lag(**FALLING, committed_per_s=40.0, partition=number) for number in range(3)]
    (found,) = said("consumer-falling-behind", {Lag: rows})
    assert (found.subject.group, found.subject.topic, found.subject.partition) == ("g", "t", None)
    assert found.measure == 6_000
    assert "300 records/s are written, and 120 records/s are read" in found.message


@pytest.mark.parametrize(
    ("values", "explained"),
    [
        ({}, True),
        ({"throttled_sum_ns": 7_499_999_999}, False),  # less than a quarter of the time
        ({"client_id": "other"}, False),
        ({"api": "Produce"}, False),
    ],
)
def test_a_quota_on_reading_explains_that_a_group_falls_behind(
    values: dict[str, Any], explained: bool
) -> None:
    held = {"client_id": "c", "api": "Fetch", "throttled_count": 9, "throttled_sum_ns": 7_500_000_000}
    held |= {"throttled_max_ns": SECOND}
    held |= {"throttled_first_ns": T0, "throttled_last_ns": T0 + 20 * SECOND}
    behind = lag(**FALLING | {"first_ns": T0, "last_ns": T0 + 30 * SECOND}, committed_per_s=40.0)
    read = position()
    rows = (Lag, behind), (Positions, read), (Pace, zeros(Pace, **held | values))
    found = said_by(("consumer-falling-behind", "throttled"), *rows)
    (throttle,) = found["throttled"]
    assert found["consumer-falling-behind"][0].because == (throttle.key if explained else None)


STUCK = {"stalled": 10, "stalled_at": 7, "stalled_first_ns": 0, "stalled_last_ns": 5 * SECOND}


@pytest.mark.parametrize(
    ("change", "committed", "fires"),
    [
        ({}, 7, True),
        ({}, None, True),
        ({"stalled": 9}, 7, False),
        ({}, 8, False),
        ({"replica_id": 2}, 7, False),
        ({"rewinds": 9}, 7, True),
        ({"rewinds": 9}, None, False),
    ],
)
def test_an_offset_is_stuck_where_commits_do_not_pass_it(
    change: dict[str, Any], committed: int | None, fires: bool
) -> None:
    rows = {Positions: [position(**{**STUCK, **change})], Lag: [lag(committed=committed)]}
    assert bool(said("stuck-offset", rows)) == fires


@pytest.mark.parametrize(
    ("change", "fires"),
    [
        ({}, True),
        ({"stalled": 99, "rewinds": 99}, False),
        ({"group": None}, False),
        ({"log_start_offset": 7}, False),  # it reads the partition from its beginning
        ({"log_start_offset": None}, False),
    ],
)
def test_a_member_that_comes_back_for_ever_is_stuck_though_nothing_was_committed(
    change: dict[str, Any], fires: bool
) -> None:
    rows = [position(**STUCK | {"stalled": 100, "rewinds": 100} | change)]
    assert bool(said("stuck-offset", {Positions: rows, Lag: [lag()]})) == fires


def test_the_commands_against_an_offset_that_is_stuck_have_its_names() -> None:
    def fix(group: str | None) -> str:
        rows = [position(**STUCK | {"group": group, "broker": "10.0.0.2:9092"})]
        (found,) = said("stuck-offset", {Positions: rows, Lag: [lag(group=group, committed=7)]})
        return found.fix

    told = fix("my group")
    assert "-Y 'topic == \"t\" and partition == 0 and record.offset == 7'" in told
    assert "--bootstrap-server 10.0.0.2:9092 --group 'my group' --topic t:0 " in told
    assert "--reset-offsets --to-offset 8 --execute" in told.replace("\n", " ")
    for group in (None, "a\nb", "\x1b[2J"):
        assert "--group GROUP --topic t:0" in fix(group)


def test_an_offset_that_is_stuck_on_several_connections_is_one_finding() -> None:
    rows = [position(**STUCK | {"stalled": 5}, connection=number) for number in (3, 4)]
    (found,) = said("stuck-offset", {Positions: rows, Lag: []})
    assert (found.count, found.connections) == (10, (3, 4))


@pytest.mark.parametrize(("count", "committed", "fires"), [(10, 7, 1), (9, 7, 0), (10, 8, 0), (10, None, 0)])
def test_an_offset_is_stuck_where_every_new_connection_begins_at_it(
    count: int, committed: int | None, fires: int
) -> None:
    rows = [position(answers=2, begun_at=7, position=30, connection=number) for number in range(count)]
    found = said("stuck-offset", {Positions: rows, Lag: [lag(committed=committed)]})
    assert [each.count for each in found] == [count] * fires


def test_a_consumer_that_is_brought_nothing_is_stalled() -> None:
    row = position(starved=10, starved_at=7)
    assert len(said("consumer-stalled", {Positions: [row]})) == 1
    assert not said("consumer-stalled", {Positions: [row | {"position": 9}]})
    assert not said("consumer-stalled", {Positions: [row | {"starved": 9}]})


def test_a_partition_that_nobody_fetches_any_more_is_stopped() -> None:
    row = position(fetches=40, fetched_last_ns=30 * SECOND, position=7)
    rows: dict[type[Statistic], list[Row]] = {Positions: [row], Lag: [lag(log_end=20)]}
    (found,) = said("consumer-stopped", rows)
    assert "13 records came since" in found.message
    assert not said("consumer-stopped", {**rows, Lag: [lag(log_end=7)]})
    assert not said("consumer-stopped", {**rows, Lag: [lag(log_end=20, committed=20)]})  # somebody read on
    assert not said("consumer-stopped", {**rows, Positions: [row | {"fetched_last_ns": 50 * SECOND}]})
    short = judge(
        {"consumer-stopped": RULES["consumer-stopped"]},
        rows,
        JudgingContext(first_ns=0, last_ns=50 * SECOND),
    )
    assert [(each.rule, each.why) for each in short.not_judged] == [("consumer-stopped", "needs 60 s")]


@pytest.mark.parametrize(("lossy", "told"), [(0, False), (1, True)])
def test_where_bytes_are_missing_the_last_fetch_may_have_brought_the_records(lossy: int, told: bool) -> None:
    row = position(fetches=40, fetched_last_ns=30 * SECOND, position=7, connection=0)
    link = zeros(Connections, connection=lossy, client="10.9.9.9:7", gap_bytes=9)
    rows: dict[Any, list[Row]] = {Positions: [row], Lag: [lag(log_end=20)], Connections: [link]}
    assert bool(said("consumer-stopped", rows)) == told
    assert bool(unjudged("consumer-stopped", rows)) != told


@pytest.mark.parametrize(
    ("lossy", "complete_s", "told"),
    [
        ({"connection": 0}, 30, True),  # the gap came before the last Fetch
        ({"connection": 0}, 31, False),
        ({"connection": 1, "client": "10.0.0.1:6000", "client_id": "c"}, 31, False),  # to another broker
        ({"connection": 1, "client": "10.0.0.1:6000", "client_id": "d"}, 31, True),
        ({"connection": 4}, 31, False),  # another reader of the group
    ],
)
def test_missing_bytes_hide_a_fetch_only_if_they_are_of_a_reader_and_of_later(
    lossy: dict[str, Any], complete_s: int, told: bool
) -> None:
    read = [
        position(fetches=40, fetched_last_ns=30 * SECOND, position=7, connection=0),
        position(fetches=40, fetched_last_ns=99 * SECOND, partition=1, connection=4, client="10.0.0.4:7"),
    ]
    link = zeros(Connections, **{"client": "10.9.9.9:7", "gap_bytes": 9, **lossy})
    context = JudgingContext(
        first_ns=0, last_ns=100 * SECOND, complete_since={lossy["connection"]: complete_s * SECOND}
    )
    rows: dict[Any, list[Row]] = {Positions: read, Lag: [lag(log_end=20)], Connections: [link]}
    assert bool(said("consumer-stopped", rows, context=context)) == told


def test_the_connections_of_a_group_are_gone_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[str]] = []

    def one_sided(_: object, clients: Iterable[str]) -> bool:
        asked.append(set(clients))
        return False

    monkeypatch.setattr(lag_rules, "is_often_one_sided", one_sided)
    places = range(9)
    read = [position(fetches=40, fetched_last_ns=30 * SECOND, position=7, partition=at) for at in places]
    rows = {Positions: read, Lag: [lag(log_end=20, partition=at) for at in places]}
    assert len(said("consumer-stopped", rows)) == 1
    assert len(asked) == 1


def stopped(*rows: Row) -> list[Finding]:
    """What is said of partitions that groups stopped to fetch while 13 records came to each."""
    ends = [lag(log_end=20, topic=row["topic"], partition=row["partition"]) for row in rows]
    quiet = [
        position(**{"fetches": 40, "fetched_last_ns": 30 * SECOND, "position": 7, **row}) for row in rows
    ]
    return said("consumer-stopped", {Positions: quiet, Lag: ends})


def test_a_client_that_stops_is_told_once() -> None:
    three = [{"topic": "t", "partition": number, "connection": number} for number in (2, 0, 1)]
    (found,) = stopped(*three)
    assert found.subject == FindingSubject(group="g", topic="t", client_id="c", client="10.0.0.1")
    assert "3 partitions (t-0, t-1 and t-2) for 70 s, and 39 records came" in found.message
    assert found.connections == (0, 1, 2)
    (other,) = stopped(*three, {"topic": "u", "partition": 0})
    assert other.subject.topic is None
    assert "4 partitions (t-0, t-1, t-2 and u-0)" in other.message
    assert "topic" not in other.filter


def test_two_clients_that_stop_and_one_that_stops_twice_are_told_apart() -> None:
    one, two = {"topic": "t", "partition": 0}, {"topic": "t", "partition": 1}
    (alone,) = stopped(one)
    assert alone.subject == FindingSubject(group="g", topic="t", partition=0)
    for change in (
        {"client": "10.0.0.2:5000"},
        {"client_id": "d"},
        {"fetched_last_ns": 30 * SECOND - lag_rules.TOGETHER_NS - 1},
    ):
        assert [each.subject.partition for each in stopped(one, two | change)] in ([0, 1], [1, 0])
    assert len(stopped(one, two | {"fetched_last_ns": 30 * SECOND - lag_rules.TOGETHER_NS})) == 1


def test_a_task_of_connect_that_stops_is_looked_for_at_its_workers() -> None:
    (found,) = stopped({"topic": "t", "partition": 0, "client_id": "connector-consumer-files-0"})
    assert "/connectors/NAME/status" in found.fix
    (found,) = stopped({"topic": "t", "partition": 0})
    assert "/connectors" not in found.fix


@pytest.mark.parametrize(("reader", "told"), [("c", True), ("d", False)])
def test_a_group_that_falls_behind_is_explained_by_its_own_reader_that_stopped(
    reader: str, told: bool
) -> None:
    ids = ("consumer-stopped", "consumer-falling-behind")
    rows: dict[type[Statistic], list[Row]] = {each: [] for id in ids for each in RULES[id].needs}
    rows[Positions] = [position(fetches=40, fetched_last_ns=30 * SECOND, position=7)]
    rows[Lag] = [lag(**FALLING, log_end=3_000, committers=[reader])]
    found = judge(
        {id: RULES[id] for id in ids}, rows, JudgingContext(first_ns=0, last_ns=100 * SECOND)
    ).findings
    assert [each.because is not None for each in found if each.id == "consumer-falling-behind"] == [told]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({}, True),
        ({"responses": 89}, True),  # the last one may wait for its answer
        ({"responses": 88}, False),
        ({"requests": 88}, False),
        ({"responses": 0, "client": "10.9.9.9:7"}, True),  # another client
        ({"requests": 0, "client": "10.9.9.9:7"}, False),  # nobody knows whose
    ],
)
def test_fetches_that_were_not_captured_do_not_lack(values: dict[str, Any], told: bool) -> None:
    row = position(fetches=40, fetched_last_ns=30 * SECOND, position=7)
    seen = zeros(Connections, client=row["client"], requests=100, responses=100, connection=5) | values
    rows: dict[type[Statistic], list[Row]] = {Positions: [row], Lag: [lag(log_end=20)], Connections: [seen]}
    assert bool(said("consumer-stopped", rows)) == told


@pytest.mark.parametrize(("silent_s", "told"), [(10, True), (11, False)])
def test_silence_of_everybody_is_no_proof_though_the_whole_time_is_told(silent_s: int, told: bool) -> None:
    row = position(fetches=40, fetched_last_ns=30 * SECOND, position=7)
    rows: dict[type[Statistic], list[Row]] = {Positions: [row], Lag: [lag(log_end=20)]}
    silences = ((40 * SECOND, (40 + silent_s) * SECOND),)
    context = JudgingContext(first_ns=0, last_ns=100 * SECOND, silences=silences)
    found = said("consumer-stopped", rows, context=context)
    assert [(each.measure, each.cost_ns) for each in found] == [(70, 70 * SECOND)] * told
    assert all("for 70" in each.message for each in found)


def test_a_partition_far_behind_its_siblings_is_told() -> None:
    rows = [lag(partition=number, lag=value) for number, value in enumerate((1_000, 100, 90))]
    (found,) = said("partition-lags", {Lag: rows})
    assert found.subject.partition == 0
    for least in ((999, 10, 10), (1_000, 101, 101)):
        rows = [lag(partition=number, lag=value) for number, value in enumerate(least)]
        assert not said("partition-lags", {Lag: rows})
    assert not said("partition-lags", {Lag: rows[:2]})


@pytest.mark.parametrize(
    ("others", "committed", "written", "is_cause"),
    [
        ((90, 90), 0.0, 50.0, True),
        ((100, 99), None, 50.0, True),
        ((100, 100), 0.0, 50.0, False),
        ((90, 90), 1.0, 50.0, False),
        ((90, 90), 1.0, 49.9, True),  # more than half of the records go there
        ((100, 100), 1.0, 49.9, False),
    ],
)
def test_a_group_falls_behind_for_one_partition(
    others: tuple[int, ...], committed: float | None, written: float, is_cause: bool
) -> None:
    """Where it does not get on there or most records go there, and the others together are not behind."""
    rows = [lag(**FALLING, partition=0, committed_per_s=committed)]
    rows += [lag(partition=at, lag=each, written_per_s=written) for at, each in enumerate(others, 1)]
    rules = {id: RULES[id] for id in ("consumer-falling-behind", "partition-lags")}
    every: dict[Any, list[Row]] = {each: [] for one in rules.values() for each in one.needs}
    judged = judge(rules, every | {Lag: rows}, JudgingContext(first_ns=0, last_ns=100 * SECOND))
    (found,) = [each for each in judged.findings if each.id == "consumer-falling-behind"]
    because = key_of("partition-lags", FindingSubject(group="g", topic="t", partition=0))
    assert found.because == (because if is_cause else None)


@pytest.mark.parametrize(("rule", "count"), [("consumer-falling-behind", 1), ("partition-lags", 3)])
@pytest.mark.parametrize(
    ("left_s", "ended_s", "is_told"),
    [
        (None, None, True),
        (95, None, False),
        (95.1, None, True),  # the capture ends
        (None, 95, False),
        (None, 95.1, True),
    ],
)
def test_a_group_that_nobody_is_in_any_more_does_not_fall_behind(
    rule: str, count: int, left_s: float | None, ended_s: float | None, is_told: bool
) -> None:
    rows = [lag(**FALLING)] + [lag(partition=at, lag=0, lag_first=0) for at in range(1, count)]
    left_ns = None if left_s is None else round(left_s * SECOND)
    one = member(joins=1, left_ns=left_ns, last_ns=left_ns or 100 * SECOND)
    link: Row = dict.fromkeys(column.name for column in Connections.columns)
    link |= {"client_id": "c", "end": None if ended_s is None else "fin", "last_ns": SECOND}
    link |= {"last_ns": round((ended_s or 100) * SECOND)}
    found = said(rule, {Lag: rows, Members: [one], Connections: [link]})
    assert bool(found) == is_told
    other = [one, member(joins=1, left_ns=None)]
    links = [link, link | {"end": None}]
    assert said(rule, {Lag: rows, Members: other, Connections: links})


@pytest.mark.parametrize(("rule", "count"), [("consumer-falling-behind", 1), ("partition-lags", 3)])
@pytest.mark.parametrize(
    ("members", "is_told"),
    [
        ([{"joins": 1, "left_ns": 5 * SECOND, "last_ns": 5 * SECOND}], False),
        ([{"joins": 1, "left_ns": 5 * SECOND}], True),  # it came back under its id
        (
            [{"joins": 1, "left_ns": 5 * SECOND, "last_ns": 5 * SECOND}, {"joins": 0}],
            True,
        ),  # was there before
    ],
)
def test_a_group_that_somebody_is_in_may_fall_behind(
    rule: str, count: int, members: list[dict[str, Any]], is_told: bool
) -> None:
    rows = [lag(**FALLING)] + [lag(partition=at, lag=0, lag_first=0) for at in range(1, count)]
    link: Row = dict.fromkeys(column.name for column in Connections.columns)
    links = [link | {"client_id": "c", "end": None, "last_ns": 100 * SECOND}]
    given = {Lag: rows, Members: [member(**each) for each in members], Connections: links}
    assert bool(said(rule, given)) == is_told


def test_a_member_that_commits_nothing_may_be_there_when_those_that_commit_have_ended() -> None:
    rows = [lag(**FALLING)] + [lag(partition=at, lag=0, lag_first=0) for at in (1, 2)]
    link: Row = dict.fromkeys(column.name for column in Connections.columns)
    ended = link | {"client_id": "c", "end": "fin", "last_ns": 90 * SECOND}
    stays = link | {"client_id": "d", "end": None, "last_ns": 100 * SECOND}
    given = {Lag: rows, Members: [member(), member(client_id="d")], Connections: [ended, stays]}
    assert said("partition-lags", given)
    assert not said("partition-lags", given | {Members: [member()]})


def test_when_nobody_is_there_is_told_by_one_threshold() -> None:
    rows = [lag(**FALLING)] + [lag(partition=at, lag=0, lag_first=0) for at in (1, 2)]
    left = member(joins=1, left_ns=90 * SECOND, last_ns=90 * SECOND)
    given: dict[type[Statistic], list[Row]] = {Lag: rows, Members: [left], Connections: []}
    rules = {"partition-lags": RULES["partition-lags"]}
    context = JudgingContext(first_ns=0, last_ns=100 * SECOND)
    for gone_s, is_told in ((10, False), (11, True)):
        limits = {"consumer-falling-behind": {"gone_s": gone_s}}
        assert bool(judge(rules, given, context, limits).findings) == is_told


RESET = {"out_of_range": 1, "reset_from": 40, "reset_to": 200, "reset_exchange": 9, "reset_ns": 5}


def test_an_offset_before_the_log_begins_is_lost_and_explains_the_jump() -> None:
    rows: dict[type[Statistic], list[Row]] = {Positions: [position(**RESET, log_start_offset=200)]}
    (lost,) = said("data-lost-to-retention", rows)
    assert (lost.measure, lost.subject.group, lost.subject.partition) == (160, "g", 0)
    (reset,) = said("offset-reset", rows)
    assert "left out 160 offsets" in reset.message
    both = {id: RULES[id] for id in ("data-lost-to-retention", "offset-reset")}
    found = judge(both, {**rows, Lag: [], ClusterChanges: []}, JudgingContext()).findings
    assert [(each.id, each.because) for each in found] == [
        ("data-lost-to-retention", None),
        ("offset-reset", lost.key),
    ]


def test_a_consumer_that_first_asks_where_the_log_begins_loses_records_without_an_error() -> None:
    deleted = {
        "deleted_from": 40,
        "deleted_to": 200,
        "deleted_for": "c",
        "deleted_ns": 5,
        "deleted_exchange": 9,
    }
    (lost,) = said("data-lost-to-retention", {Lag: [lag(**deleted)]})
    assert (lost.measure, lost.exchanges, lost.subject.client_id) == (160, (9,), "c")
    assert "the group had committed offset 40, and the log begins at 200" in lost.message
    assert not said("data-lost-to-retention", {Lag: [lag()]})
    refused = position(**RESET, log_start_offset=200)
    assert len(said("data-lost-to-retention", {Lag: [lag(**deleted)], Positions: [refused]})) == 1


def test_an_offset_beyond_the_end_is_a_reset_and_nothing_is_lost() -> None:
    rows = {Positions: [position(**RESET | {"reset_from": 900, "reset_to": 50})]}
    assert not said("data-lost-to-retention", rows)
    (reset,) = said("offset-reset", rows)
    assert "went back to 50, by 850 offsets" in reset.message
    assert not said("offset-reset", {Positions: [position(**RESET, replica_id=1)]}), "a follower"


@pytest.mark.parametrize(
    ("change", "again"),
    [({}, False), ({"topic": "other"}, True), ({"ns": 3 * SECOND}, True), ({"what": "topic-created"}, True)],
)
def test_a_topic_that_was_made_again_is_not_read_again(change: dict[str, Any], again: bool) -> None:
    values = RESET | {"reset_from": 900, "reset_to": 50, "first_ns": SECOND, "reset_ns": 2 * SECOND}
    row = position(**values)
    gone = {"ns": 2 * SECOND, "what": "topic-deleted", "topic": row["topic"], **change}
    (found,) = said("offset-reset", {Positions: [row], ClusterChanges: [gone]})
    assert ("by 850 offsets" in found.message) == again
    assert ("went on at 50: the topic was deleted and made again" in found.message) == (not again)


def test_one_connection_that_reads_two_topics_of_a_name_shows_that_it_was_made_again() -> None:
    reset = position(
        **RESET | {"reset_from": 900, "reset_to": 50, "first_ns": SECOND, "reset_ns": 2 * SECOND}
    )
    before = position(first_ns=SECOND // 2)
    (found,) = said("offset-reset", {Positions: [before, reset]})
    assert "the topic was deleted and made again" in found.message
    assert "auto.create.topics.enable" in found.cause
    for other in ({"connection": 99}, {"first_ns": SECOND}, {"partition": 99}, {"topic": "other"}):
        (found,) = said("offset-reset", {Positions: [before | other, reset]})
        assert "by 850 offsets" in found.message
        assert "auto.create.topics.enable" not in found.cause


@pytest.mark.parametrize(
    ("elsewhere", "words"),
    [
        ("east", "and it went on over another connection"),
        ("west", "read nothing of this partition after that"),
    ],
)
def test_a_consumer_of_another_cluster_with_the_same_names_does_not_go_on(elsewhere: str, words: str) -> None:
    reset = position(**RESET | {"reset_to": None, "reset_ns": 2 * SECOND, "cluster_id": "east"})
    later = position(first_ns=2 * SECOND, connection=99, cluster_id=elsewhere)
    (found,) = said("offset-reset", {Positions: [reset, later]})
    assert words in found.message


@pytest.mark.parametrize(
    ("own", "other", "is_another"),
    [("east", "east", True), ("east", "west", False), ("east", None, True), (None, "west", True)],
)
def test_a_topic_that_another_cluster_deleted_was_not_made_again(
    own: str | None, other: str | None, is_another: bool
) -> None:
    values = RESET | {"reset_from": 900, "reset_to": 50, "first_ns": SECOND, "reset_ns": 2 * SECOND}
    row = position(**values, cluster_id=own)
    gone = {"ns": 2 * SECOND, "what": "topic-deleted", "topic": row["topic"], "cluster_id": other}
    (found,) = said("offset-reset", {Positions: [row], ClusterChanges: [gone]})
    assert ("was deleted and made again" in found.message) == is_another


def test_resets_of_two_clusters_with_the_same_names_are_counted_and_told_apart() -> None:
    rows = [
        position(**RESET | {"reset_from": start, "reset_to": 50, "reset_ns": SECOND}, cluster_id=cluster)
        for start, cluster in ((900, "east"), (60, "west"))
    ]
    (found,) = said("offset-reset", {Positions: rows})
    assert "That happened 2 times; this is the worst one." in found.message


def test_a_consumer_that_reads_on_after_a_reset_is_not_said_to_read_nothing() -> None:
    reset = position(**RESET | {"reset_to": None, "reset_ns": 2 * SECOND})
    (found,) = said("offset-reset", {Positions: [reset]})
    assert "read nothing of this partition after that" in found.message
    (found,) = said("offset-reset", {Positions: [reset, position(first_ns=2 * SECOND)]})
    assert "so it began anew: the topic was deleted and made again" in found.message
    (found,) = said("offset-reset", {Positions: [reset, position(first_ns=2 * SECOND, connection=99)]})
    assert "and it went on over another connection" in found.message
    for other in ({"first_ns": SECOND}, {"first_ns": 2 * SECOND, "fetches": 0}):
        (found,) = said("offset-reset", {Positions: [reset, position(**other)]})
        assert "read nothing of this partition after that" in found.message


def asked(**values: Any) -> Row:
    """A member that was told that nothing is committed."""
    row = zeros(OffsetsAsked, client="10.0.0.1", client_id="c", group="g", topics=["t"], exchanges=[7])
    return row | {"without": 1, "last_partitions": 2, "last_without": 2, "last_ns": 40 * SECOND} | values


JOINED = member(joins=1, first_ns=30 * SECOND, client="10.0.0.1:5000")
LED = {
    ClusterBrokers: [zeros(ClusterBrokers, node_id=2, host="10.0.0.2", port=9092)],
    ClusterPartitions: [zeros(ClusterPartitions, topic="t", partition=0, leader=2)],
}


def without_offset(*more: tuple[type[Statistic], Row], last_s: float = 100, **values: Any) -> list[Finding]:
    """What is said of it, if one node leads its topic."""
    rows: dict[Any, list[Row]] = {OffsetsAsked: [asked(**values)], Members: [JOINED], **LED}
    for statistic, row in more:
        rows[statistic] = [*rows.get(statistic, []), row]
    context = JudgingContext(first_ns=0, last_ns=round(last_s * SECOND))
    return said("no-offset", rows, context)


def test_a_member_without_an_offset_that_reads_nothing_is_told() -> None:
    (found,) = without_offset()
    assert found.message == (
        "c was told that the group has no committed offset for 2 partitions of t. It read nothing and did "
        "not ask where to begin, though it stayed in the group."
    )
    assert (found.subject.group, found.subject.client_id, found.exchanges) == ("g", "c", (7,))
    assert not without_offset(last_s=69.9)  # it may have been slow
    assert without_offset(last_s=70)
    assert not without_offset(last_without=0)
    assert not without_offset(client_id="tool")  # no member asks


@pytest.mark.parametrize(("first_s", "is_told"), [(29, True), (30, False), (50, False)])
def test_a_member_that_reads_or_asks_where_to_begin_has_an_offset(first_s: int, is_told: bool) -> None:
    """What an earlier member of its name did says nothing."""
    read = position(last_ns=first_s * SECOND)
    listed: Row = dict.fromkeys(column.name for column in Repeats.columns)
    listed |= {"client_id": "c", "client": "10.0.0.1:5000", "api": "ListOffsets", "last_ns": first_s * SECOND}
    assert bool(without_offset((Positions, read))) == is_told
    assert bool(without_offset((Repeats, listed))) == is_told
    assert without_offset((Repeats, listed | {"client": "10.0.0.2:5000"}))
    assert without_offset((Repeats, listed | {"api": "Metadata"}))


def test_a_member_without_an_offset_leaves_or_ends_soon() -> None:
    left = JOINED | {"left_ns": 41 * SECOND, "last_ns": 41 * SECOND}
    (found,) = without_offset((Members, left), last_s=42)
    assert not without_offset((Members, left | {"last_ns": 42 * SECOND}), last_s=42)  # it came back
    assert found.message.endswith("did not ask where to begin, and left the group.")
    assert not without_offset((Members, left | {"left_ns": 40 * SECOND}), last_s=40.9)  # it may read yet
    link: Row = dict.fromkeys(column.name for column in Connections.columns)
    link |= {"client_id": "c", "client": "10.0.0.1:5000", "end": "fin", "last_ns": 41 * SECOND}
    (found,) = without_offset((Connections, link), last_s=42)
    assert found.message.endswith("did not ask where to begin, and ended.")
    assert not without_offset((Connections, link), (Connections, link | {"end": None}), last_s=42)


@pytest.mark.parametrize(("captured", "is_told"), [("10.0.0.2:9092", True), ("10.0.0.3:9092", False)])
def test_who_may_read_from_a_broker_that_was_not_captured_is_not_judged(captured: str, is_told: bool) -> None:
    other = zeros(ClusterBrokers, node_id=3, host="10.0.0.3", port=9092)
    link: Row = dict.fromkeys(column.name for column in Connections.columns)
    link |= {"client": "10.0.0.9:5000", "broker": captured}
    assert bool(without_offset((ClusterBrokers, other), (Connections, link))) == is_told


def test_a_member_whose_fetches_a_filter_may_leave_out_is_not_judged() -> None:
    rows: dict[Any, list[Row]] = {each: [] for each in RULES["no-offset"].needs}
    rows |= LED | {OffsetsAsked: [asked()], Members: [JOINED]}
    context = JudgingContext(first_ns=0, last_ns=100 * SECOND)
    assert judge({"no-offset": RULES["no-offset"]}, rows, context).findings
    judged = judge({"no-offset": RULES["no-offset"]}, rows, context._replace(not_selected=1))
    assert not judged.findings
    assert [each.why for each in judged.not_judged] == ["a filter or span of time leaves exchanges out"]


@pytest.mark.parametrize("change", [{ClusterBrokers: []}, {ClusterPartitions: []}, {}])
def test_who_leads_must_be_told(change: dict[Any, list[Row]]) -> None:
    """A capture at the coordinator that begins late may show no broker, or only the coordinator."""
    rows: dict[Any, list[Row]] = {each: [] for each in RULES["no-offset"].needs}
    rows |= LED | {OffsetsAsked: [asked()], Members: [JOINED]}
    context = JudgingContext(first_ns=0, last_ns=100 * SECOND)
    judged = judge({"no-offset": RULES["no-offset"]}, rows | change, context)
    assert bool(judged.findings) == (not change)
    assert bool(judged.not_judged) == bool(change)
    rows[ClusterPartitions] = [LED[ClusterPartitions][0] | {"leader": 3}]
    assert not said("no-offset", rows)


def test_a_member_that_read_after_it_was_told_has_begun() -> None:
    """It leaves, and its process comes back as a member that gets no partitions."""
    again = JOINED | {"first_ns": 70 * SECOND, "last_ns": 200 * SECOND}
    for last_s, is_told in ((29, True), (60, False)):
        read = position(last_ns=last_s * SECOND)
        assert bool(without_offset((Positions, read), (Members, again), last_s=200)) == is_told
    # One that joined later was not told it.
    assert not without_offset((Positions, position(last_ns=35 * SECOND)), (Members, again), last_s=200)


def test_a_member_that_commits_has_read_where_the_capture_shows_no_fetch() -> None:
    assert without_offset()
    rows: dict[Any, list[Row]] = {OffsetsAsked: [asked()], Members: [JOINED | {"commits": 1}], **LED}
    assert not said("no-offset", rows)
    assert unjudged("no-offset", rows)


def test_a_member_of_the_same_name_on_another_host_is_another() -> None:
    """A new version is rolled out: its process reads, and that of the old one was told nothing of it."""
    rows: dict[Any, list[Row]] = {OffsetsAsked: [asked()], **LED}
    for host, is_told in (("10.0.0.1", True), ("10.0.0.2", False)):
        rows[Members] = [JOINED | {"client": f"{host}:5000"}]
        assert bool(said("no-offset", rows)) == is_told


@pytest.mark.parametrize(
    ("change", "is_told"),
    [({}, False), ({"gap_bytes": 0}, True), ({"client": "10.0.0.2:5"}, True), ({"client_id": None}, False)],
)
def test_where_bytes_are_missing_a_fetch_may_be_among_them(change: dict[str, Any], is_told: bool) -> None:
    link: Row = dict.fromkeys(column.name for column in Connections.columns)
    link |= {"client_id": "c", "client": "10.0.0.1:5000", "gap_bytes": 9, **change}
    assert bool(without_offset((Connections, link))) == is_told


def test_consumers_of_every_library_that_have_no_offset_are_told() -> None:
    found = of_rule("offset-reset-none", "no-offset")
    clients = ["aio", "consumer-g-java-1", "consumer-g-kip-1", "kp", "rd"]
    assert [each.subject.client_id for each in found] == clients


def test_offsets_that_are_gone_are_told() -> None:
    lost = {"lost_from": 160, "lost_after_ns": SECOND, "lost_ns": 9 * SECOND, "lost_exchange": 12}
    rows = [lag(**lost), lag(partition=1, **lost | {"lost_from": 140, "lost_exchange": 11})]
    (found,) = said("offsets-lost", {Lag: rows})
    assert found.message == (
        "The group had committed offsets of 2 partitions, 160 of partition 0, and 1 s later the coordinator "
        "says that it has none."
    )
    assert not said("offsets-lost", {Lag: [lag(**lost | {"lost_after_ns": SECOND - 1})]})
    assert not said("offsets-lost", {Lag: [lag()]})
    lost_of_real, again = found_in("offsets-expired")
    assert (lost_of_real.id, lost_of_real.subject.group) == ("offsets-lost", "g1")
    assert (again.id, again.because) == ("records-read-twice", lost_of_real.key)


LOST = {"lost_from": 160, "lost_after_ns": 5 * SECOND, "lost_ns": 9 * SECOND, "lost_exchange": 12}


def test_an_answer_of_another_cluster_is_no_loss() -> None:
    """Who copies the offsets of a group asks the second cluster for them, where nobody has committed any."""
    nodes = [zeros(ClusterBrokers, node_id=1, cluster_id=id, host=id) for id in ("k", "l")]
    assert said("offsets-lost", {Lag: [lag(**LOST)], ClusterBrokers: nodes[:1]})
    assert not said("offsets-lost", {Lag: [lag(**LOST)], ClusterBrokers: nodes})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, " In this time tool asked to delete committed offsets."),
        ({"api": "DeleteGroups"}, " In this time tool asked to delete groups."),
        ({"client_id": None}, " In this time 10.0.0.7:5000 asked to delete committed offsets."),
        ({"api": "OffsetCommit"}, None),
        ({"error": "GROUP_ID_NOT_FOUND"}, None),
        ({"first_ns": 9 * SECOND + 1, "last_ns": 9 * SECOND + 1}, None),
        ({"first_ns": 4 * SECOND - 1, "last_ns": 4 * SECOND - 1}, None),
    ],
)
def test_offsets_that_somebody_deletes_are_gone_on_purpose(change: dict[str, Any], words: str | None) -> None:
    row: Row = dict.fromkeys(column.name for column in Repeats.columns)
    row |= {"api": "OffsetDelete", "client_id": "tool", "client": "10.0.0.7:5000", "exchanges": [11]}
    row |= {"first_ns": 6 * SECOND, "last_ns": 6 * SECOND, **change}
    (found,) = said("offsets-lost", {Lag: [lag(**LOST)], Repeats: [row]})
    assert found.severity == (NOTICE if words else WARNING)
    assert found.message.endswith(words or "says that it has none.")
    assert found.exchanges == ((12, 11) if words else (12,))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, " In this time admin asked to delete the topic."),
        ({"by": None}, " In this time somebody asked to delete the topic."),
        ({"topic": "other"}, None),
        ({"ns": 10 * SECOND}, None),
    ],
)
def test_offsets_go_with_a_topic_that_is_deleted(change: dict[str, Any], words: str | None) -> None:
    gone = zeros(ClusterChanges, what="topic-deleted", topic="t", ns=6 * SECOND, by="admin", exchange=11)
    (found,) = said("offsets-lost", {Lag: [lag(**LOST)], ClusterChanges: [gone | change]})
    assert found.severity == (NOTICE if words else WARNING)
    assert found.message.endswith(words or "says that it has none.")


def test_a_commit_that_goes_back_is_a_notice() -> None:
    row = lag(rewinds=1, rewound_from=18, rewound_to=1, rewound_by="adminclient-1", rewind_exchange=423)
    (found,) = said("offset-rewound", {Lag: [row]})
    assert "of partition 0 from 18 to 1, by client adminclient-1" in found.message
    assert found.exchanges == (423,)
    assert not said("offset-rewound", {Lag: [lag()]})


@pytest.mark.parametrize(
    ("commits", "seconds", "records", "fires"),
    [
        (1_000, 100, 0, True),
        (999, 100, 10_000, False),
        (199, 10, 199, False),
        (200, 100, 1_000, True),
        (200, 100, 1_001, False),
        (200, 110, 100, False),
    ],
)
def test_commits_are_too_many_by_rate_or_by_records(
    commits: int, seconds: int, records: int, fires: bool
) -> None:
    rows = {
        Members: [member(commits=commits, last_ns=seconds * SECOND)],
        Positions: [position(records=records)],
    }
    assert bool(said("commits-too-often", rows)) == fires
    transactional: Row = dict.fromkeys(column.name for column in Transactions.columns)
    assert not said("commits-too-often", {**rows, Transactions: [transactional | {"groups": ["g"]}]})


@pytest.mark.parametrize(
    ("refused", "fires"),
    [
        ({}, False),
        ({"count": 0}, True),
        ({"api": "Heartbeat"}, True),
        ({"client_id": "other"}, True),
        ({"group": "other"}, True),
        ({"group": None}, True),
    ],
)
def test_commits_that_are_refused_and_repeated_are_not_those_of_the_application(
    refused: dict[str, Any], fires: bool
) -> None:
    """The same commit is refused for both partitions."""
    known: Row = {"api": "OffsetCommit", "group": "g", "client_id": "c", "topic": "t", "count": 1, **refused}
    errors = [made.row(Errors, **known, partition=partition) for partition in (0, 1)]
    for count in (1_000, 1_001):
        rows = {Members: [member(commits=count)], Positions: [position(records=10_000)], Errors: errors}
        assert bool(said("commits-too-often", rows)) == (fires or count > 1_000)


def test_a_member_that_never_commits_is_told_after_five_minutes() -> None:
    rows = {Members: [member(last_ns=300 * SECOND)], Positions: [position()]}
    assert len(said("never-commits", rows)) == 1
    assert not said("never-commits", {**rows, Positions: [position(records=0)]})
    assert not said("never-commits", {**rows, Members: [member(last_ns=299 * SECOND)]})
    assert not said("never-commits", {**rows, Members: [member(last_ns=300 * SECOND, commits=1)]})


@pytest.mark.parametrize(
    ("case", "id", "subject"),
    [
        ("lag-grows", "consumer-falling-behind", {"group": "event-store", "topic": "events"}),
        ("poison-pill", "stuck-offset", {"group": "geocoding", "topic": "addresses", "partition": 1}),
        ("offset-out-of-range", "data-lost-to-retention", {"group": "audit-archive", "partition": 0}),
        ("commit-storm", "commits-too-often", {"group": "ledger-copy", "client_id": "committer"}),
    ],
)
def test_trouble_of_real_groups_is_found_and_is_the_cause(
    case: str, id: str, subject: dict[str, Any]
) -> None:
    (found,) = of_rule(case, id)
    assert {name: getattr(found.subject, name) for name in subject} == subject
    assert found.because is None
    assert found.filter
    assert {each.id for each in found_in(case) if each.severity == CRITICAL and each.because is None} <= {id}


def test_a_healthy_consumer_has_none_of_it() -> None:
    assert not [each for each in found_in("healthy") if each.id in GRADES]
