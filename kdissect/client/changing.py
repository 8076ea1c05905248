"""Which requests change something on a broker: a table, and the exceptions that their bodies make.

What is not in the table is taken to change something, so that a new API is not asked by accident.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kdissect.protocol import apis

READING = frozenset(
    (
        *("ApiVersions", "Metadata", "Fetch", "ListOffsets", "OffsetFetch", "FindCoordinator"),
        *("OffsetForLeaderEpoch", "FetchSnapshot", "GetTelemetrySubscriptions"),
        *("ListGroups", "DescribeGroups", "ConsumerGroupDescribe", "ShareGroupDescribe"),
        *("StreamsGroupDescribe", "DescribeShareGroupOffsets", "ReadShareGroupState"),
        *("ReadShareGroupStateSummary", "ListTransactions", "DescribeTransactions", "DescribeProducers"),
        *("DescribeAcls", "DescribeConfigs", "DescribeLogDirs", "DescribeDelegationToken"),
        *("DescribeClientQuotas", "DescribeUserScramCredentials", "DescribeQuorum", "DescribeCluster"),
        *("DescribeTopicPartitions", "ListPartitionReassignments", "ListConfigResources"),
    )
)
"""APIs that only read."""

_COORDINATOR_KEYS = ("key", "coordinatorKeys")


def changes(api_key: int, body: Mapping[str, Any] | None) -> bool:
    """Whether a request may change data, or what a broker remembers of groups and topics.

    :param body: its decoded values; None where it cannot be read.
    """
    name = apis.api_name(api_key)
    if name not in READING or body is None:
        return True
    if name == "Metadata":
        # A topic that is not there is made, unless that is forbidden; before version 4 it cannot be.
        return bool(body.get("topics")) and bool(body.get("allowAutoTopicCreation", True))
    if name == "FindCoordinator":
        # A broker makes the topic of the coordinators when it is first asked for one.
        return any(body.get(each) not in (None, []) for each in _COORDINATOR_KEYS)
    if name == "ReadShareGroupState":
        # ShareCoordinatorShard writes down a leader epoch that is higher than the one it knows.
        return bool(body.get("topics"))
    if name in ("Fetch", "FetchSnapshot"):
        # A follower's fetch moves the high watermark, and tells the leader that it is followed.
        state = body.get("replicaState") or {}  # where replicaId stands from Fetch v15 on
        return int(state.get("replicaId", body.get("replicaId", -1))) >= 0
    return False
