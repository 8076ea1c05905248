"""Tables of clusters: brokers, topics, partitions, settings, and changes. Each row holds for a span of time,
and names who told it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from kdissect.analysis.cluster_history import Spell, list_text
from kdissect.analysis.cluster_model import ClusterModel, History
from kdissect.analysis.declared import (
    CLUSTER_COLUMN,
    EXCHANGE,
    ID,
    PARTITION_COLUMN,
    TOPIC_COLUMN,
    Declared,
    column,
    time_column,
)
from kdissect.analysis.fold import Row, View

HELD: tuple[Declared, ...] = (
    time_column("from_ns", "when the capture first shows this state; it may be older"),
    time_column("to_ns", "when the capture first shows another state; null if this one lasts to the end"),
    column("source_exchange", "int64", "number of the exchange that shows it", unit=EXCHANGE),
    column("told_by", "text", "API of that exchange, or class of the record of __cluster_metadata"),
    time_column("last_told_ns", "when the capture last shows this state"),
)


def held_at(rows: Sequence[Row], at_ns: int | None) -> list[Row]:
    """The rows of a table that held at a time; for the table of changes, those that had happened by then.

    :param at_ns: the time; None for the end of the capture.
    """
    if rows and "ns" in rows[0]:
        return [row for row in rows if at_ns is None or row["ns"] <= at_ns]
    if at_ns is None:
        return [row for row in rows if row["to_ns"] is None]
    return [row for row in rows if row["from_ns"] <= at_ns and (row["to_ns"] is None or at_ns < row["to_ns"])]


class _ClusterTable(View[ClusterModel]):
    """The parts that all tables of clusters share."""

    basis_type = ClusterModel
    _made: tuple[History | None, int] = None, 0
    """The history that the last rows were made from, and their number."""

    def _rows(self) -> list[Row]:
        raise NotImplementedError

    def result(self) -> list[Row]:
        rows = self._rows()
        self._made = self.basis.history(), len(rows)
        return rows[: self.limits.rows]

    def merge(self, later: Self) -> None:
        self.basis.merge(later.basis)

    @property
    def left_out(self) -> int:
        history, count = self._made
        if history is not self.basis.history():
            count = len(self._rows())
        return self.basis.left_out + max(0, count - self.limits.rows)


def _held(span: Spell) -> Row:
    return {
        "from_ns": span.from_ns,
        "to_ns": span.to_ns,
        "source_exchange": span.exchange,
        "told_by": span.told_by,
        "last_told_ns": span.last_told_ns,
    }


def _order(cluster: str | None, subject: Any, span: Spell) -> tuple[Any, ...]:
    return cluster or "", subject, span.from_ns, span.exchange


class ClusterBrokers(_ClusterTable):
    """The statistic ``cluster_brokers``: a row for each address of a node, and for each time with other
    values."""

    name = "cluster_brokers"
    about = "brokers and controllers, with their state over time"
    columns = (
        CLUSTER_COLUMN,
        column("node_id", "int32", "the id of the node", unit=ID),
        column("host", "text", "host of the node, as brokers report it"),
        column("port", "int32", "port", unit=ID),
        column("rack", "text", "its rack"),
        column("listener", "text", "name of the listener, if the capture shows it"),
        column("fenced", "bool", "whether the controller fences it (clients cannot use it); null if unknown"),
        column("controller", "bool", "whether it is the active controller; null if unknown"),
        column("epoch", "int64", "the broker epoch, which changes each time the broker starts", unit=ID),
        column("software", "text", "its software, according to its own requests"),
        *HELD,
    )

    def _rows(self) -> list[Row]:
        found = sorted(self.basis.history().endpoints, key=lambda each: _order(*each))
        return [
            {
                "cluster_id": cluster,
                "node_id": node,
                "host": host,
                "port": port,
                "rack": span.values.get("rack"),
                "listener": span.values.get("listener"),
                "fenced": span.values.get("fenced"),
                "controller": span.values.get("controller"),
                "epoch": span.values.get("epoch"),
                "software": span.values.get("software"),
                **_held(span),
            }
            for cluster, (node, host, port), span in found
            if span.counts
        ]


class ClusterTopics(_ClusterTable):
    """The statistic ``cluster_topics``."""

    name = "cluster_topics"
    about = "topics, with their state over time"
    columns = (
        CLUSTER_COLUMN,
        TOPIC_COLUMN,
        column("topic_id", "text", "its id, if the capture shows it"),
        column("partitions", "int32", "how many partitions it has"),
        column("replication", "int32", "replicas of a partition"),
        column("internal", "bool", "whether it is Kafka's own"),
        *HELD,
    )

    def _rows(self) -> list[Row]:
        found = sorted(self.basis.history().topics, key=lambda each: _order(*each))
        return [
            {
                "cluster_id": cluster,
                "topic": topic,
                "topic_id": span.values.get("topic_id"),
                "partitions": span.values.get("partitions"),
                "replication": span.values.get("replication"),
                "internal": span.values.get("internal"),
                **_held(span),
            }
            for cluster, topic, span in found
            if span.counts
        ]


class ClusterPartitions(_ClusterTable):
    """The statistic ``cluster_partitions``."""

    name = "cluster_partitions"
    about = "leaders, replicas and replicas in sync over time"
    columns = (
        CLUSTER_COLUMN,
        TOPIC_COLUMN,
        column("topic_id", "text", "its id, if the capture shows it"),
        PARTITION_COLUMN,
        column("leader", "int32", "node that leads the partition; -1 without a leader", unit=ID),
        column("leader_epoch", "int32", "leader epoch, which grows with each new leader", unit=ID),
        column("replicas", "text", "nodes that have a copy, the preferred leader first"),
        column("isr", "text", "replicas in sync"),
        column("elr", "text", "replicas not in sync that may lead without loss (KIP-966)"),
        column("offline", "text", "replicas that cannot be reached"),
        column("preferred", "bool", "whether the first replica leads"),
        *HELD,
    )

    def _rows(self) -> list[Row]:
        rows = []
        for cluster, (topic, partition), span in sorted(
            self.basis.history().partitions, key=lambda each: _order(*each)
        ):
            values = span.values
            leader, replicas = values.get("leader"), values.get("replicas")
            if not span.counts:
                continue
            rows.append(
                {
                    "cluster_id": cluster,
                    "topic": topic,
                    "topic_id": values.get("topic_id"),
                    "partition": partition,
                    "leader": leader,
                    "leader_epoch": values.get("leader_epoch"),
                    "replicas": list_text(replicas),
                    "isr": list_text(values.get("isr")),
                    "elr": list_text(values.get("elr")),
                    "offline": list_text(values.get("offline")),
                    "preferred": leader == replicas[0] if replicas and leader is not None else None,
                    **_held(span),
                }
            )
        return rows


class ClusterConfigs(_ClusterTable):
    """The statistic ``cluster_configs``: configurations, quotas and finalized features."""

    name = "cluster_configs"
    about = "settings, quotas and features over time"
    columns = (
        CLUSTER_COLUMN,
        column(
            "resource_type", "text", "topic, broker, broker-logger, client-metrics, group, quota, feature"
        ),
        column("resource", "text", "the topic, broker, … that has the setting; empty for the default of all"),
        column("config", "text", "the name of the configuration, quota or feature"),
        column("value", "text", "its value; <redacted> if it is or may be a secret; null for the default"),
        column("source", "text", "where the value was set: topic, broker, brokers, file, default …"),
        *HELD,
    )

    def _rows(self) -> list[Row]:
        found = sorted(self.basis.history().configs, key=lambda each: _order(*each))
        return [
            {
                "cluster_id": cluster,
                "resource_type": kind,
                "resource": resource,
                "config": name,
                "value": span.values.get("value") or None,
                "source": span.values.get("source"),
                **_held(span),
            }
            for cluster, (kind, resource, name), span in found
            if span.counts
        ]


CHANGES = (
    *("leader-moved", "unclean-election", "isr-shrunk", "isr-grown", "replicas-changed"),
    *("broker-appeared", "broker-gone", "broker-registered", "broker-refused", "broker-fenced"),
    *("broker-unfenced", "broker-stopping", "log-dirs-offline", "controller-moved"),
    *("topic-created", "topic-deleted", "topic-replaced", "partitions-added"),
    *("config-changed", "quota-changed", "feature-changed", "acl-changed"),
)
"""The kinds of changes."""


class ClusterChanges(_ClusterTable):
    """The statistic ``cluster_changes``."""

    name = "cluster_changes"
    about = "what happened in the cluster, when and by whom"
    columns = (
        time_column("ns", "when the capture first shows the change"),
        column("what", "text", ", ".join(CHANGES)),
        column("subject", "text", "what changed: a broker, a topic, TOPIC-PARTITION, a setting"),
        column("before", "text", "the value before the change"),
        column("after", "text", "the value after the change"),
        column("by", "text", "who asked for the change; null if the capture does not show it"),
        column("topic", "text", "the topic, if the change is about one"),
        column("partition", "int32", "the partition"),
        column(
            "node_id",
            "int32",
            "the broker: for leaders the previous one, for in-sync replicas the one that changed",
            unit=ID,
        ),
        column("exchange", "int64", "number of the exchange that shows it", unit=EXCHANGE),
        column("told_by", "text", "API of that exchange, or class of the record of __cluster_metadata"),
        CLUSTER_COLUMN,
    )

    def _rows(self) -> list[Row]:
        return [
            {
                "ns": each.ns,
                "what": each.what,
                "subject": each.subject,
                "before": each.before,
                "after": each.after,
                "by": each.by,
                "topic": each.topic,
                "partition": each.partition,
                "node_id": each.node,
                "exchange": each.number,
                "told_by": each.told_by,
                "cluster_id": each.cluster,
            }
            for each in self.basis.history().changes
            if each.counts
        ]
