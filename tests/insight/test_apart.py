"""A capture of two clusters whose groups, topics and transactional ids have the same names shows of each what
it shows alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kdissect.analysis.cluster import ClusterBrokers, ClusterChanges, ClusterPartitions, ClusterTopics
from kdissect.analysis.connections import Connections
from kdissect.analysis.errors import Errors
from kdissect.analysis.fold import SECOND, Row, Statistic
from kdissect.analysis.groups import Members
from kdissect.analysis.lag import Lag
from kdissect.analysis.positions import Positions
from kdissect.analysis.rebalances import Rebalances
from kdissect.analysis.repeats import Repeats
from kdissect.analysis.tcp import Tcp
from kdissect.analysis.transactions import Transactions
from kdissect.analysis.versions import Versions
from kdissect.capture.files import read_packets
from kdissect.exchange import Exchange
from kdissect.filter.compiled import compile_filter
from kdissect.insight.apart import ClustersApart
from kdissect.insight.catalogue import RULES
from kdissect.insight.context import ClusterEnds
from kdissect.insight.finding import Finding, FindingSubject
from kdissect.insight.judge import NO_CLUSTER, Judged, judge
from kdissect.insight.rule import Facts
from tests.dissecting import dissect
from tests.insight.judged import judged_file
from tests.insight.made import WHOLE, row, zeros
from tests.two_clusters import EAST, LAG, TRANSACTIONS, WEST, two_clusters

Told = tuple[str, str | None, str | None, str | None, str | None]


def told(findings: list[Finding]) -> list[Told]:
    """Findings without their clusters, each with the rule of its cause."""
    return sorted(
        (
            each.id,
            each.subject.group,
            each.subject.topic,
            each.subject.transactional_id,
            (each.because or "").partition(" ")[0],
        )
        for each in findings
    )


@pytest.mark.parametrize("capture", [LAG, TRANSACTIONS])
def test_each_cluster_shows_what_it_shows_alone(capture: Path, tmp_path: Path) -> None:
    east, west = two_clusters(tmp_path, capture)
    alone, both = judged_file(east).findings, judged_file(east, west).findings
    assert told(both) == sorted([*told(alone), *told(judged_file(west).findings)])
    named = [each for each in both if each.subject.group or each.subject.topic]
    assert named
    assert {each.subject.cluster_id for each in named} == {EAST, WEST}
    assert all(each.where.endswith(f"cluster {each.subject.cluster_id}") for each in named)
    assert len({each.key for each in both}) == len(both)


def test_no_finding_explains_one_of_another_cluster(tmp_path: Path) -> None:
    both = {each.key: each for each in judged_file(*two_clusters(tmp_path)).findings}
    for each in both.values():
        if each.because is not None and both[each.because].subject.cluster_id is not None:
            assert both[each.because].subject.cluster_id == each.subject.cluster_id


BROKERS = [
    row(ClusterBrokers, cluster_id=cluster, node_id=1, host=host, port=9092)
    for cluster, host in (("a", "10.0.0.1"), ("b", "10.9.0.1"))
]


def held(**values: Any) -> Row:
    """A transaction that held back readers of a topic for long."""
    usual = {
        **{"begin_ns": 10 * SECOND, "end_ns": 31 * SECOND, "last_ns": 31 * SECOND, "outcome": "committed"},
        **{"partitions": 1, "records": 100, "retries": 0, "retry_ns": 0, "timeout_ms": 60_000},
        **{"held_topic": "t", "held_partition": 0, "held_ns": 20 * SECOND, "held_offsets": 50},
    }
    return row(Transactions, **(usual | values))


def judged(id: str, rows: dict[type[Statistic], list[Row]]) -> Judged:
    return judge({id: RULES[id]}, {ClusterBrokers: BROKERS, **rows}, WHOLE)


def test_a_row_whose_cluster_nobody_knows_is_told_of_no_cluster() -> None:
    rows = [held(cluster_id=cluster, held_ns=SECOND) for cluster in "ab"]
    found = judged("lso-lag", {Transactions: [*rows, held(begin_ns=40 * SECOND)]})
    assert not found.findings
    assert [each.rule for each in found.not_judged] == ["lso-lag"]


def test_a_cluster_without_known_brokers_is_judged() -> None:
    rows = [held(cluster_id=cluster, transactional_id="pay") for cluster in "abc"]
    found = judged("lso-lag", {Transactions: rows})
    assert [each.subject.cluster_id for each in found.findings] == ["a", "b", "c"]


ENDS = [
    zeros(Connections, client="10.1.0.1:1", broker=broker, first_ns=0, last_ns=last_ns)
    for broker, last_ns in (("10.0.0.1:9092", 20 * SECOND), ("10.9.0.1:9092", 100 * SECOND))
]
"""Traffic of one cluster that ends long before that of the other."""


def test_a_transaction_is_not_open_for_longer_than_its_cluster_was_captured() -> None:
    still = {"outcome": "open", "begin_ns": 15 * SECOND, "end_ns": None, "held_ns": 4 * SECOND}
    rows = [held(cluster_id=cluster, transactional_id=f"of-{cluster}", **still) for cluster in "ab"]
    (found,) = judged("transaction-hanging", {Transactions: rows, Connections: ENDS}).findings
    assert (found.subject.transactional_id, found.measure) == ("of-b", 85)
    alone = judged("transaction-hanging", {Transactions: rows, Connections: ENDS[1:]}).findings
    assert len(alone) == 2  # of cluster a there is no traffic at all, so its end is not known


def test_a_rebalance_stands_still_for_no_longer_than_its_cluster_was_captured() -> None:
    still = {"completed": False, "begin_ns": 16 * SECOND, "stopped_ns": 84 * SECOND, "members_before": 2}
    rows = [row(Rebalances, cluster_id=each, group=f"of-{each}", types=["classic"], **still) for each in "ab"]
    (found,) = judged("rebalance-long", {Rebalances: rows, Members: [], Connections: ENDS}).findings
    assert (found.subject.group, found.measure) == ("of-b", 84)


def test_the_end_of_a_cluster_is_that_of_all_its_brokers() -> None:
    brokers = [*BROKERS, row(ClusterBrokers, cluster_id="a", node_id=2, host="10.0.0.2", port=9092)]
    later = row(Connections, broker="10.0.0.2:9092", last_ns=30 * SECOND)
    unknown = row(Connections, broker="10.5.0.1:9092", last_ns=90 * SECOND)
    rows = {ClusterBrokers: brokers, Connections: [*ENDS, later, unknown]}
    context = WHOLE._replace(ends=ClusterEnds(ClustersApart(rows).ends(), WHOLE.last_ns))
    assert context.end_ns("a") == context.end_ns("10.0.0.1:9092") == 30 * SECOND
    assert context.end_ns("b") == context.end_ns("10.0.0.1:9092", "10.9.0.1:9092") == 100 * SECOND
    assert context.end_ns(None) == context.end_ns("10.5.0.1:9092") == 30 * SECOND
    assert (context.beyond_ns("a"), context.beyond_ns("b"), WHOLE.beyond_ns("a")) == (70 * SECOND, 0, 0)
    assert WHOLE.end_ns("a") == WHOLE.end_ns(None) == 100 * SECOND


LOST = {"lost_from": 160, "lost_after_ns": 5 * SECOND, "lost_ns": 9 * SECOND, "lost_exchange": 12}


@pytest.mark.parametrize("group", ["g", "h"])
def test_offsets_are_lost_in_the_cluster_that_had_them(group: str) -> None:
    rows = [
        row(Lag, group="g", topic="t", partition=0, cluster_id="a"),
        row(Lag, group=group, topic="t", partition=0, cluster_id="b", **LOST),
    ]
    asked = row(Repeats, api="DeleteGroups", client="10.1.0.1:1", first_ns=0, last_ns=SECOND * 100)
    for broker, severity in (("10.0.0.1:9092", "warning"), ("10.9.0.1:9092", "notice")):
        repeats = [{**asked, "broker": broker, "client_id": "admin"}]
        (told,) = judged("offsets-lost", {Lag: rows, Repeats: repeats, ClusterChanges: []}).findings
        assert told.subject.cluster_id == "b"
        assert told.severity == severity


def test_a_rule_that_needs_the_cluster_of_a_group_says_so() -> None:
    rows = [row(Lag, group="g", topic="t", partition=0, **LOST)]
    found = judged("offsets-lost", {Lag: rows, Repeats: [], ClusterChanges: []})
    assert (found.findings, len(found.not_judged)) == ([], 1)


def leaderless(cluster: str | None, **values: Any) -> Row:
    """A partition that has no leader for 20 s."""
    usual = {"topic": "t", "partition": 0, "leader": -1, "from_ns": 50 * SECOND, "to_ns": 70 * SECOND}
    number = {"a": 5, "b": 6, None: 7}[cluster]
    return row(ClusterPartitions, cluster_id=cluster, source_exchange=number, **(usual | values))


def test_a_topic_made_in_another_cluster_excuses_no_lack_of_a_leader() -> None:
    made = row(ClusterChanges, what="topic-created", topic="t", cluster_id="b", ns=49 * SECOND)
    rows = [leaderless("a"), leaderless("b")]
    found = judged("partition-offline", {ClusterPartitions: rows, ClusterChanges: [made]}).findings
    assert [(each.subject.topic, each.subject.cluster_id) for each in found] == [("t", "a")]


def test_leaders_that_brokers_of_two_clusters_lost_are_told_by_cluster() -> None:
    moved = [
        row(
            ClusterChanges,
            **{"what": "leader-moved", "topic": name, "cluster_id": cluster, "ns": 50 * SECOND},
            **{"before": "1", "after": "none", "partition": 0, "subject": f"{name}-0"},
        )
        for cluster in "ab"
        for name in "stuv"
    ]
    rows = [leaderless(cluster, topic=name) for cluster in "ab" for name in "stuv"]
    found = judged("partition-offline", {ClusterPartitions: rows, ClusterChanges: moved}).findings
    assert [(each.subject.broker, each.subject.cluster_id, each.count) for each in found] == [
        ("10.0.0.1:9092", "a", 4),
        ("10.9.0.1:9092", "b", 4),
    ]


def not_preferred(cluster: str | None, **values: Any) -> Row:
    """A partition that has had another leader than its first replica from the beginning."""
    usual = {"topic": "t", "partition": 0, "leader": 2, "replicas": "1,2", "preferred": False, "from_ns": 0}
    number = {"a": 5, "b": 6, None: 7}[cluster]
    return row(ClusterPartitions, cluster_id=cluster, source_exchange=number, **(usual | values))


ALONE: dict[type[Statistic], list[Row]] = {ClusterChanges: [], Errors: [], Tcp: []}


def test_a_share_of_partitions_is_that_of_one_cluster() -> None:
    well = [not_preferred("b", partition=at, preferred=True, leader=1) for at in range(20)]
    rows = [not_preferred("a"), not_preferred("a", partition=1), *well]
    found = judged("leader-not-preferred", {**ALONE, ClusterPartitions: rows}).findings
    assert [(each.subject.cluster_id, each.measure) for each in found] == [("a", 100)]


def test_what_rests_on_facts_of_an_unknown_cluster_is_told_of_none() -> None:
    rows = [not_preferred(None), not_preferred(None, partition=1)]
    found = judged("leader-not-preferred", {**ALONE, ClusterPartitions: rows})
    assert not found.findings
    assert [each.why for each in found.not_judged] == [NO_CLUSTER]


def test_a_topic_of_one_cluster_is_missing_in_another() -> None:
    asked = row(
        Repeats,
        **{"api": "Metadata", "topic": "t", "error": "UNKNOWN_TOPIC_OR_PARTITION", "replica_id": -1},
        **{"client": "10.1.0.1:1", "client_id": "c", "broker": "10.9.0.1:9092", "count": 30},
        **{"first_ns": SECOND, "last_ns": 40 * SECOND, "exchanges": [9]},
    )
    topics = [row(ClusterTopics, cluster_id="a", topic="t")]
    rows = {Repeats: [asked], ClusterTopics: topics, Errors: [], ClusterChanges: [], Members: []}
    (found,) = judged("unknown-topic-loop", rows).findings
    assert found.subject.cluster_id == "b"


@pytest.mark.parametrize(
    ("given", "captured", "told"),
    [
        ('topic == "t"', [], 'topic == "t" and broker in {"10.0.0.1:9092"}'),
        ("a == 1 or b == 2", [], '(a == 1 or b == 2) and broker in {"10.0.0.1:9092"}'),
        ('topic == "t"', ["10.5.0.1:9092"], 'topic == "t" and not broker in {"10.9.0.1:9092"}'),
        ("number in {1, 2}", [], "number in {1, 2}"),
        ("", [], ""),
    ],
)
def test_the_filter_shows_the_exchanges_of_the_cluster(given: str, captured: list[str], told: str) -> None:
    def lags(facts: Facts) -> Iterator[Finding]:
        for each in facts.rows(Lag):
            yield facts.finding(FindingSubject(group="g"), "lags", filter=given, count=each["commits"])

    rule = RULES["partition-lags"]._replace(judge=lags, needs=(Lag,))
    rows: dict[type[Statistic], list[Row]] = {
        ClusterBrokers: BROKERS,
        Lag: [row(Lag, group="g", cluster_id=cluster, commits=1) for cluster in "ab"],
        Versions: [row(Versions, broker=each) for each in ("10.0.0.1:9092", *captured)],
    }
    found = judge({rule.id: rule}, rows, WHOLE).findings
    assert found[0].subject.cluster_id == "a"
    assert found[0].filter == told


def test_the_filters_of_two_clusters_show_other_exchanges(tmp_path: Path) -> None:
    paths = two_clusters(tmp_path)
    filters = {
        each.filter: "127.0.0.1" if each.subject.cluster_id == EAST else "127.0.0.2"
        for each in judged_file(*paths).findings
        if each.subject.group and each.filter and not each.filter.startswith("number ")
    }
    assert len(filters) > 1
    shown = {text: compile_filter(text) for text in filters}
    seen = dict.fromkeys(filters, 0)
    for event in dissect(iter(read_packets(list(paths)))):
        if isinstance(event, Exchange):
            for text, keeps in shown.items():
                if keeps.matches(event):
                    seen[text] += 1
                    assert event.broker.startswith(filters[text] + ":")
    assert all(seen.values())


def test_a_group_that_reads_from_a_broker_of_no_known_cluster_is_not_judged() -> None:
    brokers = [row(ClusterBrokers, cluster_id="a", node_id=1, host="10.0.0.1", port=9092, from_ns=SECOND)]
    rows = [row(Lag, group="g", topic="t", partition=0, cluster_id="a", **LOST)]
    usual = {"group": "g", "topic": "t", "partition": 0, "client": "10.1.0.1:1", "first_ns": SECOND}
    inside = row(Positions, **usual, broker="10.0.0.1:9092", last_ns=5 * SECOND)
    given: dict[type[Statistic], list[Row]] = {
        **{ClusterBrokers: brokers, Lag: rows, Repeats: [], ClusterChanges: []},
        Positions: [inside],
    }
    for broker, last_ns, count in (
        ("10.0.0.1:9092", 5 * SECOND, 1),
        ("10.5.0.1:9092", SECOND, 1),  # it may have stopped before the list came
        ("10.5.0.1:9092", 5 * SECOND, 0),
    ):
        given[Positions] = [inside, row(Positions, **usual, broker=broker, last_ns=last_ns)]
        assert len(judged("offsets-lost", given).findings) == count


@pytest.mark.parametrize("moved", [{"first_ns": 6 * SECOND}, {"partition": 1}])
def test_a_group_of_one_cluster_may_read_from_a_broker_that_was_not_listed_yet(moved: dict[str, Any]) -> None:
    brokers = [row(ClusterBrokers, cluster_id="a", node_id=1, host="10.0.0.1", port=9092, from_ns=SECOND)]
    usual = {"group": "g", "topic": "t", "partition": 0, "client": "10.1.0.1:1", "first_ns": SECOND}
    inside = row(Positions, **usual, broker="10.0.0.1:9092", last_ns=5 * SECOND)
    outside = row(Positions, **{**usual, **moved}, broker="10.5.0.1:9092", last_ns=9 * SECOND)
    given: dict[type[Statistic], list[Row]] = {
        **{ClusterBrokers: brokers, Repeats: [], ClusterChanges: []},
        Lag: [row(Lag, group="g", topic="t", partition=0, cluster_id="a", **LOST)],
        Positions: [inside, outside],
    }
    assert len(judged("offsets-lost", given).findings) == 1


def test_findings_of_one_cluster_may_rest_on_the_same_exchange() -> None:
    rows = [not_preferred("a"), not_preferred("a", partition=1)]

    def two(facts: Facts) -> Iterator[Finding]:
        for node in (
            (1, 2) if any(each["cluster_id"] == "a" for each in facts.rows(ClusterPartitions)) else ()
        ):
            yield facts.finding(FindingSubject(broker=str(node)), f"broker {node}", exchanges=[7])

    rule = RULES["leader-not-preferred"]._replace(judge=two, needs=(ClusterPartitions,))
    given: dict[type[Statistic], list[Row]] = {
        **ALONE,
        ClusterBrokers: BROKERS,
        ClusterPartitions: rows,
    }
    found = judge({"leader-not-preferred": rule}, given, WHOLE)
    assert [each.subject.cluster_id for each in found.findings] == ["a", "a"]


def test_why_no_cluster_could_be_judged_is_told() -> None:
    def needs_ten(facts: Facts) -> Iterator[Finding]:
        if sum(each["commits"] for each in facts.rows(Lag)) < 10:
            facts.cannot_judge("needs 10 commits")
            return
        yield facts.finding(FindingSubject(group="g"), "lags")

    id = "partition-lags"
    rows = [row(Lag, group="g", cluster_id=cluster, commits=5) for cluster in "ab"]
    rule = RULES[id]._replace(judge=needs_ten, needs=(Lag,))
    found = judge({id: rule}, {ClusterBrokers: BROKERS, Lag: rows}, WHOLE)
    assert not found.findings
    assert [each.why for each in found.not_judged] == ["needs 10 commits"]
