"""Running rules: thresholds, order, causes, what is over; and parts of a capture."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kdissect.analysis.cluster import ClusterBrokers
from kdissect.analysis.fold import SECOND, Row, Statistic
from kdissect.analysis.groups import Members, Stays
from kdissect.analysis.lag import Lag
from kdissect.analysis.offsets_asked import OffsetsAsked
from kdissect.analysis.positions import Positions
from kdissect.analysis.stalls import Stalls
from kdissect.analysis.topics import Topics
from kdissect.analysis.transactions import Transactions
from kdissect.capture.files import read_packets
from kdissect.dissect import Event
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import SLEPT, JudgingContext
from kdissect.insight.finding import Finding, FindingSubject
from kdissect.insight.judge import (
    CLEAR_NS,
    CLOCK,
    IN_ORDER,
    TWIN_NAMES,
    TWINS,
    Judge,
    RowsInTurn,
    in_turn,
    judge,
    of_captures,
)
from kdissect.insight.rule import Facts, Rule
from tests.dissecting import dissect
from tests.insight.judged import CAPTURES, judged_file
from tests.insight.made import WHOLE, row

DATA = Path(__file__).parents[1] / "data"


def finding(id: str, severity: str = "notice", category: str = "made", **more: object) -> Finding:
    made = Finding(id, severity, "certain", category, FindingSubject(), "…")
    return made.changed(**more)


def rules(*findings: Finding) -> dict[str, Rule]:
    def judge_of(found: Finding) -> Rule:
        return Rule(found.id, "notice", "certain", found.category, (), lambda _: [found], {})

    return {each.id: judge_of(each) for each in findings}


def ids(*findings: Finding, context: JudgingContext | None = None) -> list[str]:
    return [each.id for each in judge(rules(*findings), {}, context or JudgingContext()).findings]


def test_what_several_rules_use_is_made_once_in_each_judgement() -> None:
    calls: list[int] = []

    def count(facts: Facts) -> int:
        calls.append(len(calls))
        return calls[-1]

    def used(facts: Facts) -> Iterator[Finding]:
        yield finding("used", count=facts.once(count))

    both = {name: Rule(name, "notice", "certain", "made", (), used, {}) for name in ("one", "other")}
    assert [each.count for each in judge(both, {}, JudgingContext()).findings] == [0, 0]
    assert [each.count for each in judge(both, {}, JudgingContext()).findings] == [1, 1]


def test_the_worst_stands_first_and_the_capture_first_of_what_is_as_bad() -> None:
    found = ids(
        finding("a", "notice"),
        finding("b", "critical"),
        finding("c", "warning", cost_ns=5),
        finding("d", "warning", cost_ns=9),
        finding("e", "notice", category="capture"),
    )
    assert found == ["b", "d", "c", "e", "a"]


SET_BACK = JudgingContext(0, 100 * SECOND, set_back=((20 * SECOND, 60 * SECOND),), ends_earlier=True)
ORDERED = {"unit": "records", "category": "offsets", "first_ns": 60 * SECOND}
LASTED = {"first_ns": 10 * SECOND, "last_ns": 70 * SECOND}


@pytest.mark.parametrize(
    ("more", "is_told"),
    [
        ({"unit": "records", "measure": 9}, True),
        ({"unit": "s", "measure": 1}, False),
        ({"unit": "requests/s", "measure": 1}, False),
        ({"cost_ns": 1}, False),
        ({"unit": "ms", "last_ns": 20 * SECOND}, True),
        ({"unit": "ms", "first_ns": 60 * SECOND}, True),
        ({"unit": "ms", "first_ns": 70 * SECOND, "last_ns": 10 * SECOND}, False),
        ({"unit": "ms", "first_ns": None}, False),
        ({"unit": "s", "category": "capture"}, True),
        ({"unit": "records", "category": "offsets"}, False),
        ({**ORDERED, "severity": "warning"}, True),
        ({**ORDERED, "severity": "warning", "last_ns": 100 * SECOND}, False),
        (ORDERED, False),
        ({**ORDERED, "severity": "info"}, False),
    ],
)
def test_nobody_is_accused_by_a_time_over_a_clock_that_was_set_back(
    more: dict[str, object], is_told: bool
) -> None:
    found = finding("a").changed(**{**LASTED, **more})
    told = judge(rules(found), {}, SET_BACK)
    assert bool(told.findings) == is_told
    assert [each.rule for each in told.not_judged if each.why == SLEPT] == ([] if is_told else ["a"])
    assert judge(rules(found), {}, JudgingContext(0, 100 * SECOND)).findings


@pytest.mark.parametrize(
    "more",
    [
        {"unit": "s", "last_ns": 100 * SECOND, "severity": "critical"},
        {"unit": "records", "last_ns": 100 * SECOND, "severity": "warning"},
        {"unit": "s", "severity": "notice"},
    ],
)
def test_what_came_after_the_clock_was_set_back_is_told_if_the_latest_time_is_the_end(
    more: dict[str, object],
) -> None:
    found = finding("a").changed(category="brokers", first_ns=61 * SECOND, **more)
    assert judge(rules(found), {}, SET_BACK._replace(ends_earlier=False)).findings
    assert not judge(rules(found), {}, SET_BACK).findings


@pytest.mark.parametrize("name", ["held_s", "wait_ms", "seconds", "minutes", "per_minute", "per_s"])
def test_what_a_limit_of_time_decided_rests_on_the_clock(name: str) -> None:
    found = finding("a").changed(unit="records", **LASTED)
    by = rules(found)["a"]
    assert not judge({"a": by._replace(thresholds={name: 1})}, {}, SET_BACK).findings
    assert judge({"a": by._replace(thresholds={"records": 1})}, {}, SET_BACK).findings


STOOD = JudgingContext(0, 100 * SECOND, silences=((22 * SECOND, 40 * SECOND),))


def stall(asked_last_s: float) -> Row:
    ends = {"from_ns": 21 * SECOND, "to_ns": 41 * SECOND, "stalled_ns": 20 * SECOND}
    return row(Stalls, **ends, asked_last_ns=round(asked_last_s * SECOND))


def stay(heartbeat_s: float | None = 3, first_s: int = 1, last_s: int = 90) -> Row:
    beat = {} if heartbeat_s is None else {"heartbeat_p50_ns": round(heartbeat_s * SECOND)}
    return row(Stays, first_ns=first_s * SECOND, last_ns=last_s * SECOND, **beat)


@pytest.mark.parametrize(("asked_last_s", "halts"), [(21.04, 1), (21.05, 0), (24, 0)])
def test_where_nobody_asked_any_more_the_capture_stood_still(asked_last_s: float, halts: int) -> None:
    """If a broker stands still, clients still send what they send every few seconds."""
    context = STOOD.with_halts([stall(asked_last_s)], [stay()])
    assert len(context.halts) == len(context.pauses) == halts
    assert context.awake_ns(10 * SECOND, 60 * SECOND) == (50 - 22 * halts) * SECOND
    assert STOOD._replace(silences=()).with_halts([stall(asked_last_s)], [stay()]).halts == ()


def test_what_clocks_of_both_ends_show_needs_no_member() -> None:
    known = STOOD._replace(halts=((22 * SECOND, 40 * SECOND),))
    assert known.with_halts([], []).halts == known.with_halts([stall(21)], [stay()]).halts == known.halts
    short = STOOD._replace(halts=((60 * SECOND, 62 * SECOND),))
    assert short.pauses == short.halts, "no silence is needed"
    both = short.with_halts([stall(21)], [stay()])
    assert both.halts == ((22 * SECOND, 40 * SECOND), (60 * SECOND, 62 * SECOND))


@pytest.mark.parametrize("member", [stay(None), stay(18), stay(first_s=23), stay(last_s=39)])
def test_where_nobody_was_due_to_send_the_broker_may_have_stood_still(member: Row) -> None:
    assert STOOD.with_halts([stall(21)], [member]).halts == ()
    assert STOOD.with_halts([stall(21)], [member, stay(17)]).halts


@pytest.mark.parametrize(
    ("more", "is_told"),
    [
        ({"unit": "s", "first_ns": 20 * SECOND, "last_ns": 42 * SECOND}, False),
        ({"unit": "s", "first_ns": 0, "last_ns": 45 * SECOND}, True),
        ({"unit": "records", "first_ns": 20 * SECOND, "last_ns": 42 * SECOND}, True),
        ({"unit": "s", "first_ns": 20 * SECOND, "last_ns": 42 * SECOND, "category": "network"}, True),
    ],
)
def test_what_lasted_only_because_the_capture_stood_still_is_not_told(
    more: dict[str, object], is_told: bool
) -> None:
    found = finding("a").changed(**{"category": "transactions", **more})
    by = {"a": rules(found)["a"]._replace(category=found.category)}
    assert bool(judge(by, {Stalls: [stall(21)], Stays: [stay()]}, STOOD).findings) == is_told
    assert judge(by, {Stalls: [stall(30)], Stays: [stay()]}, STOOD).findings


@pytest.mark.parametrize(
    ("clusters", "category", "told_of"),
    [
        (("a", "b"), "groups", ["a", "b"]),
        (("a", "b"), "lag", ["a", "b"]),
        (("a", "b"), "produce", [None]),
        (("a", "a"), "groups", [None]),
        (("a", None), "groups", [None]),
    ],
)
def test_groups_of_one_name_in_two_clusters_are_judged_apart(
    clusters: tuple[str | None, str | None], category: str, told_of: list[str | None]
) -> None:
    hosts = ("10.0.0.1", "10.9.0.1")
    rows: dict[type[Statistic], list[Row]] = {
        ClusterBrokers: [
            row(ClusterBrokers, cluster_id=cluster, node_id=1, host=host, port=9092)
            for cluster, host in zip(clusters, hosts, strict=True)
        ],
        Positions: [row(Positions, group="g", broker=f"{host}:9092") for host in hosts],
    }
    found = finding("a").changed(category=category, subject=FindingSubject(group="g"))
    by = {"a": rules(found)["a"]._replace(category=category)}

    def told(**more: list[Row]) -> list[str | None]:
        judged = judge(by, {**rows, **{_STATISTICS[name]: found for name, found in more.items()}}, WHOLE)
        assert not judged.not_judged
        return [each.subject.cluster_id for each in judged.findings]

    assert told() == told_of
    other = found.changed(subject=FindingSubject(group="h"))
    assert judge({"a": rules(other)["a"]._replace(category=category)}, rows, WHOLE).findings
    rows[Positions].pop()
    assert told() == [None]
    lag, members = row(Lag, group="g", cluster_id="a"), row(Members, group="g")
    assert told(lag=[lag], members=[members]) == [None]
    if clusters == ("a", "b"):
        assert told(lag=[lag], members=[members | {"cluster_id": "b"}]) == told_of
    # Who copies offsets asks both clusters for them, and nobody reads in the second one.
    asked = row(OffsetsAsked, group="g", brokers=["10.9.0.1:9092"])
    assert told(asked=[asked]) == told_of


_STATISTICS: dict[str, type[Statistic]] = {"lag": Lag, "members": Members, "asked": OffsetsAsked}


def test_a_group_of_two_clusters_is_not_judged_if_nobody_knows_whose_some_facts_are() -> None:
    hosts = ("10.0.0.1", "10.9.0.1", "10.5.0.1")
    rows: dict[type[Statistic], list[Row]] = {
        ClusterBrokers: [
            row(ClusterBrokers, cluster_id=cluster, node_id=1, host=host, port=9092)
            for cluster, host in zip("ab", hosts[:2], strict=True)
        ],
        Positions: [row(Positions, group="g", broker=f"{host}:9092") for host in hosts],
    }
    found = finding("a").changed(category="groups", subject=FindingSubject(group="g"))
    by = {"a": rules(found)["a"]._replace(category="groups", needs=(Positions,))}
    told = judge(by, rows, WHOLE)
    assert (told.findings, [each.why for each in told.not_judged]) == ([], [TWINS])
    rows[Positions].pop()
    assert len(judge(by, rows, WHOLE).findings) == 2


def test_a_rule_sees_the_rows_of_one_cluster_at_a_time() -> None:
    rows: dict[type[Statistic], list[Row]] = {
        ClusterBrokers: [
            row(ClusterBrokers, cluster_id=cluster, node_id=1, host=host, port=9092)
            for cluster, host in (("a", "10.0.0.1"), ("b", "10.9.0.1"))
        ],
        Lag: [row(Lag, group="g", cluster_id=cluster, lag=lag) for cluster, lag in (("a", 1), ("b", 20))],
    }

    def sums(facts: Facts) -> Iterator[Finding]:
        lag = sum(each["lag"] for each in facts.rows(Lag))
        yield facts.finding(FindingSubject(group="g"), f"{lag} behind", subject_text="all of g")

    id = "partition-lags"  # it has a page
    by = {id: rules(finding("a"))["a"]._replace(judge=sums, needs=(Lag,), id=id)}
    told = [
        (each.message, each.where, each.key.rpartition(" ")[2]) for each in judge(by, rows, WHOLE).findings
    ]
    assert told == [
        ("1 behind", "all of g, cluster a", "cluster_id=a"),
        ("20 behind", "all of g, cluster b", "cluster_id=b"),
    ]
    assert FindingSubject(group="g", cluster_id="a").text() == "group g, cluster a"


def test_an_effect_stands_below_its_cause() -> None:
    cause, effect = finding("a", "notice"), finding("b", "critical", because="a")
    assert ids(finding("c", "warning"), effect, cause) == ["a", "b", "c"]  # the worst is an effect
    assert ids(finding("c", "warning"), effect.changed(severity="info"), cause) == ["c", "a", "b"]


def test_an_effect_of_what_nobody_found_stands_for_itself() -> None:
    (found,) = judge(rules(finding("b", because="a")), {}, JudgingContext()).findings
    assert found.because is None


def test_a_finding_that_was_not_seen_for_long_is_over() -> None:
    context = JudgingContext(first_ns=0, last_ns=2 * CLEAR_NS)
    old, new = finding("a", last_ns=CLEAR_NS), finding("b", last_ns=CLEAR_NS + 1)
    found = {each.id: each.resolved_ns for each in judge(rules(old, new), {}, context).findings}
    assert found == {"a": CLEAR_NS, "b": None}
    assert CLEAR_NS == 60 * SECOND


def test_thresholds_come_from_the_configuration() -> None:
    def long(facts: Facts) -> Iterator[Finding]:
        if facts.limit("stopped_s") <= 3:
            yield finding("long")

    known = {"long": Rule("long", "notice", "certain", "made", (), long, {"stopped_s": 5})}
    assert not judge(known, {}, JudgingContext()).findings
    assert judge(known, {}, JudgingContext(), {"long": {"stopped_s": 3}}).findings


def test_what_cannot_be_judged_is_told() -> None:
    def silent(facts: Facts) -> Iterator[Finding]:
        facts.cannot_judge("needs 60 s")
        return iter(())

    found = judge(
        {"silent": Rule("silent", "notice", "certain", "made", (), silent, {})}, {}, JudgingContext()
    )
    assert found.not_judged == [("silent", "needs 60 s")]
    assert found.rules == 0


def events(name: str) -> list[Event]:
    return list(dissect(iter(read_packets([CAPTURES / name]))))


def whole(name: str) -> Judge:
    found = Judge()
    for event in events(name):
        found.feed(event)
    return found


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"one_sided": 5}, []),
        ({"one_sided": 6}, ["only one direction was captured"]),
        ({"cut_packets": 9, "gap_bytes": 100}, []),
        (
            {"cut_packets": 9, "gap_bytes": 101},
            ["the capture tool kept less than half of the bytes (its snap length)"],
        ),
        ({"gap_bytes": 101}, []),  # rules look at the gaps of connections
    ],
)
def test_what_nobody_can_see_is_not_judged_even_if_no_rule_says_so(
    change: dict[str, Any], why: list[str]
) -> None:
    found = finding("found")
    silent = Rule("silent", "notice", "certain", "made", (), lambda _: [], {})
    context = JudgingContext(exchanges=10, captured_bytes=100)._replace(**change)
    result = judge({**rules(found), "silent": silent}, {}, context)
    assert [each.id for each in result.findings] == ["found"]
    assert [(each.rule, each.why) for each in result.not_judged] == [("silent", each) for each in why]


@pytest.mark.parametrize("name", sorted(each.name for each in CAPTURES.glob("*.pcap*")))
def test_parts_give_what_the_whole_gives(name: str) -> None:
    found = events(name)
    for parts in (2, 7):
        size = len(found) // parts + 1
        merged = Judge()
        for start in range(0, len(found), size):
            part = Judge()
            for event in found[start : start + size]:
                part.feed(event)
            merged.merge(pickle.loads(pickle.dumps(part)))
        assert merged.judged() == whole(name).judged()


def test_asking_twice_gives_the_same() -> None:
    judge = whole("loss.pcapng")
    assert judge.judged() == judge.judged()


def test_without_kafka_only_the_capture_is_judged() -> None:
    found = Judge().judged()
    assert [each.id for each in found.findings] == ["no-kafka"]
    assert {each.why for each in found.not_judged} <= {"no Kafka was captured"}


def test_failed_tls_is_told_where_no_kafka_came_about() -> None:
    """Nothing is decrypted, so nothing is known to be Kafka."""
    found = judged_file(DATA / "tls" / "certificate-not-trusted.pcapng.gz")
    assert [each.id for each in found.findings] == ["tls-handshake-failed", "tls-dark", "no-kafka"]
    assert found.findings[0].subject.broker == "127.0.0.1:21041"


def test_ignored_rules_are_not_run() -> None:
    judge = whole("midstream.pcapng")
    assert "mid-stream" in {each.id for each in judge.judged().findings}
    assert "mid-stream" not in {each.id for each in judge.judged(ignored=("mid-*",)).findings}


def test_rows_are_let_go_after_the_last_rule_that_needs_them() -> None:
    done: list[str] = []

    class Watched(RowsInTurn):
        def drop(self, done_with: Iterable[type[Statistic]]) -> None:
            every = [*done_with]
            super().drop(every)
            done.extend(each.name for each in every)

    every = of_captures()
    rows = Watched({need: need() for each in every for need in each.needs})
    judge({each.id: each for each in every}, rows, JudgingContext())
    assert sorted(done) == sorted(need.name for need in rows)
    assert not rows._rows
    assert {each.id for each, _ in in_turn(every)} == {each.id for each in every}


def test_the_categories_of_what_happens_in_order_are_categories() -> None:
    assert {each.category for each in RULES.values()} > IN_ORDER
    assert CLOCK in RULES


@pytest.mark.parametrize("other", ["a", "b", None])
@pytest.mark.parametrize(("facts", "column"), [(Transactions, "transactional_id"), (Topics, "topic")])
def test_names_of_two_clusters_are_judged_apart(
    facts: type[Statistic], column: str, other: str | None
) -> None:
    rows: dict[type[Statistic], list[Row]] = {
        ClusterBrokers: [
            row(ClusterBrokers, cluster_id=cluster, node_id=1, host=host, port=9092)
            for cluster, host in (("a", "10.0.0.1"), ("b", "10.9.0.1"))
        ],
        facts: [row(facts, cluster_id=cluster, **{column: "pay"}) for cluster in ("a", other)],
    }
    for name in ("pay", "sell"):
        subject = FindingSubject()._replace(**{column: name})  # type: ignore[arg-type]
        found = finding("a").changed(subject=subject)
        by = {"a": rules(found)["a"]._replace(needs=(facts,))}
        told = judge(by, rows, JudgingContext())
        is_twin = other == "b" and name == "pay"
        assert [each.subject.cluster_id for each in told.findings] == (["a", "b"] if is_twin else [None])
        assert not told.not_judged
    rows[facts].append(row(facts, **{column: "pay"}))
    found = finding("a").changed(subject=FindingSubject()._replace(**{column: "pay"}))  # type: ignore[arg-type]
    told = judge({"a": rules(found)["a"]._replace(needs=(facts,))}, rows, JudgingContext())
    assert bool(told.findings) != (other == "b")
    assert [each.why for each in told.not_judged] == ([TWIN_NAMES.format("pay")] if other == "b" else [])
    rows[facts] += [row(facts, cluster_id=cluster, **{column: None}) for cluster in ("a", other)]
    found = finding("a").changed(subject=FindingSubject(client_id="c"))
    assert judge({"a": rules(found)["a"]._replace(needs=(facts,))}, rows, JudgingContext()).findings


@pytest.mark.parametrize(("topic", "told_of"), [("t", ["a", "b"]), ("u", ["a", "b"]), ("v", [None])])
def test_transactions_without_an_id_are_not_joined_by_a_topic_of_two_clusters(
    topic: str, told_of: list[str | None]
) -> None:
    rows: dict[type[Statistic], list[Row]] = {
        ClusterBrokers: [
            row(ClusterBrokers, cluster_id=cluster, node_id=1, host=host, port=9092)
            for cluster, host in (("a", "10.0.0.1"), ("b", "10.9.0.1"))
        ],
        Transactions: [
            *(row(Transactions, cluster_id=cluster, held_topic="t") for cluster in ("a", "b")),
            row(Transactions, cluster_id="a", held_topic="u"),
            row(Transactions, cluster_id="b", held_topic="u", transactional_id="pay"),
            row(Transactions, cluster_id="a", held_topic="v"),
        ],
    }
    found = finding("a").changed(subject=FindingSubject(topic=topic, partition=0))
    told = judge({"a": rules(found)["a"]._replace(needs=(Transactions,))}, rows, JudgingContext())
    assert [each.subject.cluster_id for each in told.findings] == told_of
