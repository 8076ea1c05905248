"""Connections that have been silent for long, as bytes.

A connection takes 5 kB while its packets come. Captures of hours may have tens of thousands of connections
that are open and silent. As bytes, each takes a tenth of that. Its next packet makes it a connection again,
with the same state. So no result depends on it.

States resemble each other. So the first ones are the dictionary with which others are compressed.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import Any, NamedTuple

from kdissect.model import Endpoint
from kdissect.session.conversation import Conversation
from kdissect.session.quick import PairLayouts

SILENT_NS = 60_000_000_000
"""How long a connection must have been silent, by the time of the capture."""

FEWEST = 4_096
"""Up to this number of connections, none rests: they take 25 MB. A rest and its end take 0.15 ms of CPU."""

_HEAD = Struct("<3q")
"""What stands before a state: the number of the connection, its last packet, and the bytes that it holds."""
_FASTEST = 1
_DICTIONARY_BYTES = 24_576
"""The least size of a dictionary: about ten states. A state of 2.5 kB takes 1.3 kB without a dictionary, 590
bytes with one state in it, and 340 with eight."""
_WINDOW = 32_768
"""The size of a dictionary that zlib uses."""

Ends = tuple[Endpoint, Endpoint]
"""Both ends of a connection, the smaller one first."""


class RestingConnection(NamedTuple):
    """What is known of a resting connection."""

    ends: Ends
    number: int
    last_packet: int
    held_bytes: int
    """The bytes that count for the limit of waiting bytes."""


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
        self._first = b""
        """The first states, until they are the dictionary."""
        self._dictionary = b""
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

        head = _HEAD.pack(conversation.number, conversation.last_packet, conversation.counted_bytes)
        state = packed(conversation, self._places)
        self._states[_key(*conversation.endpoints)] = head + self._compressed(state)

    def take(self, one: Endpoint, other: Endpoint) -> Conversation | None:
        """Remove and return the connection between two ends; None if it does not rest."""
        state = self._states.pop(_key(one, other), None)
        if state is None:
            return None
        from kdissect.session.rest_states import unpacked

        # What was compressed without the dictionary says so.
        decompressor = zlib.decompressobj(zdict=self._dictionary)
        return unpacked(decompressor.decompress(memoryview(state)[_HEAD.size :]), self._shared, self._forms)

    def _compressed(self, state: bytes) -> bytes:
        compressor = zlib.compressobj(_FASTEST, zdict=self._dictionary)
        compressed = compressor.compress(state) + compressor.flush()
        if not self._dictionary:
            self._first += state
            if len(self._first) >= _DICTIONARY_BYTES:
                self._dictionary, self._first = self._first[-_WINDOW:], b""
        return compressed

    def has(self, one: Endpoint, other: Endpoint) -> bool:
        """Whether the connection between two ends rests."""
        return _key(one, other) in self._states

    def all(self) -> list[RestingConnection]:
        """All resting connections."""
        return [
            RestingConnection(_ends(key), *_HEAD.unpack_from(state)) for key, state in self._states.items()
        ]


def _key(one: Endpoint, other: Endpoint) -> bytes:
    """The same for both orders of two ends, which are equally long."""
    return one + other if one <= other else other + one


def _ends(key: bytes) -> Ends:
    middle = len(key) // 2
    return key[:middle], key[middle:]
