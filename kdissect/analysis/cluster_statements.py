"""An exchange → its statements about the cluster: brokers, controllers, topics, partitions.

Messages between brokers and controllers: :mod:`kdissect.analysis.broker_statements`. Configurations, quotas,
features and permissions: :mod:`kdissect.analysis.cluster_settings`. Records of ``__cluster_metadata``:
:mod:`kdissect.analysis.metadata_log`.

In a cluster of KRaft, Metadata and DescribeCluster name any broker as the controller
(``KRaftMetadataCache``), so that field is ignored. Vote, BeginQuorumEpoch, DescribeQuorum and refused Fetches
of ``__cluster_metadata`` name the leader of the quorum.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from itertools import takewhile

from kdissect.analysis.broker_statements import OF_BROKERS, heartbeat_values
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
from kdissect.analysis.cluster_settings import SETTINGS
from kdissect.analysis.labels import Labels
from kdissect.analysis.statements import Statement, client_of, fields
from kdissect.exchange import Exchange
from kdissect.names import is_metadata_topic

UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE, LISTENER_NOT_FOUND = 3, 5, 72
LED = frozenset(("Fetch", "Produce", "ShareFetch", "ShareAcknowledge"))
"""APIs that only leaders answer. Other brokers answer with the leader."""
NOT_LEADER = ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH")
RAFT_CLIENT = re.compile(r"raft-client-(\d{1,9})")
"""The client id of a KRaft node that sends requests to controllers (``KafkaRaftManager``)."""


def statements_of(exchange: Exchange, labels: Labels) -> Told:
    """The statements of an exchange."""
    api = exchange.api or ""
    if api in LED:
        if exchange.error in NOT_LEADER:
            yield from _refused(exchange, labels)
        return
    settings = SETTINGS.get(api)
    if settings is not None and exchange.request is not None and exchange.response is not None:
        yield from settings(exchange, exchange.request.body(), exchange.response.body())
    tell = _STATEMENTS_OF.get(api)
    if tell is not None:
        yield from tell(exchange, labels)


def depends_on_answer_only(exchange: Exchange, api: str) -> bool:
    """Whether the statements of an exchange follow from its answer alone, whatever the client and the
    request."""
    if api == "ApiVersions":
        return RAFT_CLIENT.fullmatch(exchange.client_id or "") is None
    return api in LED or api == "FindCoordinator"


def topic_statements_of(exchange: Exchange, labels: Labels) -> Told:
    """The statements of an exchange about topics, without their partitions."""
    if exchange.api != "Metadata":
        yield from (each for each in statements_of(exchange, labels) if each.kind == "topic")
        return
    for topic in response_of(exchange).get("topics") or ():
        yield from takewhile(lambda each: each.kind == "topic", _topic(exchange, topic, labels, True, False))


# -- statements to clients ---------------------------------------------------------------------------------


def _metadata(exchange: Exchange, labels: Labels) -> Told:
    request, response = request_of(exchange), response_of(exchange)
    yield from _brokers(response, "nodeId", is_listing=not is_cut(exchange.response))
    if response.get("controllerId", -1) >= 0:
        yield Statement("named-controller", (), fields(id=response["controllerId"]))
    creates = request.get("allowAutoTopicCreation", True) if exchange.request is not None else False
    for topic in response.get("topics") or ():
        yield from _topic(exchange, topic, labels, True, creates)


def _described_topics(exchange: Exchange, labels: Labels) -> Told:
    request, response = request_of(exchange), response_of(exchange)
    is_whole = response.get("nextCursor") is None and request.get("cursor") is None
    for topic in response.get("topics") or ():
        yield from _topic(exchange, topic, labels, is_whole, False)


def _topic(exchange: Exchange, topic: Body, labels: Labels, is_whole: bool, creates: bool) -> Told:
    name, topic_id = topic.get("name"), real_id(topic.get("topicId"))
    if not name and not topic_id:
        return
    label = labels.topic(name, None) if name else labels.topic(None, topic_id)
    partitions = topic.get("partitions") or ()
    if topic.get("errorCode") in (UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE) and not partitions and name:
        by = client_of(exchange) if creates else None
        yield Statement("topic", (label,), fields(is_there=False, is_asked_for=creates), by)
    if not partitions:
        return
    yield Statement(
        "topic",
        (label,),
        fields(
            is_there=True,
            topic_id=topic_id,
            internal=topic.get("isInternal"),
            partitions=len(partitions) if is_whole else None,
            replication=max(len(each.get("replicaNodes") or ()) for each in partitions),
        ),
    )
    for each in partitions:
        found = partition_fields(each, topic_id=topic_id)
        if each.get("errorCode") == LISTENER_NOT_FOUND:  # the leader exists, but not this listener
            found = tuple(pair for pair in found if pair[0] != "leader")
        yield Statement("partition", (label, each.get("partitionIndex")), found)


def _brokers(response: Body, id_name: str, listed: str = "brokers", is_listing: bool = True) -> Told:
    brokers = response.get(listed) or ()
    if response.get("clusterId"):
        yield Statement("cluster", (), fields(id=response["clusterId"]))
    places = []
    for each in brokers:
        if each.get("port") is not None:  # else the message breaks off before it
            place = each.get(id_name, -1), each.get("host") or "", each["port"]
            places.append(place)
            yield Statement("endpoint", place, fields(rack=each.get("rack")))
    if brokers and is_listing:
        yield Statement("listing", (), fields(nodes=tuple(sorted(places))))


def _described_cluster(exchange: Exchange, labels: Labels) -> Told:
    request, response = request_of(exchange), response_of(exchange)
    if response.get("errorCode"):
        return
    is_of_controllers = response.get("endpointType") == 2
    has_fenced = bool(request.get("includeFencedBrokers"))
    is_listing = not has_fenced and not is_of_controllers and not is_cut(exchange.response)
    yield from _brokers(response, "brokerId", is_listing=is_listing)
    if has_fenced:
        for each in response.get("brokers") or ():
            yield Statement("node", (each.get("brokerId"),), fields(fenced=each.get("isFenced")))
    if response.get("controllerId", -1) >= 0:
        kind = "controller" if is_of_controllers else "named-controller"
        yield Statement(kind, (), fields(id=response["controllerId"]))


def _coordinator(exchange: Exchange, labels: Labels) -> Told:
    response = response_of(exchange)
    for each in (*(response.get("coordinators") or ()), response):
        if not each.get("errorCode") and each.get("nodeId", -1) >= 0 and each.get("host"):
            yield Statement("endpoint", (each["nodeId"], each["host"], each.get("port")), ())


def _refused(exchange: Exchange, labels: Labels) -> Told:
    """The new leader, in an answer of a broker that no longer leads (KIP-951)."""
    response = response_of(exchange)
    for topic in response.get("responses") or ():
        name, topic_id = topic.get("name") or topic.get("topic"), real_id(topic.get("topicId"))
        label = labels.topic(name, None if name else topic_id)
        for each in (*(topic.get("partitions") or ()), *(topic.get("partitionResponses") or ())):
            leader = each.get("currentLeader") or {}
            if leader.get("leaderEpoch", -1) < 0 or leader.get("leaderId", -1) < 0:
                continue
            if is_metadata_topic(name, topic_id):
                yield controller(leader)
            else:
                index = each.get("partitionIndex", each.get("index"))
                yield Statement("partition", (label, index), partition_fields(leader, topic_id=topic_id))
    for node in response.get("nodeEndpoints") or ():
        yield Statement(
            "endpoint",
            (node.get("nodeId"), node.get("host"), node.get("port")),
            fields(rack=node.get("rack")),
        )


def _offers(exchange: Exchange, labels: Labels) -> Told:
    """The era of a broker or controller, by the APIs that it offers. A broker with ZooKeeper offers the
    requests of that era's controllers; a node of KRaft names itself."""
    request, response = request_of(exchange), response_of(exchange)
    keys = [each.get("apiKey") for each in response.get("apiKeys") or ()]
    if keys:
        yield Statement("offers", (), fields(has_zookeeper=6 in keys))  # UpdateMetadata
    node = RAFT_CLIENT.fullmatch(exchange.client_id or "")
    if node is not None and request.get("clientSoftwareName") == "apache-kafka-java":
        version = request.get("clientSoftwareVersion")
        yield Statement("node", (int(node[1]),), fields(software=f"Apache Kafka {version}"))


# -- topics that are made and deleted ---------------------------------------------------------------------


def _created(exchange: Exchange, labels: Labels) -> Told:
    if request_of(exchange).get("validateOnly"):
        return
    for topic in response_of(exchange).get("topics") or ():
        if topic.get("errorCode") == 0 and topic.get("name"):
            partitions, replication = topic.get("numPartitions", -1), topic.get("replicationFactor", -1)
            found = fields(
                is_there=True,
                is_made=True,
                topic_id=real_id(topic.get("topicId")),
                partitions=partitions if partitions > 0 else None,
                replication=replication if replication > 0 else None,
            )
            yield Statement("topic", (labels.topic(topic["name"], None),), found, client_of(exchange))


def _deleted(exchange: Exchange, labels: Labels) -> Told:
    for topic in response_of(exchange).get("responses") or ():
        name, topic_id = topic.get("name"), real_id(topic.get("topicId"))
        if topic.get("errorCode") == 0 and (name or topic_id):
            label = labels.topic(name, None if name else topic_id)
            yield Statement("topic", (label,), fields(is_there=False, is_deleted=True), client_of(exchange))


def _more_partitions(exchange: Exchange, labels: Labels) -> Told:
    request = request_of(exchange)
    if request.get("validateOnly"):
        return
    asked = {topic.get("name"): topic.get("count") for topic in request.get("topics") or ()}
    for topic in response_of(exchange).get("results") or ():
        if topic.get("errorCode") == 0 and asked.get(topic.get("name")):
            label = labels.topic(topic["name"], None)
            yield Statement(
                "topic", (label,), fields(is_there=True, partitions=asked[topic["name"]]), client_of(exchange)
            )


def _elected(exchange: Exchange, labels: Labels) -> Told:
    for topic in response_of(exchange).get("replicaElectionResults") or ():
        for each in topic.get("partitionResult") or ():
            if each.get("errorCode") == 0:
                label = labels.topic(topic.get("topic"), None)
                what = fields(what="ElectLeaders", at_ns=exchange.ended_ns)  # each order is its own event
                yield Statement("order", (label, each.get("partitionId")), what, client_of(exchange))


def _reassigned(exchange: Exchange, labels: Labels) -> Told:
    for topic in response_of(exchange).get("responses") or ():
        for each in topic.get("partitions") or ():
            if each.get("errorCode") == 0:
                label = labels.topic(topic.get("name"), None)
                what = fields(what="AlterPartitionReassignments", at_ns=exchange.ended_ns)
                yield Statement("order", (label, each.get("partitionIndex")), what, client_of(exchange))


_STATEMENTS_OF: dict[str, Callable[[Exchange, Labels], Told]] = {
    "Metadata": _metadata,
    "DescribeTopicPartitions": _described_topics,
    "DescribeCluster": _described_cluster,
    "FindCoordinator": _coordinator,
    "ApiVersions": _offers,
    "CreateTopics": _created,
    "DeleteTopics": _deleted,
    "CreatePartitions": _more_partitions,
    "ElectLeaders": _elected,
    "AlterPartitionReassignments": _reassigned,
    **OF_BROKERS,
}

VALUES_OF: dict[str, Callable[[Body, Body], tuple[Hashable, ...]]] = {"BrokerHeartbeat": heartbeat_values}
"""APIs whose messages hardly ever repeat byte for byte, but whose statements follow from a few values in the
two bodies. For each of them, the function for these values."""

STATEMENT_APIS = frozenset((*LED, *SETTINGS, *_STATEMENTS_OF))
"""APIs that may make statements."""
