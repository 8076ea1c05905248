"""A run of the client: what it prints of what was said, what it writes with ``-w``, and how it fails.

Printed are the exchanges that a command was run for; with ``--all`` also those that had to come before:
ApiVersions, a login, Metadata.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any, BinaryIO

import click

from kdissect.capture.reader import Interface
from kdissect.capture.writer import PcapngWriter
from kdissect.cli import DONE
from kdissect.cli.completing import a_form
from kdissect.cli.config import load_config
from kdissect.cli.connecting import address_of, security_of
from kdissect.cli.errors import OtherSideFailed, Wrong, complain
from kdissect.cli.formats import (
    LINES,
    FieldsPrinter,
    Form,
    Keep,
    LinePrinter,
    Printer,
    TablePrinter,
    TreePrinter,
    columns_of,
    form_of,
    names_of,
    see_that_it_can_be_written,
)
from kdissect.cli.output import (
    TextOutput,
    colour_option,
    inputs_of,
    is_same_file,
    open_output,
    refuse_terminal,
    wants_colour,
)
from kdissect.client.cluster import Cluster
from kdissect.client.errors import AskingError, OtherSideError
from kdissect.client.io import run
from kdissect.client.packets import LINK_TYPE
from kdissect.client.transcript import Transcript
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.model import Fault
from kdissect.present.catalogue import TABLES
from kdissect.present.columns import EXCHANGES
from kdissect.present.form import TIMES, Clock
from kdissect.present.options import BYTES_FORMS, Options
from kdissect.present.tables import BINARY

SHOWN = ("exchanges", "records", "faults")
"""The tables that a client can print."""

_INTERFACE = Interface(LINK_TYPE, 0, "kdissect client", "what the client sent and received")

Flow = Callable[[Cluster], Awaitable[None]]


def packets_option(function: click.decorators.FC) -> click.decorators.FC:
    """``-w``."""
    return click.option(
        "-w",
        "packets_to",
        metavar="FILE",
        help="Write what was said as pcapng; of TLS what went inside. Secrets are overwritten with * unless "
        "--show-secrets is given.",
    )(function)


def output_options(function: click.decorators.FC) -> click.decorators.FC:
    """How exchanges and records print: the letters of ``read``."""
    for option in (
        colour_option,
        click.option("-q", "--quiet", is_flag=True, help="No closing line."),
        click.option("--show-secrets", is_flag=True, help="Passwords, tokens and keys as they were sent."),
        click.option("--embedded", is_flag=True, help="Decode the bytes inside messages and records too."),
        click.option(
            "--bytes", "bytes_form", type=click.Choice(BYTES_FORMS), default="text", help="Keys and values."
        ),
        click.option("--records", is_flag=True, help="Decoded record batches inside request and response."),
        click.option("--all", "everything", is_flag=True, help="Also what had to be asked before."),
        click.option("-o", "output", metavar="FILE", help="Write there instead of stdout."),
        packets_option,
        click.option(
            "-t",
            "clock",
            type=click.Choice(tuple(TIMES)),
            help=f"Times: {', '.join(map(' '.join, TIMES.items()))}.",
        ),
        click.option("-x", "dump", is_flag=True, help="The bytes too (text and tree)."),
        click.option("-V", "as_tree", is_flag=True, help="The same as -T tree."),
        click.option(
            "-e", "fields", multiple=True, metavar="FIELD", help="Only this column; may be given often."
        ),
        click.option(
            "-T",
            "form",
            metavar="FORMAT",
            shell_complete=a_form(LINES, SHOWN),
            help="text, tree, ndjson, csv, tsv, parquet, arrow: exchanges. records, faults: those tables as "
            "NDJSON, or records.csv …",
        ),
    ):
        function = option(function)
    return function


class Asking:
    """One run. :meth:`run` connects, lets a flow ask, and closes whatever happens.

    :param form: of ``-T`` where it is not given.
    """

    def __init__(self, given: dict[str, Any], form: str) -> None:
        self._given = given
        self._config = load_config()
        self.options = Options(
            show_secrets=given.get("show_secrets", False),
            records=given.get("records", False),
            embedded=given.get("embedded", False),
            bytes_form=given.get("bytes_form", "text"),
            limits=self._config.limits,
        )
        self._everything = bool(given.get("everything"))
        self._form = self._chosen_form(form)
        self._printer: Printer | None = None
        self._keep: Keep | None = None
        self.printed = 0
        """Rows so far."""
        self._capture: PcapngWriter | None = None
        self._transcript = Transcript(
            self.options.limits,
            embedded=self.options.embedded,
            keeps_packets=given["packets_to"] is not None,
            masks=not self.options.show_secrets,
        )
        self._address = address_of(given["address"])
        self._security = security_of(given)

    def _chosen_form(self, default: str) -> Form:
        given = self._given
        text = given.get("form")
        if given.get("as_tree"):
            if text not in (None, "tree"):
                raise Wrong(f"-V is -T tree; -T {text} is something else")
            text = "tree"
        form = form_of(default if text is None else text, SHOWN)
        if given.get("dump") and form.format not in ("text", "tree"):
            raise Wrong("-x goes with -T text and -T tree")
        see_that_it_can_be_written(form.format, given["output"])
        if given["packets_to"] is not None and is_same_file(given["packets_to"], given["output"] or "-"):
            raise Wrong("the rows and the packets (-w) would go to one file: give another")
        if given["packets_to"] == "-":
            refuse_terminal("pcapng", None)
        return form

    @property
    def talks(self) -> bool:
        """Whether a closing line is wanted on stderr."""
        return sys.stderr.isatty() and not self._given.get("quiet")

    def run(self, flow: Flow, *, prints: bool = True) -> int:
        """Let a flow ask; gives the exit code.

        :param prints: whether exchanges are printed here; else the flow's command prints.
        :raises OtherSideFailed: a broker did not do what was asked of it.
        :raises Wrong: it cannot be asked.
        """
        given = self._given
        with ExitStack() as files:
            if prints:
                file = files.enter_context(open_output(given["output"], inputs_of(given)))
                self._printer = self._new_printer(file)
            if given["packets_to"] is not None:
                capture = files.enter_context(open_output(given["packets_to"], inputs_of(given)))
                self._capture = PcapngWriter(capture, (_INTERFACE,))
            try:
                run(self._guarded(flow))
            except OtherSideError as error:
                raise OtherSideFailed(str(error)) from None
            except AskingError as error:
                raise Wrong(str(error)) from None
            finally:
                if self._printer is not None:
                    self._printer.close()
        return DONE

    async def _guarded(self, flow: Flow) -> None:
        cluster = Cluster(
            self._address,
            self._transcript,
            self._heard,
            self._security,
            timeout=self._given["timeout"],
            client_id=self._given["client_id"],
        )
        try:
            await flow(cluster)
        finally:
            await cluster.close()
            self._write_packets()

    def show(self, exchange: Exchange, keep: Keep | None = None) -> int:
        """Print one of the exchanges that the command is for; gives how many rows that were.

        :param keep: of its records, those that are shown.
        """
        if self._printer is None or (self._everything and self._form.table == "exchanges"):
            return 0
        if self._form.table == "faults":
            return 0  # all were printed when they were heard
        return self._print(exchange, keep if self._form.table == "records" else None)

    def _heard(self, event: Exchange | Fault) -> None:
        """Something was said."""
        self._write_packets()
        if self._printer is None:
            return
        if isinstance(event, Exchange) and event.response is not None:
            for each in event.response.faults:
                if each.kind == "remainder":  # what else is wrong ends the run, and is told then
                    complain(f"the answer to {event.api} v{event.api_version}: {each.message}")
        if self._form.table == "faults" or (self._everything and self._form.table == "exchanges"):
            self._print(event, None)

    def _print(self, event: Event, keep: Keep | None) -> int:
        assert self._printer is not None
        self._keep = keep
        rows = sum(1 for _ in self._printer.show(event))
        self.printed += rows
        return rows

    def _kept(self, event: Event, source: Any) -> bool:
        return self._keep is None or self._keep(event, source)

    def _write_packets(self) -> None:
        if self._capture is not None:
            for packet in self._transcript.take_packets():
                self._capture.write(packet)

    def _new_printer(self, file: BinaryIO) -> Printer:
        given, form = self._given, self._form
        output = TextOutput(file, given["output"], flush=True)
        if form.format == "tree":
            return TreePrinter(output, self.options, given["dump"])
        if form.format == "text" and not given["fields"]:
            clock = Clock(given["clock"] or self._config.time)
            colour = wants_colour(given["color"] or self._config.color, given["output"])
            return LinePrinter(output, clock, colour, self.options, given["dump"])
        table = TABLES[form.table]
        names = names_of(given["fields"])
        if not names and table is EXCHANGES:
            names = list(self._config.columns)
        columns = columns_of(table, names, given["embedded"])
        if form.format == "text":
            return FieldsPrinter(columns, form.format, file, self.options, True, self._kept)
        return TablePrinter(columns, form.format, file, self.options, form.format not in BINARY, self._kept)
