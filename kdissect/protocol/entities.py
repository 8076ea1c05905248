"""Decoded values → the things that they name: groups, transactional ids, topics.

For most fields the definitions have the kind of thing that they name (``entityType``). For a few, another
field decides it. The key of a coordinator names a group or a transactional id. A resource (of configurations,
of ACLs) is a topic, a group and so on. Such pairs of fields are recognised by their names, which Kafka uses
for nothing else.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from kdissect.protocol.schema import Field, Struct
from kdissect.protocol.select import Selection, pick

GROUP, TRANSACTIONAL_ID, TOPIC = "groupId", "transactionalId", "topicName"
"""The kinds of things that callers can ask for, as the definitions name them."""

COORDINATORS = {0: GROUP, 1: TRANSACTIONAL_ID}
"""FindCoordinator's keyType (``FindCoordinatorRequest.CoordinatorType``). The type of share groups is left
out, because their key names more than a group."""
RESOURCE_KINDS = {2: TOPIC, 3: GROUP, 5: TRANSACTIONAL_ID, 32: GROUP}
"""The resourceType of configurations (``ConfigResource.Type``) and of ACLs (``ResourceType``). Numbers that
both have mean the same in both."""

KEY_TYPE = "keyType"
COORDINATOR_KEYS = ("key", "coordinatorKeys")
_TYPED = {
    "key": (KEY_TYPE, COORDINATORS),
    "coordinatorKeys": (KEY_TYPE, COORDINATORS),
    "resourceName": ("resourceType", RESOURCE_KINDS),
    "resourceNameFilter": ("resourceTypeFilter", RESOURCE_KINDS),
}
"""The fields whose kind another field decides. For each: the deciding field, and the kind by its value."""
ANY = "*"
"""The name of an ACL for all resources of a type."""
PREFIXED = 4
"""The pattern of an ACL (``PatternType``) that names the beginning of names."""
RESOURCE_PATTERNS = ("resourcePatternType", "patternType")
"""The fields that have the pattern."""


def names_one(field: Field, entity: str) -> bool:
    """Whether a field names things of this kind. In some classes a group's id has the usual name, but no
    ``entityType``; it counts too."""
    return field.entity == entity or (field.entity is None and field.name == entity == GROUP)


@cache
def typed(struct: Struct) -> frozenset[str]:
    """The names of a struct's fields whose kind another field decides. If that field is not in the same
    struct, the field is FindCoordinator's key."""
    names = struct.by_name.keys()
    if names.isdisjoint(_TYPED):  # as in nearly all
        return frozenset()
    own = "nodeId" in names or struct.name == "FindCoordinatorRequest"
    return frozenset(
        name for name in names & _TYPED.keys() if _TYPED[name][0] in names or (name == "key" and own)
    )


def names_in(
    entity: str, struct: Struct, values: dict[str, Any], asked: dict[str, Any] | None = None
) -> list[str]:
    """All things of one kind that a message names, each once, in the order of the definition. Empty names are
    left out.

    :param asked: the values of the request, if the message is a response: for some names only the request has
        the kind.
    """
    out: dict[str, None] = {}
    for name, value, ancestors in pick(_fields(struct, entity), values):
        if name in _TYPED and typed_entity(name, ancestors, asked) != entity:
            continue
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, str) and each:
                out[each] = None
    return list(out)


def named_around(
    entity: str, struct: Struct, ancestors: tuple[dict[str, Any], ...], asked: dict[str, Any] | None = None
) -> str | None:
    """The thing of this kind that the innermost of these structs names, if any does.

    :param struct: the message's struct, which is the outermost.
    :param ancestors: the values of the structs, the outermost first.
    """
    names = _names(struct, entity)
    if not names:  # as in most classes
        return None
    for depth in range(len(ancestors), 0, -1):
        for name, value in ancestors[depth - 1].items():
            if name not in names or not isinstance(value, str) or not value:
                continue
            if name not in _TYPED or typed_entity(name, ancestors[:depth], asked) == entity:
                return value
    return None


def typed_entity(
    name: str, ancestors: tuple[dict[str, Any], ...], asked: dict[str, Any] | None = None
) -> str | None:
    """The kind of a field whose kind another field decides; None if it is no single thing of the kinds
    above."""
    teller, kinds = _TYPED[name]
    own = ancestors[-1]
    if own.get(name) == ANY or PREFIXED in map(own.get, RESOURCE_PATTERNS):
        return None
    if teller in own:
        return kinds.get(own[teller])
    if teller != KEY_TYPE:
        return None
    if len(ancestors) == 1:
        return GROUP  # version 0 of FindCoordinator has only groups
    # This is a coordinator in a response. Other keys are not keys of coordinators.
    return kinds.get(asked.get(teller, 0)) if asked is not None and "nodeId" in own else None


def kind_field_of(name: str) -> str:
    """The name of the field that decides the kind of a field with this name."""
    return _TYPED[name][0]


@cache
def _fields(struct: Struct, entity: str) -> Selection:
    of_others = typed(struct)
    out = []
    for field in struct.fields:
        inner = _fields(field.struct, entity) if field.struct is not None else ()
        wanted = names_one(field, entity) or field.name in of_others
        if wanted or inner:
            out.append((field.name, wanted, inner or None))
    return tuple(out)


@cache
def _names(struct: Struct, entity: str) -> frozenset[str]:
    """The names of all fields that may name things of this kind."""
    out = {field.name for field in struct.fields if names_one(field, entity)} | typed(struct)
    return frozenset(out.union(*(_names(f.struct, entity) for f in struct.fields if f.struct is not None)))
