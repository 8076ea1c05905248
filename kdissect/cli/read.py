"""``kdissect read``: captures → exchanges, records, connections, faults."""

from __future__ import annotations

import re
import sys
from typing import Any, BinaryIO

import click

from kdissect.capture.writer import PcapngWriter
from kdissect.cli import DONE, FAULTS_SEEN, NOTHING_MATCHED, UNREADABLE
from kdissect.cli.config import Config, load_config
from kdissect.cli.errors import Wrong, complain
from kdissect.cli.formats import FieldsPrinter, Form, LinePrinter, Printer, TablePrinter, TreePrinter, form_of
from kdissect.cli.output import (
    TextOutput,
    colour_option,
    open_file,
    open_output,
    refuse_terminal,
    wants_colour,
)
from kdissect.cli.reading import Reading, packets_of, read_twice
from kdissect.exchange import Exchange
from kdissect.model import Packet, Secrets
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
    help="text (the default), tree, ndjson, csv, tsv, parquet, arrow: exchanges. records, connections, "
    "faults: those tables as NDJSON, or records.parquet, faults.csv …",
)
@click.option("-e", "fields", multiple=True, metavar="FIELD", help="Only this column; may be given often.")
@click.option("-V", "as_tree", is_flag=True, help="The same as -T tree.")
@click.option("-x", "dump", is_flag=True, help="The bytes too (text and tree).")
@click.option("-c", "count", type=click.IntRange(1), metavar="N", help="Stop after N rows.")
@click.option(
    "-t", "clock", type=click.Choice(tuple(TIMES)), help=f"Times: {', '.join(map(' '.join, TIMES.items()))}."
)
@click.option("-w", "packets_to", metavar="FILE", help="Write the packets of what is shown, as pcapng.")
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
    """
    paths = (*given["more_files"], *given["files"])
    if not paths:
        raise click.UsageError(
            "no capture is given: name a file, or - for standard input", click.get_current_context()
        )
    return _Read(paths, given, load_config()).run()


_DECODE_AS = re.compile(r"tcp\.port==(\d{1,5}),kafka")


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

    def _chosen_form(self) -> Form:
        text, as_tree = self._given["form"], self._given["as_tree"]
        if as_tree and text not in (None, "tree"):
            raise Wrong(f"-V is -T tree; -T {text} is something else")
        form = form_of(text or ("tree" if as_tree else "text"))
        if self._given["dump"] and form.format not in ("text", "tree"):
            raise Wrong(f"-x goes with -T text and -T tree, not with -T {text}")
        if form.format in BINARY:
            refuse_terminal(form.format, self._given["output"])
        return form

    def _chosen_table(self) -> Table:
        table = TABLES[self._form.table]
        names = [name for each in self._given["fields"] for name in each.split(",") if name]
        if names and self._form.format == "tree":
            raise Wrong("-e goes with tables, not with -T tree")
        if not names and table is EXCHANGES:
            names = list(self._config.columns)
        try:
            return table.select(names) if names else table
        except LookupError as error:
            raise Wrong(f"-e: {error.args[0]} (kdissect fields lists them)") from None

    def run(self) -> int:
        given = self._given
        twice = given["two_pass"] or given["packets_to"] is not None
        with read_twice(self._paths, twice) as paths, open_output(given["output"], self._paths) as file:
            reading = self._reading(paths)
            if given["two_pass"]:
                reading.learn_names()
            if given["packets_to"] is None:
                rows = self._print(reading, file, None)
            else:
                with open_file(given["packets_to"], self._paths) as capture:
                    wanted: set[int] = set()
                    rows = self._print(reading, file, wanted)
                    self._write_packets(paths, wanted, PcapngWriter(capture))
        return self._end(reading, rows)

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

    def _print(self, reading: Reading, file: BinaryIO, wanted: set[int] | None) -> int:
        """Print the rows, and collect the packets of what they show; gives how many rows there were."""
        clock = Clock(self._given["clock"] or self._config.time)
        printer = self._printer(file, clock)
        rows, most = 0, self._given["count"]
        for event in reading:
            clock.first_ns = reading.first_ns
            for shown in printer.show(event):
                rows += 1
                if wanted is not None and isinstance(shown, Exchange):
                    wanted.update(number for message in shown.messages for number in message.frame.packets)
                if rows == most:
                    break
            if rows == most:
                break
        printer.close()
        return rows

    def _printer(self, file: BinaryIO, clock: Clock) -> Printer:
        given, form = self._given, self._form.format
        flush = "-" in self._paths or (given["output"] is None and sys.stdout.isatty())
        output = TextOutput(file, given["output"], flush)
        if form == "tree":
            return TreePrinter(output, self._options, given["dump"])
        if form != "text":
            return TablePrinter(self._table, form, file, self._options, flush)
        if given["fields"]:
            return FieldsPrinter(self._table, file, self._options, flush)
        colour = wants_colour(given["color"] or self._config.color, given["output"])
        return LinePrinter(output, clock, colour, self._options, given["dump"])

    def _write_packets(self, paths: tuple[str, ...], wanted: set[int], writer: PcapngWriter) -> None:
        for item in packets_of(paths, self._config.limits):
            if isinstance(item, Secrets) or (isinstance(item, Packet) and item.number in wanted):
                writer.write(item)

    def _end(self, reading: Reading, rows: int) -> int:
        if sys.stderr.isatty() and not self._given["quiet"]:
            complain(reading.summary())
        if reading.is_damaged:
            return UNREADABLE
        if self._given["strict"] and reading.faults:
            return FAULTS_SEEN
        if self._given["exit_status"] and not rows:
            return NOTHING_MATCHED
        return DONE
