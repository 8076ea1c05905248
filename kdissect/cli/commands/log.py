"""``kdissect log``: broker log directories and files → records, batches, index entries, snapshots, faults."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO

import click

from kdissect.cli.completing import a_column_of, a_form
from kdissect.cli.config import load_config
from kdissect.cli.errors import Complaints, Wrong, complain
from kdissect.cli.exit_codes import DONE, FAULTS_SEEN, NOTHING_MATCHED, STRICT, UNREADABLE
from kdissect.cli.formats import (
    TableFormat,
    check_writable,
    columns_of,
    form_of,
    names_of,
    writer_of,
)
from kdissect.cli.output import OUTPUT_FILE, TextOutput, open_output
from kdissect.cli.payloads import decoder_of, learn_of_logs, payload_options, report_faults
from kdissect.logdir.checks import is_damage
from kdissect.logdir.events import Event, FileFault, LogFile, SegmentBatch
from kdissect.logdir.files import files_of, read_logs
from kdissect.model import CaptureError
from kdissect.present.log_columns import LOG_TABLES, log_rows
from kdissect.present.log_text import log_lines
from kdissect.present.options import BYTES_FORMS, Options


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option(
    "-T",
    "form",
    default="text",
    metavar="FORMAT",
    shell_complete=a_form(("text",), LOG_TABLES),
    help=f"text (the default), or a table: {', '.join(LOG_TABLES)} (NDJSON), or records.parquet …",
)
@click.option(
    "-e",
    "fields",
    multiple=True,
    metavar="FIELD",
    shell_complete=a_column_of(LOG_TABLES),
    help="Print only this column. May be given often.",
)
@click.option("-c", "count", type=click.IntRange(1), metavar="N", help="Stop after N rows.")
@OUTPUT_FILE
@click.option(
    "--bytes",
    "bytes_form",
    type=click.Choice(BYTES_FORMS),
    default="text",
    help="How keys and values are shown.",
)
@click.option("--embedded", is_flag=True, help="Decode records of Kafka's own topics.")
@payload_options
@click.option("--show-secrets", is_flag=True, help="Show passwords and keys.")
@STRICT
@click.option("--exit-status", is_flag=True, help="Exit code 1 if nothing is shown.")
def command(paths: tuple[str, ...], form: str, **given: Any) -> int:
    """Read a broker's log directories: folders of partitions, or single files.

    Files may be .log, .checkpoint, .index, .timeindex, .txnindex and .snapshot files.
    """
    return _LogCommand(paths, _form(form), given).run()


def _form(text: str) -> TableFormat:
    if text == "tree":
        raise Wrong("-T tree: log directories have no trees; kdissect bytes records FILE draws one")
    return form_of(text, tuple(LOG_TABLES), ("text",))


class _LogCommand:
    """One run of the command."""

    def __init__(self, paths: tuple[str, ...], form: TableFormat, given: dict[str, Any]) -> None:
        self._paths = paths
        self._form = form
        self._given = given
        self._faults = self._rows = 0
        self._is_damaged = False
        self._complaints = Complaints()
        config = load_config()
        self._options = Options(
            show_secrets=given["show_secrets"],
            embedded=given["embedded"],
            bytes_form=given["bytes_form"],
            limits=config.limits,
            shown_fields=config.shown_fields,
            payloads=decoder_of(given, config),
        )
        if self._options.payloads is not None:
            learn_of_logs(self._options.payloads, paths, config)
        names = names_of(given["fields"])
        if names and form.format == "text":
            raise Wrong("-e works with tables only: give -T records, -T batches.csv …")
        self._table = columns_of(
            LOG_TABLES[form.table], names, given["embedded"], self._options.payloads is not None
        )

    def run(self) -> int:
        given = self._given
        check_writable(self._form.format, given["output"])
        events = self._events()
        # An output file is replaced only if there is input to read.
        first = next(events, None)
        if first is not None:
            with open_output(given["output"], files_of(self._paths)) as file:
                self._print(chain((first,), events), file)
        self._complaints.close()
        report_faults(self._options.payloads)
        if self._is_damaged:
            return UNREADABLE
        if given["strict"] and self._faults:
            return FAULTS_SEEN
        return NOTHING_MATCHED if given["exit_status"] and not self._rows else DONE

    def _print(self, events: Iterator[Event], file: BinaryIO) -> None:
        """Print the rows. Printed rows stay, even if a path cannot be read."""
        if self._form.format == "text":
            output = TextOutput(file, self._given["output"])
            for event in events:
                for line in log_lines(event):
                    output.line(line)
                    self._rows += 1
                if self._has_enough():
                    return
            return
        writer = writer_of(self._form.format, self._table, file, self._options)
        try:
            for event in events:
                for row in log_rows(self._form.table, event, self._options):
                    writer.write(row)
                    self._rows += 1
                    if self._has_enough():
                        return
        finally:
            writer.close()

    def _has_enough(self) -> bool:
        return self._given["count"] is not None and self._rows >= self._given["count"]

    def _events(self) -> Iterator[Event]:
        """The events, with their faults counted. The first fault of each damaged file is reported on
        stderr."""
        reads_records = self._given["strict"] or self._form.format == "text"
        damaged: LogFile | None = None
        try:
            for event in read_logs(self._paths, self._options.limits):
                if isinstance(event, FileFault):
                    self._faults += 1
                    if is_damage(event.fault):
                        if event.file != damaged:
                            self._complaints.report_fault(event.file.path, event.fault)
                        damaged = event.file
                        self._is_damaged = True
                elif reads_records and isinstance(event, SegmentBatch):
                    event.records()  # the faults of the files are events of their own
                yield event
        except CaptureError as error:
            self._is_damaged = True
            complain(str(error))
