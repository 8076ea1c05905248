"""What a member of a group subscribes, and how many partitions, or tasks, it was given."""

from __future__ import annotations

from typing import Any

from kdissect.embedded.decoded import Context, Embedded
from kdissect.embedded.fields import decode_field


def assigned_by_sync(request: dict[str, Any], response: dict[str, Any]) -> int | None:
    """The partitions that a consumer was given; None where something else was assigned."""
    found = decode_field(
        "SyncGroupResponse", [response], "assignment", response.get("assignment"), Context(request)
    )
    if not isinstance(found, Embedded) or not found.name.startswith("ConsumerProtocolAssignment"):
        return None
    if found.struct is None or found.faults:
        return None
    return _partitions(found.values.get("assignedPartitions"))


def subscription(request: dict[str, Any]) -> tuple[list[str] | None, list[dict[str, Any]] | None]:
    """The topics that a JoinGroup of a consumer asks for, and the partitions that it says it has. Both come
    from the first of its protocols that can be read. None if no protocol can be read."""
    for each in request.get("protocols") or ():
        found = decode_field("JoinGroupRequest", [request, each], "metadata", each.get("metadata"))
        if isinstance(found, Embedded) and found.struct is not None and not found.faults:
            return found.values.get("topics"), found.values.get("ownedPartitions")
    return None, None


def assigned_by_heartbeat(response: dict[str, Any]) -> int | None:
    """Partitions, or active tasks of streams; None where the assignment is as before."""
    if "activeTasks" in response:
        tasks = response["activeTasks"]
        return None if tasks is None else _partitions(tasks)
    assignment = response.get("assignment")
    return None if assignment is None else _partitions(assignment.get("topicPartitions"))


def _partitions(topics: list[dict[str, Any]] | None) -> int:
    return sum(len(topic.get("partitions") or ()) for topic in topics or ())
