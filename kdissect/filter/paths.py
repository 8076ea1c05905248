"""Kafka's fields by their path: ``fetch.response.responses.partitions.highWatermark``.

A path begins with an API (an old name will do), then ``request`` or ``response``, then the names of the
definitions, in any version. It may be shortened from the front. What is left is the API and the end of the
path (``fetch.highWatermark``), the side and the end (``response.throttleTimeMs``), or the end alone
(``highWatermark``, ``partitions.highWatermark``). A short path means every field, in every API, whose path
has this end. If some of these fields are text and others numbers, the path is ambiguous, and an error.

The fields of a message's header have the step ``header`` before them: ``fetch.request.header.clientId``,
``response.header.correlationId``. Only headers have this step. The fields of its body may have ``body``
before them, as in ``request`` and ``response`` of the NDJSON.

Arrays are passed through: a field inside an array has one value for each element. A records field can be
tested for presence and, as in Kafka's JSON, for its ``…SizeInBytes``. :mod:`kdissect.filter.reach` reads the
values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from kdissect.filter.field import FieldKind, plain
from kdissect.protocol import apis
from kdissect.protocol.definition import FieldDefinition
from kdissect.protocol.json_form import SIZE_SUFFIX
from kdissect.protocol.library import library
from kdissect.protocol.schema import structures_of

SIDES = ("request", "response")
HEADER_STEP, BODY_STEP = "header", "body"
"""The steps allowed after a side. No field of Kafka's has these names."""
ANY_API = -1
"""The API key of a header's field if the path names no API: it means every API, unknown ones too."""


OLD_NAMES: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("Produce", "request"): {"topics": "topicData", "partitions": "partitionData", "recordSet": "records"},
    ("Produce", "response"): {"topics": "responses", "partitions": "partitionResponses"},
    ("Fetch", "response"): {
        "topics": "responses",
        "partitionResponses": "partitions",
        "partition": "partitionIndex",
        "recordSet": "records",
        "recordSetSizeInBytes": "recordsSizeInBytes",
    },
    ("TxnOffsetCommit", "request"): {"generationId": "generationIdOrMemberEpoch"},
    ("Vote", "request"): {
        "candidateEpoch": "replicaEpoch",
        "candidateId": "replicaId",
        "candidateDirectoryId": "replicaDirectoryId",
    },
    ("ListConfigResources", "response"): {
        "clientMetricsResources": "configResources",
        "name": "resourceName",
    },
}
"""Names of fields in older releases of Kafka, or aliases, with the name in the definitions. They are
understood in paths that begin with the API."""


class Twig:
    """A field of a message in all its versions, with the fields inside it."""

    __slots__ = ("children", "is_array", "kind", "name", "spellings", "type", "unit")

    def __init__(self, definition: FieldDefinition) -> None:
        self.name = definition.name
        """The name in the newest definition that has the field."""
        self.spellings = {definition.name}
        self.type = definition.element
        self.is_array = False
        """Whether it is an array in some version."""
        self.kind, self.unit = _kind(definition)
        self.children: dict[str, Twig] = {}
        """The fields inside it, by plain name."""


def _kind(definition: FieldDefinition) -> tuple[FieldKind, str]:
    name, kind = definition.name.lower(), definition.element
    if kind in ("string", "uuid"):
        return FieldKind.TEXT, ""
    if kind == "bytes":
        return FieldKind.BYTES, ""
    if kind == "bool":
        return FieldKind.FLAG, ""
    if kind == "float64":
        return FieldKind.FLOAT, ""
    if kind == "int16" and name.endswith("errorcode"):
        return FieldKind.ERROR, ""
    if not kind.startswith(("int", "uint")):
        return FieldKind.PRESENCE, ""
    if kind == "int64" and "timestamp" in name:
        return FieldKind.MOMENT, "ms"
    unit = "ms" if name.endswith("ms") else "bytes" if name.endswith(("bytes", "size")) else ""
    return FieldKind.NUMBER, unit


@cache
def tree(api_key: int, side: str) -> dict[str, Twig]:
    """The fields of a request or response in all versions and layouts, by plain name."""
    out: dict[str, Twig] = {}
    for block in library().api(api_key).blocks:
        if block.kind == side:
            _grow(out, block.fields, structures_of(block.fields))
    return out


@cache
def header_tree(side: str) -> dict[str, Twig]:
    """The fields of the header of requests or responses, by plain name."""
    out: dict[str, Twig] = {}
    for block in library().data_class(f"{side.capitalize()}Header").blocks:
        _grow(out, block.fields, structures_of(block.fields))
    return out


def _grow(
    twigs: dict[str, Twig],
    fields: tuple[FieldDefinition, ...],
    structures: dict[str, tuple[FieldDefinition, ...]],
) -> None:
    for definition in fields:
        twig = twigs.setdefault(plain(definition.name), Twig(definition))
        twig.spellings.add(definition.name)
        twig.is_array |= definition.type.startswith("[]")
        _grow(twig.children, structures.get(definition.element, ()), structures)


# -- names → places ---------------------------------------------------------------------------------


class ApiField(NamedTuple):
    """A field of one API and side."""

    api_key: int
    side: str
    twigs: tuple[Twig, ...]
    """The fields from the top of the message down to this one."""
    of_size: bool = False
    """Whether this is the size of a records field, not the records themselves."""
    in_header: bool = False
    """Whether it is a field of the header, not of the body."""

    @property
    def kind(self) -> FieldKind:
        return FieldKind.NUMBER if self.of_size else self.twigs[-1].kind

    @property
    def unit(self) -> str:
        return "bytes" if self.of_size else self.twigs[-1].unit

    @property
    def name(self) -> str:
        """The whole path."""
        steps = [self.side, *((HEADER_STEP,) if self.in_header else ()), *(twig.name for twig in self.twigs)]
        if self.api_key != ANY_API:
            api = apis.api_name(self.api_key)
            steps.insert(0, f"{api[0].lower()}{api[1:]}")
        return ".".join(steps) + (SIZE_SUFFIX if self.of_size else "")


def api_of(word: str) -> int | None:
    """The key of an API's name, old or new; None if no API has the name."""
    try:
        return apis.api_key(word)
    except LookupError:
        return None


def places(name: str) -> list[ApiField]:
    """The fields that a path means."""
    parts = [plain(part) for part in name.split(".")]
    keys: tuple[int, ...] = apis.api_keys()
    sides: tuple[str, ...] = SIDES
    api = api_of(parts[0]) if len(parts) > 1 else None
    if api is not None:
        keys, parts = (api,), parts[1:]
    if len(parts) > 1 and parts[0] in SIDES:
        sides, parts = (parts[0],), parts[1:]
    if len(parts) == 2 and parts[0] == HEADER_STEP:
        return [
            ApiField(ANY_API if api is None else api, side, (twig,), in_header=True)
            for side in sides
            if (twig := header_tree(side).get(parts[1])) is not None
        ]
    if len(sides) == 1:
        if len(parts) > 1 and parts[0] == BODY_STEP:
            parts = parts[1:]
        if api is not None:
            whole = list(_ending(api, sides[0], parts, exact=True))
            if whole:
                return whole
    found = [place for key in keys for side in sides for place in _ending(key, side, parts)]
    if api is not None and not found:
        for side in sides:
            found += _ending(api, side, [_renamed(api, side).get(part, part) for part in parts])
    return found


@cache
def _renamed(api_key: int, side: str) -> dict[str, str]:
    """The plain old names, with the plain names of the definitions."""
    names = OLD_NAMES.get((apis.api_name(api_key), side), {})
    return {plain(old): plain(new) for old, new in names.items()}


def old_names(api_key: int) -> set[str]:
    """The plain old names of an API's fields."""
    return {name for side in SIDES for name in _renamed(api_key, side)}


def _ending(api_key: int, side: str, parts: list[str], exact: bool = False) -> Iterator[ApiField]:
    """The fields of a side whose path ends with ``parts``, or, if ``exact``, is equal to ``parts``."""
    if all(parts):
        for steps, twigs, of_size in _all_paths(api_key, side):
            if steps[-len(parts) :] == tuple(parts) and (not exact or len(steps) == len(parts)):
                yield ApiField(api_key, side, twigs, of_size)


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
    """Every name of a field in any message, each once. A path can end with any of them."""
    found: dict[str, None] = {}
    for key in apis.api_keys():
        for side in SIDES:
            for steps, twigs, of_size in _all_paths(key, side):
                found[twigs[-1].name + (SIZE_SUFFIX if of_size else "") if steps else ""] = None
    return tuple(found)


def below(api_key: int, side: str) -> Iterator[ApiField]:
    """Every field of a side."""
    for _, twigs, of_size in _all_paths(api_key, side):
        yield ApiField(api_key, side, twigs, of_size)
