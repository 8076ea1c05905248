"""Whether a word can stand in the tree of a message at all, told without drawing it.

Drawing the trees of a million exchanges for a search takes an hour; what this says no to need not be drawn.
It says yes where it cannot tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from kdissect.message import Message
from kdissect.present.branch import holds_bytes
from kdissect.protocol import apis
from kdissect.protocol.definition import FieldDefinition
from kdissect.protocol.errors import error_name
from kdissect.protocol.library import library

_WORD = re.compile(r"[\w.-]+")
_CONSTANTS = "null true false (empty) (not decoded) <redacted>"
_RECORD_SETS = (
    "baseOffset batchLength partitionLeaderEpoch magic crc attributes lastOffsetDelta baseTimestamp "
    "maxTimestamp producerId producerEpoch baseSequence recordsCount records offset messageSize timestamp "
    "length timestampDelta offsetDelta key value headers CreateTime LogAppendTime transactional control "
    "delete horizon unused bits none gzip snappy lz4 zstd unpacked bytes"
)
"""What the lines of record sets have beside numbers and the bytes of records."""


class TreeWords:
    """What is known beforehand of one text that is searched for.

    :param is_in: tells whether it occurs in a text.
    """

    def __init__(self, text: str, is_in: Callable[[str], bool]) -> None:
        self._is_in = is_in
        self._is_word = _WORD.fullmatch(text) is not None
        self._has_digit = any(map(str.isdigit, text))
        self._is_constant = is_in(_CONSTANTS)
        self._is_packed = self._has_digit or is_in(_RECORD_SETS) or is_in(_names_of_data())

    def may_be_in(self, message: Message) -> bool:
        """Whether a line of the tree of a message may have it."""
        if not self._is_word or self._is_constant:
            return True
        body = message.decoded()
        if body.struct is None:
            return self._has_digit or self._is_in_values(message.header())
        if self._is_packed and holds_bytes(body.struct):
            return True
        return self._is_in_values(message.header()) or self._is_in_values(body.values)

    def _is_in_values(self, values: dict[str, Any]) -> bool:
        return any(self._is_in(name) or self._is_in_value(name, value) for name, value in values.items())

    def _is_in_value(self, name: str, value: Any) -> bool:
        if isinstance(value, dict):
            return self._is_in_values(value)
        if isinstance(value, list):
            return any(self._is_in_value(name, each) for each in value)
        if isinstance(value, str):
            return self._is_in(value)
        if isinstance(value, int) and not isinstance(value, bool):
            if self._has_digit and self._is_in(str(value)):
                return True
            return self._is_in(_meaning(name, value)) if value or name in _API_KEYS else False
        return isinstance(value, float) and self._has_digit and self._is_in(str(value))


_API_KEYS = ("requestApiKey", "apiKey")


@cache
def _meaning(name: str, value: int) -> str:
    """What the tree says that a number stands for."""
    if name.endswith(("errorCode", "ErrorCode")):
        return error_name(value)
    return apis.api_name(value) if name in _API_KEYS else ""


@cache
def _names_of_data() -> str:
    """The names of all fields that bytes in a message can hold."""
    found: set[str] = set()
    for name in apis.data_names():
        for block in library().data_class(name).blocks:
            _gather(block.fields, found)
    return " ".join(found)


def _gather(fields: Iterable[FieldDefinition], found: set[str]) -> None:
    for field in fields:
        found.add(field.name)
        _gather(field.fields or (), found)
