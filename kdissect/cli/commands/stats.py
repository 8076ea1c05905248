"""``kdissect stats``: captures → statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from kdissect.analysis.catalogue import STATISTICS as NAMES
from kdissect.analysis.fold import Statistic
from kdissect.cli.completing import a_column_of_statistics, a_statistic
from kdissect.cli.config import load_config
from kdissect.cli.errors import Wrong
from kdissect.cli.exit_codes import STRICT
from kdissect.cli.filters import filter_options
from kdissect.cli.folding import TableFolding
from kdissect.cli.formats import check_writable, names_of
from kdissect.cli.inputs import FILES, MORE_FILES, PORTS
from kdissect.cli.jobs import jobs_option
from kdissect.cli.output import OUTPUT_FILE, QUIET
from kdissect.cli.payloads import decoder_of, payload_options, report_faults
from kdissect.cli.reading import Reading
from kdissect.cli.statistics_output import TablesOutput, refuse_several
from kdissect.cli.tls_keys import key_options
from kdissect.limits import Limits
from kdissect.present.columns import Table
from kdissect.present.form import TIMES, Clock
from kdissect.present.statistics import STATISTICS, statistic_of
from kdissect.present.tables import FORMATS

if TYPE_CHECKING:
    from kdissect.analysis.payloads import Payloads
    from kdissect.payload.decoder import PayloadDecoder

_PAYLOADS = "payloads"
"""The table that needs a decoder."""
_ABOUT = "Tables of facts: response times, traffic, groups, connections, clients, errors, and more."
_HELP = """{about}

\b
{tables}

With -Y, kdissect counts only the exchanges that the filter selects, and their connections.

kdissect fields lists the columns. Several FILEs are one capture.
"""


class _CommandWithTables(click.Command):
    """Lists the tables in its help, and imports all of them only for it."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, NAMES)) + 2
        tables = "\n".join(f"{name:<{width}}{each.about}" for name, each in NAMES.items())
        self.help = _HELP.format(about=_ABOUT, tables=tables)
        super().format_help_text(ctx, formatter)


@click.command(cls=_CommandWithTables, help=_ABOUT)
@FILES
@MORE_FILES
@click.option(
    "-z",
    "tables",
    multiple=True,
    required=True,
    metavar="TABLE",
    shell_complete=a_statistic,
    help="A table of the list above, or its grouping: srt,broker; srt,client,client_id; errors,group; "
    "io,100ms. May be given often.",
)
@click.option(
    "-T",
    "form",
    type=click.Choice(("table", *FORMATS)),
    default="table",
    help="Output format. Several tables need table or ndjson.",
)
@filter_options
@click.option(
    "-e",
    "fields",
    multiple=True,
    metavar="FIELD",
    shell_complete=a_column_of_statistics,
    help="Print only this column. May be given often.",
)
@click.option(
    "-t", "clock", type=click.Choice(tuple(TIMES)), help="How times are shown, as with read -t. Default: r."
)
@PORTS
@key_options
@OUTPUT_FILE
@payload_options
@STRICT
@click.option("--exit-status", is_flag=True, help="Exit code 1 if no table has a row.")
@QUIET
@jobs_option
def command(**given: Any) -> int:
    """Print statistics of captures."""
    return _StatsCommand(given).run()


class _StatsCommand:
    """One run of the command."""

    def __init__(self, given: dict[str, Any]) -> None:
        self._given = given
        self._form: str = given["form"]
        self._decoder = self._chosen_decoder()
        self._folding = TableFolding(given, self._statistics)
        refuse_several(self._form, len(self._folding.statistics))
        check_writable(self._form, given["output"])
        self._tables = [self._columns(each.name) for each in self._folding.statistics]

    def _chosen_decoder(self) -> PayloadDecoder | None:
        """The decoder of keys and values, for tables that use them."""
        given = self._given
        if any(text.partition(",")[0].strip() == _PAYLOADS for text in given["tables"]):
            return decoder_of(given, load_config())
        if any(given[name] for name in ("schemas", "payload_rules", "registry", "registry_ca")):
            raise Wrong(f"--schemas, --registry and --decode-as need -z {_PAYLOADS} here")
        return None

    def _statistics(self, limits: Limits) -> list[Statistic]:
        return [self._statistic(text, limits) for text in self._given["tables"]]

    def _statistic(self, text: str, limits: Limits) -> Statistic:
        try:
            found = statistic_of(text, limits)
        except (LookupError, ValueError) as error:
            raise Wrong(f"-z {error.args[0]}") from None
        if found.name == _PAYLOADS and self._decoder is not None:
            cast("Payloads", found).use(self._decoder)
        return found

    def _columns(self, name: str) -> Table:
        table = STATISTICS[name]
        names = names_of(self._given["fields"])
        try:
            return table.select(names) if names else table
        except LookupError as error:
            raise Wrong(f"-e: {error.args[0]} (kdissect fields lists them)") from None

    def run(self) -> int:
        try:
            return self._folding.print(self._print)
        finally:
            report_faults(self._decoder)

    def _print(self, file: BinaryIO, reading: Reading) -> int:
        """Print the tables, and return the number of their rows."""
        options = self._folding.options
        clock = Clock(self._given["clock"] or "r", reading.first_ns)
        folds = zip(self._given["tables"], self._folding.statistics, self._tables, strict=True)
        out = TablesOutput(file, self._given["output"], self._form, len(self._tables), options, clock)
        for text, fold, table in folds:
            out.write(text, table, fold.result_rows(), whole=bool(self._given["fields"]))
            self._folding.complain_of_left_out(text, fold)
        return out.rows
