"""Events → printed rows: by one process, event by event, or by several, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kdissect.cli.filters import Chooser
from kdissect.cli.jobs import Outlet, problems_so_far
from kdissect.cli.printers import Printer
from kdissect.cli.reading import Reading
from kdissect.cli.tally import Tally
from kdissect.dissect import Event
from kdissect.jobs.batches import Maybe
from kdissect.present.form import Clock
from kdissect.protocol.library import Problem
from kdissect.session.conversation import Connection

if TYPE_CHECKING:
    from kdissect.cli.printers import RecordsPrinter, TablePrinter
    from kdissect.cli.shown_packets import ShownPackets
    from kdissect.jobs.serving import Before, Piece, Write
    from kdissect.present.arrow_parts import BatchColumns


class ListedBatch(NamedTuple):
    """The result of a batch, beside its rows."""

    rows: int
    tally: Tally
    found: ShownPackets | None
    """The packets of the rows, if they are needed."""
    chosen: frozenset[int]
    """Connections with an exchange that the filter chooses."""
    problems: list[Problem]


class ListedRows:
    """Prints rows, and counts them."""

    def __init__(
        self,
        reading: Reading,
        printer: Printer,
        outlet: Outlet,
        flush: bool,
        clock: Clock,
        chooser: Chooser | None,
        found: ShownPackets | None,
        apart: Printer | None = None,
        is_light: bool = False,
    ) -> None:
        """
        :param is_light: as :class:`~kdissect.cli.jobs.SharedWork` defines it.
        :param apart: makes the rows of batches, if that is another printer: it writes
            :class:`~kdissect.present.arrow_parts.BatchColumns`, which ``printer`` joins.
        :param outlet: the file of the printer.
        :param flush: whether output is needed at once.
        :param clock: gives the printer its times.
        :param found: collects what is shown.
        """
        self.count = 0
        """How many rows were printed."""
        self.is_light = is_light
        self._reading = reading
        self._printer = printer
        self._apart = apart
        self._outlet = outlet
        self._file = outlet.file
        self._flush = flush
        self._clock = clock
        self._chooser = chooser
        self._found = found

    @property
    def state(self) -> Any:
        """The state that the next row depends on."""
        return self._printer.state

    def expected(self, state: Any, before: Before) -> Any:
        """As :class:`~kdissect.jobs.serving.Work` defines it. With a filter, the number of printed rows
        cannot be expected."""
        return state if self._chooser is not None else self._printer.expected(state, before)

    def go_on(self, state: Any) -> None:
        """As :class:`~kdissect.cli.jobs.SharedWork` defines it."""
        self._printer.state = state

    def one(self, event: Event, most: int | None = None) -> None:
        """Print the rows of the next event, up to ``most`` rows in all."""
        self._clock.first_ns = self._reading.first_ns
        if self._chooser is not None and not self._chooser.event(event):
            return
        for each in self._printer.show(event):
            self.count += 1
            if self._found is not None:
                self._found.add(each)
            if self.count == most:
                return

    def many(self, events: Sequence[Event]) -> None:
        """Print the rows of the next events."""
        if self._chooser is None and self._found is None:
            self._clock.first_ns = self._reading.first_ns
            self.count += self._printer.show_all(events)
            return
        for event in events:
            self.one(event)

    def do(self, lists: Iterable[Sequence[Event]], state: Any, write: Write) -> tuple[Any, ListedBatch]:
        """Print the rows of a batch."""
        outlet, printer = self._outlet, self._apart or self._printer
        before = outlet.to, printer.state
        outlet.to, printer.state = write, state
        try:
            part = self._do(printer, lists, write)
            if self._apart is not None:
                self._apart.close()  # hand on the waiting rows
            return printer.state, part
        finally:
            outlet.to, printer.state = before

    def _do(self, printer: Printer, lists: Iterable[Sequence[Event]], write: Write) -> ListedBatch:
        self._clock.first_ns = self._reading.first_ns
        tally = self._reading.tally.part()
        found = None if self._found is None else self._found.part()
        chooser = None if self._chooser is None else self._chooser.part()
        rows = 0
        for events in lists:
            if tally.looks_inside:  # otherwise the reader has counted them
                for event in events:
                    tally.add(event)
            if chooser is None and found is None:
                rows += printer.show_all(events)
                continue
            for event in events:
                if chooser is not None and not chooser.event(event):
                    if isinstance(event, Connection):
                        self._connection(event, write)
                    continue
                for each in printer.show(event):
                    rows += 1
                    if found is not None:
                        found.add(each)
        chosen = frozenset(() if chooser is None else chooser.chosen)
        return ListedBatch(rows, tally, found, chosen, problems_so_far())

    def _connection(self, connection: Connection, write: Write) -> None:
        """Print a connection without a chosen exchange in this batch. Other batches may have one."""
        lines: list[Any] = []
        self._outlet.to = lines.append
        rows = sum(1 for _ in self._printer.show(connection))
        self._outlet.to = write
        if lines:
            write(Maybe(connection.connection, rows, b"".join(lines)))

    def write(self, piece: Piece) -> None:
        """Write the output of batches."""
        if not isinstance(piece, bytes | Maybe):
            # This process may be making the rows of a later batch. What the joined rows write is no output of
            # that batch.
            to, self._outlet.to = self._outlet.to, None
            try:
                cast("TablePrinter | RecordsPrinter", self._printer).join(cast("BatchColumns", piece))
            finally:
                self._outlet.to = to
            return
        if isinstance(piece, Maybe):
            if self._chooser is None or piece.key not in self._chooser.chosen:
                return
            self.count += piece.rows
            piece = piece.data
        self._file.write(piece)
        if self._flush:
            self._file.flush()

    def done(self, part: ListedBatch) -> None:
        """Count the printed rows, and print what depends on all batches."""
        self.count += part.rows
        self._reading.tally.merge(part.tally)
        if self._found is not None and part.found is not None:
            self._found.merge(part.found)
        if self._chooser is not None:
            self._chooser.chosen |= part.chosen
