"""Statements about the cluster in messages between brokers and controllers
(:mod:`kdissect.analysis.cluster_statements`)."""

from __future__ import annotations

from collections.abc import Callable

from kdissect.analysis.cluster_fields import (
    Body,
    Told,
    controller,
    is_cut,
    partition_fields,
    real_id,
    request_of,
    response_of,
)
from kdissect.analysis.cluster_settings import accepted
from kdissect.analysis.labels import Labels
from kdissect.analysis.statements import Statement, client_of, fields
from kdissect.exchange import Exchange
from kdissect.names import is_metadata_topic

DELETED = -2
"""``LeaderAndIsr.LEADER_DURING_DELETE`` and ``EPOCH_DURING_DELETE``, with ZooKeeper."""
DUPLICATE_REGISTRATION = 101


def _isr_altered(exchange: Exchange, labels: Labels) -> Told:
    by = f"broker {request_of(exchange).get('brokerId')}"
    for topic in response_of(exchange).get("topics") or ():
        name, topic_id = topic.get("topicName") or topic.get("name"), real_id(topic.get("topicId"))
        label = labels.topic(name, None if name else topic_id)
        for each in topic.get("partitions") or ():
            if each.get("errorCode") == 0:
                found = partition_fields(each, isr="isr", topic_id=topic_id)
                yield Statement("partition", (label, each.get("partitionIndex")), found, by)


def _states(exchange: Exchange, labels: Labels) -> Told:
    """LeaderAndIsr, UpdateMetadata and StopReplica, which the controller sends to brokers with ZooKeeper."""
    request = request_of(exchange)
    if response_of(exchange).get("errorCode"):
        return
    if request.get("controllerId", -1) >= 0:
        found = fields(id=request["controllerId"], epoch=request.get("controllerEpoch"))
        yield Statement("controller", (), found)
    places = []
    for broker in request.get("liveBrokers") or ():
        first = {"host": broker.get("v0Host"), "port": broker.get("v0Port")}
        for each in broker.get("endpoints") or (first,):
            if each.get("port") is None:
                continue  # the message breaks off before it
            place = broker.get("id", -1), each.get("host") or "", each["port"]
            places.append(place)
            found = fields(rack=broker.get("rack"), listener=each.get("listener"))
            yield Statement("endpoint", place, found)
    if places and not is_cut(exchange.request):
        yield Statement("listing", (), fields(nodes=tuple(sorted(places))))
    for topic in request.get("topicStates") or ():
        for each in topic.get("partitionStates") or ():
            yield from _state(labels, topic.get("topicName"), real_id(topic.get("topicId")), each)
    for each in request.get("ungroupedPartitionStates") or ():
        yield from _state(labels, each.get("topicName"), None, each)


def _state(labels: Labels, name: str | None, topic_id: str | None, each: Body) -> Told:
    if not name:
        return
    label = labels.topic(name, None)
    if each.get("leader") == DELETED or each.get("leaderEpoch") == DELETED:
        yield Statement("topic", (label,), fields(is_there=False, is_deleted=True))
        return
    if "leader" not in each:  # StopReplica
        return
    yield Statement(
        "topic", (label,), fields(is_there=True, topic_id=topic_id, is_made=each.get("isNew") or None)
    )
    found = partition_fields(each, leader="leader", replicas="replicas", isr="isr", topic_id=topic_id)
    yield Statement("partition", (label, each.get("partitionIndex")), found)


def _registered(exchange: Exchange, labels: Labels) -> Told:
    request, response = request_of(exchange), response_of(exchange)
    node = request.get("brokerId", request.get("controllerId"))
    error = response.get("errorCode")
    if request.get("clusterId"):
        yield Statement("cluster", (), fields(id=request["clusterId"]))
    if error == DUPLICATE_REGISTRATION:
        yield Statement("refused", (node,), fields(error="DUPLICATE_BROKER_REGISTRATION"))
    if error != 0:
        return
    epoch = response.get("brokerEpoch", -1)
    if epoch >= 0:
        yield Statement("node", (node,), fields(is_there=True, epoch=epoch, is_registered=True))
    for each in request.get("listeners") or ():
        found = fields(rack=request.get("rack"), listener=each.get("name"))
        if each.get("port") is not None:
            yield Statement("endpoint", (node, each.get("host"), each["port"]), found)


_HeartbeatValues = tuple[int | None, bool, bool | None, int | None, bool, bool, int]


def heartbeat_values(request: Body, response: Body) -> _HeartbeatValues:
    """The values of a BrokerHeartbeat from which its statement follows. A broker sends the same values nearly
    always, but each time with another offset of the metadata log."""
    return (
        request.get("brokerId"),
        response.get("errorCode") == 0,
        response.get("isFenced"),
        request.get("brokerEpoch"),
        bool(request.get("wantFence")),
        bool(request.get("wantShutDown") or response.get("shouldShutDown")),
        len(request.get("offlineLogDirs") or ()),
    )


def _heartbeat(exchange: Exchange, labels: Labels) -> Told:
    values = heartbeat_values(request_of(exchange), response_of(exchange))
    node, is_accepted, is_fenced, epoch, wants_fence, is_stopping, offline_dirs = values
    if is_accepted:
        found = fields(
            fenced=is_fenced,
            epoch=epoch,
            wants_fence=wants_fence or None,
            is_stopping=is_stopping or None,
            offline_dirs=offline_dirs or None,
        )
        yield Statement("node", (node,), found)


def _unregistered(exchange: Exchange, labels: Labels) -> Told:
    if response_of(exchange).get("errorCode") == 0:
        yield Statement(
            "node", (request_of(exchange).get("brokerId"),), fields(is_there=False), client_of(exchange)
        )


def _stopping(exchange: Exchange, labels: Labels) -> Told:
    if accepted(response_of(exchange)):
        yield Statement("node", (request_of(exchange).get("brokerId"),), fields(is_stopping=True))


def _metadata_partitions(body: Body) -> list[Body]:
    """The partition of the metadata log in a body. The log has only one."""
    return [
        each
        for topic in body.get("topics") or ()
        if is_metadata_topic(topic.get("topicName"))
        for each in topic.get("partitions") or ()
    ]


def _quorum(exchange: Exchange, labels: Labels) -> Told:
    """Vote, BeginQuorumEpoch, EndQuorumEpoch and DescribeQuorum."""
    request, response = request_of(exchange), response_of(exchange)
    if request.get("clusterId"):
        yield Statement("cluster", (), fields(id=request["clusterId"]))
    for each in _metadata_partitions(response):
        if each.get("leaderId", -1) >= 0:
            yield controller(each)
    is_done = accepted(response) and not any(each.get("errorCode") for each in _metadata_partitions(response))
    for each in _metadata_partitions(request) if is_done else ():
        if exchange.api == "BeginQuorumEpoch" and each.get("leaderId", -1) >= 0:
            yield controller(each)
        elif exchange.api == "EndQuorumEpoch":
            yield Statement("controller", (), fields(id=-1, epoch=each.get("leaderEpoch")))
    for node in response.get("nodes") or ():
        for each in node.get("listeners") or ():
            found = fields(listener=each.get("name"))
            yield Statement("endpoint", (node.get("nodeId"), each.get("host"), each.get("port")), found)
    for node in response.get("nodeEndpoints") or ():
        yield Statement("endpoint", (node.get("nodeId"), node.get("host"), node.get("port")), ())


OF_BROKERS: dict[str, Callable[[Exchange, Labels], Told]] = {
    "AlterPartition": _isr_altered,
    "LeaderAndIsr": _states,
    "UpdateMetadata": _states,
    "StopReplica": _states,
    "BrokerRegistration": _registered,
    "ControllerRegistration": _registered,
    "BrokerHeartbeat": _heartbeat,
    "UnregisterBroker": _unregistered,
    "ControlledShutdown": _stopping,
    "Vote": _quorum,
    "BeginQuorumEpoch": _quorum,
    "EndQuorumEpoch": _quorum,
    "DescribeQuorum": _quorum,
}
"""The function for each API."""
