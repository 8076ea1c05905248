"""Places → values: reads the fields that a path means from the messages of an exchange."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from kdissect.filter.brackets import Bracket, PathStep
from kdissect.filter.field import BODY, HEADER, FieldKind, FilterField
from kdissect.filter.paths import ANY_API, ApiField, Twig
from kdissect.filter.row import Row
from kdissect.message import Message
from kdissect.present.body import context_of
from kdissect.present.redact import Asked, asked_of, is_secret, may_hold_secrets
from kdissect.present.sanitise import valid_text
from kdissect.present.secret_names import REDACTED

Brackets = tuple[tuple[Bracket, ...], ...]
"""The brackets after each step of a path."""

SLICED = (FieldKind.TEXT, FieldKind.BYTES)
"""The kinds that have parts."""


def field_at(name: str, found: Sequence[ApiField], steps: Sequence[PathStep] = ()) -> FilterField:
    """The field that stands for all these places.

    :param steps: the steps of the name, if it has brackets.
    :raises ValueError: the places have different kinds, and the text names two of them; or brackets follow a
        field that has no elements.
    """
    useful = [place for place in found if place.kind is not FieldKind.PRESENCE] or list(found)
    if steps:
        useful = [place for place in useful if _has_elements(place, _aligned(place, steps))]
        if not useful or any(step.brackets for step in steps[: -_shortest(useful)]):
            raise ValueError(f"{name}: brackets work with arrays, text and bytes only")
    first = useful[0]
    for other in useful:
        if other.kind is not first.kind:
            raise ValueError(
                f"{name} is ambiguous: {first.name} is {first.kind.value}, {other.name} {other.kind.value}"
            )
    unit = first.unit if all(place.unit == first.unit for place in useful) else ""
    places_of: dict[tuple[int, str], list[tuple[ApiField, Brackets]]] = {}
    for place in useful:
        places_of.setdefault((place.api_key, place.side), []).append((place, _aligned(place, steps)))
    meaning = f"{first.name} and {len(useful) - 1} more" if len(useful) > 1 else first.name
    cost = HEADER if all(place.in_header for place in useful) else BODY
    return FilterField(name, first.kind, meaning, partial(_values, places_of), True, cost, unit)


def parts_of(field: FilterField, name: str, steps: Sequence[PathStep]) -> FilterField:
    """A field that is not Kafka's own, with brackets after it: elements of a list, part of a value. An
    exchange may have many records and faults, but brackets select within the value of each.

    :raises ValueError: the field has neither elements nor parts.
    """
    listed = field.many and "." not in field.name
    brackets = steps[-1].brackets
    if any(step.brackets for step in steps[:-1]) or len(brackets) > listed + (field.kind in SLICED):
        raise ValueError(f"{name}: brackets work with arrays, text and bytes only")
    elements = brackets[0] if listed else None
    inside = brackets[listed:]

    def read(row: Row) -> Any:
        values = list(field.values(row))
        if elements is not None:
            values = elements.elements(values)
        values = [part for value in values if (part := _part(value, inside)) is not None]
        return values if field.many else next(iter(values), None)

    if field.many or field.source:
        return field._replace(name=name, read=read, alone="", source="", derive=None)
    return field._replace(name=name, read=read, source=field.name, derive=lambda value: _part(value, inside))


def _shortest(found: Sequence[ApiField]) -> int:
    return min(len(place.twigs) for place in found)


def _aligned(place: ApiField, steps: Sequence[PathStep]) -> Brackets:
    """The brackets after each field of a place. A name may omit the first fields, and may begin with the API
    and the side."""
    given = [step.brackets for step in steps[-len(place.twigs) :]] if steps else []
    return (*((),) * (len(place.twigs) - len(given)), *given)


def _has_elements(place: ApiField, brackets: Brackets) -> bool:
    """Whether every bracket follows a field with elements or parts."""
    return all(
        len(each) <= _room(twig, twig is place.twigs[-1] and not place.of_size)
        for twig, each in zip(place.twigs, brackets, strict=True)
    )


def _room(twig: Twig, is_last: bool) -> int:
    return twig.is_array + (is_last and twig.kind in SLICED)


def _values(places_of: dict[tuple[int, str], list[tuple[ApiField, Brackets]]], row: Row) -> list[Any]:
    out: list[Any] = []
    exchange = row.exchange
    if exchange is None:
        return out
    key = ANY_API if exchange.api_key is None else exchange.api_key
    for message in exchange.messages:
        found = places_of.get((key, message.kind)) or places_of.get((ANY_API, message.kind)) or ()
        for place, brackets in found:
            if place.in_header:
                _collect(place, brackets, 0, (message.header(),), None, out)
                continue
            body = message.decoded()
            if body.struct is not None:
                hiding = None if row.options.show_secrets else _hiding(row, message, body.struct.name)
                _collect(place, brackets, 0, (body.values,), hiding, out)
    return out


class _Hiding(NamedTuple):
    """The facts that decide which values of a message are secrets."""

    message: str
    """The class of the message."""
    shown: frozenset[str]
    asked: Asked | None

    def hides(self, name: str, ancestors: tuple[Any, ...], value: Any) -> bool:
        return is_secret(self.message, name, ancestors, value, self.shown, self.asked)


def _hiding(row: Row, message: Message, name: str) -> _Hiding | None:
    """The facts that decide which values are secrets; None if the class cannot hold secrets."""
    if not may_hold_secrets(name):
        return None
    assert row.exchange is not None
    asked = asked_of(name, context_of(row.exchange, message, row.options))
    return _Hiding(name, row.options.shown_fields, asked)


def _collect(
    place: ApiField,
    brackets: Brackets,
    at: int,
    ancestors: tuple[Any, ...],
    hiding: _Hiding | None,
    out: list[Any],
) -> None:
    """Gather the values below a struct.

    :param hiding: decides which values are secrets, if they are hidden.
    """
    twig, values, chosen = place.twigs[at], ancestors[-1], brackets[at]
    is_last = at + 1 == len(place.twigs)
    for name in twig.spellings:
        value = values.get(name)
        if value is None:
            continue
        items = value if isinstance(value, list) else [value]
        if chosen and twig.is_array:
            items = chosen[0].elements(items)
        for item in items:
            if not is_last:
                if isinstance(item, dict):
                    _collect(place, brackets, at + 1, (*ancestors, item), hiding, out)
            elif hiding is not None and hiding.hides(name, ancestors, item):
                out.append(REDACTED)
            elif place.of_size:
                out.append(len(item))
            elif item is not None:
                part = _part(valid_text(item) if isinstance(item, str) else item, chosen[twig.is_array :])
                if part is not None:
                    out.append(part)


def _part(value: Any, brackets: tuple[Bracket, ...]) -> Any:
    return brackets[0].part(value) if brackets else value
