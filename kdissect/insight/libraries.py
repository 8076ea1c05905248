"""What client libraries call the settings which pages of rules call by Java's names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ClientLibrary:
    """A client library and its settings."""

    name: str
    settings: Mapping[str, str]
    """Its own names by Java's; empty where it has no such setting."""


_PYTHON = (
    *("acks", "auto.offset.reset", "client.rack", "compression.type", "enable.auto.commit"),
    *("enable.idempotence", "fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "group.instance.id"),
    *("heartbeat.interval.ms", "isolation.level", "linger.ms", "max.partition.fetch.bytes"),
    *("max.poll.interval.ms", "max.poll.records", "max.request.size", "metadata.max.age.ms"),
    *("partition.assignment.strategy", "session.timeout.ms", "transaction.timeout.ms", "transactional.id"),
)
"""Settings that kafka-python and aiokafka have under Java's names, with underscores."""
_UNDERSCORED = {each: each.replace(".", "_") for each in _PYTHON}
LIBRDKAFKA = ClientLibrary(
    "librdkafka",
    {
        "fetch.max.wait.ms": "fetch.wait.max.ms",
        "max.poll.records": "",
        "max.request.size": "message.max.bytes",
        "metadata.max.age.ms": "topic.metadata.refresh.interval.ms",
    },
)
"""It has Java's names, or takes them for its own, but for these."""
LIBRARIES = {
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
    "kafka-python": ClientLibrary(
        "kafka-python",
        {
            **_UNDERSCORED,
            "batch.size": "batch_size",
            "delivery.timeout.ms": "delivery_timeout_ms",
            "group.protocol": "",
            "max.in.flight.requests.per.connection": "max_in_flight_requests_per_connection",
        },
    ),
    "aiokafka": ClientLibrary(
        "aiokafka",
        {
            **_UNDERSCORED,
            "batch.size": "max_batch_size",
            "delivery.timeout.ms": "",
            "group.protocol": "",
            "max.in.flight.requests.per.connection": "",
        },
    ),
    "kafkajs": ClientLibrary(
        "KafkaJS",
        {
            "auto.offset.reset": "fromBeginning",
            "batch.size": "",
            "client.rack": "rackId",
            "compression.type": "compression",
            "delivery.timeout.ms": "",
            "enable.auto.commit": "autoCommit",
            "enable.idempotence": "idempotent",
            "fetch.max.bytes": "maxBytes",
            "fetch.max.wait.ms": "maxWaitTimeInMs",
            "fetch.min.bytes": "minBytes",
            "group.instance.id": "",
            "group.protocol": "",
            "heartbeat.interval.ms": "heartbeatInterval",
            "isolation.level": "the opposite of readUncommitted",
            "linger.ms": "",
            "max.in.flight.requests.per.connection": "maxInFlightRequests",
            "max.partition.fetch.bytes": "maxBytesPerPartition",
            "max.poll.interval.ms": "rebalanceTimeout",
            "max.poll.records": "",
            "max.request.size": "",
            "metadata.max.age.ms": "metadataMaxAge",
            "partition.assignment.strategy": "partitionAssigners",
            "session.timeout.ms": "sessionTimeout",
            "transaction.timeout.ms": "transactionTimeout",
            "transactional.id": "transactionalId",
        },
    ),
    "kafka-go": ClientLibrary(
        "kafka-go",
        {
            "acks": "RequiredAcks",
            "auto.offset.reset": "StartOffset",
            "batch.size": "BatchBytes",
            "client.rack": "",
            "compression.type": "Compression",
            "enable.idempotence": "",
            "fetch.max.bytes": "MaxBytes",
            "fetch.max.wait.ms": "MaxWait",
            "fetch.min.bytes": "MinBytes",
            "group.instance.id": "",
            "group.protocol": "",
            "heartbeat.interval.ms": "HeartbeatInterval",
            "isolation.level": "IsolationLevel",
            "linger.ms": "BatchTimeout",
            "max.poll.interval.ms": "RebalanceTimeout",
            "max.poll.records": "",
            "max.request.size": "BatchBytes",
            "metadata.max.age.ms": "MetadataTTL",
            "partition.assignment.strategy": "GroupBalancers",
            "session.timeout.ms": "SessionTimeout",
            "transaction.timeout.ms": "",
            "transactional.id": "",
        },
    ),
    **dict.fromkeys(
        (
            *("librdkafka", "confluent-kafka-python", "confluent-kafka-go", "confluent-kafka-dotnet"),
            *("confluent-kafka-javascript", "node-rdkafka"),
        ),
        LIBRDKAFKA,
    ),
}
"""By the name of the software in ApiVersions (KIP-511), or by a name of ours for libraries that do not say
it. Names as in franz-go 1.22, sarama 1.61, kafka-python 3.0, aiokafka 0.14, KafkaJS 2.2, kafka-go 0.4 and
librdkafka 2.16."""
_DEFAULT_IDS = (
    (re.compile(r"aiokafka-\d[\w.]*"), "aiokafka"),
    (re.compile(r"kafka-python-\d[\w.]*"), "kafka-python"),
    (re.compile(r"kafkajs"), "kafkajs"),
    (re.compile(r".*\(github\.com/segmentio/kafka-go\)"), "kafka-go"),
)
"""The client ids that libraries use if the application sets none."""
_OWN_ASSIGNORS = {"RoundRobinAssigner": "kafkajs"}
"""Assignors that only one library has."""


def library_by_client_id(client_id: str | None) -> str | None:
    """The library whose default client id this is."""
    return next((name for id, name in _DEFAULT_IDS if client_id and id.fullmatch(client_id)), None)


def library_by_assignors(assignors: list[str] | None) -> str | None:
    """The library that alone has one of the assignors that a member of a group offers."""
    return next((_OWN_ASSIGNORS[each] for each in assignors or () if each in _OWN_ASSIGNORS), None)
