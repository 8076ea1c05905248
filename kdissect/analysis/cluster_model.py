"""The model of the clusters in a capture: one fold that the tables of clusters are views of.

It only keeps what was said (:mod:`kdissect.analysis.statements`, :mod:`kdissect.analysis.metadata_log`); what
follows from it is decided when rows are asked for (:mod:`kdissect.analysis.cluster_history`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from kdissect.analysis.cluster_configs import Configs
from kdissect.analysis.cluster_events import Changes, Events
from kdissect.analysis.cluster_history import Change, Cluster, Spell
from kdissect.analysis.cluster_nodes import Nodes
from kdissect.analysis.cluster_told import TELLING, told
from kdissect.analysis.cluster_topics import TopicHistory
from kdissect.analysis.fold import Fold, most, told_ns
from kdissect.analysis.labels import Labels
from kdissect.analysis.metadata_log import MetadataLog, may_have_log
from kdissect.analysis.statements import Source, Statements
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.session.conversation import Connection


@dataclass
class History:
    """What is known of all clusters."""

    endpoints: list[tuple[Cluster, tuple[int, str, int], Spell]] = field(default_factory=list)
    """Node, host and port, each with how the node was."""
    topics: list[tuple[Cluster, str, Spell]] = field(default_factory=list)
    partitions: list[tuple[Cluster, tuple[str, int], Spell]] = field(default_factory=list)
    configs: list[tuple[Cluster, tuple[str, str, str], Spell]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)


class ClusterModel(Fold):
    """What was said of clusters."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._statements = Statements(self.room)
        self._log = MetadataLog(self.room)
        self._labels = Labels(limits)
        self._history: History | None = None
        """What follows from all that, until more is said."""
        self.end_ns: int | None = None
        """The latest time in the capture so far."""

    def _exchange(self, exchange: Exchange) -> None:
        self._see(exchange, True)

    def _other(self, exchange: Exchange) -> None:
        self._see(exchange, False)

    def _connection(self, connection: Connection) -> None:
        self.end_ns = most(self.end_ns, connection.end_ns)

    def _see(self, exchange: Exchange, counts: bool) -> None:
        self._labels.see(exchange)
        ns, api = told_ns(exchange), exchange.api or ""
        if self.end_ns is None or ns > self.end_ns:
            self.end_ns = ns
        if api not in TELLING:
            return
        source: Source | None = None
        for statement in told(exchange, self._labels):
            if source is None:
                source = Source(ns, exchange.number, api, exchange.broker, counts)
                self._history = None
            self._statements.add(statement, source)
        if may_have_log(exchange, api) and self._log.see(exchange, counts):
            self._history = None

    def merge(self, later: Self) -> None:
        self._statements.merge(later._statements)
        self._log.merge(later._log)
        self._labels.merge(later._labels)
        self.end_ns = most(self.end_ns, later.end_ns)
        self._history = None

    @property
    def left_out(self) -> int:
        return self._statements.left_out + self._log.left_out

    def history(self) -> History:
        """What is known by now."""
        self._labels.settle()
        if self._history is None:
            self._history = _history(Events(self._statements, self._log, self._labels))
        return self._history


def _history(events: Events) -> History:
    changes = Changes()
    topics = TopicHistory(events, changes)
    return History(
        endpoints=list(Nodes(events, changes).endpoints()),
        topics=list(topics.topics()),
        partitions=list(topics.partitions()),
        configs=list(Configs(events, changes, topics.made).configs()),
        changes=changes.in_order(),
    )
