"""The object that a filter is applied to: an exchange, or a row of another table with its exchange."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kdissect.analysis.slow import Slowness
from kdissect.exchange import Exchange
from kdissect.insight.evidence import Sign
from kdissect.model import Fault
from kdissect.present.options import Options
from kdissect.present.records import record_rows


class Row:
    """An exchange, with its records once they are unpacked, so that they are unpacked once.

    In the table of records a row has one record; in the table of faults, one fault. ``record.…`` and
    ``fault.…`` apply to these; all other fields apply to the exchange. A fault may have no exchange.
    """

    __slots__ = ("_faults", "_records", "connection", "exchange", "options", "signs", "slowness")

    def __init__(
        self,
        exchange: Exchange | None,
        options: Options,
        records: Sequence[dict[str, Any]] | None = None,
        faults: Sequence[Fault] | None = None,
        connection: int | None = None,
        slowness: Slowness | None = None,
        signs: Sequence[Sign] = (),
    ) -> None:
        self.exchange = exchange
        self.options = options
        self.connection = connection
        """The connection of a fault that has no exchange."""
        self.slowness = slowness
        """Decides which exchanges are slow."""
        self.signs = signs
        """The findings that have the exchange as evidence."""
        self._records = records
        self._faults = faults

    def records(self) -> Sequence[dict[str, Any]]:
        """Rows of the table ``records``."""
        if self._records is None:
            self._records = () if self.exchange is None else tuple(record_rows(self.exchange, self.options))
        return self._records

    def faults(self) -> Sequence[Fault]:
        if self._faults is None:
            self._faults = () if self.exchange is None else self.exchange.faults
        return self._faults
