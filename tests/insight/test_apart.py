"""A capture of two clusters whose groups, topics and transactional ids have the same names shows of each what
it shows alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kdissect.analysis.cluster import ClusterBrokers, ClusterChanges
from kdissect.analysis.fold import SECOND, Row, Statistic
from kdissect.analysis.lag import Lag
from kdissect.analysis.repeats import Repeats
from kdissect.analysis.transactions import Transactions
from kdissect.insight.catalogue import RULES
from kdissect.insight.finding import Finding, FindingSubject
from kdissect.insight.judge import Judged, judge
from kdissect.insight.rule import Facts
from tests.insight.judged import judged_file
from tests.insight.made import WHOLE, row
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


@pytest.mark.parametrize("group", ["g", "h"])
def test_a_rule_that_does_not_judge_several_clusters_judges_none_of_them(group: str) -> None:
    lost = {"lost_from": 160, "lost_after_ns": 5 * SECOND, "lost_ns": 9 * SECOND, "lost_exchange": 12}
    rows = [
        row(Lag, group="g", topic="t", partition=0, cluster_id="a"),
        row(Lag, group=group, topic="t", partition=0, cluster_id="b", **lost),
    ]
    found = judged("offsets-lost", {Lag: rows, Repeats: [], ClusterChanges: []})
    assert (found.findings, len(found.not_judged)) == ([], 1)


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
