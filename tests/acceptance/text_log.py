"""The request log of brokers before 2.8, which is text, as the values that it names.

Two forms. Kafka's ``Struct`` prints itself as ``{topic=t,partitions=[{partition=0}]}``, under names that
newer releases have changed; so its leaves are compared in the order of the wire. The Scala classes that
0.9 still has for some requests each print in a way of their own; what they would print is made from what
kdissect decoded, and the texts are compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kdissect.exchange import Exchange
from kdissect.protocol import apis
from tests.acceptance.request_log import Address, address

_COMPLETED = re.compile(
    r"Completed request:(?P<text>.*) from connection (?P<broker>[^-]+)-(?P<client>[^-;]+?)(-\d+)?;totalTime:"
)
_STRUCT_HEADER = re.compile(r"\{api_key=(\d+),api_version=(\d+),correlation_id=(-?\d+),client_id=(.*?)\} -- ")
_HEADER = re.compile(
    r"RequestHeader\(apiKey=(\w+), apiVersion=(\d+), clientId=(.*?), correlationId=(-?\d+)\) -- "
)
_NAMED = re.compile(r"Name: ?(\w+); ?Version: ?(\d+);.*?CorrelationId: ?(-?\d+)")
_BUFFER = re.compile(r"java\.nio\.HeapByteBuffer\[pos=(\d+) lim=(\d+) cap=\d+\]")
_FIELD = re.compile(r"[a-z_A-Z]+=")
_END_OF_FIELD = re.compile(r"[}\]]|,(?=[a-z_A-Z]+=)")
_END_OF_ELEMENT = re.compile(r"[,\]]")

_SCALA_NAMES = {
    "ProducerRequest": "Produce",
    "TopicMetadataRequest": "Metadata",
    "OffsetRequest": "ListOffsets",
}
"""Where Scala's class is not named like the API."""


class Line(NamedTuple):
    """A completed request, as logged."""

    broker: Address
    client: Address
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    """None where the form has it in its own text (Scala's)."""
    request: str
    response: str | None
    """None where the release does not log it."""

    @property
    def key(self) -> tuple[Address, Address, int, int, int]:
        return self.client, self.broker, self.api_key, self.api_version, self.correlation_id


def completed(lines: Iterator[str]) -> Iterator[Line]:
    """The lines of completed requests, in order."""
    for text in lines:
        found = _COMPLETED.search(text)
        if found:
            yield _line(found["text"], address(found["broker"]), address(found["client"]))
        else:
            assert "received request" in text, text


def _line(text: str, broker: Address, client: Address) -> Line:
    if header := _STRUCT_HEADER.match(text):
        key, version, correlation, client_id = header.groups()
        body = text[header.end() :]
        return Line(broker, client, int(key), int(version), int(correlation), client_id, body, None)
    if header := _HEADER.match(text):
        name, version, client_id, correlation = header.groups()
        body, response = text[header.end() :].split(",response:")
        key = apis.api_key(name)
        return Line(broker, client, key, int(version), int(correlation), client_id, body, response)
    header = _NAMED.match(text)
    assert header, text
    name, version, correlation = header.groups()
    key = apis.api_key(_SCALA_NAMES.get(name, name.removesuffix("Request")))
    return Line(broker, client, key, int(version), int(correlation), None, text, None)


# -- Kafka's Struct ---------------------------------------------------------------------------------

Shape = list[Any]
"""The values of a struct in order, those of structs in it in their place: a text for a scalar, a tuple of
Shapes for a list, ``Size`` for bytes. An empty list and no records look alike in the log: ``()``."""


class Size(NamedTuple):
    """Bytes, of which the log tells how many."""

    length: int | None
    """None where it does not: records that the broker sends straight from a file."""


def shape_of_text(text: str) -> Shape:
    """What a Struct's text shows."""
    parser = _Parser(text)
    found = parser.value(_END_OF_FIELD)
    assert parser.at == len(text), text[parser.at :]
    return found


class _Parser:
    """Reads ``{name=value,…}``, ``[value,…]`` and scalars."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def value(self, end: re.Pattern[str]) -> Shape:
        """One value; ``end`` tells where it ends if it is a scalar."""
        if self.text.startswith("{", self.at):
            return [leaf for item in self._inside("}") for leaf in item]
        if self.text.startswith("[", self.at):
            return [tuple(self._inside("]"))]
        if found := _BUFFER.match(self.text, self.at):
            self.at = found.end()
            return [_size(int(found[2]) - int(found[1]))]
        stop = end.search(self.text, self.at)
        assert stop, self.text[self.at :]
        text, self.at = self.text[self.at : stop.start()], stop.start()
        return [Size(None) if text.startswith("org.apache.kafka.common.record.FileRecords@") else text]

    def _inside(self, close: str) -> Iterator[Shape]:
        self.at += 1
        while not self.text.startswith(close, self.at):
            if close == "}":
                name = _FIELD.match(self.text, self.at)
                assert name, self.text[self.at :]
                self.at = name.end()
            yield self.value(_END_OF_FIELD if close == "}" else _END_OF_ELEMENT)
            self.at += self.text.startswith(",", self.at)
        self.at += 1


def shape(value: Any) -> Shape:
    """The same of decoded values."""
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in shape(item)]
    if isinstance(value, list):
        return [tuple(shape(item) for item in value)]
    if isinstance(value, bytes):
        return [_size(len(value))]
    if isinstance(value, bool):
        return [str(value).lower()]
    return ["null" if value is None else str(value)]


def produce_shape(body: dict[str, Any]) -> Shape:
    """The same of a Produce request: the log has sizes in place of the records."""
    sizes = [
        f"{topic['name']}-{partition['index']}={len(partition['records'])}"
        for topic in body["topicData"]
        for partition in topic["partitionData"]
    ]
    return shape({"acks": body["acks"], "timeout": body["timeoutMs"], "partitionSizes": sizes})


def agree(logged: Any, ours: Any, cut: bool = False, ordered: bool = True) -> bool:
    """Whether two shapes are the same.

    :param cut: the message was captured in part: the end of ours may be missing.
    :param ordered: without it, lists have the same elements in any order.
    """
    if isinstance(logged, Size) and logged.length is None:
        return isinstance(ours, Size)
    if not isinstance(logged, list | tuple) or isinstance(logged, Size) or type(logged) is not type(ours):
        return bool(logged == ours)
    if len(logged) != len(ours) and not (cut and len(ours) < len(logged)):
        return False
    if isinstance(logged, tuple) and not ordered:
        logged, ours = sorted(logged, key=repr), sorted(ours, key=repr)
    last = len(ours) - 1
    pairs = enumerate(zip(logged, ours, strict=False))
    return all(agree(a, b, cut and at == last, ordered) for at, (a, b) in pairs)


def _size(length: int) -> Any:
    return Size(length) if length else ()


# -- Scala's classes --------------------------------------------------------------------------------


def scala_text(exchange: Exchange) -> str:
    """What Scala's own class prints for a request."""
    assert exchange.request is not None
    name, fields = _SCALA[exchange.api or ""]
    client_id = exchange.client_id or ""
    if name == "ControlledShutdownRequest":
        client_id = f"Some({client_id})"
    head = f"Name:{name};Version:{exchange.api_version};CorrelationId:{exchange.correlation_id}"
    return f"{head};ClientId:{client_id};{fields(exchange.request.body())}"


def normal(text: str) -> list[tuple[str, list[str]]]:
    """A text of that kind as fields, without regard to blanks, units, and the order of fields and of what
    Scala keeps in maps and sets."""
    fields = []
    for field in re.sub(r" (ms|bytes)\b", "", text).split(";"):
        name, _, value = field.strip().partition(":")
        items = re.split(r",(?=\[|\(|BrokerEndPoint|\d+ : )", value.strip())
        fields.append((name.strip(), sorted(items)))
    return sorted(fields)


def _partitions(
    topics: list[dict[str, Any]], inside: str, index: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    for topic in topics:
        for partition in topic[inside]:
            yield f"[{topic.get('name', topic.get('topic'))},{partition[index]}]", partition


def _produce(body: dict[str, Any]) -> str:
    sizes = [
        f"{at} -> {len(p['records'])}" for at, p in _partitions(body["topicData"], "partitionData", "index")
    ]
    return f"RequiredAcks:{body['acks']};AckTimeoutMs:{body['timeoutMs']};TopicAndPartition:{','.join(sizes)}"


def _fetch(body: dict[str, Any]) -> str:
    wanted = [
        f"{at} -> PartitionFetchInfo({p['fetchOffset']},{p['partitionMaxBytes']})"
        for at, p in _partitions(body["topics"], "partitions", "partition")
    ]
    head = f"ReplicaId:{body['replicaId']};MaxWait:{body['maxWaitMs']};MinBytes:{body['minBytes']}"
    return f"{head};RequestInfo:{','.join(wanted)}"


def _list_offsets(body: dict[str, Any]) -> str:
    wanted = [
        f"{at} -> PartitionOffsetRequestInfo({p['timestamp']},{p['maxNumOffsets']})"
        for at, p in _partitions(body["topics"], "partitions", "partitionIndex")
    ]
    return f"ReplicaId:{body['replicaId']};RequestInfo:{','.join(wanted)}"


def _metadata(body: dict[str, Any]) -> str:
    return f"Topics:{','.join(topic['name'] for topic in body['topics'])}"


def _offset_fetch(body: dict[str, Any]) -> str:
    wanted = [f"[{topic['name']},{index}]" for topic in body["topics"] for index in topic["partitionIndexes"]]
    return f"GroupId:{body['groupId']};RequestInfo:{','.join(wanted)}"


def _offset_commit(body: dict[str, Any]) -> str:
    commits = [
        f"{at} -> [OffsetMetadata[{p['committedOffset']},{p['committedMetadata'] or 'NO_METADATA'}],"
        "CommitTime -1,ExpirationTime -1]"
        for at, p in _partitions(body["topics"], "partitions", "partitionIndex")
    ]
    head = f"GroupId:{body['groupId']};GroupGenerationId:{body['generationIdOrMemberEpoch']}"
    rest = f"MemberId:{body['memberId']};RetentionMs:{body['retentionTimeMs']}"
    return f"{head};{rest};RequestInfo:{','.join(commits)}"


def _controlled_shutdown(body: dict[str, Any]) -> str:
    return f"BrokerId:{body['brokerId']}"


def _stop_replica(body: dict[str, Any]) -> str:
    partitions = [f"[{p['topicName']},{p['partitionIndex']}]" for p in body["ungroupedPartitions"]]
    head = f"DeletePartitions:{str(body['deletePartitions']).lower()};ControllerId:{body['controllerId']}"
    return f"{head};ControllerEpoch:{body['controllerEpoch']};Partitions:{','.join(partitions)}"


def _leader_and_isr(body: dict[str, Any]) -> str:
    leaders = [f"BrokerEndPoint({b['brokerId']},{b['hostName']},{b['port']})" for b in body["liveLeaders"]]
    return f"{_controller(body)};Leaders:{','.join(leaders)};{_states(body, '()')}"


def _update_metadata(body: dict[str, Any]) -> str:
    brokers = []
    for broker in body["liveBrokers"]:
        ends = [f"EndPoint({e['host']},{e['port']},PLAINTEXT)" for e in broker["endpoints"]]
        brokers.append(f"{broker['id']} : ({','.join(ends)})")
    return f"{_controller(body)};AliveBrokers:{','.join(brokers)};{_states(body, '[]')}"


def _controller(body: dict[str, Any]) -> str:
    return f"Controller:{body['controllerId']};ControllerEpoch:{body['controllerEpoch']}"


def _states(body: dict[str, Any], brackets: str) -> str:
    states = []
    for state in body["ungroupedPartitionStates"]:
        isr, replicas = (",".join(map(str, state[name])) for name in ("isr", "replicas"))
        info = f"Leader:{state['leader']},ISR:{isr},LeaderEpoch:{state['leaderEpoch']}"
        info += f",ControllerEpoch:{state['controllerEpoch']}"
        at = f"{brackets[0]}{state['topicName']},{state['partitionIndex']}{brackets[1]}"
        factor = f"ReplicationFactor:{len(state['replicas'])}),AllReplicas:{replicas})"
        states.append(f"{at} -> (LeaderAndIsrInfo:({info}),{factor}")
    return f"PartitionState:{','.join(states)}"


_SCALA: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "Produce": ("ProducerRequest", _produce),
    "Fetch": ("FetchRequest", _fetch),
    "ListOffsets": ("OffsetRequest", _list_offsets),
    "Metadata": ("TopicMetadataRequest", _metadata),
    "OffsetFetch": ("OffsetFetchRequest", _offset_fetch),
    "OffsetCommit": ("OffsetCommitRequest", _offset_commit),
    "ControlledShutdown": ("ControlledShutdownRequest", _controlled_shutdown),
    "StopReplica": ("StopReplicaRequest", _stop_replica),
    "LeaderAndIsr": ("LeaderAndIsrRequest", _leader_and_isr),
    "UpdateMetadata": ("UpdateMetadataRequest", _update_metadata),
}
"""API: the name of Scala's class, and what it prints after the header."""
