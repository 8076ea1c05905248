"""Which rows are made: those that a display filter shows. Filters of Spark's queries are in
:mod:`kdissect.spark.pushed`.
"""

from __future__ import annotations

from typing import Any

from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.filter.compiled import Filter, compile_filter
from kdissect.filter.errors import FilterError
from kdissect.model import Fault
from kdissect.session.conversation import Connection
from kdissect.spark.settings import TableSettings


class Choice:
    """The rows of one table that are chosen.

    :raises ValueError: the display filter is wrong, or needs to know the whole capture.
    """

    def __init__(self, settings: TableSettings) -> None:
        self._table = settings.table
        self._filter = None if settings.filter is None else _compiled(settings.filter, settings)
        self._layer = settings.layer
        self.chosen: set[int] = set()
        """Connections with an exchange that the filter chooses."""

    def event(self, event: Event) -> bool:
        """Whether an event may have rows. :meth:`row` then decides on rows that are parts of it."""
        if self._table == "connections":
            return self._connection(event)
        if (
            isinstance(event, Exchange)
            and self._filter is not None
            and self._table in ("exchanges", "batches")
        ):
            return self._filter.matches(event)
        return True

    def counts(self, event: Event) -> bool:
        """Whether an event counts in statistics: a chosen exchange, or a connection with one."""
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
        return self._filter is None or event.connection in self.chosen


def _compiled(text: str, settings: TableSettings) -> Filter:
    try:
        return compile_filter(text, settings.shown)
    except FilterError as error:
        raise ValueError(f"filter: {error}") from None
