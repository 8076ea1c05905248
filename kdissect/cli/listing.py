"""The parts that ``read`` and ``live`` share: the rows, their table and their format."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from kdissect.cli.completing import a_form
from kdissect.cli.config import Config
from kdissect.cli.errors import Wrong
from kdissect.cli.exit_codes import STRICT
from kdissect.cli.filters import chooser_of, filter_options
from kdissect.cli.formats import FOLLOW, LINES, TableFormat
from kdissect.cli.inputs import PORTS, ports_of
from kdissect.cli.jobs import ALONE, Jobs, Outlet, share
from kdissect.cli.listed_rows import ListedRows
from kdissect.cli.output import OUTPUT_FILE, QUIET, colour_option, is_same_file, refuse_terminal
from kdissect.cli.payloads import decoder_of, payload_options, report_faults
from kdissect.cli.printers import goes_in_pieces
from kdissect.cli.reading import Reading
from kdissect.cli.row_options import (
    AS_TREE,
    BYTES_FORM,
    CLOCK,
    DUMP,
    EMBEDDED,
    FIELDS,
    SHOW_SECRETS,
    WITH_RECORDS,
    chosen_columns,
    chosen_form,
    options_of,
    printer_of,
)
from kdissect.cli.tls_keys import key_options
from kdissect.dissect import Event
from kdissect.present.catalogue import FAULTS, RECORDS, TABLES
from kdissect.present.columns import EXCHANGES
from kdissect.present.form import Clock
from kdissect.present.tables import BINARY
from kdissect.session.briefs import Interest

if TYPE_CHECKING:
    from kdissect.cli.shown_packets import ShownPackets
    from kdissect.payload.decoder import PayloadDecoder

_OPTIONS = (
    click.option(
        "-T",
        "form",
        metavar="FORMAT",
        shell_complete=a_form((*LINES, FOLLOW), TABLES),
        help="Exchanges as text (the default), tree, ndjson, csv, tsv, parquet or arrow. Other "
        "tables: records, connections or faults (NDJSON), or records.parquet, faults.csv … "
        "read -T follow: the bytes of connections.",
    ),
    filter_options,
    FIELDS,
    AS_TREE,
    DUMP,
    click.option("-c", "count", type=click.IntRange(1), metavar="N", help="Stop after N rows."),
    CLOCK,
    PORTS,
    key_options,
    OUTPUT_FILE,
    WITH_RECORDS,
    BYTES_FORM,
    EMBEDDED,
    payload_options,
    SHOW_SECRETS,
    click.option(
        "--explain-errors", is_flag=True, help="Explain errors below each exchange (text and tree)."
    ),
    STRICT,
    click.option("--exit-status", is_flag=True, help="Exit code 1 if nothing is shown."),
    QUIET,
    colour_option,
)


_CHANGES = {
    "records": (EXCHANGES.name, RECORDS.name),  # the second shows records without it, too
    "embedded": (EXCHANGES.name, RECORDS.name, FAULTS.name),
    "bytes_form": (EXCHANGES.name, RECORDS.name),
}
"""The tables that an option affects, by option."""


def listing_options(function: click.decorators.FC) -> click.decorators.FC:
    """The options of :class:`OutputListing`, in order."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


class OutputListing:
    """The output that the options of a command ask for.

    :raises Wrong: an option is wrong, or options do not fit together.
    """

    def __init__(self, given: dict[str, Any], config: Config) -> None:
        self._given = given
        self._config = config
        self._rows: ListedRows | None = None
        """The printed rows, once printing is possible."""
        self.form = self._chosen_form()
        self.options = options_of(given, config, self._decoder())
        self._table = chosen_columns(given, self.form, config, self.options)
        ports_of(given["decode_as"])  # errors in them are reported before anything is opened
        self.chooser = chooser_of(
            given["filter"], given["slow"], self.form.table, self.options, config.slow_ms
        )

    def _decoder(self) -> PayloadDecoder | None:
        """The decoder of keys and values, if it is needed. Settings of the configuration cost nothing if no
        key or value is decoded."""
        given = self._given
        looks = self.form.table == "records" or given["records"] or self.form.format == "tree"
        looks = looks or "record." in (given["filter"] or "").lower()
        is_said = any(given[name] for name in ("payload_rules", "schemas", "registry", "registry_ca"))
        return decoder_of(given, self._config) if looks or is_said else None

    @property
    def shows_progress(self) -> bool:
        """Whether to print the progress and a closing line."""
        return sys.stderr.isatty() and not self._given["quiet"]

    @property
    def briefs(self) -> Interest | None:
        """What the output needs of exchanges in brief; None if it needs whole ones. Brief exchanges are
        enough to print all exchanges as lines or as NDJSON, or all records, and nothing more."""
        given = self._given
        wants_more = ("fields", "dump", "explain_errors", "embedded", "strict", "count", "packets_to")
        if self.chooser is not None or any(given[each] for each in wants_more):
            return None
        counts_faults = self.shows_progress
        if self.form.format == "text":
            return Interest(faults=counts_faults)
        if goes_in_pieces(self._table, self.form.format, self.options):
            return Interest(errors=False, records=False, bodies=counts_faults, faults=counts_faults)
        # Printing record sets as JSON checks them.
        is_ndjson = self.form.format == "ndjson" and self._table == EXCHANGES
        return Interest(records=False, faults=counts_faults) if is_ndjson else None

    def _chosen_form(self) -> TableFormat:
        form = chosen_form(self._given, "text")
        for name in ("records", "bytes_form"):
            if form.format == "text" and self._given[name] not in (False, "text"):
                option = "--records" if name == "records" else "--bytes"
                raise Wrong(
                    f"{option} works with tables and trees only: lines show neither records nor values"
                )
        for name, tables in _CHANGES.items():
            if self._given[name] not in (False, "text") and form.table not in tables:
                option = "--bytes" if name == "bytes_form" else f"--{name}"
                raise Wrong(f"{option} changes nothing in -T {form.table}: leave it out")
        return form

    def refuse_packets(self) -> None:
        """Check whether ``-w`` fits the other options."""
        rows_to, packets_to = self._given["output"], self._given["packets_to"]
        if self.form.table == "connections":
            raise Wrong("-w works with exchanges, records and faults: rows of -T connections have no packets")
        if packets_to == "-":
            refuse_terminal("pcapng", None)
        if is_same_file(packets_to, rows_to or "-"):
            where = "standard output" if packets_to == "-" else packets_to
            raise Wrong(f"the rows and the packets (-w) would both go to {where}: give -o FILE for the rows")

    def print(
        self,
        reading: Reading,
        events: Iterable[Sequence[Event]],
        file: BinaryIO,
        flush: bool,
        shown: ShownPackets | None = None,
        jobs: Jobs = ALONE,
    ) -> None:
        """Print the rows of events. In any case the printed rows can be read.

        :param reading: the source of the events, which are in lists.
        :param flush: whether each row is needed at once.
        :param shown: collects what is shown.
        :param jobs: the number of processes, if rows can be made in several.
        """
        clock = Clock(self._given["clock"] or self._config.time)
        flush = flush or (self._given["output"] is None and sys.stdout.isatty())
        outlet = Outlet(file)
        keep = None if self.chooser is None else self.chooser.row
        form = (self._given, self._config, self.form.format, self._table, cast(BinaryIO, outlet), clock)
        printer = printer_of(*form, self.options, flush, keep)
        shares = jobs.processes > 1 and self._can_be_shared(clock)
        apart = None
        if shares and self.form.format in BINARY:
            apart = printer_of(*form, self.options, flush, keep, apart=True)
        # Printing a line takes less time than finding its contents.
        is_light = self.form.format == "text" and reading.source.briefs is not None
        self._rows = ListedRows(reading, printer, outlet, flush, clock, self.chooser, shown, apart, is_light)
        try:
            if shares:
                share(reading, events, self._rows, jobs, self._rows.write)
                return
            most = self._given["count"]
            for several in events:
                if most is None:
                    self._rows.many(several)
                    continue
                for event in several:
                    self._rows.one(event, most)
                    if self._rows.count == most:
                        return
        finally:
            printer.close()
            report_faults(self.options.payloads)

    def _can_be_shared(self, clock: Clock) -> bool:
        """Whether rows can be made in several processes. They cannot if the output ends with one of them, or
        if each row begins with the time since the previous one."""
        form, table = self.form.format, self.form.table
        if self._given["count"] is not None:
            return False
        if form in BINARY and table == "connections" and self.chooser is not None:
            return False  # only all batches together show which connections are chosen
        if self.options.payloads is not None:
            return False  # schemas in one record are needed for the later ones
        return not (form == "text" and clock.letter == "d" and not self._given["fields"])

    def exit_code(self, reading: Reading) -> int:
        """Print the closing line, and return the exit code."""
        given = self._given
        rows = 0 if self._rows is None else self._rows.count
        return reading.exit_code(self.shows_progress, given["strict"], rows > 0 or not given["exit_status"])
