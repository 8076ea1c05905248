"""The consumer groups of clients, by their own requests.

A client sends its group's requests and its data on different connections, so a client is known by its address
and client id. If clients of several groups share these, the topics that each group commits decide. Otherwise
the group is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdissect.analysis.room import Room
from kdissect.analysis.speakers import Speaker, speaker
from kdissect.exchange import Exchange

OF_MEMBERS = frozenset(
    (
        *("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch", "ConsumerGroupHeartbeat"),
        *("ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge", "StreamsGroupHeartbeat"),
    )
)
"""Requests that are sent by members of a group, or by consumers in its name."""
_NAMES_TOPICS = ("OffsetCommit", "OffsetFetch")


_CLIENT_BYTES = 1_000
"""The approximate size of a client with a group."""


class Affiliations:
    """The groups of each client."""

    def __init__(self, room: Room) -> None:
        self._groups: dict[Speaker, dict[str, set[str]]] = {}
        """For each client, its groups, with the topics (by name or id) that it commits or asks for in their
        names."""
        self._room = room
        self._most = room.limits.rows

    def see(self, exchange: Exchange) -> None:
        """Take in an exchange. Call it with every exchange."""
        if exchange.request is None or exchange.api not in OF_MEMBERS:
            return
        who, names_topics = speaker(exchange), exchange.api in _NAMES_TOPICS
        for group, asked in _named(exchange.request.body()):
            groups = self._of(who)
            if groups is None:
                continue
            known = groups.get(group)
            if known is None:
                if len(groups) >= self._most:
                    continue
                known = groups[group] = set()
            if names_topics and len(known) < self._most:
                known.update(name for topic in asked.get("topics") or () if (name := _topic(topic)))

    def _of(self, who: Speaker) -> dict[str, set[str]] | None:
        """The groups of a client, to add to; None if there is no room for them."""
        groups = self._groups.get(who)
        if groups is None:
            if self._room.refuses(len(self._groups) >= self._most) or not self._room.takes(_CLIENT_BYTES):
                return None
            groups = self._groups[who] = {}
        return groups

    def merge(self, later: Affiliations) -> None:
        """Add the groups of later exchanges."""
        for who, groups in later._groups.items():
            mine = self._of(who)
            if mine is None:
                continue
            for group, topics in groups.items():
                mine.setdefault(group, set()).update(topics)

    def group(self, who: Speaker, *topic: str | None) -> str | None:
        """The group of a client that reads a topic. The topic may have a name and an id. None if the client
        has no group, or may be in several."""
        groups = self._groups.get(who)
        if not groups or who.client_id is None:
            return None
        if len(groups) == 1:
            return next(iter(groups))
        fitting = [group for group, topics in groups.items() if topics.intersection(topic)]
        return fitting[0] if len(fitting) == 1 else None


def _named(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The groups in a request, each with the struct that names its topics."""
    asked = body.get("groups")
    for one in asked if isinstance(asked, list) and "groupId" not in body else (body,):
        if isinstance(one, dict) and isinstance(one.get("groupId"), str) and one["groupId"]:
            yield one["groupId"], one


def _topic(topic: Any) -> str | None:
    if not isinstance(topic, dict):
        return None
    name = topic.get("name") or topic.get("topicId")
    return name if isinstance(name, str) else None
