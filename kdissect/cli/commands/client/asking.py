"""A run of the client: the exchanges that it prints, the packets that it writes with ``-w``, and how it
fails.

It prints the exchanges that the command is for. With ``--all`` it also prints those that come before:
ApiVersions, a login, Metadata.

If an answer has bytes after its last field, it was read and is shown, but its broker is broken. So a message
reports it. If it answers a request that the command is for, the exit code is 6. The same holds for bytes that
belong to no answer.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any

import click

from kdissect.capture.reader import Interface
from kdissect.capture.writer import PcapngWriter
from kdissect.cli.commands.client.connecting import address_of, security_of
from kdissect.cli.completing import a_form
from kdissect.cli.config import load_config
from kdissect.cli.errors import OtherSideFailed, Wrong, complain
from kdissect.cli.exit_codes import DONE, OTHER_SIDE_FAILED
from kdissect.cli.formats import LINES
from kdissect.cli.output import (
    colour_option,
    inputs_of,
    is_same_file,
    open_output,
    refuse_terminal,
    stdout_pipe,
)
from kdissect.cli.printers import Keep, Printer
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
from kdissect.client.cluster import Cluster
from kdissect.client.diagnosis import bytes_text
from kdissect.client.errors import AskingError, OtherSideError
from kdissect.client.loop import run
from kdissect.client.packets import LINK_TYPE
from kdissect.client.transcript import Transcript
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.model import Fault
from kdissect.present.form import Clock
from kdissect.present.options import PLAIN
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
        help="Write the conversation as pcapng, without TLS. Secrets are overwritten with * "
        "unless --show-secrets is given.",
    )(function)


def output_options(function: click.decorators.FC) -> click.decorators.FC:
    """How exchanges and records print: the letters of ``read``."""
    for option in (
        colour_option,
        click.option("-q", "--quiet", is_flag=True, help="Print no closing line."),
        SHOW_SECRETS,
        EMBEDDED,
        BYTES_FORM,
        WITH_RECORDS,
        click.option(
            "--all",
            "everything",
            is_flag=True,
            help="Also show the requests that had to come first, such as those to log in.",
        ),
        click.option("-o", "output", metavar="FILE", help="Write to this file instead of stdout."),
        packets_option,
        CLOCK,
        DUMP,
        AS_TREE,
        FIELDS,
        click.option(
            "-T",
            "form",
            metavar="FORMAT",
            shell_complete=a_form(LINES, SHOWN),
            help="Exchanges as text, tree, ndjson, csv, tsv, parquet or arrow. Other tables: "
            "records or faults (NDJSON), or records.csv …",
        ),
    ):
        function = option(function)
    return function


class Asking:
    """One run of the client. :meth:`run` connects, lets a flow send its requests, and closes in any case.

    :param form: the default of ``-T``; None if the command prints its output itself, without exchanges.
    :raises Wrong: options are wrong, or do not fit together.
    :raises Unreadable: a file that an option names cannot be used.
    """

    def __init__(self, given: dict[str, Any], form: str | None) -> None:
        self._given = given
        self._config = load_config()
        self._prints = form is not None
        self._everything = False
        self.options = PLAIN._replace(limits=self._config.limits)
        if form is not None:
            self.options = options_of(given, self._config)
            self._form = chosen_form(given, form, SHOWN)
            self._table = chosen_columns(given, self._form, self._config, self.options)
            self._everything = given["everything"] and self._form.table == "exchanges"
        self._check_packets_to()
        self._printer: Printer | None = None
        self._keep: Keep | None = None
        self.printed = 0
        """How many rows were printed so far."""
        self._capture: PcapngWriter | None = None
        self._reported: set[tuple[int | None, int | None]] = set()
        """API and version of the answers whose remaining bytes were already reported."""
        self._is_broken = False
        """Whether the broker sent bytes that should not be there, in an exchange that the command is for."""
        self._transcript = Transcript(
            self.options.limits,
            embedded=self.options.embedded,
            keeps_packets=given["packets_to"] is not None,
            masks=not self.options.show_secrets,
        )
        self._address = address_of(given["address"])
        self._security = security_of(given)

    def _check_packets_to(self) -> None:
        given = self._given
        if given["packets_to"] is not None and is_same_file(given["packets_to"], given["output"] or "-"):
            raise Wrong("-o and -w name the same file: give two different files")
        if given["packets_to"] == "-":
            refuse_terminal("pcapng", None)

    @property
    def table(self) -> str:
        """The table whose rows are printed."""
        return self._form.table

    @property
    def shows_summary(self) -> bool:
        """Whether to print a closing line on stderr."""
        return sys.stderr.isatty() and not self._given.get("quiet")

    def run(self, flow: Flow, *, ends_with_reader: bool = False) -> int:
        """Let a flow send its requests, and return the exit code.

        :param ends_with_reader: whether it ends as soon as the reader of our stdout has gone, and not only at
            the next write.
        :raises OtherSideFailed: a broker did not do what it was asked.
        :raises Wrong: the flow cannot ask it.
        """
        given = self._given
        pipe = None
        if ends_with_reader and "-" in (given["output"] or "-", given["packets_to"]):
            pipe = stdout_pipe()
        with ExitStack() as files:
            if self._prints:
                file = files.enter_context(open_output(given["output"], inputs_of(given)))
                clock = Clock(given["clock"] or self._config.time)
                flush = self._form.format not in BINARY
                self._printer = printer_of(
                    *(given, self._config, self._form.format, self._table, file, clock),
                    *(self.options, flush, self._is_kept),
                )
            if given["packets_to"] is not None:
                capture = files.enter_context(open_output(given["packets_to"], inputs_of(given)))
                self._capture = PcapngWriter(capture, (_INTERFACE,))
            try:
                run(self._guarded(flow), pipe)
            except OtherSideError as error:
                raise OtherSideFailed(str(error)) from None
            except AskingError as error:
                raise Wrong(str(error)) from None
            finally:
                if self._printer is not None:
                    self._printer.close()
        return OTHER_SIDE_FAILED if self._is_broken else DONE

    async def _guarded(self, flow: Flow) -> None:
        cluster = Cluster(
            self._address,
            self._transcript,
            self._take_event,
            self._security,
            timeout=self._given["timeout"],
            client_id=self._given["client_id"],
            report=complain,
        )
        try:
            await flow(cluster)
            for defect in cluster.defects():
                self._is_broken = True
                complain(defect)
        finally:
            await cluster.close()
            self._write_packets()

    def show(self, exchange: Exchange, keep: Keep | None = None) -> int:
        """Print one of the exchanges that the command is for, and return the number of its rows.

        :param keep: selects the records that are shown.
        """
        if self._printer is None:
            return 0
        self._is_broken = self._is_broken or remainder_of(exchange) is not None
        if self._everything or self._form.table == "faults":
            return 0  # it was printed when it was heard
        return self._print(exchange, keep if self._form.table == "records" else None)

    def _take_event(self, event: Exchange | Fault) -> None:
        """Take in an exchange or a fault."""
        self._write_packets()
        if self._printer is None:
            return
        if isinstance(event, Exchange):
            self._report_remainder(event)
        if self._everything or self._form.table == "faults":
            self._print(event, None)

    def _report_remainder(self, exchange: Exchange) -> None:
        """Report remaining bytes, once for each API and version."""
        remainder = remainder_of(exchange)
        asked = exchange.api_key, exchange.api_version
        if remainder is not None and asked not in self._reported:
            self._reported.add(asked)
            complain(
                f"{exchange.broker}: its response to {exchange.api} v{exchange.api_version} has bytes "
                f"after the last field: {bytes_text(remainder)} (-T tree --all shows where)"
            )

    def _print(self, event: Event, keep: Keep | None) -> int:
        assert self._printer is not None
        self._keep = keep
        rows = sum(1 for _ in self._printer.show(event))
        self.printed += rows
        return rows

    def _is_kept(self, event: Event, source: Any) -> bool:
        return self._keep is None or self._keep(event, source)

    def _write_packets(self) -> None:
        if self._capture is not None:
            for packet in self._transcript.take_packets():
                self._capture.write(packet)


def remainder_of(exchange: Exchange) -> bytes | None:
    """The bytes after the last field of an answer that has no other fault."""
    if exchange.response is None or exchange.response.is_cut:
        return None
    body = exchange.response.decoded()
    return body.remainder if body.faults and all(each.kind == "remainder" for each in body.faults) else None
