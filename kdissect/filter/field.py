"""The fields of a filter: name, kind, and how to read the values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from kdissect.filter.row import Row


class FieldKind(Enum):
    """The kind of a field's values. It decides which comparisons are allowed and how values are written."""

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
    """Can only be searched, or tested for presence."""
    PRESENCE = "a structure or records"
    """Can only be tested for presence."""


HEADER, BODY, RECORD, WHOLE = range(4)
"""The cost of a value: only the header is read; the body is decoded; records are unpacked; the whole exchange
is written as JSON."""


class FilterField(NamedTuple):
    """A name that a filter may use."""

    name: str
    kind: FieldKind
    meaning: str
    read: Callable[[Row], Any]
    """Returns the value, or None if it is absent; for a field with ``many``, the values."""
    many: bool = False
    cost: int = HEADER
    unit: str = ""
    """``ns``, ``ms`` or ``bytes``."""
    words: tuple[str, ...] = ()
    """The possible values of a :attr:`FieldKind.WORD`."""
    codes: Mapping[str, int] = {}
    """The names of numbers, with the numbers."""
    source: str = ""
    """The column from which ``derive`` computes the value; empty if the field is itself a column."""
    derive: Callable[[Any], Any] | None = None
    alone: str = ""
    """The field to test instead when this one stands alone: the result is the same, and it costs less."""
    aliases: tuple[str, ...] = ()

    def values(self, row: Row) -> Sequence[Any]:
        """The values; empty if the field is absent."""
        found = self.read(row)
        if self.many:
            return found  # type: ignore[no-any-return]
        return () if found is None else (found,)


def plain(name: str) -> str:
    """A name in the form for comparing: case and underscores do not count."""
    return name.replace("_", "").lower()
