"""Functions for messages that tell of a cluster: their bodies, and the fields of a partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdissect.analysis.statements import Statement, fields
from kdissect.exchange import Exchange
from kdissect.message import Message

Told = Iterator[Statement]
Body = dict[str, Any]

NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def request_of(exchange: Exchange) -> Body:
    """The body of the request; empty without one."""
    return exchange.request.body() if exchange.request is not None else {}


def response_of(exchange: Exchange) -> Body:
    """The body of the response; empty without one."""
    return exchange.response.body() if exchange.response is not None else {}


def partition_fields(
    partition: Body,
    leader: str = "leaderId",
    replicas: str = "replicaNodes",
    isr: str = "isrNodes",
    offline: str = "offlineReplicas",
    topic_id: str | None = None,
) -> tuple[tuple[str, Any], ...]:
    """The fields of a struct about a partition. Their names differ between messages."""
    epoch = partition.get("leaderEpoch", -1)
    return fields(
        topic_id=topic_id,
        leader=partition.get(leader),
        leader_epoch=epoch if epoch >= 0 else None,
        partition_epoch=partition.get("partitionEpoch"),
        replicas=ids(partition.get(replicas)),
        isr=ids(partition.get(isr)),
        elr=ids(partition.get("eligibleLeaderReplicas")),
        offline=ids(partition.get(offline)),
        recovering=True if partition.get("leaderRecoveryState") == 1 else None,
    )


def ids(nodes: Any) -> tuple[int, ...] | None:
    """The node ids of a list; None if there is no list."""
    return None if nodes is None else tuple(nodes)


def real_id(topic_id: str | None) -> str | None:
    """A topic id; None for the id that means no topic."""
    return topic_id if topic_id and topic_id != NO_TOPIC_ID else None


def is_cut(message: Message | None) -> bool:
    """Whether lists in a message may lack their end."""
    return message is not None and message.is_cut


def controller(leader: Body) -> Statement:
    """The statement that names the leader of the quorum."""
    return Statement("controller", (), fields(id=leader.get("leaderId"), epoch=leader.get("leaderEpoch")))
