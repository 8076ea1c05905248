"""Judges names that several clusters use, such as those of groups, for each cluster by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from kdissect.analysis.cluster import ClusterBrokers
from kdissect.analysis.connections import Connections
from kdissect.analysis.fold import Row, Statistic
from kdissect.analysis.versions import Versions
from kdissect.insight.context import JudgingContext
from kdissect.insight.finding import Finding
from kdissect.insight.nodes import ClusterNode, nodes_by_address
from kdissect.insight.rule import Facts, Rule
from kdissect.insight.words import quoted

_NAMES = {"group": "group", "topic": "topic", "transactional_id": "transactional_id", "held_topic": "topic"}
"""Columns with names that are unique only within a cluster, and the parts of a subject that they become."""
_PARTS = frozenset(_NAMES.values())
_MOST_ADDRESSES = 32
"""The most addresses of brokers in a display filter."""
SubjectName = tuple[str, str]
"""A part of a subject, and its value."""


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
        self._named: dict[type[Statistic], dict[SubjectName, set[str | None]]] = {}
        self._ids: dict[type[Statistic], set[str]] = {}
        self._addresses: dict[type[Statistic], set[str]] = {}

    @cached_property
    def _nodes(self) -> dict[str, ClusterNode]:
        return nodes_by_address(self._brokers)

    def ends(self) -> dict[str, int]:
        """When the last traffic of each cluster was captured: by its id, and by the address of each of its
        brokers that were captured."""
        found: dict[str, int] = {}
        places: dict[str, str] = {}
        for row in self._rows.get(Connections, ()):
            cluster, last_ns = self._cluster_at(row["broker"]), row["last_ns"]
            if cluster is not None and last_ns is not None:
                found[cluster] = max(found.get(cluster, last_ns), last_ns)
                places[row["broker"]] = cluster
        return found | {broker: found[cluster] for broker, cluster in places.items()}

    def shared(self, rule: Rule) -> frozenset[SubjectName]:
        """The names in the tables of a rule that several clusters use. The tables count together: one may
        have a topic of one cluster, and another table the same topic of another cluster."""
        found: dict[SubjectName, set[str | None]] = {}
        for need in rule.needs:
            for name, clusters in self._names_in(need).items():
                found.setdefault(name, set()).update(clusters)
        return frozenset(name for name, clusters in found.items() if len(clusters - {None}) > 1)

    def judged(
        self,
        rule: Rule,
        context: JudgingContext,
        thresholds: Mapping[str, Mapping[str, float]],
        is_shared: Callable[[Finding], bool],
    ) -> JudgedApart:
        """Have a rule judge each cluster.

        :param is_shared: whether a finding must be told by cluster.
        """
        out = JudgedApart([], [], None)
        needs: list[type[Statistic]] = [*rule.needs, ClusterBrokers]
        ids = {each for need in needs for each in self._ids_in(need)}
        nameless: list[tuple[str, Finding]] = []
        for cluster in sorted(ids):
            rows = _RowsOfCluster(self._rows, cluster, self._cluster_of)
            own = context._replace(last_ns=context.end_ns(cluster))
            facts = Facts(rule, rows, own, thresholds, self._made.setdefault(cluster, {}))
            for each in rule.judge(facts):
                if not is_shared(each):
                    continue
                if not names_of(each):
                    nameless.append((cluster, each))
                    continue
                found = out.vague if self._is_vague(rule, each) else out.known
                found.append(self._in_cluster(rule, each, cluster))
            if facts.not_judged is not None:
                out = out._replace(why=facts.not_judged)
        # Rows of an unknown cluster count for each. So what rests on them is found for several.
        rests = {(cluster, number) for cluster, each in nameless for number in each.exchanges}
        seen = Counter(number for _, number in rests)
        for cluster, each in nameless:
            is_vague = any(seen[number] > 1 for number in each.exchanges)
            (out.vague if is_vague else out.known).append(self._in_cluster(rule, each, cluster))
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
        found = {self._cluster_at(each) for each in _brokers_of(row)}
        return next(iter(found)) if len(found) == 1 else None

    def _cluster_at(self, broker: str) -> str | None:
        """The cluster of the broker at an address."""
        node = self._nodes.get(broker)
        clusters = node.named_clusters if node is not None else frozenset((None,))
        return next(iter(clusters)) if len(clusters) == 1 else None

    def _is_vague(self, rule: Rule, found: Finding) -> bool:
        """Whether a row of an unknown cluster has one of the names in a finding. The state of a cluster is
        only in tables that name the cluster."""
        names = names_of(found)
        tables = [each for each in rule.needs if not rule.of_cluster or _names_clusters(each)]
        return any(None in self._names_in(need).get(name, ()) for need in tables for name in names)

    def _names_in(self, need: type[Statistic]) -> dict[SubjectName, set[str | None]]:
        """The names in a table, each with the clusters of its rows."""
        if need not in self._named:
            found: dict[SubjectName, set[str | None]] = {}
            for row in self._rows[need]:
                names = [(part, value) for name, part in _NAMES.items() if (value := row.get(name))]
                if names:
                    cluster = self._cluster_of(row)
                    for each in names:
                        found.setdefault(each, set()).add(cluster)
            self._named[need] = found
        return self._named[need]

    def _in_cluster(self, rule: Rule, found: Finding, cluster: str) -> Finding:
        """A finding that names its cluster, and whose filter shows only exchanges with this cluster."""
        text = f"{found.subject_text}, cluster {cluster}" if found.subject_text else ""
        subject = found.subject._replace(cluster_id=cluster)
        return found.changed(subject=subject, subject_text=text, filter=self._filter_in(rule, found, cluster))

    def _filter_in(self, rule: Rule, found: Finding, cluster: str) -> str:
        """The filter of a finding, for one cluster. Numbers of exchanges and connections need no more. If all
        brokers are known, the filter names those of the cluster, otherwise those of the other clusters: it
        must not hide the finding's own exchanges."""
        if not found.filter or found.filter.startswith(_EXACT):
            return found.filter
        needs: list[type[Statistic]] = [*rule.needs, *({Versions} & self._rows.keys())]
        captured: set[str] = set().union(*(self._addresses_in(need) for need in needs))
        own = sorted(each for each in self._nodes if self._cluster_at(each) == cluster)
        others = sorted(each for each in self._nodes if self._cluster_at(each) not in (cluster, None))
        is_known = bool(captured) and all(self._cluster_at(each) is not None for each in captured)
        places = own if own and is_known else others
        if not 0 < len(places) <= _MOST_ADDRESSES:
            return found.filter
        text = f"({found.filter})" if " or " in found.filter else found.filter
        listed = f"broker in {{{', '.join(map(quoted, places))}}}"
        return f"{text} and {listed if places is own else f'not {listed}'}"

    def _addresses_in(self, need: type[Statistic]) -> set[str]:
        """The addresses of brokers in a table of what was captured."""
        if need not in self._addresses:
            self._addresses[need] = {each for row in self._rows[need] for each in _brokers_of(row)}
        return self._addresses[need]


_EXACT = "number ", "connection in ", "connection == "
"""How filters begin that show exchanges or connections by number."""


def _brokers_of(row: Row) -> list[str]:
    """The addresses of the brokers that a row is about."""
    broker = row.get("broker")
    return [broker] if broker else row.get("brokers") or []


def _names_clusters(table: type[Statistic]) -> bool:
    """Whether the rows of a table name their cluster."""
    return any(each.name == "cluster_id" for each in table.columns)


def names_of(found: Finding) -> list[SubjectName]:
    """The names in the subject of a finding that are unique only within a cluster."""
    return [(name, value) for name in _PARTS if (value := getattr(found.subject, name)) is not None]


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
