"""Judges names that several clusters use, such as those of groups, for each cluster by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from kdissect.analysis.cluster import ClusterBrokers
from kdissect.analysis.fold import Row, Statistic
from kdissect.insight.context import JudgingContext
from kdissect.insight.finding import Finding
from kdissect.insight.nodes import ClusterNode, nodes_by_address
from kdissect.insight.rule import Facts, Rule

_NAMES = {"group": "group", "topic": "topic", "transactional_id": "transactional_id", "held_topic": "topic"}
"""Columns with names that are unique only within a cluster, and the parts of a subject that they become."""


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
        self._made: dict[str, dict[Callable[[Facts], Any], Any]] = {}
        self._vague: dict[type[Statistic], set[tuple[str, str]]] = {}
        self._ids: dict[type[Statistic], set[str]] = {}

    @cached_property
    def _nodes(self) -> dict[str, ClusterNode]:
        return nodes_by_address(self._brokers)

    def judged(
        self,
        rule: Rule,
        context: JudgingContext,
        thresholds: Mapping[str, Mapping[str, float]],
        is_shared: Callable[[Finding], bool],
    ) -> JudgedApart:
        """Have a rule judge each cluster.

        :param is_shared: whether a finding is about a name that several clusters use.
        """
        out = JudgedApart([], [], None)
        needs: list[type[Statistic]] = [*rule.needs, ClusterBrokers]
        ids = {each for need in needs for each in self._ids_in(need)}
        for cluster in sorted(ids):
            rows = _RowsOfCluster(self._rows, cluster, self._cluster_of)
            facts = Facts(rule, rows, context, thresholds, self._made.setdefault(cluster, {}))
            for each in rule.judge(facts):
                if is_shared(each):
                    found = out.vague if self._is_vague(rule, each) else out.known
                    found.append(_in_cluster(each, cluster))
            if facts.not_judged is not None:
                out = out._replace(why=facts.not_judged)
        return out

    def _ids_in(self, need: type[Statistic]) -> set[str]:
        """The clusters that a table names."""
        if need not in self._ids:
            found = (row.get("cluster_id") for row in self._rows[need])
            self._ids[need] = {each for each in found if each is not None}
        return self._ids[need]

    def _cluster_of(self, row: Row) -> str | None:
        told: str | None = row.get("cluster_id")
        if told is not None:
            return told
        node = self._nodes.get(row.get("broker") or "")
        clusters = node.named_clusters if node is not None else frozenset((None,))
        return next(iter(clusters)) if len(clusters) == 1 else None

    def _is_vague(self, rule: Rule, found: Finding) -> bool:
        """Whether a row of an unknown cluster has one of the names in a finding."""
        parts = set(_NAMES.values())
        names = {(name, value) for name in parts if (value := getattr(found.subject, name)) is not None}
        return any(not names.isdisjoint(self._vague_in(need)) for need in rule.needs)

    def _vague_in(self, need: type[Statistic]) -> set[tuple[str, str]]:
        """The names in a table's rows of unknown clusters."""
        if need not in self._vague:
            unknown = [row for row in self._rows[need] if self._cluster_of(row) is None]
            self._vague[need] = {
                (part, value)
                for name, part in _NAMES.items()
                for row in unknown
                if (value := row.get(name)) is not None
            }
        return self._vague[need]


class JudgedApart(NamedTuple):
    """What a rule finds on names that several clusters use."""

    known: list[Finding]
    vague: list[Finding]
    """Those whose cluster nobody knows for sure."""
    why: str | None
    """Why the rule could not judge one of the clusters."""


class _RowsOfCluster(Mapping[type[Statistic], list[Row]]):
    """The rows of one cluster, and those of which the cluster is unknown. The brokers of all clusters stay:
    rules know brokers by their addresses, and ask whether there are several clusters."""

    def __init__(
        self,
        rows: Mapping[type[Statistic], list[Row]],
        cluster: str,
        cluster_of: Callable[[Row], str | None],
    ) -> None:
        self._rows, self._cluster, self._cluster_of = rows, cluster, cluster_of
        self._kept: dict[type[Statistic], list[Row]] = {}

    def __getitem__(self, need: type[Statistic]) -> list[Row]:
        found = self._rows[need] if need is ClusterBrokers else self._kept.get(need)
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
