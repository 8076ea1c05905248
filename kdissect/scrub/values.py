"""One value of a message → a replacement of the same length that may be sent to others.

A :class:`Scrubber` has the key, and collects the removed texts, so that the result can be searched for them
(:mod:`kdissect.scrub.search`).
"""

from __future__ import annotations

from kdissect.protocol.traits import secret_field_names
from kdissect.scrub.addresses import Addresses, identifies_host
from kdissect.scrub.allowed import (
    FILLER,
    HOST,
    KEPT_WORDS,
    LEVELS,
    MEANINGS,
    NAME,
    NAMES_OF_WORDS,
    NUMBER_OR_NAME,
    PRINCIPAL,
    RESOURCE_NAME,
    TEXT,
    VALUE,
    VERSION,
    WORD,
    is_known_setting,
    is_number,
    is_plain_value,
    is_version,
    kept_phrases,
)
from kdissect.scrub.permutation import Permutation
from kdissect.scrub.removed import Taken

_ID_BYTES = 8
"""The number of zero bytes at the beginning of an id that is Kafka's own (``Uuid.RESERVED``)."""
_BROKERS = (4, 8)
"""Kafka's ``ConfigResource.Type`` of brokers and their loggers, whose names are numbers."""


class Scrubber:
    """Replaces values by a key."""

    def __init__(self, key: bytes) -> None:
        self.permutation = Permutation(key)
        self.addresses = Addresses(self.permutation)
        self.taken = Taken()
        self._secret_fields = secret_field_names()

    @property
    def clashes(self) -> bool:
        """Whether the replacement of a removed address is itself a removed address."""
        for part in self.taken.addresses.parts():
            made = {self.addresses.packed(each) for each in part}
            if any(not made.isdisjoint(before) for before in self.taken.addresses.parts()):
                return True
        return False

    def name(self, text: str) -> str:
        """The token of a name."""
        return self._noted(text, self.permutation.name(text))

    def host(self, text: str) -> str:
        """The replacement of an address, or of the name of a host."""
        return self._noted(text, self.addresses.host(text))

    def filled(self, text: str) -> str:
        """Filler of the same length as a text."""
        return self._noted(text, FILLER * _width(text))

    def address(self, packed: bytes) -> bytes:
        """The replacement of an address of 4 or 16 bytes."""
        made = self.addresses.packed(packed)
        if identifies_host(packed):
            self.taken.addresses.add(packed)
        return made

    def key(self, data: bytes) -> bytes:
        """The replacement of the key of a record: equal keys stay equal."""
        made = self.permutation.data(data)
        self.taken.add(data, made)
        return made

    def id(self, data: bytes) -> bytes:
        """The replacement of an id of 16 bytes."""
        return data if not any(data[:_ID_BYTES]) else self.key(data)

    def is_secret(self, field: str) -> bool:
        """Whether the field is one of those that are or may be secrets."""
        return field in self._secret_fields

    def text(self, field: str, text: str, around: dict[str, object]) -> str:
        """The replacement of the text of a field.

        :param around: the values of the fields beside it, by name.
        """
        meaning = MEANINGS.get(field, NAME)
        if meaning == VALUE:
            return self._setting(text, around)
        if meaning == TEXT:
            return self._prose(text)
        if self.is_secret(field):
            return self.filled(text)
        if field in ("name", "key") and not NAMES_OF_WORDS.isdisjoint(around):
            meaning = WORD
        if field == RESOURCE_NAME and around.get("resourceType") in _BROKERS:
            meaning = NUMBER_OR_NAME
        if meaning == WORD:
            return self._word(text)
        if meaning == HOST:
            return self.host(text)
        if meaning == PRINCIPAL:
            return self._principal(text)
        if (meaning == VERSION and is_version(text)) or (meaning == NUMBER_OR_NAME and is_number(text)):
            return text
        return self.name(text)

    def _setting(self, text: str, around: dict[str, object]) -> str:
        name = around.get("name", around.get("key"))
        if around.get("isSensitive") or not (is_known_setting(name) or text in LEVELS):
            return self.filled(text)
        return text if is_plain_value(text) or text in LEVELS else self.name(text)

    def _word(self, text: str) -> str:
        return text if text in KEPT_WORDS else self.name(text)

    def _prose(self, text: str) -> str:
        out: list[str] = []
        at = 0
        for start, end in kept_phrases(text):
            out += (FILLER * _width(text[at:start]), text[start:end])
            at = end
        return self._noted(text, "".join((*out, FILLER * _width(text[at:]))))

    def _principal(self, text: str) -> str:
        kind, colon, name = text.partition(":")
        return self._word(kind) + colon + self.name(name) if colon else self.name(text)

    def _noted(self, before: str, after: str) -> str:
        if before != after:
            self.taken.add(encoded(before), encoded(after))
        return after


def encoded(text: str) -> bytes:
    """The captured bytes of a text, UTF-8 or not."""
    return text.encode("utf-8", "surrogateescape")


def _width(text: str) -> int:
    return len(encoded(text))
