"""Kafka's fields by their path: ``fetch.response.responses.partitions.highWatermark``.

A path begins with an API (an old name will do), then ``request`` or ``response``, then the names of the
definitions, in any version. It may be shortened from the front: to the API and the end of the path
(``fetch.highWatermark``), to the side and the end (``response.throttleTimeMs``), to the end alone
(``highWatermark``, ``partitions.highWatermark``). A short path means every field whose path ends so, in
every API that has one; if some of them are text and others numbers, it is ambiguous, and an error.

Arrays are passed through: a field inside has as many values as there are elements. A records field can be
asked for its presence and, as in Kafka's JSON, for its ``…SizeInBytes``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import Any, NamedTuple

from kdissect.filter.field import BODY, Field, Kind, plain
from kdissect.filter.row import Row
from kdissect.present.redact import REDACTED, SECRETS, is_secret
from kdissect.present.sanitise import valid_text
from kdissect.protocol import apis
from kdissect.protocol.definition import FieldDefinition
from kdissect.protocol.json_form import SIZE_SUFFIX
from kdissect.protocol.library import library

SIDES = ("request", "response")


class Twig:
    """A field of a message in all its versions, with the fields inside it."""

    __slots__ = ("children", "kind", "name", "spellings", "type", "unit")

    def __init__(self, definition: FieldDefinition) -> None:
        self.name = definition.name
        """As the newest definition that has it spells it."""
        self.spellings = {definition.name}
        self.type = definition.element
        self.kind, self.unit = _kind(definition)
        self.children: dict[str, Twig] = {}
        """By plain name."""


def _kind(definition: FieldDefinition) -> tuple[Kind, str]:
    name, kind = definition.name.lower(), definition.element
    if kind in ("string", "uuid"):
        return Kind.TEXT, ""
    if kind == "bytes":
        return Kind.BYTES, ""
    if kind == "bool":
        return Kind.FLAG, ""
    if kind == "float64":
        return Kind.FLOAT, ""
    if kind == "int16" and name.endswith("errorcode"):
        return Kind.ERROR, ""
    if not kind.startswith(("int", "uint")):
        return Kind.PRESENCE, ""
    if kind == "int64" and "timestamp" in name:
        return Kind.MOMENT, "ms"
    unit = "ms" if name.endswith("ms") else "bytes" if name.endswith(("bytes", "size")) else ""
    return Kind.NUMBER, unit


@cache
def tree(api_key: int, side: str) -> dict[str, Twig]:
    """The fields of a request or response in all versions and layouts, by plain name."""
    out: dict[str, Twig] = {}
    for block in library().api(api_key).blocks:
        if block.kind == side:
            _grow(out, block.fields, _structures(block.fields))
    return out


def _structures(fields: tuple[FieldDefinition, ...]) -> dict[str, tuple[FieldDefinition, ...]]:
    """The struct types of a block, which are spelled out where they are first used."""
    found: dict[str, tuple[FieldDefinition, ...]] = {}
    for field in fields:
        if field.fields:
            found.setdefault(field.element, field.fields)
            found |= _structures(field.fields)
    return found


def _grow(
    twigs: dict[str, Twig],
    fields: tuple[FieldDefinition, ...],
    structures: dict[str, tuple[FieldDefinition, ...]],
) -> None:
    for definition in fields:
        twig = twigs.setdefault(plain(definition.name), Twig(definition))
        twig.spellings.add(definition.name)
        _grow(twig.children, structures.get(definition.element, ()), structures)


# -- names → places ---------------------------------------------------------------------------------


class Place(NamedTuple):
    """A field of one API and side."""

    api_key: int
    side: str
    twigs: tuple[Twig, ...]
    """From the message's own field down to it."""
    of_size: bool = False
    """Whether its length is meant, not the records themselves."""

    @property
    def kind(self) -> Kind:
        return Kind.NUMBER if self.of_size else self.twigs[-1].kind

    @property
    def unit(self) -> str:
        return "bytes" if self.of_size else self.twigs[-1].unit

    @property
    def name(self) -> str:
        """The whole path."""
        api = apis.api_name(self.api_key)
        steps = ".".join(twig.name for twig in self.twigs)
        return f"{api[0].lower()}{api[1:]}.{self.side}.{steps}{SIZE_SUFFIX if self.of_size else ''}"


def api_of(word: str) -> int | None:
    """The key of an API's name, old or new; None where there is none."""
    try:
        return apis.api_key(word)
    except LookupError:
        return None


def places(name: str) -> list[Place]:
    """The fields that a path means."""
    parts = [plain(part) for part in name.split(".")]
    keys: tuple[int, ...] = apis.api_keys()
    sides: tuple[str, ...] = SIDES
    api = api_of(parts[0]) if len(parts) > 1 else None
    if api is not None:
        keys, parts = (api,), parts[1:]
    if len(parts) > 1 and parts[0] in SIDES:
        sides, parts = (parts[0],), parts[1:]
        if api is not None:
            whole = list(_ending(api, sides[0], parts, exact=True))
            if whole:
                return whole
    return [place for key in keys for side in sides for place in _ending(key, side, parts)]


def _ending(api_key: int, side: str, parts: list[str], exact: bool = False) -> Iterator[Place]:
    """The fields of a side whose path ends with ``parts``, or is just that."""
    if all(parts):
        for steps, twigs, of_size in _all_paths(api_key, side):
            if steps[-len(parts) :] == tuple(parts) and (not exact or len(steps) == len(parts)):
                yield Place(api_key, side, twigs, of_size)


@cache
def _all_paths(api_key: int, side: str) -> tuple[tuple[tuple[str, ...], tuple[Twig, ...], bool], ...]:
    """Every path of a side: plain names, twigs, and whether it is the size of a records field."""
    out = []
    for twigs in _walk(tree(api_key, side), ()):
        steps = tuple(plain(twig.name) for twig in twigs)
        out.append((steps, twigs, False))
        if twigs[-1].type == "records":
            out.append(((*steps[:-1], steps[-1] + plain(SIZE_SUFFIX)), twigs, True))
    return tuple(out)


def _walk(twigs: dict[str, Twig], above: tuple[Twig, ...]) -> Iterator[tuple[Twig, ...]]:
    for twig in twigs.values():
        yield (*above, twig)
        yield from _walk(twig.children, (*above, twig))


@cache
def all_names() -> tuple[str, ...]:
    """Every name of a field in any message, each once: what a path can end with."""
    found: dict[str, None] = {}
    for key in apis.api_keys():
        for side in SIDES:
            for steps, twigs, of_size in _all_paths(key, side):
                found[twigs[-1].name + (SIZE_SUFFIX if of_size else "") if steps else ""] = None
    return tuple(found)


# -- places → a field -------------------------------------------------------------------------------


def field_at(name: str, found: list[Place]) -> Field:
    """The field that stands for all these places.

    :raises ValueError: they are of different kinds; the text names two.
    """
    useful = [place for place in found if place.kind is not Kind.PRESENCE] or found
    first = useful[0]
    for other in useful:
        if other.kind is not first.kind:
            raise ValueError(
                f"{name} is ambiguous: {first.name} is {first.kind.value}, {other.name} {other.kind.value}"
            )
    unit = first.unit if all(place.unit == first.unit for place in useful) else ""
    places_of: dict[tuple[int, str], list[Place]] = {}
    for place in useful:
        places_of.setdefault((place.api_key, place.side), []).append(place)
    meaning = f"{first.name} and {len(useful) - 1} more" if len(useful) > 1 else first.name
    return Field(name, first.kind, meaning, partial(_values, places_of), True, BODY, unit)


def _values(places_of: dict[tuple[int, str], list[Place]], row: Row) -> list[Any]:
    out: list[Any] = []
    exchange = row.exchange
    key = None if exchange is None else exchange.api_key
    if exchange is None or key is None:
        return out
    for message in exchange.messages:
        for place in places_of.get((key, message.kind), ()):
            body = message.decoded()
            if body.struct is not None:
                hidden = "" if row.options.show_secrets else body.struct.name
                _collect(place, 0, (body.values,), hidden, out)
    return out


def _collect(place: Place, at: int, ancestors: tuple[Any, ...], message: str, out: list[Any]) -> None:
    """Gather the values below a struct.

    :param message: the class of the message if its secrets are hidden; else nothing.
    """
    twig, values = place.twigs[at], ancestors[-1]
    is_last = at + 1 == len(place.twigs)
    for name in twig.spellings:
        value = values.get(name)
        if value is None:
            continue
        for item in value if isinstance(value, list) else (value,):
            if not is_last:
                if isinstance(item, dict):
                    _collect(place, at + 1, (*ancestors, item), message, out)
            elif message in SECRETS and is_secret(message, name, ancestors, item):
                out.append(REDACTED)
            elif place.of_size:
                out.append(len(item))
            elif isinstance(item, str):
                out.append(valid_text(item))
            elif item is not None:
                out.append(item)


def below(api_key: int, side: str) -> Iterator[Place]:
    """Every field of a side."""
    for _, twigs, of_size in _all_paths(api_key, side):
        yield Place(api_key, side, twigs, of_size)
