"""A compiled filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kdissect.analysis.slow import Slowness
from kdissect.exchange import Exchange
from kdissect.filter.computed import OF_FINDINGS
from kdissect.filter.errors import FilterError
from kdissect.filter.expression import Expression, asks_each_record, compiled, fields_of, of_exchange
from kdissect.filter.resolve import resolve
from kdissect.filter.row import Row
from kdissect.filter.syntax import parse
from kdissect.insight.evidence import EvidenceIndex, Sign
from kdissect.model import Fault
from kdissect.present.options import PLAIN, Options

if TYPE_CHECKING:
    from kdissect.filter.masks import IndexColumn, Masks


class Filter:
    """The result of :func:`compile_filter`."""

    def __init__(
        self,
        text: str,
        expression: Expression,
        hints: tuple[str, ...],
        options: Options,
        slowness: Slowness | None = None,
        evidence: EvidenceIndex | None = None,
    ) -> None:
        self.text = text
        self.expression = expression
        self.hints = hints
        """Notes for the author about likely mistakes, one line each."""
        self.options = options
        self.slowness = slowness
        asks = any(field.name in OF_FINDINGS for field in fields_of(expression))
        self.evidence = evidence if asks else None
        """The findings and their evidence; None if no field needs them."""
        self._answer = compiled(expression)

    def __repr__(self) -> str:
        return f"<Filter {self.text!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return compile_filter, (self.text, self.options, self.slowness, self.evidence)

    def matches(self, exchange: Exchange) -> bool:
        """Whether an exchange is shown."""
        if self.evidence is None:
            return self._answer(Row(exchange, self.options, slowness=self.slowness))
        return self._answer(self._row(exchange))

    def matches_record(self, exchange: Exchange, record: dict[str, Any]) -> bool:
        """Whether a row of the table of records is shown: ``record.…`` applies to this row."""
        return self._answer(self._row(exchange, (record,)))

    def matches_fault(self, fault: Fault, exchange: Exchange | None = None) -> bool:
        """Whether a row of the table of faults is shown: ``fault.…`` applies to this row."""
        records = () if exchange is None else None
        return self._answer(self._row(exchange, records, (fault,), fault.connection))

    def matches_connection(self, connection: int) -> bool:
        """Whether the connection of this number is shown, for a filter that has only the field
        ``connection``."""
        return self._answer(Row(None, self.options, (), (), connection))

    def matches_finding(self, sign: Sign) -> bool:
        """Whether a finding is shown, for a filter that has only the fields ``finding`` and
        ``finding.severity``."""
        return self._answer(Row(None, self.options, signs=(sign,)))

    def _row(
        self,
        exchange: Exchange | None,
        records: Sequence[dict[str, Any]] | None = None,
        faults: Sequence[Fault] | None = None,
        connection: int | None = None,
    ) -> Row:
        signs: Sequence[Sign] = ()
        if exchange is not None and self.evidence is not None:
            signs = self.evidence.of(exchange.number, exchange.connection)
        return Row(exchange, self.options, records, faults, connection, self.slowness, signs)

    @property
    def fields(self) -> frozenset[str]:
        """The names of its fields; instead of a computed field, its column."""
        return frozenset(field.source or field.name for field in fields_of(self.expression))

    @property
    def asks_each_record(self) -> bool:
        """Whether :meth:`matches_record` may be true though :meth:`matches` is not."""
        return asks_each_record(self.expression)

    @property
    def of_exchange(self) -> Filter | None:
        """A filter that an exchange matches if one of its records matches this one; None if there is no such
        filter. Use only its masks: its text is still the text of the whole filter."""
        part = of_exchange(self.expression)
        if part is None:
            return None
        return Filter(self.text, part, self.hints, self.options, self.slowness, self.evidence)

    def masks(self, columns: Mapping[str, IndexColumn], rows: int) -> Masks:
        """What the columns of an index show about ``rows`` exchanges: which are shown for certain, and which
        may be. Test the rows in between with :meth:`matches`. Needs numpy."""
        from kdissect.filter.masks import masks

        return masks(self.expression, columns, rows)


def compile_filter(
    text: str,
    options: Options = PLAIN,
    slowness: Slowness | None = None,
    evidence: EvidenceIndex | None = None,
) -> Filter:
    """Compile a filter. Values that ``options`` hide in the output are hidden here too.

    :param slowness: decides the flag ``slow``; it must be complete before the filter is used. Without it,
        ``slow`` is an error.
    :param evidence: decides ``finding``, in the same way.
    :raises FilterError: the text is no filter; the error has the position and the nearest name.
    """
    try:
        meaning = resolve(parse(text), slowness is not None, evidence is not None)
    except FilterError as error:
        raise FilterError(error.reason, error.position, error.length, text) from None
    return Filter(text, meaning.expression, meaning.hints, options, slowness, evidence)
