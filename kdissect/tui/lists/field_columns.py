"""Fields of messages as columns of the list of exchanges (Wireshark: "Apply as Column"). Nothing here draws.

The width of such a column is known only when its values are. The column begins narrow. Between two drawings
it grows to the widest value that was seen in it. It never gets narrower again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from kdissect.feed.field_values import FieldValues
from kdissect.filter.field import FieldKind, FilterField
from kdissect.present.sanitise import sanitise
from kdissect.settings.list_columns import field_of

MOST_CELLS = 40
"""A column gets no more cells for its values."""
_LEAST_CELLS = 4


class FieldColumn(NamedTuple):
    """One of them."""

    field: FilterField
    title: str
    """Sanitised."""

    @property
    def is_number(self) -> bool:
        """Whether its values stand at the right edge."""
        return self.field.kind in (FieldKind.NUMBER, FieldKind.FLOAT)


class FieldColumns:
    """Those that are shown.

    :param values: gives their texts; without, there can be none.
    """

    def __init__(self, values: FieldValues | None) -> None:
        self._values = values
        self.shown: Mapping[str, FieldColumn] = {}
        """By the name of the field, in their order."""
        self._seen: list[int] = []
        """The most cells that any value of each needs, as far as values were made."""
        self._given: list[int] = []
        """As many are given."""

    def choose(self, names: Sequence[str]) -> None:
        """Show these; names of which there is no field are left out."""
        fields = {name: field for name in names if (field := _field(name)) is not None}
        known = {name: max(_LEAST_CELLS, self.cells(name)) for name in self.shown}
        titles = _titles(list(fields))
        self.shown = {name: FieldColumn(field, titles[name]) for name, field in fields.items()}
        self._seen = [known.get(name, _LEAST_CELLS) for name in self.shown]
        self._given = list(self._seen)
        if self._values is not None:
            self._values.choose([each.field for each in self.shown.values()])

    def texts(self, place: int) -> tuple[str, ...]:
        """What stands in each for the exchange at a place of the index, or nothing: it is not known yet."""
        found = self._values.texts(place) if self.shown and self._values is not None else None
        if found is None:
            return ("",) * len(self.shown)
        for at, text in enumerate(found):
            cells = min(MOST_CELLS, cell_len(text))
            if cells > self._seen[at]:
                self._seen[at] = cells
                if self._values is not None:
                    self._values.frame_time.draw_again()
        return found

    def text(self, name: str, place: int) -> str:
        """What stands in one of them."""
        return self.texts(place)[list(self.shown).index(name)]

    def cells(self, name: str) -> int:
        """The cells that a column is to have."""
        return self._given[list(self.shown).index(name)]

    def grow(self) -> None:
        """Give the columns the cells for what was seen in them."""
        self._given = list(self._seen)

    @property
    def widths(self) -> tuple[int, ...]:
        """The cells of all."""
        return tuple(self._given)


def _field(name: str) -> FilterField | None:
    try:
        return field_of(name)
    except LookupError:  # of another version
        return None


def _titles(names: Sequence[str]) -> dict[str, str]:
    """The last step of each path. If several paths have the same last step, the first step stands before it.
    If that is the same too, it is the whole path."""
    out: dict[str, str] = {}
    ends = [name.rpartition(".")[2] for name in names]
    longer = [f"{name.partition('.')[0]}…{end}" for name, end in zip(names, ends, strict=True)]
    for name, end, more in zip(names, ends, longer, strict=True):
        title = end if ends.count(end) == 1 else more if longer.count(more) == 1 else name
        out[name] = sanitise(title, MOST_CELLS)
    return out
