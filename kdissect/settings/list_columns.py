"""Columns that only the list of exchanges has. Some say in one what stands in several of the table's. Others
show a field of the messages, by the name that a display filter has for it.

They can be written in ``columns`` of the configuration beside those of exchanges; commands that print take
the several instead, and leave fields out. Nothing here imports Textual: the command line reads this too.
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
    """What it says in one, by the names that tables have."""
    meaning: str


OWN: Mapping[str, ListedColumn] = {
    "who": ListedColumn(("client_id", "client"), "the client's id, or its address if it has none"),
    "what": ListedColumn(("api", "api_version"), "API and version"),
    "sizes": ListedColumn(("request_size", "response_size"), "sizes of request → response"),
    "coloring_rule": ListedColumn((), "name of the coloring rule that the row matches"),
    "info": ListedColumn(("error", "missing", "faults", "topics"), "error, missing side, faults, topics"),
}
"""By their names, as the list of columns on the screen has them."""


def listed(names: Iterable[str]) -> Iterator[str]:
    """Names of columns as the list has them.

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
    """The field that a column of this name shows.

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
    """Whether a display filter has a field of this name."""
    from kdissect.filter.errors import FilterError
    from kdissect.filter.resolve import field_named

    try:
        field_named(name)
    except FilterError:
        return False
    return True


def printed(names: Iterable[str]) -> tuple[str, ...]:
    """The same as tables have them, each once; without fields, which tables do not have."""
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
