"""The traits of APIs and fields in kdissect's own definitions, beside their layout.

Only the layout of imported definitions is used, because Kafka's files have no traits. A class that only they
have has no traits. A class that kdissect has too keeps its traits, by the names of its fields, even if they
rename the class.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from kdissect.protocol.definition import ApiTraits, Document, FieldDefinition, parse
from kdissect.protocol.imported import KINDS, imported, own_library
from kdissect.protocol.library import Library, library

NO_TRAITS = ApiTraits()


class FieldTraits(NamedTuple):
    """The fields of a message class that have a trait, by name. Fields with the same name have the same
    traits."""

    secrets: Mapping[str, str]
    """The rule that decides whether the value is a secret."""
    holds: Mapping[str, str]
    """The content of the bytes."""


NO_FIELDS = FieldTraits({}, {})


def api_traits(key: int | None) -> ApiTraits:
    """The traits of an API, by its key. An unknown API has no traits."""
    return _api_traits(library(), key)


def traits_of_api(name: str | None) -> ApiTraits:
    """The traits of an API, by its name in :attr:`kdissect.exchange.Exchange.api`."""
    return _traits_of_api(library(), name)


def field_traits(message: str) -> FieldTraits:
    """The traits of a message class.

    :param message: its name in the definitions in use, such as ``FetchRequest``.
    """
    return _field_traits(library(), message)


def secret_field_names() -> frozenset[str]:
    """The names of all fields, of any class, that are or may be secrets."""
    return _secret_field_names(own_library(library()))


@lru_cache(maxsize=4)
def _secret_field_names(own: Library) -> frozenset[str]:
    found: dict[str, str] = {}
    for _, file in (*own.apis.values(), *own.data.values()):
        text = file.read_bytes().decode("utf-8")
        if "secret" in text:  # few have one, and parsing all takes long
            for block in parse(text).blocks:
                _collect(block.fields, found, {})
    return frozenset(found)


@lru_cache(maxsize=4096)
def _api_traits(known: Library, key: int | None) -> ApiTraits:
    own = own_library(known)
    return own.api(key).api if key in own.apis and key is not None else NO_TRAITS


@lru_cache(maxsize=4096)
def _traits_of_api(known: Library, name: str | None) -> ApiTraits:
    return _api_traits(known, _keys(known).get(name))  # the definitions of all other APIs stay unread


@lru_cache(maxsize=4)
def _keys(known: Library) -> dict[str | None, int]:
    """The keys of APIs, by name."""
    return {name: key for key, (name, _) in reversed(known.apis.items())}


@lru_cache(maxsize=4096)
def _field_traits(known: Library, message: str) -> FieldTraits:
    own = own_library(known)
    secrets: dict[str, str] = {}
    holds: dict[str, str] = {}
    for name in dict.fromkeys((imported(message).own_name, message)):
        document, kind = _document(own, name)
        for block in document.blocks:
            if kind in (None, block.kind):
                _collect(block.fields, secrets, holds)
    return FieldTraits(secrets, holds) if secrets or holds else NO_FIELDS


def _document(own: Library, message: str) -> tuple[Document, str | None]:
    """The definition of a class, and the kind of its blocks; None for all blocks."""
    if message in own.data:
        return own.data_class(message), None
    for kind in KINDS:
        if message.endswith(kind.capitalize()):
            stem = message.removesuffix(kind.capitalize())
            key = next((key for key, (name, _) in own.apis.items() if name == stem), None)
            if key is not None:
                return own.api(key), kind
    return Document(()), None


def _collect(fields: tuple[FieldDefinition, ...], secrets: dict[str, str], holds: dict[str, str]) -> None:
    for field in fields:
        if field.secret is not None:
            secrets[field.name] = field.secret
        if field.holds is not None:
            holds[field.name] = field.holds
        _collect(field.fields, secrets, holds)
