"""Decoded values → the topics that they speak of: by name, by id, and which id has which name.

The definitions tell which fields name a topic (``entityType: topicName``). For ids, Kafka's names of the
fields tell it; for resources, their type (:mod:`kdissect.protocol.entities`).
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
"""Fields that name a topic where their type says so."""
NAMES = ("name", "topicName", "topic")
"""Fields that name the topic whose id stands beside them."""
_PARTITIONS = ("partition", "index", "partitionIndex", "partitionId")
_NAME, _ID, _PARTITION = range(3)
_ROLES = dict.fromkeys(NAMES, _NAME) | {"topicId": _ID} | dict.fromkeys(_PARTITIONS, _PARTITION)
"""What fields say of a partition, by name."""
TOLD_BY_NAME = frozenset(_ROLES)
"""The names of these fields."""


def mentioned_topics(struct: Struct, values: dict[str, Any]) -> list[tuple[str | None, str | None]]:
    """Every topic in the values, in order: its name, or else its id. A topic with both gives the name."""
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
    """Whether topic ids stand beside names in it."""
    return bool(_teaching_fields(struct))


def taught_topics(struct: Struct, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every topic id that stands beside its topic's name, and that name."""
    for _, topic_id, ancestors in pick(_teaching_fields(struct), values):
        name = _sibling_name(ancestors[-1])
        if name and topic_id != ZERO_UUID:
            yield topic_id, name


def partition_of(ancestors: tuple[dict[str, Any], ...]) -> tuple[str | None, str | None, int | None]:
    """The topic, topic id and partition that these structs, outermost first, are about; None where they
    do not say."""
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


def told_by(name: str) -> str | None:
    """What a field of this name tells of the partition that its struct is about: ``topic``, ``topic id`` or
    ``partition``; None for others."""
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
    """Whether a field of a struct is a topic's id, beside which its name stands."""
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
