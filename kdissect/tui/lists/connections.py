"""The connections as rows of a table. Nothing here draws."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from kdissect.present.form import size
from kdissect.present.sanitise import sanitise
from kdissect.session.conversation import Connection
from kdissect.tui.feed.index import Index
from kdissect.tui.lists import NORMAL_WIDTH
from kdissect.tui.widgets.table import Heading


class Connections:
    """The connections that are over, by number; those still going on when the capture ends are over then."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._rows: list[Connection] = []

    def refresh(self) -> None:
        """Take in what came since."""
        if len(self._rows) != len(self._index.connections):
            self._rows = [each for _, each in sorted(self._index.connections.items())]

    def __len__(self) -> int:
        return len(self._rows)

    def connection(self, row: int) -> Connection:
        """The connection of a row."""
        return self._rows[row]

    def headings(self, width: int) -> Sequence[Heading]:
        few = (Heading("Conn", 5, True), Heading("Client", 21), Heading("Broker", 21), Heading("End", 6))
        more = (Heading("Exchanges", 9, True), Heading("To broker", 10, True), Heading("From", 10, True))
        last = (Heading("Gaps", 5, True), Heading("Client id", 18), Heading("Software and SASL", 0))
        if width >= NORMAL_WIDTH:
            return (*few, *more, *last)
        return (*few, Heading("Exchanges", 9, True), Heading("Client id", 0))

    def key(self, row: int) -> Hashable:
        return self._rows[row].connection

    def tone(self, row: int) -> str | None:
        each = self._rows[row]
        if each.gaps or each.skipped_bytes:
            return "table--warning"
        return None if each.protocol == "kafka" else "table--dim"

    def cells(self, row: int, width: int) -> Sequence[str]:
        each = self._rows[row]
        said = [each.software or "" if each.protocol == "kafka" else f"({each.protocol})"]
        if each.sasl is not None:
            said.append(" ".join(str(value) for value in each.sasl.values() if value is not None))
        values = {
            "Conn": str(each.connection),
            "Client": each.client,
            "Broker": each.broker,
            "End": each.end,
            "Exchanges": f"{each.exchanges:,}",
            "To broker": size(each.bytes_to_broker),
            "From": size(each.bytes_from_broker),
            "Gaps": str(each.gaps) if each.gaps else "",
            "Client id": sanitise(each.client_id or ""),
            "Software and SASL": sanitise("  ".join(part for part in said if part)),
        }
        return [values[heading.title] for heading in self.headings(width)]
