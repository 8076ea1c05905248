"""Facts that only imported definitions have: fields whose content kdissect does not know, and classes that
kdissect knows by another name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from kdissect.protocol.definition import Document, FieldDefinition
from kdissect.protocol.library import Library, library, package_folder

Place = tuple[str, str]
"""A field's name, and the type of the struct around it; the type is empty in the message itself."""

KINDS = ("request", "response")
_OF_VALUES = ("string", "bytes")


class Imported(NamedTuple):
    """A message class of the definitions in use, compared with kdissect's own."""

    own_name: str
    """The class's name in kdissect's own definitions; the same name if they do not have it."""
    fields: frozenset[Place] = frozenset()
    """The fields of text or bytes, in any version, that kdissect's own definitions lack."""


def imported(message: str) -> Imported:
    """The comparison of a message class with kdissect's own.

    :param message: Kafka's name of the class, such as ``FetchRequest``.
    """
    return _imported(library(), message)


def is_class(name: str) -> bool:
    """Whether a name is a message class, and not a struct in one."""
    return _is_class(library(), name)


@lru_cache(maxsize=4096)
def _is_class(known: Library, name: str) -> bool:
    stems = (name.removesuffix(kind.capitalize()) for kind in KINDS if name.endswith(kind.capitalize()))
    return name in known.data or any(_key_of(known, stem) is not None for stem in stems)


def _key_of(known: Library, api: str) -> int | None:
    return next((key for key, (name, _) in known.apis.items() if name == api), None)


@lru_cache(maxsize=4096)
def _imported(known: Library, message: str) -> Imported:
    own = own_library(known)
    if message in known.data:
        entry, own_entry = known.data[message], own.data.get(message)
        if own_entry is not None and entry[1] == own_entry[1]:
            return Imported(message)
        old = _places(own.data_class(message), None) if own_entry is not None else frozenset()
        return Imported(message, _places(known.data_class(message), None) - old)
    for kind in KINDS:
        stem = message.removesuffix(kind.capitalize())
        key = _key_of(known, stem) if stem != message else None
        if key is None:
            continue
        if key not in own.apis:
            return Imported(message, _places(known.api(key), kind))
        own_name = f"{own.apis[key][0]}{kind.capitalize()}"
        if known.apis[key][1] == own.apis[key][1]:
            return Imported(own_name)
        return Imported(own_name, _places(known.api(key), kind) - _places(own.api(key), kind))
    return Imported(message)


def own_library(known: Library) -> Library:
    """kdissect's own definitions; the definitions in use, if these are the same."""
    return known if known.is_own else _package()


@cache
def _package() -> Library:
    return Library(package_folder())


def _places(document: Document, kind: str | None) -> frozenset[Place]:
    blocks = (block for block in document.blocks if kind in (None, block.kind))
    return frozenset(place for block in blocks for place in _of_fields(block.fields, ""))


def _of_fields(fields: tuple[FieldDefinition, ...], around: str) -> Iterator[Place]:
    for field in fields:
        if field.element in _OF_VALUES:
            yield field.name, around
        yield from _of_fields(field.fields, field.element)
