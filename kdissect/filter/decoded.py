"""``record.value.customer.id == 7``: fields inside the decoded key or value of a record.

The kind of a value is known only when it is decoded, so the comparison decides it. A number selects numbers,
``true`` and ``false`` select booleans, any other word selects text; in quotes everything is text. Lists are
passed through: a field inside a list has one value for each element. Case and underscores do not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from kdissect.filter.field import RECORD, FieldKind, FilterField, plain
from kdissect.filter.row import Row
from kdissect.filter.syntax import ComparedField
from kdissect.payload.decoder import PayloadDecoder

SIDES = ("key", "value")
PREFIXES = tuple(f"record.{side}." for side in SIDES)
_NUMBER = re.compile(r"-?\d+")
_FLOAT = re.compile(r"-?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d+)?")
_SEARCH = ("contains", "matches")
_EQUAL = ("==", "===", "!=", "!==", "in")

_automatic = PayloadDecoder(learns=False)
"""Decodes rows that are not decoded yet, with the formats that need no schema."""


def decoded_field(name: str) -> FilterField | None:
    """The field of a name inside a key or value; None for other names."""
    first, _, rest = name.partition(".")
    side, _, path = rest.partition(".")
    if first.lower() != "record" or side.lower() not in SIDES or not path or "" in path.split("."):
        return None
    read = partial(_read, side.lower(), tuple(map(plain, path.split("."))), _text)
    return FilterField(name, FieldKind.TEXT, f"inside the decoded {side} of a record", read, True, RECORD)


def is_decoded(field: FilterField) -> bool:
    """Whether a field is inside a decoded key or value."""
    return isinstance(field.read, partial) and field.read.func is _read


def asked_for(field: FilterField, asked: ComparedField) -> FilterField:
    """The field, with the kind that the comparison decides."""
    words = [word for pair in asked.items for word in pair if word is not None]
    if asked.operator in _SEARCH or any(word.quoted for word in words):
        return field
    is_equal = asked.operator in _EQUAL and all(high is None for _, high in asked.items)
    if is_equal and all(_NUMBER.fullmatch(word.text) for word in words):
        return _of_kind(field, FieldKind.NUMBER, _number)
    if all(_NUMBER.fullmatch(word.text) or _FLOAT.fullmatch(word.text) for word in words):
        return _of_kind(field, FieldKind.FLOAT, _number)
    if all(word.text in ("true", "false") for word in words):
        return _of_kind(field, FieldKind.FLAG, _flag)
    return field


def _of_kind(field: FilterField, kind: FieldKind, convert: Callable[[Any], Any]) -> FilterField:
    assert isinstance(field.read, partial)
    side, path, _ = field.read.args
    return field._replace(kind=kind, read=partial(_read, side, path, convert))


def _read(side: str, path: tuple[str, ...], convert: Callable[[Any], Any], row: Row) -> list[Any]:
    found = (convert(value) for record in row.records() for value in _inside(_decoded(record, side), path))
    return [value for value in found if value is not None]


def _decoded(record: dict[str, Any], side: str) -> Any:
    name = f"{side}Decoded"
    if name in record or f"{side}Format" in record:
        return record.get(name)
    data = record[side]
    return (
        None
        if data is None
        else _automatic.decode(record.get("topic") or "", side, data, record["headers"]).value
    )


def _inside(value: Any, path: tuple[str, ...]) -> Iterator[Any]:
    if isinstance(value, list):
        for each in value:
            yield from _inside(each, path)
    elif not path:
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            if plain(name) == path[0]:
                yield from _inside(each, path[1:])


def _number(value: Any) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _flag(value: Any) -> Any:
    return value if isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None or isinstance(value, dict | list) else str(value)
