"""How many errors something had, by how grave they are."""

from __future__ import annotations

from dataclasses import dataclass

from kdissect.analysis.packed import packed
from kdissect.exchange import Exchange
from kdissect.protocol.errors import FATAL, ROUTINE


@packed
@dataclass(slots=True)
class Grades:
    """Counts. A routine error does not count as an error: it is counted apart."""

    errors: int = 0
    """Fatal and retriable ones."""
    fatal: int = 0
    """Of them."""
    routine: int = 0

    def add(self, error_class: str | None) -> None:
        """Count an error of this class. None counts nothing."""
        if error_class == ROUTINE:
            self.routine += 1
        elif error_class is not None:
            self.errors += 1
            self.fatal += error_class == FATAL

    def add_codes(self, exchange: Exchange) -> None:
        """Count every error code of an exchange."""
        codes = exchange.codes()
        if codes:
            for code in codes:
                self.add(exchange.class_of(code))

    def merge(self, later: Grades) -> None:
        """Add what was counted later."""
        self.errors += later.errors
        self.fatal += later.fatal
        self.routine += later.routine

    def columns(self) -> dict[str, int]:
        """As they stand in rows of statistics."""
        return {"errors": self.errors, "fatal": self.fatal, "routine": self.routine}
