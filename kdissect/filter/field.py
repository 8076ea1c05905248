"""What a filter can ask of an exchange by one name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from kdissect.filter.row import Row


class FieldKind(Enum):
    """What can be asked of a field, and how its values are written."""

    NUMBER = "a number"
    FLOAT = "a decimal number"
    MOMENT = "a time"
    TEXT = "text"
    ADDRESS = "an address"
    BYTES = "bytes"
    FLAG = "true or false"
    API = "an API"
    ERROR = "an error"
    WORD = "a word"
    RULE = "the id of a finding"
    JSON = "a structure"
    """Only searched in and asked for its presence."""
    PRESENCE = "a structure or records"
    """Only asked for its presence."""


HEADER, BODY, RECORD, WHOLE = range(4)
"""What a value costs: nothing but the header is read; the body is decoded; records are unpacked; all of it
is written as JSON."""


class FilterField(NamedTuple):
    """A name that a filter may use."""

    name: str
    kind: FieldKind
    meaning: str
    read: Callable[[Row], Any]
    """The value, None where it is absent; of a field with ``many``, the values."""
    many: bool = False
    cost: int = HEADER
    unit: str = ""
    """``ns``, ``ms`` or ``bytes``."""
    words: tuple[str, ...] = ()
    """Of a :attr:`FieldKind.WORD`, what it can be."""
    codes: Mapping[str, int] = {}
    """Names of numbers."""
    source: str = ""
    """The column that ``derive`` makes the value of; a field without is its own."""
    derive: Callable[[Any], Any] | None = None
    alone: str = ""
    """The field whose presence is asked for where this one stands alone: the same, and cheaper to tell."""
    aliases: tuple[str, ...] = ()

    def values(self, row: Row) -> Sequence[Any]:
        """The values, of which there may be none."""
        found = self.read(row)
        if self.many:
            return found  # type: ignore[no-any-return]
        return () if found is None else (found,)


def plain(name: str) -> str:
    """A name as it is compared: case and underscores do not count."""
    return name.replace("_", "").lower()
