"""Events → printed rows, lines or trees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

from kdissect.cli.formats import columns_of, writer_of
from kdissect.cli.interrupts import WholeRows, held
from kdissect.cli.output import TextOutput
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.message import Message, Token
from kdissect.names import is_metadata_topic
from kdissect.present.catalogue import TABLES
from kdissect.present.columns import EXCHANGES, Table
from kdissect.present.form import Clock
from kdissect.present.options import Options
from kdissect.present.tables import DelimitedWriter, ManyWriter, Writer
from kdissect.present.text import Lines
from kdissect.protocol.json_text import JsonText
from kdissect.session.briefs import Brief
from kdissect.session.conversation import Connection

if TYPE_CHECKING:
    from kdissect.jobs.serving import Before
    from kdissect.present.arrow_parts import BatchColumns
    from kdissect.present.decoded_lines import DecodedLinesWriter
    from kdissect.present.record_columns import ColumnsWriter, RecordColumns
    from kdissect.present.record_lines import LinesWriter

Keep = Callable[[Event, Any], bool]
"""Whether a row is shown, by its event and its source."""

IN_PIECES = ("ndjson", "parquet", "arrow")


def goes_in_pieces(table: Table, form: str, options: Options) -> bool:
    """Whether a table may be written in pieces of many rows: no row is left out or changes later."""
    records = TABLES["records"]
    if table.name != records.name:
        return False
    if options.payloads is not None:
        every = columns_of(records, [], embedded=False, payloads=True)
        return table == every and form == "ndjson" and not options.embedded
    return form in IN_PIECES and table == columns_of(records, [], embedded=False)


class Printer(Protocol):
    """Prints the rows of events in one table."""

    state: Any
    """The state that the next row depends on beside its event: the widths of columns."""

    def expected(self, state: Any, before: Before) -> Any:
        """The likely state after all rows before a part of a capture.

        :param state: the state after some of them.
        """

    def show(self, event: Event) -> Iterable[Event]:
        """Print the rows of an event; give the event once for each printed row."""

    def show_all(self, events: Sequence[Event]) -> int:
        """Print the rows of many events, and return the number of rows."""

    def close(self) -> None:
        """End: no more events come."""


class TablePrinter:
    """Rows of one table in one of the :data:`FORMATS`."""

    state: Any = None

    def expected(self, state: Any, before: Before) -> Any:
        return state

    def __init__(
        self,
        table: Table,
        form: str,
        file: BinaryIO,
        options: Options,
        flush: bool,
        keep: Keep | None = None,
    ) -> None:
        self._keep = keep
        self._name = table.name
        self._options = options
        self._file = file
        self._flush = flush
        self._writer = self._writer_of(table, form, file, options)

    def _writer_of(self, table: Table, form: str, file: BinaryIO, options: Options) -> Writer:
        return writer_of(form, table, file, options)

    def show(self, event: Event) -> Iterator[Event]:
        if isinstance(event, Brief):
            event = event.exchange()
        from kdissect.present.sources import sources_of

        for source in sources_of(self._name, event, self._options):
            if self._keep is not None and not self._keep(event, source):
                continue
            self._writer.write(source)
            if self._flush:
                self._file.flush()
            yield event

    def show_all(self, events: Sequence[Event]) -> int:
        """Print the rows of many events, and return the number of rows."""
        if self._name != EXCHANGES.name or self._keep is not None or self._flush:
            return sum(1 for event in events for _ in self.show(event))
        exchanges = [event for event in events if isinstance(event, Exchange | Brief)]
        if isinstance(self._writer, ManyWriter):
            self._writer.write_all(exchanges)
        else:
            for exchange in exchanges:
                self._writer.write(exchange)
        return len(exchanges)

    def join(self, columns: BatchColumns) -> None:
        """Print rows of Parquet or Arrow that another process made."""
        assert isinstance(self._writer, WholeRows)
        self._writer.join(columns)

    def close(self) -> None:
        self._writer.close()


class ColumnsPrinter(TablePrinter):
    """Makes rows of Parquet or Arrow, which another process prints. It can be used again after it was
    closed."""

    def _writer_of(self, table: Table, form: str, file: BinaryIO, options: Options) -> Writer:
        from kdissect.present.arrow import RowColumns

        return RowColumns(table, file, options)


class RecordsPrinter:
    """Prints the table ``records`` in a format of :data:`IN_PIECES`, many rows at a time."""

    state: Any = None

    def expected(self, state: Any, before: Before) -> Any:
        return state

    def __init__(self, table: Table, form: str, file: BinaryIO, options: Options) -> None:
        self._writer: LinesWriter | ColumnsWriter | RecordColumns | DecodedLinesWriter
        self._takes_many = options.payloads is None
        """Whether the writer takes the records of many exchanges at a time."""
        if options.payloads is not None:
            from kdissect.present.decoded_lines import DecodedLinesWriter

            self._writer = DecodedLinesWriter(table, file, options)
        elif form == "ndjson":
            from kdissect.present.record_lines import LinesWriter

            self._writer = LinesWriter(table, file, options)
        else:
            from kdissect.present.record_columns import ColumnsWriter

            self._writer = ColumnsWriter(form, table, file, options)

    def show(self, event: Event) -> Iterator[Event]:
        for count in self._pieces(event):
            for _ in range(count):
                yield event

    def show_all(self, events: Sequence[Event]) -> int:
        """Print the rows of many events, and return the number of rows."""
        if not self._takes_many:
            return sum([count for event in events for count in self._pieces(event)])
        writer = cast("LinesWriter | ColumnsWriter | RecordColumns", self._writer)
        with held():
            count = writer.add_all(events)
            writer.flush()
        return count

    def _pieces(self, event: Event) -> Iterator[int]:
        from kdissect.present.records import may_have_records

        if not may_have_records(event):
            return
        counts = self._writer.write(event)
        while True:
            with held():  # a signal must not come in the middle of a piece
                count = next(counts, None)
            if count is None:
                return
            yield count

    def join(self, columns: BatchColumns) -> None:
        """Print rows that another process made."""
        with held():
            cast("ColumnsWriter", self._writer).join(columns)

    def close(self) -> None:
        with held():
            self._writer.close()


class RecordColumnsPrinter(RecordsPrinter):
    """A :class:`ColumnsPrinter` for the table ``records``."""

    def __init__(self, table: Table, file: BinaryIO, options: Options) -> None:
        from kdissect.present.record_columns import RecordColumns

        self._writer, self._takes_many = RecordColumns(table, file, options), True


class FieldsPrinter(TablePrinter):
    """Prints ``-e`` without a format: the values, separated by tabs, without a heading (tshark's ``-T
    fields``)."""

    def _writer_of(self, table: Table, form: str, file: BinaryIO, options: Options) -> Writer:
        return DelimitedWriter(table, file, options, "\t", "", heading=False)


class LinePrinter:
    """Prints each exchange as a line, and with ``dump`` its bytes below."""

    def __init__(self, output: TextOutput, clock: Clock, colour: bool, options: Options, dump: bool) -> None:
        self._output = output
        self._lines = Lines(clock, colour, options)
        self._options = options
        self._dump = dump
        self._text = JsonText()
        """Lines that are not written yet."""

    @property
    def state(self) -> Any:
        return tuple(self._lines.widths)

    @state.setter
    def state(self, widths: Any) -> None:
        self._lines.widths = list(widths)

    def expected(self, state: Any, before: Before) -> Any:
        return self._lines.expected(state, before.exchanges, before.connections, before.latest_ns)

    def show(self, event: Event) -> Iterable[Event]:
        if isinstance(event, Brief):
            event = event.exchange()
        if not isinstance(event, Exchange):
            return ()
        self._output.line(self._lines.line(event))
        if self._options.explain_errors:
            from kdissect.present.error_pages import explained

            self._output.lines(explained(event))
        if self._dump:
            self._bytes(event)
        return (event,)

    def show_all(self, events: Sequence[Event]) -> int:
        """Print the rows of many events, and return the number of rows."""
        if self._dump or self._options.explain_errors:
            return sum(1 for event in events for _ in self.show(event))
        try:
            return self._lines.write_all(self._text, events)
        finally:
            if self._text.size():
                self._output.write(self._text.take())  # including the lines before one that failed

    def _bytes(self, exchange: Exchange) -> None:
        from kdissect.present.branch import is_hidden_rest
        from kdissect.present.hexdump import hexdump

        hides = not self._options.show_secrets
        for message in exchange.messages:
            # Bytes that are not decoded field by field are hidden as a whole.
            hidden = is_hidden_rest(message, self._options) or (hides and self._may_hide(exchange, message))
            self._output.line(f"  {message.kind}")
            for line in hexdump(message.frame.payload, 0, "    ", hidden):
                self._output.line(line)

    def _may_hide(self, exchange: Exchange, message: Message) -> bool:
        """Whether its records, or bytes outside of all fields, may be secrets."""
        from kdissect.present.batches import may_hide
        from kdissect.present.secret_names import contains_secret_name

        for place in exchange.record_sets():
            is_metadata = is_metadata_topic(place.topic, place.topic_id)
            if is_metadata or (place.message is message and may_hide(place.data, self._options)):
                return True
        return not isinstance(message, Token) and contains_secret_name(message.decoded().remainder)

    def close(self) -> None:
        """Do nothing: lines have no end."""


class TreePrinter:
    """Prints every field of every exchange. For closed TLS connections it prints what their handshakes
    showed, and why they were not decrypted. Only exchanges count as rows."""

    state: Any = None

    def expected(self, state: Any, before: Before) -> Any:
        return state

    def __init__(self, output: TextOutput, options: Options, dump: bool) -> None:
        self._output = output
        self._options = options
        self._dump = dump

    def show(self, event: Event) -> Iterator[Event]:
        from kdissect.present.connection_lines import connection_tree
        from kdissect.present.error_pages import explained
        from kdissect.present.tree import exchange_tree

        if isinstance(event, Exchange):
            for line in exchange_tree(event, self._options, self._dump):
                self._output.line(line)
            if self._options.explain_errors:
                self._output.lines(explained(event))
            self._output.line("")
            yield event
        elif isinstance(event, Connection) and (event.proxies or event.tls is not None):
            for line in connection_tree(event):
                self._output.line(line)
            self._output.line("")

    def show_all(self, events: Sequence[Event]) -> int:
        """Print the rows of many events, and return the number of rows."""
        return sum(1 for event in events for _ in self.show(event))

    def close(self) -> None:
        """Do nothing: trees have no end."""
