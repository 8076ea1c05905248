"""``kdissect report``: captures → one page with everything that is known of them."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import click

from kdissect.cli.errors import Unreadable, Wrong
from kdissect.cli.exit_codes import DONE
from kdissect.cli.filters import filter_options
from kdissect.cli.folding import Folding
from kdissect.cli.inputs import FILES, MORE_FILES, PORTS, captures_of
from kdissect.cli.jobs import jobs_option
from kdissect.cli.output import OUTPUT_FILE, open_output, refuse_same
from kdissect.cli.reading import Reading
from kdissect.cli.report_inputs import kept_report
from kdissect.cli.states import load, save
from kdissect.cli.statistics_output import TablesOutput
from kdissect.cli.tls_keys import key_options
from kdissect.insight.judge import CaptureReport, Judge
from kdissect.insight.report_data import whole_judge
from kdissect.present.findings import FINDINGS
from kdissect.present.form import Clock
from kdissect.present.html.report import report_page
from kdissect.present.html.sheet import ReportOptions
from kdissect.present.options import PLAIN
from kdissect.present.statistics import STATISTICS

_HELP = """Captures → one page: findings, time line, latencies, topics, groups, clients, cluster.

The page is one file and needs no network. Only you can read a new file. It holds no keys and values of
records, no passwords and no tokens.

\b
kdissect report FILE… -o report.html         make a page
kdissect report report.html -T ndjson        print its tables
kdissect diff old.html new.html              compare two
"""


@click.command(help=_HELP)
@FILES
@MORE_FILES
@click.option(
    "-T", "form", type=click.Choice(("html", "ndjson")), default="html", help="A page, or its tables as rows."
)
@filter_options
@click.option("--state", metavar="FILE", help="Add this capture to the counts of earlier ones in this file.")
@PORTS
@key_options
@OUTPUT_FILE
@click.option("-q", "--quiet", is_flag=True, help="Print no progress.")
@jobs_option
def command(**given: Any) -> int:
    """Make a report."""
    paths = captures_of(given)
    if not paths and given["state"] is None:
        raise click.UsageError(
            "no capture is given: name a file, or - for standard input", click.get_current_context()
        )
    refuse_same(given["output"], given["state"], "--state")
    return _ReportCommand(paths, given).run()


class _ReportCommand:
    """One run."""

    def __init__(self, paths: tuple[str, ...], given: dict[str, Any]) -> None:
        self._paths = paths
        self._given = given

    def run(self) -> int:
        kept = self._kept()
        if kept is not None:
            with open_output(self._given["output"], self._paths) as file:
                try:
                    self._write(file, kept)
                except (ArithmeticError, LookupError, TypeError, ValueError):  # a forged file
                    raise Unreadable(
                        f"{self._paths[0]}: the tables of this report contradict each other"
                    ) from None
            return DONE
        folding: Folding[Judge] = Folding(self._given, self._paths, whole_judge)
        path = self._given["state"]
        state = None if path is None else load(path)

        def finish(file: BinaryIO, reading: Reading) -> None:
            judge = folding.counted
            if state is not None and not reading.is_interrupted:
                state.add_capture(judge)
                judge = state
            self._write(file, judge.report(folding.config.thresholds, folding.config.ignored))
            if path is not None and not reading.is_interrupted:
                save(path, judge)

        reading, _ = folding.run(finish)
        return reading.exit_code(False, False, True) if reading.is_damaged else DONE

    def _kept(self) -> CaptureReport | None:
        """The report in a file that is a report or a state instead of a capture."""
        if not self._paths:
            found = kept_report(self._given["state"], self._given)
            if found is None:
                load(self._given["state"])  # it reports what is wrong with the file, if it exists
                raise Wrong(f"--state {self._given['state']}: there is no such file, and no capture is given")
            return found
        known = [kept for path in self._paths if (kept := kept_report(path, self._given)) is not None]
        if known and (len(self._paths) > 1 or self._given["state"] is not None):
            raise Wrong(
                "a report or a state cannot be combined with other input: give it alone, or give captures"
            )
        return known[0] if known else None

    def _write(self, file: BinaryIO, report: CaptureReport) -> None:
        if self._given["form"] == "html":
            files = self._paths or (self._given["state"],)
            file.write(
                report_page(
                    report, ReportOptions(tuple(map(os.path.basename, files)), self._arguments())
                ).encode()
            )
            return
        out = TablesOutput(file, self._given["output"], "ndjson", len(report.tables) + 1, PLAIN, Clock())
        out.write(FINDINGS.name, FINDINGS, list(report.findings))
        for text, rows in report.tables.items():
            out.write(text, STATISTICS[text.partition(",")[0]]._replace(name=text), rows)

    def _arguments(self) -> tuple[str, ...]:
        """The arguments of a command that reads the same input."""
        options = (("-d", "decode_as"), ("--keylog", "key_logs"), ("--rsa-key", "rsa_keys"))
        given = [word for option, name in options for value in self._given[name] for word in (option, value)]
        return (*self._paths, *given)
