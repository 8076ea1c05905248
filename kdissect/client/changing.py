"""Which requests change something on a broker. The definitions say which; for some requests it depends on the
body.

An API counts as changing something unless the definitions say that it only reads. So nobody sends a new API
by accident.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kdissect.protocol.definition import ALWAYS
from kdissect.protocol.traits import api_traits

Body = Mapping[str, Any]

_COORDINATOR_KEYS = ("key", "coordinatorKeys")


def changes(api_key: int, body: Body | None) -> bool:
    """Whether a request may change data, or what a broker remembers of groups and topics.

    :param body: the decoded values; None if it cannot be read.
    """
    reads = api_traits(api_key).reads
    if reads is None or body is None:
        return True
    return reads != ALWAYS and EXCEPTIONS[reads](body)


def _may_make_topics(body: Body) -> bool:
    """Whether a broker may create a topic. It creates a missing topic unless the request forbids it. Requests
    before version 4 cannot forbid it."""
    return bool(body.get("topics")) and bool(body.get("allowAutoTopicCreation", True))


def _asks_for_coordinator(body: Body) -> bool:
    """Whether the request asks for a coordinator. A broker creates the topic of the coordinators at the first
    such request."""
    return any(body.get(each) not in (None, []) for each in _COORDINATOR_KEYS)


def _asks_for_states(body: Body) -> bool:
    """Whether the request asks for states. ``ShareCoordinatorShard`` writes down a leader epoch that is
    higher than the one it knows."""
    return bool(body.get("topics"))


def _is_followers(body: Body) -> bool:
    """Whether the fetch is a follower's. Such a fetch moves the high watermark, and tells the leader about
    its follower."""
    state: Body = body.get("replicaState") or {}  # the place of replicaId from Fetch v15 on
    return int(state.get("replicaId", body.get("replicaId", -1))) >= 0


EXCEPTIONS: dict[str, Callable[[Body], bool]] = {
    "topics may be made": _may_make_topics,
    "a coordinator is asked for": _asks_for_coordinator,
    "states are asked for": _asks_for_states,
    "a follower asks": _is_followers,
}
"""The conditions after ``reads unless`` in the definitions: whether each holds for a body."""
