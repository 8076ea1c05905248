"""``kdissect read``: captures → exchanges, records, connections, faults."""

from __future__ import annotations

import re
import sys
from contextlib import closing
from typing import Any, BinaryIO

import click

from kdissect.cli.completing import a_column_of, a_form
from kdissect.cli.config import Config, load_config
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
)
from kdissect.cli.output import (
    TextOutput,
    colour_option,
    is_same_file,
    open_output,
    refuse_terminal,
    wants_colour,
)
from kdissect.cli.reading import Reading, read_twice
from kdissect.cli.shown import Shown
from kdissect.present.catalogue import TABLES
from kdissect.present.columns import EXCHANGES, Table
from kdissect.present.form import TIMES, Clock
from kdissect.present.options import BYTES_FORMS, Options
from kdissect.present.tables import BINARY


@click.command()
@click.argument("files", nargs=-1, metavar="FILE… | -")
@click.option("-r", "more_files", multiple=True, metavar="FILE", help="A capture, as tshark has it.")
@click.option(
    "-T",
    "form",
    metavar="FORMAT",
    shell_complete=a_form(LINES, TABLES),
    help="text (the default), tree, ndjson, csv, tsv, parquet, arrow: exchanges. records, connections, "
    "faults: those tables as NDJSON, or records.parquet, faults.csv …",
)
@filter_options
@click.option(
    "-e",
    "fields",
    multiple=True,
    metavar="FIELD",
    shell_complete=a_column_of(TABLES),
    help="Only this column; may be given often.",
)
@click.option("-V", "as_tree", is_flag=True, help="The same as -T tree.")
@click.option("-x", "dump", is_flag=True, help="The bytes too (text and tree).")
@click.option("-c", "count", type=click.IntRange(1), metavar="N", help="Stop after N rows.")
@click.option(
    "-t", "clock", type=click.Choice(tuple(TIMES)), help=f"Times: {', '.join(map(' '.join, TIMES.items()))}."
)
@click.option(
    "-w",
    "packets_to",
    metavar="FILE",
    help="Write the packets of what is shown, as pcapng, with the handshakes and ends of its connections.",
)
@click.option("-d", "decode_as", multiple=True, metavar="tcp.port==N,kafka", help="Take a port for Kafka's.")
@click.option(
    "-o", "output", metavar="FILE", help="Write there instead of stdout; a file of that name is replaced."
)
@click.option("--records", is_flag=True, help="Decoded record batches inside request and response.")
@click.option(
    "--bytes", "bytes_form", type=click.Choice(BYTES_FORMS), default="text", help="Keys and values."
)
@click.option("--embedded", is_flag=True, help="Decode the bytes inside messages and records too.")
@click.option("--show-secrets", is_flag=True, help="Passwords, tokens and keys as they were sent.")
@click.option("--two-pass", is_flag=True, help="Names of topic ids count from the start (reads twice).")
@click.option("--strict", is_flag=True, help="Exit code 4 if there are faults.")
@click.option("--exit-status", is_flag=True, help="Exit code 1 if nothing is shown.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no closing line.")
@colour_option
def command(**given: Any) -> int:
    """Read captures: pcap or pcapng, also gzip, zstd or lz4 compressed; - is standard input.

    Several FILEs are one capture.

    A FILTER has Wireshark's syntax: 'api == Fetch and latency > 50ms', 'error', 'topic in {orders, clicks}',
    'record.key contains "u-1"'; kdissect fields filter lists what it can ask beside the columns.
    """
    paths = (*given["more_files"], *given["files"])
    if not paths:
        raise click.UsageError(
            "no capture is given: name a file, or - for standard input", click.get_current_context()
        )
    return _Read(paths, given, load_config()).run()


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


class _Read:
    """One run of the command."""

    def __init__(self, paths: tuple[str, ...], given: dict[str, Any], config: Config) -> None:
        self._paths = paths
        self._given = given
        self._config = config
        self._rows = 0
        self._options = Options(
            show_secrets=given["show_secrets"],
            records=given["records"],
            embedded=given["embedded"],
            bytes_form=given["bytes_form"],
            limits=config.limits,
        )
        self._form = self._chosen_form()
        self._table = self._chosen_table()
        self._ports = config.ports | ports_of(given["decode_as"])
        self._chooser = chooser_of(
            given["filter"], given["slow"], self._form.table, self._options, config.slow_ms
        )
        self._must_learn = self._chooser is not None and self._chooser.must_learn

    def _chosen_form(self) -> Form:
        text, as_tree = self._given["form"], self._given["as_tree"]
        if as_tree and text not in (None, "tree"):
            raise Wrong(f"-V is -T tree; -T {text} is something else")
        form = form_of(("tree" if as_tree else "text") if text is None else text)
        if self._given["dump"] and form.format not in ("text", "tree"):
            raise Wrong(f"-x goes with -T text and -T tree, not with -T {text}")
        if self._given["dump"] and form.format == "text" and self._given["fields"]:
            raise Wrong("-x goes with whole lines and trees, not with -e")
        if form.format in BINARY:
            refuse_terminal(form.format, self._given["output"])
        if self._given["packets_to"] is not None:
            self._refuse_packets(form)
        return form

    def _refuse_packets(self, form: Form) -> None:
        """See whether ``-w`` goes with the rest."""
        rows_to, packets_to = self._given["output"], self._given["packets_to"]
        if form.table == "connections":
            raise Wrong("-w goes with exchanges, records and faults: -T connections shows no packets")
        if packets_to == "-":
            refuse_terminal("pcapng", None)
        if is_same_file(packets_to, rows_to or "-"):
            where = "standard output" if packets_to == "-" else packets_to
            raise Wrong(f"the rows and the packets (-w) would both go to {where}: give -o FILE for the rows")

    def _chosen_table(self) -> Table:
        table = TABLES[self._form.table]
        names = [name for each in self._given["fields"] for name in each.split(",") if name]
        if names and self._form.format == "tree":
            raise Wrong("-e goes with tables, not with -T tree")
        if not names and table is EXCHANGES:
            names = list(self._config.columns)
        return columns_of(table, names, self._given["embedded"])

    def run(self) -> int:
        given = self._given
        with (
            read_twice(self._paths, given["two_pass"] or self._must_learn) as paths,
            closing(self._reading(paths)) as reading,
        ):
            reading.open()
            if given["packets_to"] is None:
                with open_output(given["output"], self._paths) as file:
                    self._print(reading, file, None)
            else:
                self._print_and_write(reading, Shown(paths, self._config.limits))
        talks = sys.stderr.isatty() and not given["quiet"]
        return reading.exit_code(talks, given["strict"], self._rows > 0 or not given["exit_status"])

    def _print_and_write(self, reading: Reading, shown: Shown) -> None:
        """Print the rows, then write their packets: also when Ctrl-C, the end of a live capture that is
        piped in, or a reader that has enough ends the rows. A second Ctrl-C gives up."""
        given = self._given
        with (
            shown.kept(reading),
            open_output(given["output"], self._paths) as file,
            open_output(given["packets_to"], self._paths) as capture,
        ):
            try:
                self._print(reading, file, shown)
            finally:
                shown.write(capture, reading.packets)

    def _reading(self, paths: tuple[str, ...]) -> Reading:
        talks = sys.stderr.isatty() and not self._given["quiet"]
        return Reading(
            paths,
            self._options,
            self._ports,
            self._config.topics,
            progress=talks and (self._given["output"] is not None or not sys.stdout.isatty()),
            count_faults=talks or self._given["strict"],
        )

    def _print(self, reading: Reading, file: BinaryIO, shown: Shown | None) -> None:
        """Print the rows, and collect what they show. However it ends, what was printed can be read."""
        given = self._given
        clock = Clock(given["clock"] or self._config.time)
        printer = self._printer(file, clock)
        try:
            if self._chooser is not None and self._must_learn:
                self._chooser.learn(reading, given["two_pass"])
            elif given["two_pass"]:
                reading.read_before(names=True)
            for event in reading:
                clock.first_ns = reading.first_ns
                if self._chooser is not None and not self._chooser.event(event):
                    continue
                for each in printer.show(event):
                    self._rows += 1
                    if shown is not None:
                        shown.add(each)
                    if self._rows == given["count"]:
                        return
        finally:
            printer.close()

    def _printer(self, file: BinaryIO, clock: Clock) -> Printer:
        given, form = self._given, self._form.format
        flush = "-" in self._paths or (given["output"] is None and sys.stdout.isatty())
        output = TextOutput(file, given["output"], flush)
        keep = None if self._chooser is None else self._chooser.row
        if form == "tree":
            return TreePrinter(output, self._options, given["dump"])
        if form != "text":
            return TablePrinter(self._table, form, file, self._options, flush, keep)
        if given["fields"]:
            return FieldsPrinter(self._table, file, self._options, flush, keep)
        colour = wants_colour(given["color"] or self._config.color, given["output"])
        return LinePrinter(output, clock, colour, self._options, given["dump"])
