"""``kdissect stats``: captures → statistics."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import Any, BinaryIO

import click

from kdissect.analysis.catalogue import STATISTICS as NAMES
from kdissect.analysis.catalogue import statistic
from kdissect.analysis.fold import Statistic
from kdissect.analysis.together import Together
from kdissect.cli.completing import a_column_of_statistics, a_statistic
from kdissect.cli.config import load_config
from kdissect.cli.counts import Counts, count
from kdissect.cli.errors import Wrong, complain
from kdissect.cli.filtering import chooser_of, filter_options
from kdissect.cli.formats import names_of, see_that_it_can_be_written, writer_of
from kdissect.cli.inputs import read_twice
from kdissect.cli.jobs import jobs_of, jobs_option
from kdissect.cli.keys import key_options, keys_of
from kdissect.cli.output import TextOutput, inputs_of, open_output
from kdissect.cli.reading import Reading
from kdissect.cli.showing import ports_of
from kdissect.present.columns import Column, Table
from kdissect.present.form import TIMES, Clock, plural
from kdissect.present.nearest import nearest
from kdissect.present.options import Options
from kdissect.present.statistics import STATISTICS
from kdissect.present.statistics_text import table_lines
from kdissect.present.tables import FORMATS

_WIDTH = max(map(len, NAMES)) + 2
_HELP = f"""Tables of facts: response times, traffic, groups, connections, clients, errors, and more.

\b
{chr(10).join(f"{name:<{_WIDTH}}{each.about}" for name, each in NAMES.items())}

With -Y FILTER only exchanges that the filter shows are counted, and connections that have one.

kdissect fields lists the columns. Several FILEs are one capture.
"""


@click.command(help=_HELP)
@click.argument("files", nargs=-1, metavar="FILE… | -")
@click.option("-r", "more_files", multiple=True, metavar="FILE", help="A capture, as tshark has it.")
@click.option(
    "-z",
    "tables",
    multiple=True,
    required=True,
    metavar="TABLE",
    shell_complete=a_statistic,
    help=f"{', '.join(NAMES)}; srt,broker or srt,client,client_id; errors,group; io,100ms. "
    "May be given often.",
)
@click.option(
    "-T",
    "form",
    type=click.Choice(("table", *FORMATS)),
    default="table",
    help="How it prints; several tables go into table and ndjson only.",
)
@filter_options
@click.option(
    "-e",
    "fields",
    multiple=True,
    metavar="FIELD",
    shell_complete=a_column_of_statistics,
    help="Only this column; may be given often.",
)
@click.option(
    "-t", "clock", type=click.Choice(tuple(TIMES)), help="Times in a table, as those of read; r by default."
)
@click.option("-d", "decode_as", multiple=True, metavar="tcp.port==N,kafka", help="Take a port for Kafka's.")
@key_options
@click.option(
    "-o", "output", metavar="FILE", help="Write there instead of stdout; a file of that name is replaced."
)
@click.option("--strict", is_flag=True, help="Exit code 4 if there are faults.")
@click.option("--exit-status", is_flag=True, help="Exit code 1 if no table has a row.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no closing line.")
@jobs_option
def command(**given: Any) -> int:
    """Print statistics of captures."""
    paths = (*given["more_files"], *given["files"])
    if not paths:
        raise click.UsageError(
            "no capture is given: name a file, or - for standard input", click.get_current_context()
        )
    return _Stats(paths, given).run()


class _Stats:
    """One run of the command."""

    def __init__(self, paths: tuple[str, ...], given: dict[str, Any]) -> None:
        self._paths = paths
        self._given = given
        self._config = load_config()
        self._options = Options(limits=self._config.limits, shown_fields=self._config.shown_fields)
        self._ports = self._config.ports | ports_of(given["decode_as"])
        self._form: str = given["form"]
        self._asked = [self._statistic(text) for text in given["tables"]]
        if len(self._asked) > 1 and self._form not in ("table", "ndjson"):
            raise Wrong(f"-T {self._form} has room for one table: give one -z, or -T ndjson")
        see_that_it_can_be_written(self._form, given["output"])
        self._tables = [self._columns(name) for _, name, _ in self._asked]
        self._chooser = chooser_of(
            given["filter"], given["slow"], "exchanges", self._options, self._config.slow_ms
        )
        if self._chooser is not None:
            self._chooser.refuse_to_judge(paths)
        self._jobs = jobs_of(given, paths, is_dear=self._chooser is not None and not self._chooser.is_cheap)

    def _statistic(self, text: str) -> tuple[str, str, Statistic]:
        """What was asked for, the name of its table, and the fold."""
        try:
            return text, *statistic(text, self._config.limits)
        except LookupError:
            hint = nearest(text.partition(",")[0], NAMES) or f"; there are {', '.join(NAMES)}"
            raise Wrong(f"-z {text}: there is no such table{hint}") from None
        except ValueError as error:
            raise Wrong(f"-z {error}") from None

    def _columns(self, name: str) -> Table:
        table = STATISTICS[name]
        names = names_of(self._given["fields"])
        try:
            return table.select(names) if names else table
        except LookupError as error:
            raise Wrong(f"-e: {error.args[0]} (kdissect fields lists them)") from None

    def run(self) -> int:
        given = self._given
        talks = sys.stderr.isatty() and not given["quiet"]
        must_learn = self._chooser is not None and self._chooser.must_learn
        with (
            read_twice(self._paths, must_learn) as paths,
            closing(self._reading(paths, talks)) as reading,
        ):
            reading.open()
            with open_output(given["output"], inputs_of(given)) as file:
                if self._chooser is not None and must_learn:
                    self._chooser.learn(reading, names=False)
                try:
                    self._count(reading)
                except KeyboardInterrupt:
                    if reading.is_interrupted:  # else it was pressed twice
                        self._print(file, reading)
                    raise
                rows = self._print(file, reading)
        return reading.exit_code(talks, given["strict"], rows > 0 or not given["exit_status"])

    def _reading(self, paths: tuple[str, ...], talks: bool) -> Reading:
        return Reading(
            paths,
            self._options,
            self._ports,
            self._config.topics,
            progress=talks,
            count_faults=talks or self._given["strict"],
            keys=keys_of(self._given, self._config.limits),
        )

    def _count(self, reading: Reading) -> None:
        """Feed the statistics."""
        limits = self._config.limits

        def new() -> Together:
            return Together(statistic(text, limits)[1] for text, _, _ in self._asked)

        counted = Together(fold for _, _, fold in self._asked)
        count(reading, Counts(reading, new, counted, limits, self._chooser), self._jobs)

    def _print(self, file: BinaryIO, reading: Reading) -> int:
        """Print the tables; gives how many rows they have."""
        count = 0
        for at, ((text, name, fold), table) in enumerate(zip(self._asked, self._tables, strict=True)):
            rows = fold.result()
            count += len(rows)
            if self._form == "table":
                output = TextOutput(file, self._given["output"])
                if len(self._asked) > 1:
                    output.line(("" if at == 0 else "\n") + text)
                clock = Clock(self._given["clock"] or "r", reading.first_ns)
                whole = bool(self._given["fields"])
                for line in table_lines(table, rows, self._options, clock, whole, output.room):
                    output.line(line)
            else:
                writer = writer_of(self._form, self._titled(name, table), file, self._options)
                for row in rows:
                    writer.write(row)
                writer.close()
            if fold.left_out:
                complain(
                    f"{text}: more than {self._config.limits.rows:,} rows, the limit; "
                    f"{plural(fold.left_out, 'count')} for others left out"
                )
        return count

    def _titled(self, name: str, table: Table) -> Table:
        """Where rows of several tables stand below each other, each says which it is of."""
        if len(self._asked) == 1:
            return table
        return Table(
            name, (Column("table", "text", "the table", lambda _row, _options: name), *table.columns)
        )
