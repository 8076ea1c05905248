"""The names that client libraries have for settings which pages of rules call by Java's names.

The table has libraries that say who they are (KIP-511) and name their settings in their own way. librdkafka
and the clients built on it use Java's names; the pages say where they do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kdissect.analysis.fold import Row
from kdissect.insight.finding import Finding


@dataclass(frozen=True)
class ClientLibrary:
    """A client library and its settings."""

    name: str
    settings: Mapping[str, str]
    """Its own names by Java's; empty where it has no such setting."""


_LIBRARIES = {
    "kgo": ClientLibrary(
        "franz-go",
        {
            "acks": "RequiredAcks",
            "auto.offset.reset": "ConsumeResetOffset",
            "batch.size": "ProducerBatchMaxBytes",
            "client.rack": "Rack",
            "compression.type": "ProducerBatchCompression",
            "delivery.timeout.ms": "RecordDeliveryTimeout",
            "enable.auto.commit": "the opposite of DisableAutoCommit",
            "enable.idempotence": "the opposite of DisableIdempotentWrite",
            "fetch.max.bytes": "FetchMaxBytes",
            "fetch.max.wait.ms": "FetchMaxWait",
            "fetch.min.bytes": "FetchMinBytes",
            "group.instance.id": "InstanceID",
            "group.protocol": "ServerSideBalancer",
            "heartbeat.interval.ms": "HeartbeatInterval",
            "isolation.level": "FetchIsolationLevel",
            "linger.ms": "ProducerLinger",
            "max.in.flight.requests.per.connection": "MaxProduceRequestsInflightPerBroker",
            "max.partition.fetch.bytes": "FetchMaxPartitionBytes",
            "max.poll.interval.ms": "RebalanceTimeout",
            "max.poll.records": "PollRecords",
            "max.request.size": "ProducerBatchMaxBytes",
            "metadata.max.age.ms": "MetadataMaxAge",
            "partition.assignment.strategy": "Balancers",
            "session.timeout.ms": "SessionTimeout",
            "transaction.timeout.ms": "TransactionTimeout",
            "transactional.id": "TransactionalID",
        },
    ),
    "sarama": ClientLibrary(
        "sarama",
        {
            "acks": "Producer.RequiredAcks",
            "auto.offset.reset": "Consumer.Offsets.Initial",
            "batch.size": "Producer.Flush.Bytes",
            "client.rack": "RackID",
            "compression.type": "Producer.Compression",
            "enable.auto.commit": "Consumer.Offsets.AutoCommit.Enable",
            "enable.idempotence": "Producer.Idempotent",
            "fetch.max.wait.ms": "Consumer.MaxWaitTime",
            "fetch.min.bytes": "Consumer.Fetch.Min",
            "group.instance.id": "Consumer.Group.InstanceId",
            "group.protocol": "",
            "heartbeat.interval.ms": "Consumer.Group.Heartbeat.Interval",
            "isolation.level": "Consumer.IsolationLevel",
            "linger.ms": "Producer.Flush.Frequency",
            "max.in.flight.requests.per.connection": "Net.MaxOpenRequests",
            "max.partition.fetch.bytes": "Consumer.Fetch.Default",
            "max.poll.interval.ms": "Consumer.Group.Rebalance.Timeout",
            "max.poll.records": "",
            "max.request.size": "Producer.MaxMessageBytes",
            "metadata.max.age.ms": "Metadata.RefreshFrequency",
            "partition.assignment.strategy": "Consumer.Group.Rebalance.GroupStrategies",
            "session.timeout.ms": "Consumer.Group.Session.Timeout",
            "transaction.timeout.ms": "Producer.Transaction.Timeout",
            "transactional.id": "Producer.Transaction.ID",
        },
    ),
}
"""By the name of the software in ApiVersions. Names as in franz-go 1.22 and sarama 1.61."""
_SETTING = re.compile(r"(?<![\w.])[a-z]+(?:\.[a-z]+)+(?![\w.]*\w)|\backs(?==)")


@dataclass
class OwnNames:
    """The libraries of clients, and so what their settings are called."""

    _of_client: dict[str, set[str | None]] = field(default_factory=dict)
    _of_group: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, clients: Iterable[Row], members: Iterable[Row]) -> OwnNames:
        """Made from rows of :class:`~kdissect.analysis.clients.Clients` and
        :class:`~kdissect.analysis.groups.Members`."""
        found = cls()
        for row in clients:
            found._of_client.setdefault(row["client_id"], set()).add(row["software"])
        for row in members:
            if row["member_id"] and row["client_id"]:
                found._of_group.setdefault(row["group"], set()).add(row["client_id"])
        return found

    def said(self, finding: Finding) -> Finding:
        """The finding, whose fix ends with the client library's own names of settings in it. The fix stays if
        the clients do not all have one library with names of its own."""
        subject = finding.subject
        ids = {subject.client_id} if subject.client_id else set(finding.client_ids)
        if not ids and subject.group is not None:
            ids = set(self._of_group.get(subject.group, ()))
        software = {each for id in ids for each in self._of_client.get(id, {None})}
        library = _LIBRARIES.get(next(iter(software)) or "") if len(software) == 1 else None
        words = _words(library, finding.fix) if library is not None else ""
        return finding.changed(fix=f"{finding.fix} {words}") if words else finding


def _words(library: ClientLibrary, fix: str) -> str:
    """The sentences about the settings that a fix names."""
    named = dict.fromkeys(each for each in _SETTING.findall(fix) if each in library.settings)
    own = [(each, library.settings[each]) for each in named if library.settings[each] not in fix]
    known = [f"{each} is {name}" for each, name in own if name]
    lacking = [each for each in named if not library.settings[each]]
    words = [f"In {library.name}, {_listed(known)}."] if known else []
    if lacking:
        words.append(f"{library.name} has no {_listed(lacking, 'or')}.")
    return " ".join(words)


def _listed(words: list[str], last: str = "and") -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"
