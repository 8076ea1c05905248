"""An event of a capture → the sources of its rows in a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.model import Fault
from kdissect.present.options import Options
from kdissect.present.records import batch_rows, record_rows
from kdissect.session.conversation import Connection


def sources_of(table: str, event: Event, options: Options) -> Iterator[Any]:
    """The sources of an event's rows in ``exchanges``, ``records``, ``batches``, ``connections`` or
    ``faults``."""
    if table == "exchanges":
        if isinstance(event, Exchange):
            yield event
    elif table == "records":
        if isinstance(event, Exchange):
            yield from record_rows(event, options)
    elif table == "batches":
        if isinstance(event, Exchange):
            yield from batch_rows(event, options)
    elif table == "connections":
        if isinstance(event, Connection):
            yield event
    elif isinstance(event, Fault):
        yield event
    elif isinstance(event, Exchange):
        yield from event.faults
