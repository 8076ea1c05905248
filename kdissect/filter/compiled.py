"""A filter, ready to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kdissect.exchange import Exchange
from kdissect.filter.errors import FilterError
from kdissect.filter.expression import Expression, compiled, leaves
from kdissect.filter.resolve import resolve
from kdissect.filter.row import Row
from kdissect.filter.syntax import parse
from kdissect.model import Fault
from kdissect.present.options import PLAIN, Options

if TYPE_CHECKING:
    from kdissect.filter.masks import IndexColumn, Masks


class Filter:
    """What :func:`compile_filter` makes of a text."""

    def __init__(self, text: str, expression: Expression, hints: tuple[str, ...], options: Options) -> None:
        self.text = text
        self.expression = expression
        self.hints = hints
        """What the author may not have meant, one line each."""
        self.options = options
        self._answer = compiled(expression)

    def __repr__(self) -> str:
        return f"<Filter {self.text!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return compile_filter, (self.text, self.options)

    def matches(self, exchange: Exchange) -> bool:
        """Whether an exchange is shown."""
        return self._answer(Row(exchange, self.options))

    def matches_record(self, exchange: Exchange, record: dict[str, Any]) -> bool:
        """Whether a row of the table of records is shown: ``record.…`` asks about this one."""
        return self._answer(Row(exchange, self.options, records=(record,)))

    def matches_fault(self, fault: Fault, exchange: Exchange | None = None) -> bool:
        """Whether a row of the table of faults is shown: ``fault.…`` asks about this one."""
        return self._answer(
            Row(exchange, self.options, () if exchange is None else None, (fault,), fault.connection)
        )

    @property
    def fields(self) -> frozenset[str]:
        """The names of the fields that it asks, or of the columns from which those are made."""
        return frozenset(leaf.field.source or leaf.field.name for leaf in leaves(self.expression))

    def masks(self, columns: Mapping[str, IndexColumn], rows: int) -> Masks:
        """What the columns of an index tell of ``rows`` exchanges: which are shown for certain, and which
        may be. Those in between must be asked with :meth:`matches`. Needs numpy."""
        from kdissect.filter.masks import masks

        return masks(self.expression, columns, rows)


def compile_filter(text: str, options: Options = PLAIN) -> Filter:
    """A filter of this text. ``options`` are those of the output: what they hide is hidden here too.

    :raises FilterError: it is none; the error tells the position and the nearest name.
    """
    try:
        meaning = resolve(parse(text))
    except FilterError as error:
        raise FilterError(error.reason, error.position, error.length, text) from None
    return Filter(text, meaning.expression, meaning.hints, options)
