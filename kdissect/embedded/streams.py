"""Kafka Streams' AssignmentInfo: the form on the wire ↔ the form of Kafka's own class.

The definitions have the wire form. It differs in two ways (``AssignmentInfo.java``). A topology name is a
count of UTF-16 units, and an empty one means null. From version 5 on, hosts have indexes of topics instead of
names, with one dictionary for active and standby hosts.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from kdissect.protocol.json_form import base64_text

ASSIGNMENT = "AssignmentInfo"
DICTIONARY_FROM = 5
"""The first version with a dictionary of topics."""
_HOST_LISTS = ("partitionsByHost", "standbyPartitionsByHost")
_TASK_LISTS = ("activeTasks", "standbyTasks")
_Key = TypeVar("_Key")


def defects(wire: dict[str, Any]) -> list[str]:
    """The faults of values in the wire form."""
    names = _dictionary(wire)
    unknown = [
        partition["topicIndex"]
        for hosts in _HOST_LISTS
        for host in wire.get(hosts) or ()
        for partition in host.get("topicPartitions") or ()
        if "topicIndex" in partition and partition["topicIndex"] not in names
    ]
    found = [f"topic {unknown[0]} is not in the dictionary"] if unknown else []
    for tasks in _TASK_LISTS:
        for task in wire.get(tasks) or ():
            if isinstance(_topology_text(task.get("topologyName")), dict):
                found.append("a topology name that is not UTF-16")
                return found
    return found


def to_kafka(wire: dict[str, Any]) -> dict[str, Any]:
    """Convert from the wire form: names instead of indexes. An index that is not in the dictionary stays an
    index."""
    names = _dictionary(wire)
    out: dict[str, Any] = {}
    for name, value in wire.items():
        if name in _TASK_LISTS and value is not None:
            out[name] = [_named_task(task) for task in value]
        elif name in _HOST_LISTS and value is not None:
            out[name] = [_named_host(host, names) for host in value]
        elif name != "topicNames":
            out[name] = value
    return out


def from_kafka(obj: dict[str, Any], version: int) -> dict[str, Any]:
    """Convert to the wire form, with the dictionary as Kafka would write it.

    :raises ValueError: a list or an object is missing where one is needed.
    """
    has_dictionary = version >= DICTIONARY_FROM
    indexes = _topic_indexes(obj) if has_dictionary else {}
    out: dict[str, Any] = {}
    for name, value in obj.items():
        if name in _TASK_LISTS:
            out[name] = [_wire_task(task, f"{name}[{at}]") for at, task in enumerate(_objects(value, name))]
        elif name in _HOST_LISTS and has_dictionary:
            out[name] = [_wire_host(host, indexes) for host in value]
        else:
            out[name] = value
    if has_dictionary:
        order = _hash_order(indexes, _string_hash)
        out["topicNames"] = [{"index": indexes[topic], "topic": topic} for topic in order]
    return out


def _dictionary(wire: dict[str, Any]) -> dict[int, Any]:
    return {entry["index"]: entry["topic"] for entry in wire.get("topicNames") or () if "topic" in entry}


def _topology_text(units: list[int] | None) -> str | dict[str, str] | None:
    if not units:
        return None
    data = b"".join(unit.to_bytes(2, "big") for unit in units)
    try:
        return data.decode("utf-16-be")
    except UnicodeDecodeError:
        return {"base64": base64_text(data)}


def _named_task(task: dict[str, Any]) -> dict[str, Any]:
    return {name: _topology_text(value) if name == "topologyName" else value for name, value in task.items()}


def _named_host(host: dict[str, Any], names: dict[int, Any]) -> dict[str, Any]:
    out = dict(host)
    partitions = host.get("topicPartitions")
    if partitions is not None:
        out["topicPartitions"] = [_named_partition(partition, names) for partition in partitions]
    return out


def _named_partition(partition: dict[str, Any], names: dict[int, Any]) -> dict[str, Any]:
    index = partition.get("topicIndex")
    if index not in names:
        return partition
    return {"topic": names[index], **{k: v for k, v in partition.items() if k != "topicIndex"}}


# -- and back ---------------------------------------------------------------------------------------


def _objects(value: Any, path: str) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise ValueError(f"{path}: an array is needed")
    for at, item in enumerate(value):
        if not isinstance(item, dict):
            raise ValueError(f"{path}[{at}]: an object is needed")
    return value


def _wire_task(task: dict[str, Any], path: str) -> dict[str, Any]:
    out = dict(task)
    name = task.get("topologyName")
    if isinstance(name, dict) and isinstance(name.get("base64"), str):
        data = b64decode(name["base64"])
        if len(data) % 2:
            raise ValueError(f"{path}.topologyName: whole UTF-16 units are needed")
    elif name is None or isinstance(name, str):
        data = (name or "").encode("utf-16-be")
    else:
        raise ValueError(f"{path}.topologyName: a string is needed")
    if "topologyName" in task:
        out["topologyName"] = [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]
    return out


def _topic_indexes(obj: dict[str, Any]) -> dict[str, int]:
    """The indexes of topics, from 0, in the order of Java's set of all partitions of all hosts."""
    partitions: dict[tuple[str, int], None] = {}
    for hosts in _HOST_LISTS:
        for number, host in enumerate(_objects(obj.get(hosts, []), hosts)):
            path = f"{hosts}[{number}].topicPartitions"
            for at, partition in enumerate(_objects(host.get("topicPartitions"), path)):
                topic, index = partition.get("topic"), partition.get("partition")
                if not isinstance(topic, str) or not isinstance(index, int):
                    raise ValueError(f"{path}[{at}]: a topic and a partition are needed")
                partitions[topic, index] = None
    order = _hash_order(partitions, lambda each: 31 * (31 + each[1]) + _string_hash(each[0]))
    indexes: dict[str, int] = {}
    for topic, _ in order:
        indexes.setdefault(topic, len(indexes))
    return indexes


def _wire_host(host: dict[str, Any], indexes: dict[str, int]) -> dict[str, Any]:
    partitions = [
        {"topicIndex": indexes[partition["topic"]], **{k: v for k, v in partition.items() if k != "topic"}}
        for partition in host["topicPartitions"]
    ]
    return {**host, "topicPartitions": partitions}


def _hash_order(keys: Iterable[_Key], hash_code: Callable[[_Key], int]) -> list[_Key]:
    """The order in which Java's HashMap and HashSet return keys that were added in this order."""
    put = list(keys)
    buckets = 16
    while len(put) > buckets * 3 // 4:
        buckets *= 2

    def bucket(key: _Key) -> int:
        code = hash_code(key) & 0xFFFFFFFF
        return (code ^ code >> 16) & (buckets - 1)

    return sorted(put, key=bucket)


def _string_hash(text: str) -> int:
    """Java's ``String.hashCode``, without its sign."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for at in range(0, len(units), 2):
        code = (code * 31 + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return code
