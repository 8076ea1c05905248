"""Fields of messages → the texts of columns that show them.

The values come from the exchange itself. So they are made only for drawn rows, and only if there is time
(:mod:`kdissect.feed.frame_time`). Fields are those of the display filter, and are redacted in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from kdissect.exchange import Exchange
from kdissect.feed.frame_time import FrameTime
from kdissect.filter.field import RECORD, FieldKind, FilterField
from kdissect.filter.row import Row
from kdissect.present.form import Clock, duration
from kdissect.present.options import Options
from kdissect.present.payload import one_line
from kdissect.present.records import record_rows
from kdissect.present.sanitise import CUT, LONGEST, sanitise
from kdissect.present.secret_names import REDACTED
from kdissect.protocol.errors import error_name

MOST_ROWS = 4_096
"""The number of rows whose texts are kept; beyond it the oldest are dropped."""
MOST_VALUES = 32
"""The number of values shown for a field of one exchange, and of records read for them."""
MOST_RECORD_BYTES = 4 << 20
"""The records of larger messages are not unpacked for a cell."""
BETWEEN = ","
"""The text between the values of a field."""
_NS = {"ns": 1, "ms": 1_000_000}


def values_of(field: FilterField, exchange: Exchange, options: Options) -> Sequence[Any]:
    """The values of a field in an exchange, redacted as in a filter; for fields of records, the values of the
    first records."""
    return field.values(_row((field,), exchange, options))


def has_all(field: FilterField, exchange: Exchange) -> bool:
    """Whether :func:`values_of` read the whole message: records of a large one are not unpacked."""
    return field.cost < RECORD or _size(exchange) <= MOST_RECORD_BYTES


def _size(exchange: Exchange) -> int:
    return sum(len(message.frame.payload) for message in exchange.messages)


def _row(fields: Sequence[FilterField], exchange: Exchange, options: Options) -> Row:
    """The row of an exchange, with its first records if one of the fields needs records."""
    if all(field.cost < RECORD for field in fields):
        return Row(exchange, options)
    rows = record_rows(exchange, options) if _size(exchange) <= MOST_RECORD_BYTES else ()
    return Row(exchange, options, tuple(islice(rows, MOST_VALUES)))


def text_of(field: FilterField, value: object) -> str:
    """One value in a cell, sanitised."""
    if value in (REDACTED, REDACTED.encode()):
        return REDACTED
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return one_line(value)
    if isinstance(value, int):
        if field.kind is FieldKind.ERROR:
            return error_name(value)
        if field.kind is FieldKind.MOMENT and value >= 0:
            return Clock("u").text(value * _NS[field.unit])
        if field.kind is FieldKind.NUMBER and field.unit == "ns":
            return duration(value)
    return sanitise(str(value))


class FieldValues:
    """The texts of the fields that are columns.

    :param exchange_at: returns the exchange at a place of the index; None if reading takes long. It may raise
        OSError.
    :param options: their redactions are applied.
    :param frame_time: the time that reading exchanges may take.
    :param names_known: returns the number of known names of topic ids. With more names, texts may change.
    """

    def __init__(
        self,
        exchange_at: Callable[[int], Exchange | None],
        options: Options,
        frame_time: FrameTime,
        names_known: Callable[[], int] = lambda: 0,
    ) -> None:
        self._exchange_at, self.frame_time, self._names_known = exchange_at, frame_time, names_known
        payloads = options.payloads
        asks = payloads is not None and payloads.schemas.registry is not None
        self.options = options._replace(payloads=None) if asks else options
        """Without a schema registry: no row waits for its response."""
        self._fields: tuple[FilterField, ...] = ()
        self._known: dict[int, tuple[int, tuple[str, ...]]] = {}
        """The number of known names and the texts, by place, the oldest first."""

    def choose(self, fields: Sequence[FilterField]) -> None:
        """Use these fields from now on."""
        self._fields = tuple(fields)
        self._known.clear()

    def texts(self, place: int) -> tuple[str, ...] | None:
        """The text of each field in the exchange at a place of the index; None if not known yet."""
        found, names = self._known.get(place), self._names_known()
        if (found is None or found[0] != names) and self.frame_time.is_left():
            with self.frame_time.spent():
                try:
                    found = names, self._made(place)
                except OSError:  # it is tried again when the row is drawn next
                    return (CUT,) * len(self._fields)
            if place not in self._known and len(self._known) >= MOST_ROWS:
                del self._known[next(iter(self._known))]
            self._known[place] = found
        return None if found is None else found[1]

    def _made(self, place: int) -> tuple[str, ...]:
        exchange = self._exchange_at(place)
        if exchange is None:
            return (CUT,) * len(self._fields)
        row = _row(self._fields, exchange, self.options)
        return tuple(_joined(field, field.values(row)) for field in self._fields)


def _joined(field: FilterField, values: Sequence[Any]) -> str:
    text = BETWEEN.join(text_of(field, value) for value in values[:MOST_VALUES])
    if len(values) > MOST_VALUES:
        text += f"{BETWEEN}{CUT}"
    return text if len(text) <= LONGEST else text[:LONGEST] + CUT
