"""Connections that have been silent for long, as bytes.

A connection takes 5 kB while its packets come. Captures of hours may have tens of thousands of connections
that are open and silent. As bytes, each takes a fifth of that. Its next packet makes it a connection again,
with the same state. So no result depends on it.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

from kdissect.model import Endpoint
from kdissect.session.conversation import Conversation
from kdissect.session.quick import PairLayouts

SILENT_NS = 60_000_000_000
"""How long a connection must have been silent, by the time of the capture."""

FEWEST = 4_096
"""So many connections need not rest: they take 25 MB. A rest and its end take 0.15 ms of CPU."""

_NUMBER_BYTES = 8
_HEAD_BYTES = 2 * _NUMBER_BYTES
"""The bytes before a state: the number of the connection, and its last packet."""
_FASTEST = 1

Ends = tuple[Endpoint, Endpoint]
"""Both ends of a connection, the smaller one first."""


class Rested(NamedTuple):
    """What is known of a resting connection."""

    ends: Ends
    number: int
    last_packet: int


class RestingConnections:
    """The resting connections of a dissector.

    :param shared: the objects to which all its connections refer. They are not copied.
    :param forms: the layouts of its exchanges in brief.
    """

    def __init__(self, shared: tuple[object, ...], forms: PairLayouts | None) -> None:
        self._shared = (*shared, forms)
        self._places = self._found_places()
        self._forms = forms
        self._states: dict[bytes, bytes] = {}
        """The heads and states, by both ends."""
        self.silent_ns = SILENT_NS
        self.fewest = FEWEST
        self.most_entries = 2 * FEWEST
        """The entries in the dissector's table, two for each connection, above which others rest."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_places"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._places = self._found_places()  # a copy's objects have other ids

    def _found_places(self) -> dict[int, int]:
        return {id(each): at for at, each in enumerate(self._shared) if each is not None}

    def __len__(self) -> int:
        return len(self._states)

    def set_most_entries(self, entries: int) -> None:
        """Set it by the entries left. Checking all connections each time that their number has grown by a
        quarter costs little."""
        self.most_entries = max(2 * self.fewest, entries * 5 // 4)

    def put(self, conversation: Conversation) -> None:
        """Take in a connection."""
        from kdissect.session.rest_states import packed

        numbers = (conversation.number, conversation.last_packet)
        head = b"".join([each.to_bytes(_NUMBER_BYTES, "little") for each in numbers])
        state = packed(conversation, self._places)
        self._states[_key(*conversation.endpoints)] = head + zlib.compress(state, _FASTEST)

    def take(self, one: Endpoint, other: Endpoint) -> Conversation | None:
        """Remove and return the connection between two ends; None if it does not rest."""
        state = self._states.pop(_key(one, other), None)
        if state is None:
            return None
        from kdissect.session.rest_states import unpacked

        return unpacked(zlib.decompress(state[_HEAD_BYTES:]), self._shared, self._forms)

    def has(self, one: Endpoint, other: Endpoint) -> bool:
        """Whether the connection between two ends rests."""
        return _key(one, other) in self._states

    def all(self) -> list[Rested]:
        """All resting connections."""
        return [
            Rested(
                _ends(key),
                int.from_bytes(state[:_NUMBER_BYTES], "little"),
                int.from_bytes(state[_NUMBER_BYTES:_HEAD_BYTES], "little"),
            )
            for key, state in self._states.items()
        ]


def _key(one: Endpoint, other: Endpoint) -> bytes:
    """The same for both orders of two ends, which are equally long."""
    return one + other if one <= other else other + one


def _ends(key: bytes) -> Ends:
    middle = len(key) // 2
    return key[:middle], key[middle:]
