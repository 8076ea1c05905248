"""Columns that only the list of exchanges has. Some combine several columns of the table. Others show a field
of the messages, by its name in display filters.

``columns`` of the configuration may contain them beside the columns of exchanges. Commands that print use the
several columns instead, and leave fields out. Nothing here imports Textual: the command line uses this too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kdissect.present.columns import EXCHANGES
from kdissect.present.nearest import nearest

if TYPE_CHECKING:
    from kdissect.filter.field import FilterField


class ListedColumn(NamedTuple):
    """A column of the list alone."""

    columns: tuple[str, ...]
    """The columns that it combines, by their names in tables."""
    meaning: str


OWN: Mapping[str, ListedColumn] = {
    "who": ListedColumn(("client_id", "client"), "the client's id, or its address if it has none"),
    "what": ListedColumn(("api", "api_version"), "API and version"),
    "sizes": ListedColumn(("request_size", "response_size"), "sizes of request → response"),
    "coloring_rule": ListedColumn((), "name of the coloring rule that the row matches"),
    "info": ListedColumn(("error", "missing", "faults", "topics"), "error, missing side, faults, topics"),
}
"""The columns of the list on the screen, by name."""


def listed(names: Iterable[str]) -> Iterator[str]:
    """The names of columns, as the list has them.

    :raises LookupError: there is no such column; the text names the nearest.
    """
    for name in names:
        if name in OWN:
            yield name
            continue
        try:
            yield EXCHANGES.column(name).name
        except LookupError as error:
            yield _field_listed(name, error.args[0])


def _field_listed(name: str, reason: str) -> str:
    """The name of a field that can be a column.

    :param reason: why it is no column of exchanges.
    """
    try:
        return field_of(name).name
    except LookupError as error:
        if "." in name or has_field(name):
            raise
        near = nearest(name, (*OWN, *EXCHANGES.words()))
        raise LookupError(f"exchanges have no column {name!r}{near}" if near else reason) from error


def field_of(name: str) -> FilterField:
    """The field in a column of this name.

    :raises LookupError: there is no such field, or no column can show it; the text says why.
    """
    from kdissect.filter.computed import OF_FINDINGS, SLOW
    from kdissect.filter.errors import FilterError
    from kdissect.filter.field import FieldKind
    from kdissect.filter.resolve import field_named

    try:
        field = field_named(name)
    except FilterError as error:
        raise LookupError(error.reason) from None
    if field.kind in (FieldKind.PRESENCE, FieldKind.JSON):
        raise LookupError(f"{field.name} is {field.kind.value}: choose a field inside it")
    if field.name in (SLOW, *OF_FINDINGS):
        raise LookupError(f"{field.name} can be asked for in a filter, but not be a column")
    return field


def has_field(name: str) -> bool:
    """Whether display filters have a field of this name."""
    from kdissect.filter.errors import FilterError
    from kdissect.filter.resolve import field_named

    try:
        field_named(name)
    except FilterError:
        return False
    return True


def printed(names: Iterable[str]) -> tuple[str, ...]:
    """The names of columns, as tables have them, each once; without fields, which tables do not have."""
    each = (column for name in names for column in _printed(name))
    return tuple(dict.fromkeys(each))


def _printed(name: str) -> tuple[str, ...]:
    if name in OWN:
        return OWN[name].columns
    try:
        EXCHANGES.column(name)
    except LookupError:
        return ()
    return (name,)
