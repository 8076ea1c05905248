"""The connection of a packet that came through a tunnel.

Tenants of one network may have the same addresses. The identifier of their tunnel distinguishes them. But the
identifier alone does not identify a connection, for two reasons. The two directions may have different
identifiers: Cilium uses the sender's identity, and a packet routed between two networks has the identifier of
its destination. And a host may capture each packet twice, inside and outside the tunnel. So a new network
between known endpoints belongs to the connection whose sequence numbers it continues. If it continues none,
it is another tenant's.

Every connection between the endpoints is checked for that. So their number and their keys are limited.
Otherwise a sender that invents identifiers could make each packet more expensive than the one before.
"""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Endpoint, Segment
from kdissect.session.conversation import Conversation

Key = tuple[Endpoint, Endpoint] | tuple[Endpoint, Endpoint, int]
"""Source, destination and, inside a tunnel with an identifier, the network."""


class Tunnelled:
    """The connections with packets from tunnels, and their keys. Each key is for one direction. Connections
    without tunnels are not here; they are found by their endpoints, in both orders."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self._most = limits.tenants
        self._by_ends: dict[frozenset[Endpoint], list[Conversation]] = {}
        self._keys: dict[Conversation, list[Key]] = {}

    def __bool__(self) -> bool:
        return bool(self._keys)

    def add(self, conversation: Conversation, key: Key) -> None:
        """Add a new connection with its first key."""
        self._keys[conversation] = [key]
        self._by_ends.setdefault(frozenset(key[:2]), []).append(conversation)

    def find(self, segment: Segment, table: dict[Key, Conversation]) -> Conversation | None:
        """The connection that a segment with an unknown key continues; the key is added to the table."""
        ends: Key = (segment.source, segment.destination)
        found = next(self._continued(segment, table.get(ends)), None)
        if found is None:
            return None
        key = (*ends, segment.network) if segment.network else ends
        if found not in self._keys:
            self.add(found, ends)
            self._keys[found].append((ends[1], ends[0]))
        keys = self._keys[found]
        keys.append(key)
        table[key] = found
        if len(keys) > self._most:
            # The next packet of that network finds the connection again by its sequence numbers.
            oldest = keys.pop(0)
            if table.get(oldest) is found:
                del table[oldest]
        return found

    def replace(self, conversation: Conversation, other: Conversation) -> list[Key]:
        """Move the keys of a connection to another one, and return them; empty if the connection is not
        here."""
        if conversation not in self._keys:
            return []
        keys = self._keys[other] = self._keys.pop(conversation)
        here = self._by_ends[frozenset(keys[0][:2])]
        here[here.index(conversation)] = other
        return keys

    def crowd(self, key: Key) -> list[Conversation]:
        """The connections between the endpoints of ``key``, if there is no room for another one."""
        here = self._by_ends.get(frozenset(key[:2]), [])
        return here if len(here) >= self._most else []

    def remove(self, conversation: Conversation) -> list[Key]:
        """Forget a connection, and return its keys; empty if the connection is not here."""
        keys = self._keys.pop(conversation, [])
        if keys:
            ends = frozenset(keys[0][:2])
            self._by_ends[ends].remove(conversation)
            if not self._by_ends[ends]:
                del self._by_ends[ends]
        return keys

    def _continued(self, segment: Segment, outside: Conversation | None) -> Iterator[Conversation]:
        ends = frozenset((segment.source, segment.destination))
        for each in (*self._by_ends.get(ends, ()), *([outside] if outside is not None else [])):
            if each.continues(segment):
                yield each
