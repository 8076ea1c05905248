"""Definitions → :class:`Struct`: one message class in one version, with the plan that the walks follow.

Structs are built on demand and kept. If an older release laid out a message differently, there are further
structs: :func:`era_structs`. A caller may try them if bytes are left over or missing, and must report it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple, SupportsIndex

from kdissect.limits import DEEPEST
from kdissect.protocol import plan
from kdissect.protocol.definition import NONE, Block, Document, FieldDefinition
from kdissect.protocol.library import library

UNKNOWN_TAGS = "_unknownTaggedFields"
"""The key of tagged fields without a definition, in the values of a struct."""

REMAINDER = "_remainder"
"""The key of the remaining bytes, which no field accounts for, beside the fields."""

ZERO_UUID = "AAAAAAAAAAAAAAAAAAAAAA"
"""Kafka's Uuid.ZERO_UUID, which means no id."""


class Field(NamedTuple):
    """A field of one version."""

    name: str
    """Kafka's JSON spelling: its name with the first letter lowered."""
    type: str
    """``string``, ``int32``, ``FetchTopic``, ``[]FetchTopic`` …"""
    nullable: bool
    tag: int | None
    default: Any
    """The meaning of an absent value; a list or dict here must not be changed."""
    ignorable: bool
    """Whether a value may be dropped in a version that lacks the field."""
    key: bool
    """Whether the value is unique among the elements of the array around it."""
    entity: str | None
    """The kind of thing it names: ``topicName``, ``brokerId``, ``groupId``, ``producerId`` …"""
    struct: Struct | None
    """The struct of the field, or of the array's elements."""

    @property
    def is_array(self) -> bool:
        return self.type.startswith("[]")


class Struct:
    """The fields of a message or of a structure in it, in one version.

    Each struct exists once, also after unpickling, because other modules cache results by its identity. A
    pickle holds only the arguments that make the struct.
    """

    __slots__ = ("absent", "by_name", "fields", "flexible", "name", "origin", "plan", "release", "version")

    def __init__(self, name: str, version: int, flexible: bool, release: str) -> None:
        self.name = name
        """Kafka's name of the class."""
        self.version = version
        self.flexible = flexible
        """Whether it has compact types and tagged fields (KIP-482)."""
        self.release = release
        """The Kafka release of its definition."""
        self.fields: tuple[Field, ...] = ()
        """The fields in the order of the definition, including tagged fields."""
        self.by_name: dict[str, Field] = {}
        self.absent: dict[str, tuple[Any, bool]] = {}
        """Fields of other versions: (default, ignorable) by name."""
        self.plan: plan.Plan = (name, (), None)
        self.origin: tuple[Callable[..., Struct], tuple[Any, ...]] | None = None
        """The function of this module that returns it, and the arguments; None for a struct from
        :func:`build` alone."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        return self.origin or super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return f"<{self.name} version {self.version}>"


def is_default(field: Field, value: Any) -> bool:
    """Whether a tagged field's value means the same as its absence.

    Kafka compares by value, structs too. An incomplete struct is not the default, and neither is a struct
    with unknown tagged fields.
    """
    if field.struct is None or field.is_array or value is None or field.default is None:
        return bool(value == field.default)
    if UNKNOWN_TAGS in value or len(value) < sum(inner.tag is None for inner in field.struct.fields):
        return False
    return all(is_default(inner, value[inner.name]) for inner in field.struct.fields if inner.name in value)


@cache
def message_struct(api_key: int, version: int, kind: str) -> Struct:
    """The struct of a message's body; ``kind`` is ``request`` or ``response``.

    :raises LookupError: the definitions do not have this API, version or kind.
    """
    name, document = _api(api_key, kind)
    return _kept(_find(document, name, kind, version), message_struct, api_key, version, kind)


@cache
def data_struct(name: str, version: int) -> Struct:
    """The struct of any other message class, by Kafka's name: headers, internal records, embedded protocols.

    :raises LookupError: the definitions do not have this class or version.
    """
    return _kept(_find(library().data_class(name), name, None, version), data_struct, name, version)


@cache
def era_structs(api_key: int, version: int, kind: str) -> tuple[Struct, ...]:
    """The structs of older releases for the same version of a message, newest release first.

    :raises LookupError: the definitions do not have this API.
    """
    name, document = _api(api_key, kind)
    found = _eras(document, name, kind, version)
    return tuple(_kept(each, _era, at, api_key, version, kind) for at, each in enumerate(found))


@cache
def era_data_structs(name: str, version: int) -> tuple[Struct, ...]:
    """The structs as :func:`era_structs`, for any other message class."""
    found = _eras(library().data_class(name), name, None, version)
    return tuple(_kept(each, _data_era, at, name, version) for at, each in enumerate(found))


def _api(api_key: int, kind: str) -> tuple[str, Document]:
    """Kafka's name of the message class, and the definition of its API."""
    document = library().api(api_key)  # first: a damaged file may give way to one with another name
    return library().apis[api_key][0] + kind.capitalize(), document


def _era(at: int, api_key: int, version: int, kind: str) -> Struct:
    return era_structs(api_key, version, kind)[at]


def _data_era(at: int, name: str, version: int) -> Struct:
    return era_data_structs(name, version)[at]


def _inner(top: Struct, name: str) -> Struct:
    return next(each for each in _inside(top) if each.name == name)


def _inside(struct: Struct) -> Iterator[Struct]:
    """The structs inside a struct, once for each field that uses them."""
    for field in struct.fields:
        if field.struct is not None:
            yield field.struct
            yield from _inside(field.struct)


def _kept(struct: Struct, function: Callable[..., Struct], *arguments: Any) -> Struct:
    """Set the origin of a struct and of the structs in it. A struct type is built once for a message, so its
    name identifies it."""
    struct.origin = (function, arguments)
    _keep_inside(struct, struct)
    return struct


def _keep_inside(struct: Struct, top: Struct) -> None:
    """Set the origin of the structs in a struct of ``top``."""
    for field in struct.fields:
        inner = field.struct
        if inner is not None and inner.origin is None:  # several fields may use it
            inner.origin = (_inner, (top, inner.name))
            _keep_inside(inner, top)


def _find(document: Document, name: str, kind: str | None, version: int) -> Struct:
    for block in document.blocks:
        if version in block and not block.era and kind in (None, block.kind):
            return build(block, name, version)
    raise LookupError(f"{name} has no version {version}")


def _eras(document: Document, name: str, kind: str | None, version: int) -> tuple[Struct, ...]:
    blocks = [block for block in document.blocks if block.era and version in block]
    return tuple(build(block, name, version) for block in blocks if kind in (None, block.kind))


def build(block: Block, name: str, version: int) -> Struct:
    """The struct of one version of a block, even if the block does not list the version.

    :raises ValueError: the definition names a missing type, or nests too deep.
    """
    structures = structures_of(block.fields)
    release = next((span.release for span in block.spans if version in span.versions), "")
    top = Struct(name, version, version in block.flexible, release)
    return _fill(top, block.fields, structures, {}, 1)


def structures_of(fields: tuple[FieldDefinition, ...]) -> dict[str, tuple[FieldDefinition, ...]]:
    """The struct types of a block: each is defined where it is first used."""
    found: dict[str, tuple[FieldDefinition, ...]] = {}
    for field in fields:
        if field.fields:
            found.setdefault(field.element, field.fields)
            found |= structures_of(field.fields)
    return found


def _fill(
    struct: Struct,
    definitions: tuple[FieldDefinition, ...],
    structures: dict[str, tuple[FieldDefinition, ...]],
    done: dict[str, Struct],
    depth: int,
) -> Struct:
    if depth > DEEPEST:
        raise ValueError(f"{struct.name} is nested deeper than {DEEPEST}")
    fields, plain, tagged = [], [], []
    version = struct.version
    for definition in definitions:
        kind, inner = definition.type, None
        first, last = definition.versions
        is_there = first <= version <= last
        if kind not in plan.PRIMITIVES and (element := definition.element) not in plan.PRIMITIVES:
            if element not in structures:
                raise ValueError(f"{struct.name}.{definition.name}: no type {element}")
            inner = done.get(element)
            if inner is None and (is_there or kind == element):
                inner = Struct(element, version, struct.flexible, struct.release)
                _fill(inner, structures[element], structures, done, depth + 1)
                done[element] = inner
        if not is_there:
            default = _default(definition, inner)
            if isinstance(default, dict) and inner is not None:
                # A struct type of other versions only may have no field at all in this version.
                default = {name: value for name, (value, _) in inner.absent.items()} | default
            struct.absent[definition.name] = (default, definition.ignorable)
            continue
        field = _field(definition, version, inner)
        flexible = struct.flexible
        if definition.flexible is not None:
            flexible = version in definition.flexible
        step = _step(field, flexible)
        fields.append(field)
        if field.tag is None:
            plain.append(step)
        else:
            tagged.append((field.tag, step))
    struct.fields = tuple(fields)
    struct.by_name = {field.name: field for field in fields}
    struct.plan = (struct.name, tuple(plain), tuple(sorted(tagged)) if struct.flexible else None)
    return struct


def _field(definition: FieldDefinition, version: int, inner: Struct | None) -> Field:
    nullable, tagged = definition.nullable, definition.tagged
    return _new(
        Field,
        (
            definition.name,
            definition.type,
            nullable is not NONE and version in nullable,
            definition.tag if tagged is not NONE and version in tagged else None,
            _default(definition, inner),
            definition.ignorable,
            definition.key,
            definition.entity,
            inner,
        ),
    )


_new = tuple.__new__
"""``_new(Field, values)``: avoids the second call that NamedTuple's own ``__new__`` makes."""


_NO_VALUES = {
    **dict.fromkeys(("int8", "int16", "uint16", "int32", "uint32", "int64"), 0),
    **{"bool": False, "string": "", "bytes": b"", "records": None, "float64": 0.0, "uuid": ZERO_UUID},
}
"""The meaning of an absent value of each primitive type, if the definition has no default."""


def _default(definition: FieldDefinition, inner: Struct | None) -> Any:
    text, kind = definition.default, definition.type
    if text is None and kind in _NO_VALUES:
        return _NO_VALUES[kind]
    if text == "null":
        return None
    if kind.startswith("[]"):
        return []
    if inner is not None:
        return {field.name: field.default for field in inner.fields}
    if kind == "bool":
        return text == "true"
    if kind == "float64":
        return float(text or 0)
    if kind == "uuid":
        return text or ZERO_UUID
    if kind == "string":
        return text or ""
    if kind == "bytes":
        return b""
    return None if kind == "records" else int(text or 0)


def _step(field: Field, flexible: bool) -> tuple[int, str, Any]:
    """The field's entry in the plan."""
    kind = field.type
    if kind in plan.FIXED and field.struct is None:
        return plan.FIXED[kind], field.name, None
    opcode, argument = _form(kind.removeprefix("[]"), field.struct, flexible)
    if kind.startswith("[]"):
        least = max(1, plan.least_bytes(opcode, argument))
        element = (opcode, argument, least)
        return plan.COMPACT_ARRAY if flexible else plan.ARRAY, field.name, (field.nullable, *element)
    if opcode == plan.STRUCT and field.nullable:
        opcode = plan.NULLABLE_STRUCT if field.tag is None else plan.TAGGED_NULLABLE_STRUCT
    elif field.type in plan.VARIABLE:
        argument = field.nullable
    return opcode, field.name, argument


def _form(kind: str, struct: Struct | None, flexible: bool) -> tuple[int, Any]:
    """Opcode and argument of a value that is neither null nor an array."""
    if struct is not None:
        return plan.STRUCT, struct.plan
    if kind in plan.FIXED:
        return plan.FIXED[kind], None
    return plan.VARIABLE[kind][flexible], False
