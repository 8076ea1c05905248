"""What ``read`` and ``live`` have in common: which rows of which table are shown, in which format."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any, BinaryIO, cast

import click

from kdissect.cli.completing import a_column_of, a_form
from kdissect.cli.config import Config
from kdissect.cli.errors import Wrong
from kdissect.cli.filtering import chooser_of, filter_options
from kdissect.cli.formats import (
    LINES,
    FieldsPrinter,
    Form,
    LinePrinter,
    Printer,
    TablePrinter,
    TreePrinter,
    columns_of,
    form_of,
    names_of,
    see_that_it_can_be_written,
)
from kdissect.cli.jobs import ALONE, Jobs, Outlet, share
from kdissect.cli.keys import key_options
from kdissect.cli.output import TextOutput, colour_option, is_same_file, refuse_terminal, wants_colour
from kdissect.cli.reading import Reading
from kdissect.cli.rows import Rows
from kdissect.cli.shown import ShownPackets
from kdissect.dissect import Event
from kdissect.present.catalogue import TABLES
from kdissect.present.columns import EXCHANGES, Table
from kdissect.present.form import TIMES, Clock
from kdissect.present.options import BYTES_FORMS, Options
from kdissect.present.tables import BINARY

_OPTIONS = (
    click.option(
        "-T",
        "form",
        metavar="FORMAT",
        shell_complete=a_form(LINES, TABLES),
        help="text (the default), tree, ndjson, csv, tsv, parquet, arrow: exchanges. records, connections, "
        "faults: those tables as NDJSON, or records.parquet, faults.csv …",
    ),
    filter_options,
    click.option(
        "-e",
        "fields",
        multiple=True,
        metavar="FIELD",
        shell_complete=a_column_of(TABLES),
        help="Only this column; may be given often.",
    ),
    click.option("-V", "as_tree", is_flag=True, help="The same as -T tree."),
    click.option("-x", "dump", is_flag=True, help="The bytes too (text and tree)."),
    click.option("-c", "count", type=click.IntRange(1), metavar="N", help="Stop after N rows."),
    click.option(
        "-t",
        "clock",
        type=click.Choice(tuple(TIMES)),
        help=f"Times: {', '.join(map(' '.join, TIMES.items()))}.",
    ),
    click.option(
        "-d", "decode_as", multiple=True, metavar="tcp.port==N,kafka", help="Take a port for Kafka's."
    ),
    key_options,
    click.option(
        "-o",
        "output",
        metavar="FILE",
        help="Write there instead of stdout; a file of that name is replaced.",
    ),
    click.option("--records", is_flag=True, help="Decoded record batches inside request and response."),
    click.option(
        "--bytes", "bytes_form", type=click.Choice(BYTES_FORMS), default="text", help="Keys and values."
    ),
    click.option("--embedded", is_flag=True, help="Decode the bytes inside messages and records too."),
    click.option("--show-secrets", is_flag=True, help="Passwords, tokens and keys as they were sent."),
    click.option("--strict", is_flag=True, help="Exit code 4 if there are faults."),
    click.option("--exit-status", is_flag=True, help="Exit code 1 if nothing is shown."),
    click.option("-q", "--quiet", is_flag=True, help="No progress and no closing line."),
    colour_option,
)


def showing_options(function: click.decorators.FC) -> click.decorators.FC:
    """The options of :class:`Showing`, in order."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_DECODE_AS = re.compile(r"tcp\.port==(\d{1,5}),kafka", re.IGNORECASE)


def ports_of(rules: tuple[str, ...]) -> frozenset[int]:
    """The ports of ``-d`` rules.

    :raises Wrong: a rule has another form.
    """
    ports = set()
    for rule in rules:
        found = _DECODE_AS.fullmatch(rule.replace(" ", ""))
        if found is None or not 0 < int(found[1]) < 65_536:
            raise Wrong(f"-d {rule}: the form is tcp.port==N,kafka")
        ports.add(int(found[1]))
    return frozenset(ports)


class Showing:
    """What is shown, by the options of a command.

    :raises Wrong: options do not go with each other, or are none.
    """

    def __init__(self, given: dict[str, Any], config: Config) -> None:
        self._given = given
        self._config = config
        self._rows: Rows | None = None
        """What was printed, once something could be."""
        self.options = Options(
            show_secrets=given["show_secrets"],
            records=given["records"],
            embedded=given["embedded"],
            bytes_form=given["bytes_form"],
            limits=config.limits,
        )
        self.form = self._chosen_form()
        self._table = self._chosen_table()
        self.ports = config.ports | ports_of(given["decode_as"])
        self.chooser = chooser_of(
            given["filter"], given["slow"], self.form.table, self.options, config.slow_ms
        )

    @property
    def talks(self) -> bool:
        """Whether there is somebody who wants to know how it goes."""
        return sys.stderr.isatty() and not self._given["quiet"]

    def _chosen_form(self) -> Form:
        text, as_tree = self._given["form"], self._given["as_tree"]
        if as_tree and text not in (None, "tree"):
            raise Wrong(f"-V is -T tree; -T {text} is something else")
        form = form_of(("tree" if as_tree else "text") if text is None else text)
        if self._given["dump"] and form.format not in ("text", "tree"):
            raise Wrong(f"-x goes with -T text and -T tree, not with -T {text}")
        for name in ("records", "bytes_form"):
            if form.format == "text" and self._given[name] not in (False, "text"):
                option = "--records" if name == "records" else "--bytes"
                raise Wrong(f"{option} goes with tables and trees: lines have neither records nor values")
        if self._given["dump"] and form.format == "text" and self._given["fields"]:
            raise Wrong("-x goes with whole lines and trees, not with -e")
        see_that_it_can_be_written(form.format, self._given["output"])
        return form

    def refuse_packets(self) -> None:
        """See whether ``-w`` goes with the rest."""
        rows_to, packets_to = self._given["output"], self._given["packets_to"]
        if self.form.table == "connections":
            raise Wrong("-w goes with exchanges, records and faults: -T connections shows no packets")
        if packets_to == "-":
            refuse_terminal("pcapng", None)
        if is_same_file(packets_to, rows_to or "-"):
            where = "standard output" if packets_to == "-" else packets_to
            raise Wrong(f"the rows and the packets (-w) would both go to {where}: give -o FILE for the rows")

    def _chosen_table(self) -> Table:
        table = TABLES[self.form.table]
        names = names_of(self._given["fields"])
        if names and self.form.format == "tree":
            raise Wrong("-e goes with tables, not with -T tree")
        if not names and table is EXCHANGES:
            names = list(self._config.columns)
        return columns_of(table, names, self._given["embedded"])

    def print(
        self,
        reading: Reading,
        events: Iterable[Event],
        file: BinaryIO,
        flush: bool,
        shown: ShownPackets | None = None,
        jobs: Jobs = ALONE,
    ) -> None:
        """Print the rows of events. However it ends, what was printed can be read.

        :param reading: where the events come from.
        :param flush: whether each row is needed at once.
        :param shown: is given what is shown.
        :param jobs: how many processes share it, where they can.
        """
        clock = Clock(self._given["clock"] or self._config.time)
        flush = flush or (self._given["output"] is None and sys.stdout.isatty())
        outlet = Outlet(file)
        printer = self._printer(cast(BinaryIO, outlet), clock, flush)
        self._rows = Rows(reading, printer, outlet, flush, clock, self.options.limits, self.chooser, shown)
        try:
            if jobs.processes > 1 and self._can_be_shared(clock):
                share(reading, events, self._rows, jobs, self._rows.write)
                return
            most = self._given["count"]
            for event in events:
                self._rows.one(event, most)
                if self._rows.count == most:
                    return
        finally:
            printer.close()

    def _can_be_shared(self, clock: Clock) -> bool:
        """Whether rows can be made apart: not where they end with one of them, where each begins with the
        time since the one before it, or where they are written as columns."""
        form = self.form.format
        if self._given["count"] is not None or form in BINARY:
            return False
        return not (form == "text" and clock.letter == "d" and not self._given["fields"])

    def exit_code(self, reading: Reading) -> int:
        """How the command ends; tells the closing line."""
        given = self._given
        rows = 0 if self._rows is None else self._rows.count
        return reading.exit_code(self.talks, given["strict"], rows > 0 or not given["exit_status"])

    def _printer(self, file: BinaryIO, clock: Clock, flush: bool) -> Printer:
        given, form = self._given, self.form.format
        output = TextOutput(file, given["output"], flush)
        keep = None if self.chooser is None else self.chooser.row
        if form == "tree":
            return TreePrinter(output, self.options, given["dump"])
        if form != "text":
            return TablePrinter(self._table, form, file, self.options, flush, keep)
        if given["fields"]:
            return FieldsPrinter(self._table, form, file, self.options, flush, keep)
        colour = wants_colour(given["color"] or self._config.color, given["output"])
        return LinePrinter(output, clock, colour, self.options, given["dump"])
