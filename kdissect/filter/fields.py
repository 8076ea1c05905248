"""The names of a filter that are not Kafka's own: columns with their aliases, records, faults, and fields
computed from an exchange."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from kdissect.filter.columns import column_fields, end_fields
from kdissect.filter.computed import COMPUTED, MACROS
from kdissect.filter.field import FilterField, plain
from kdissect.filter.parts import fault_fields, record_fields


@cache
def own_fields() -> tuple[FilterField, ...]:
    """All these fields, columns first."""
    return (*column_fields(), *end_fields(), *COMPUTED, *fault_fields(), *record_fields())


@cache
def by_name() -> Mapping[str, FilterField]:
    """The field of each plain name or alias."""
    return {plain(name): field for field in own_fields() for name in (field.name, *field.aliases)}


def names() -> list[str]:
    """Every name that may be used without an operator, aliases and flags among them."""
    own = [name for field in own_fields() for name in (field.name, *field.aliases)]
    return [*own, *MACROS]
