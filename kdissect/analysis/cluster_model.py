"""The model of the clusters in a capture: one fold that the tables of clusters are views of.

The fold only keeps statements (:mod:`kdissect.analysis.statements`, :mod:`kdissect.analysis.metadata_log`).
The history is computed from them when rows are asked for (:mod:`kdissect.analysis.cluster_history`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from kdissect.analysis.cluster_configs import Configs
from kdissect.analysis.cluster_events import Changes, Events
from kdissect.analysis.cluster_history import Change, Cluster, Spell
from kdissect.analysis.cluster_nodes import Nodes
from kdissect.analysis.cluster_statements import (
    LED,
    STATEMENT_APIS,
    VALUES_OF,
    depends_on_answer_only,
    statements_of,
)
from kdissect.analysis.cluster_topics import TopicHistory
from kdissect.analysis.fold import Batched, most
from kdissect.analysis.labels import Labels
from kdissect.analysis.metadata_log import CARRIERS, MetadataLog, may_have_log
from kdissect.analysis.recent import Recent
from kdissect.analysis.shared_parts import answer_bytes
from kdissect.analysis.statements import Kept, Source, Statement, Statements
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.protocol.apis import FETCH, PRODUCE
from kdissect.session.conversation import Connection

_REPEATED = frozenset(
    (
        *("ApiVersions", "Metadata", "FindCoordinator", "DescribeCluster", "DescribeTopicPartitions"),
        *("DescribeConfigs", *LED),
    )
)
"""APIs whose answers brokers repeat byte for byte, and whose statements follow from the two bodies."""
_OF_DATA = (PRODUCE, FETCH)
"""APIs that tell of a cluster only in refusals, and with records of ``__cluster_metadata``."""
_MOST_REMEMBERED, _MOST_BYTES = 256, 16_384
"""The most messages that are remembered, the most bytes of one, and the most tellers of each."""


class _ModelMessage:
    """The statements of a message."""

    __slots__ = ("kept", "statements")

    def __init__(self, statements: tuple[Statement, ...]) -> None:
        self.statements = statements
        self.kept: Recent[str, Kept] = Recent(_MOST_REMEMBERED)
        """The kept statements, by teller."""


def _words(exchange: Exchange, api: str) -> tuple[Any, ...] | None:
    """The key of an exchange's statements: equal keys mean equal statements. None if the comparison would
    take long."""
    request, response = exchange.request, exchange.response
    if request is None or response is None:
        return None
    values_of = VALUES_OF.get(api)
    if values_of is not None:
        return api, *values_of(request.body(), response.body())
    if api not in _REPEATED:
        return None
    answer = answer_bytes(exchange, response)
    if depends_on_answer_only(exchange, api):
        is_short = len(answer) <= _MOST_BYTES
        return (request.api_key, request.api_version, answer, response.is_cut) if is_short else None
    asked = request.frame.payload[request.body_start :]
    if len(asked) + len(answer) > _MOST_BYTES:
        return None
    client_id = exchange.client_id if api == "ApiVersions" else None
    is_cut = request.is_cut or response.is_cut
    return request.api_key, request.api_version, client_id, asked, answer, is_cut


@dataclass
class History:
    """The known facts of all clusters."""

    endpoints: list[tuple[Cluster, tuple[int, str, int], Spell]] = field(default_factory=list)
    """Node, host and port, each with the values of the node through time."""
    topics: list[tuple[Cluster, str, Spell]] = field(default_factory=list)
    partitions: list[tuple[Cluster, tuple[str, int], Spell]] = field(default_factory=list)
    configs: list[tuple[Cluster, tuple[str, str, str], Spell]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)


class ClusterModel(Batched):
    """The statements about clusters."""

    apis = STATEMENT_APIS.union(CARRIERS)

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(limits)
        self._statements = Statements(self.room)
        self._log = MetadataLog(self.room)
        self._labels = Labels(self.latest, limits)
        self._read: Recent[tuple[Any, ...], _ModelMessage] = Recent(_MOST_REMEMBERED)
        """Recently read messages."""
        self._history: History | None = None
        """The history of the statements so far; None after a new one."""
        self._closed_ns: int | None = None
        """When the last connection ended."""

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        for exchange in exchanges:
            response = exchange.response
            if response is not None and response.api_key in _OF_DATA:
                seen = response.survey()
                if seen is not None and not seen.error:
                    places = seen.records
                    if response.api_key == PRODUCE or not places or places[::2] == places[1::2]:
                        continue  # as nearly always: it tells nothing
            self._see(exchange, True)

    def _other(self, exchange: Exchange) -> None:
        self._see(exchange, False)

    def _connection(self, connection: Connection) -> None:
        self._closed_ns = most(self._closed_ns, connection.end_ns)

    def _see(self, exchange: Exchange, counts: bool) -> None:
        api = exchange.api
        if api in LED:
            if exchange.error is not None:
                self._keep_statements(exchange, api, counts)
        elif api in STATEMENT_APIS:
            self._keep_statements(exchange, api, counts)
        if api in CARRIERS and may_have_log(exchange) and self._log.see(exchange, counts):
            self._history = None

    def _keep_statements(self, exchange: Exchange, api: str, counts: bool) -> None:
        """Keep the statements of an exchange. Brokers repeat most of them to each client."""
        words = _words(exchange, api)
        message = None if words is None else self._read.get(words)
        if message is None:
            message = _ModelMessage(tuple(statements_of(exchange, self._labels)))
            if words is not None and all(each.by is None for each in message.statements):
                self._read.keep(words, message)
        if not message.statements:
            return
        self._history = None
        ns, number, teller = exchange.ended_ns, exchange.number, exchange.broker
        before = message.kept.get(teller)
        if before is None or not self._statements.again(before, ns, number, counts):
            kept = self._statements.add(message.statements, Source(ns, number, api, teller, counts))
            if kept is not None:
                message.kept.keep(teller, kept)

    def merge(self, later: Self) -> None:
        self._statements.merge(later._statements)
        self._log.merge(later._log)
        self._labels.merge(later._labels)
        self._closed_ns = most(self._closed_ns, later._closed_ns)
        self._history = None

    @property
    def end_ns(self) -> int | None:
        """The latest time in the capture so far."""
        return most(self._closed_ns, self.latest.ns)

    @property
    def left_out(self) -> int:
        return self._statements.left_out + self._log.left_out

    def history(self) -> History:
        """The history known so far."""
        self._labels.resolve_names()
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
