"""Which rows are made: a display filter, and filters that Spark hands down.

Spark's filters are asked before anything of an exchange is decoded, and so only of columns that need no
decoding; the others remain Spark's. As in SQL, a comparison with null holds for nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.filter.compiled import Filter, compile_filter
from kdissect.filter.errors import FilterError
from kdissect.model import Fault
from kdissect.present.options import PLAIN
from kdissect.session.conversation import Connection
from kdissect.spark.settings import TableSettings
from kdissect.spark.tables import POINT, TABLES

_CHEAP = {
    "exchanges": frozenset(
        column.name
        for column in TABLES["exchanges"].columns
        if column.name not in ("error", "topics", "faults", "request", "response", POINT)
    ),
    "connections": frozenset(
        column.name for column in TABLES["connections"].columns if column.name not in ("sasl", POINT)
    ),
    "records": frozenset(("exchange", "connection", "api_version")),
    "batches": frozenset(("exchange", "connection", "api_version")),
}
"""Columns that need no decoding, but for the capture point: that is of the task, not of the exchange."""

_NUMBER_OF = {"exchange": "number"}
"""What rows of an exchange call it."""

_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "EqualTo": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "In": lambda value, values: value in values,
    "StringStartsWith": str.startswith,
    "StringEndsWith": str.endswith,
    "StringContains": operator.contains,
    "IsNotNull": lambda value, _: True,
}


class Condition(NamedTuple):
    """A test of one column."""

    column: str
    test: str
    """The name of Spark's filter."""
    value: Any
    is_negated: bool = False

    def holds(self, value: Any) -> bool:
        """Whether it holds for a row with this value."""
        return value is not None and _TESTS[self.test](value, self.value) is not self.is_negated


def condition_of(table: str, each: Any) -> Condition | None:
    """One of Spark's filters (``pyspark.sql.datasource.Filter``); None if it must remain Spark's."""
    is_negated = type(each).__name__ == "Not"
    inner = each.child if is_negated else each
    name, (column, *deeper) = type(inner).__name__, inner.attribute
    if name not in _TESTS or deeper or column not in _CHEAP.get(table, ()):
        return None
    if name == "IsNotNull" and is_negated:
        return None
    return Condition(column, name, getattr(inner, "value", None), is_negated)


class Choice:
    """What is chosen of one table.

    :raises ValueError: the display filter is wrong, or needs to know the whole capture.
    """

    def __init__(self, settings: TableSettings, conditions: Iterable[Condition] = ()) -> None:
        self._table = settings.table
        self._filter = None if settings.filter is None else _compiled(settings.filter, settings)
        self._conditions = [(each, _reader(self._table, each.column)) for each in conditions]
        self._layer = settings.layer
        self.chosen: set[int] = set()
        """Connections with an exchange that the filter shows."""

    def event(self, event: Event) -> bool:
        """Whether an event may bring rows; :meth:`row` has the last word on those that are not it."""
        if self._table == "connections":
            return self._connection(event)
        if isinstance(event, Exchange):
            if not all(each.holds(value(event)) for each, value in self._conditions):
                return False
            if self._filter is not None and self._table in ("exchanges", "batches"):
                return self._filter.matches(event)
        return True

    def counts(self, event: Event) -> bool:
        """Whether an event counts in statistics: an exchange that is shown, a connection that has one."""
        if isinstance(event, Exchange) and (self._filter is None or self._filter.matches(event)):
            self.chosen.add(event.connection)
            return True
        return isinstance(event, Connection) and event.connection in self.chosen

    def row(self, event: Event, source: Any) -> bool:
        """Whether a row is chosen."""
        if isinstance(source, Fault):
            if self._layer is not None and source.layer != self._layer:
                return False
            exchange = event if isinstance(event, Exchange) else None
            return self._filter is None or self._filter.matches_fault(source, exchange)
        if self._table == "records" and self._filter is not None and isinstance(event, Exchange):
            return self._filter.matches_record(event, source)
        return True

    def _connection(self, event: Event) -> bool:
        if isinstance(event, Exchange) and self._filter is not None:
            if event.connection not in self.chosen and self._filter.matches(event):
                self.chosen.add(event.connection)
            return False
        if not isinstance(event, Connection):
            return False
        shown = self._filter is None or event.connection in self.chosen
        return shown and all(each.holds(value(event)) for each, value in self._conditions)


def _reader(table: str, name: str) -> Callable[[Event], Any]:
    """How the column's value comes from an event."""
    if table in ("records", "batches"):
        table, name = "exchanges", _NUMBER_OF.get(name, name)
    column = TABLES[table].column(name)
    return lambda event: column.value(event, PLAIN)


def _compiled(text: str, settings: TableSettings) -> Filter:
    try:
        return compile_filter(text, settings.shown)
    except FilterError as error:
        raise ValueError(f"filter: {error}") from None
