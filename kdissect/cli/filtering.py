"""``-Y``: which rows of a table a display filter shows.

The filter chooses exchanges. Of the other tables it shows what belongs to those: a connection that has
one of them; a record, asked with ``record.…`` about itself alone; a fault, in the same way.
"""

from __future__ import annotations

from typing import Any

from kdissect.cli.errors import Wrong, complain
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.model import Fault
from kdissect.present.options import Options
from kdissect.session.conversation import Connection


class Chooser:
    """A filter for one table."""

    def __init__(self, text: str, table: str, options: Options) -> None:
        """:raises Wrong: the filter is none; the text tells where, and what was meant."""
        from kdissect.filter.compiled import compile_filter
        from kdissect.filter.errors import FilterError

        try:
            self._filter = compile_filter(text, options)
        except FilterError as error:
            raise Wrong(f"-Y: {error}", error.excerpt()) from None
        for hint in self._filter.hints:
            complain(f"-Y: {hint}")
        self._table = table
        self._connections: set[int] = set()
        """Those with an exchange that the filter shows."""

    def event(self, event: Event) -> bool:
        """Whether there is anything to show of an event; :meth:`row` decides on records and faults."""
        if isinstance(event, Connection):
            return event.connection in self._connections
        if isinstance(event, Fault) or self._table in ("records", "faults"):
            return True
        if self._table == "connections":
            if event.connection not in self._connections and self._filter.matches(event):
                self._connections.add(event.connection)
            return False
        return self._filter.matches(event)

    def row(self, event: Event, source: Any) -> bool:
        """Whether a row that an event brought is shown."""
        exchange = event if isinstance(event, Exchange) else None
        if self._table == "records" and exchange is not None:
            return self._filter.matches_record(exchange, source)
        if self._table == "faults" and isinstance(source, Fault):
            return self._filter.matches_fault(source, exchange)
        return True
