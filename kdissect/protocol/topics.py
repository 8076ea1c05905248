"""Decoded values → the topics in them: their names, their ids, and the name of each id.

The definitions mark the fields that name a topic (``entityType: topicName``). Ids are recognised by Kafka's
names of the fields; resources by their type (:mod:`kdissect.protocol.entities`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from kdissect.protocol.entities import TOPIC, names_one, typed_entity
from kdissect.protocol.schema import ZERO_UUID, Field, Struct
from kdissect.protocol.select import Selection, pick, selection

IDS = ("topicId", "topicIds")
"""Fields that name topics by id."""
RESOURCES = ("resourceName", "resourceNameFilter")
"""Fields that name a topic if their type says so."""
NAMES = ("name", "topicName", "topic")
"""Fields that may name the topic whose id is in the same struct."""
_PARTITIONS = ("partition", "index", "partitionIndex", "partitionId")
_NAME, _ID, _PARTITION = range(3)
_ROLES = dict.fromkeys(NAMES, _NAME) | {"topicId": _ID} | dict.fromkeys(_PARTITIONS, _PARTITION)
"""The part of a partition's identity that a field has, by the field's name."""
IDENTITY_BY_NAME = frozenset(_ROLES)
"""The names of these fields."""


def mentioned_topics(struct: Struct, values: dict[str, Any]) -> list[tuple[str | None, str | None]]:
    """Every topic in the values, in order: its name, or else its id. A topic with both is given by its
    name."""
    out: list[tuple[str | None, str | None]] = []
    for name, value, ancestors in pick(_topic_fields(struct), values):
        if name in RESOURCES and typed_entity(name, ancestors) != TOPIC:
            continue
        for item in value if isinstance(value, list) else (value,):
            if not isinstance(item, str):
                continue
            if name not in IDS:
                out.append((item, None))
            elif item != ZERO_UUID and not _sibling_name(ancestors[-1]):
                out.append((None, item))
    return out


@cache
def can_teach(struct: Struct) -> bool:
    """Whether it may have topic ids and names in the same struct."""
    return bool(_teaching_fields(struct))


def taught_topics(struct: Struct, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every topic id with its name in the same struct, and that name."""
    for _, topic_id, ancestors in pick(_teaching_fields(struct), values):
        name = _sibling_name(ancestors[-1])
        if name and topic_id != ZERO_UUID:
            yield topic_id, name


def partition_of(ancestors: tuple[dict[str, Any], ...]) -> tuple[str | None, str | None, int | None]:
    """The topic, topic id and partition of these structs, the outermost first; None for parts that they do
    not have."""
    topic = topic_id = None
    partition = None
    for values in ancestors:
        for key, item in values.items():
            role = _ROLES.get(key)
            if role is None:
                continue
            if role == _PARTITION:
                if isinstance(item, int):
                    partition = item
            elif isinstance(item, str):
                if role == _NAME:
                    topic = item
                elif item != ZERO_UUID:
                    topic_id = item
    return topic, topic_id, partition


def identity_part_of(name: str) -> str | None:
    """The part of a partition's identity in a field of this name: ``topic``, ``topic id`` or ``partition``;
    None for other fields."""
    role = _ROLES.get(name)
    return None if role is None else ("topic", "topic id", "partition")[role]


def _sibling_name(values: dict[str, Any]) -> str | None:
    for key in NAMES:
        value = values.get(key)
        if isinstance(value, str) and value:
            return value
    return None


def is_topic(field: Field) -> bool:
    """Whether a field names topics, by name or id."""
    return names_one(field, TOPIC) or field.name in IDS


def teaches(struct: Struct, field: Field) -> bool:
    """Whether a field is a topic's id with the topic's name in the same struct."""
    if field.name != "topicId" or field.type != "uuid":
        return False
    return any(f.entity == TOPIC and not f.type.startswith("[]") for f in struct.fields)


@cache
def _topic_fields(struct: Struct) -> Selection:
    return selection(struct, lambda field: is_topic(field) or field.name in RESOURCES)


@cache
def _teaching_fields(struct: Struct) -> Selection:
    out = []
    for f in struct.fields:
        wanted = teaches(struct, f)
        inner = _teaching_fields(f.struct) if f.struct is not None else ()
        if wanted or inner:
            out.append((f.name, wanted, inner or None))
    return tuple(out)
