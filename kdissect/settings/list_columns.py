"""Columns that only the list of exchanges has: each says in one what stands in several of the table's.

They can be written in ``columns`` of the configuration beside those of exchanges; commands that print take
the several instead. Nothing here imports Textual: the command line reads this too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kdissect.present.columns import EXCHANGES
from kdissect.present.nearest import nearest


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
            near = nearest(name, (*OWN, *EXCHANGES.words()))
            raise LookupError(f"exchanges have no column {name!r}{near}" if near else error.args[0]) from None


def printed(names: Iterable[str]) -> tuple[str, ...]:
    """The same as tables have them, each once."""
    each = (column for name in names for column in (OWN[name].columns if name in OWN else (name,)))
    return tuple(dict.fromkeys(each))
