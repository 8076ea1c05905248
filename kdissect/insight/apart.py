"""Judges names that several clusters use, such as those of groups, for each cluster by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from kdissect.analysis.cluster import ClusterBrokers
from kdissect.analysis.fold import Row, Statistic
from kdissect.insight.context import JudgingContext
from kdissect.insight.finding import Finding
from kdissect.insight.nodes import ClusterNode, nodes_by_address
from kdissect.insight.rule import Facts, Rule

_NAMES = ("group", "topic", "transactional_id")
"""Columns with names that are unique only within a cluster."""


class ClustersApart:
    """The clusters of a capture, each with its rows.

    The cluster of a row is the one that it names, or that of its broker. If the cluster of a row is unknown,
    the row counts for every cluster. But the names in such a row are not judged, because nobody knows whose
    they are.

    :param rows: the rows of every statistic that a rule needs, :class:`ClusterBrokers` among them.
    """

    def __init__(self, rows: Mapping[type[Statistic], list[Row]]) -> None:
        self._rows = rows
        self._brokers = rows[ClusterBrokers]
        self._ids = sorted({row["cluster_id"] for row in self._brokers} - {None})
        self._made: dict[str, dict[Callable[[Facts], Any], Any]] = {each: {} for each in self._ids}

    @cached_property
    def _nodes(self) -> dict[str, ClusterNode]:
        return nodes_by_address(self._brokers)

    def judged(
        self,
        rule: Rule,
        context: JudgingContext,
        thresholds: Mapping[str, Mapping[str, float]],
        is_shared: Callable[[Finding], bool],
    ) -> Iterator[tuple[Finding, bool]]:
        """The findings of a rule on shared names, each with whether its cluster is known.

        :param is_shared: whether a finding is about a name that several clusters use.
        """
        for cluster in self._ids:
            rows = _RowsOfCluster(self._rows, cluster, self._cluster_of)
            for each in rule.judge(Facts(rule, rows, context, thresholds, self._made[cluster])):
                if is_shared(each):
                    yield _in_cluster(each, cluster), not self._is_vague(rule, each)

    def _cluster_of(self, row: Row) -> str | None:
        told: str | None = row.get("cluster_id")
        if told is not None:
            return told
        node = self._nodes.get(row.get("broker") or "")
        clusters = node.named_clusters if node is not None else frozenset((None,))
        return next(iter(clusters)) if len(clusters) == 1 else None

    def _is_vague(self, rule: Rule, found: Finding) -> bool:
        """Whether a row of an unknown cluster has one of the names in a finding."""
        names = [(name, value) for name in _NAMES if (value := getattr(found.subject, name)) is not None]
        return any(
            row.get(name) == value and self._cluster_of(row) is None
            for name, value in names
            for need in rule.needs
            for row in self._rows[need]
        )


class _RowsOfCluster(Mapping[type[Statistic], list[Row]]):
    """The rows of one cluster, and those of which the cluster is unknown."""

    def __init__(
        self,
        rows: Mapping[type[Statistic], list[Row]],
        cluster: str,
        cluster_of: Callable[[Row], str | None],
    ) -> None:
        self._rows, self._cluster, self._cluster_of = rows, cluster, cluster_of
        self._kept: dict[type[Statistic], list[Row]] = {}

    def __getitem__(self, need: type[Statistic]) -> list[Row]:
        found = self._kept.get(need)
        if found is None:
            of = self._cluster_of
            found = [row for row in self._rows[need] if of(row) in (None, self._cluster)]
            self._kept[need] = found
        return found

    def __iter__(self) -> Iterator[type[Statistic]]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def _in_cluster(found: Finding, cluster: str) -> Finding:
    """A finding that names its cluster."""
    text = f"{found.subject_text}, cluster {cluster}" if found.subject_text else ""
    return found.changed(subject=found.subject._replace(cluster_id=cluster), subject_text=text)
