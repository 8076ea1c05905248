"""The content of a member's blob to the group leader, and the number of partitions, or tasks, that it was
given."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from kdissect.embedded.decoded import Context, Embedded
from kdissect.embedded.fields import NO_CONTEXT, Decoded, decode_field

Held = tuple[tuple[str, tuple[int, ...]], ...]
"""Partitions by topic (by its id, if the message has only that), or tasks by connector or subtopology."""


def held_of(topics: list[dict[str, Any]] | None, topic: str, partitions: str = "partitions") -> Held | None:
    """Partitions in the form of messages, as :data:`Held`."""
    if topics is None:
        return None
    return tuple((str(each.get(topic) or ""), tuple(each.get(partitions) or ())) for each in topics)


_REMEMBERED, _REMEMBERED_BYTES = 64, 4_096
"""The most blobs of members that are remembered, and the longest one."""
_ABOUT = ("protocolType", "protocolName", "name")
"""Fields around a blob that identify it: the type of the group's protocol, and the assignor."""


def blob_in(
    message: str, ancestors: Sequence[dict[str, Any]], field: str, context: Context = NO_CONTEXT
) -> Decoded | None:
    """A blob from a member to its leader, or to a member, as :func:`~kdissect.embedded.fields.decode_field`
    decodes it. Callers must not change the result: it is remembered, because members repeat their blobs and
    several statistics ask for them."""
    value = ancestors[-1].get(field)
    if not isinstance(value, bytes) or len(value) > _REMEMBERED_BYTES:
        return decode_field(message, ancestors, field, value, context)
    around = (*reversed(ancestors), context.request or {})
    said = [next((str(values[name]) for values in around if values.get(name)), None) for name in _ABOUT]
    return _known(message, field, value, *said)


@lru_cache(maxsize=_REMEMBERED)
def _known(message: str, field: str, value: bytes, *said: str | None) -> Decoded | None:
    return decode_field(message, [dict(zip(_ABOUT, said, strict=True))], field, value)


def assigned_by_sync(request: dict[str, Any], response: dict[str, Any]) -> int | None:
    """The number of partitions that a consumer was given; None if something else was assigned.

    A leader may leave out members that get nothing. Kafka's coordinator then answers them with no bytes.
    """
    if response.get("assignment") == b"" and request.get("protocolType") in (None, "consumer"):
        return 0
    found = blob_in("SyncGroupResponse", [response], "assignment", Context(request))
    if not isinstance(found, Embedded) or not found.name.startswith("ConsumerProtocolAssignment"):
        return None
    if found.struct is None or found.faults:
        return None
    return _partitions(found.values.get("assignedPartitions"))


class JoinContent(NamedTuple):
    """The content of a JoinGroup for the leader. None stands for an absent or unreadable field."""

    topics: list[str] | None = None
    """The topics that a consumer subscribes to."""
    owned: Held | None = None
    """The partitions, or tasks and connectors, that the member says it owns."""
    worker: str | None = None
    """The URL by which workers of Connect know each other."""
    config_offset: int | None = None
    """The offset up to which a worker of Connect has read the topic with its configurations."""


def content_of_join(request: dict[str, Any]) -> JoinContent:
    """The content of a JoinGroup, from the first of its protocols that can be read. A protocol of Connect
    that lists the worker's tasks comes before others."""
    first: JoinContent | None = None
    for each in request.get("protocols") or ():
        found = blob_in("JoinGroupRequest", [request, each], "metadata")
        if not isinstance(found, Embedded) or found.struct is None:
            continue
        if found.faults and not _ends_early(found):
            continue
        if "configOffset" not in found.values:
            owned = held_of(found.values.get("ownedPartitions"), "topic")
            return JoinContent(found.values.get("topics"), owned)
        allocation = decode_field(found.name, [found.values], "allocation", found.values.get("allocation"))
        held = None
        if isinstance(allocation, Embedded) and allocation.struct is not None and not allocation.faults:
            held = held_of(allocation.values.get("assignment"), "connector", "tasks")
        told = JoinContent(None, held, found.values.get("url"), found.values.get("configOffset"))
        if held is not None:
            return told
        first = first or told
    return first or JoinContent()


def _ends_early(found: Embedded) -> bool:
    """Whether a subscription lacks all fields of later versions than the first, and no other. kafka-go writes
    it so, under the number of version 1."""
    return (found.version or 0) > 0 and set(found.values) == {"topics", "userData"}


def assigned_by_heartbeat(response: dict[str, Any]) -> int | None:
    """The number of partitions, or active tasks of streams; None if the assignment has not changed."""
    if "activeTasks" in response:
        tasks = response["activeTasks"]
        return None if tasks is None else _partitions(tasks)
    assignment = response.get("assignment")
    return None if assignment is None else _partitions(assignment.get("topicPartitions"))


def _partitions(topics: list[dict[str, Any]] | None) -> int:
    return sum(len(topic.get("partitions") or ()) for topic in topics or ())
