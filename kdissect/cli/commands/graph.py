"""``kdissect graph``: captures → which clients, topics, groups and brokers exchange what, as text that other
programs draw."""

from __future__ import annotations

from typing import Any, BinaryIO

import click

from kdissect.analysis.graph import Graph
from kdissect.cli.exit_codes import STRICT
from kdissect.cli.filters import filter_options
from kdissect.cli.folding import TableFolding
from kdissect.cli.inputs import FILES, MORE_FILES, PORTS
from kdissect.cli.jobs import jobs_option
from kdissect.cli.output import OUTPUT_FILE, QUIET, TextOutput
from kdissect.cli.reading import Reading
from kdissect.cli.tls_keys import key_options
from kdissect.present.graphs import FORMS


@click.command()
@FILES
@MORE_FILES
@click.option(
    "-T", "form", type=click.Choice(tuple(FORMS)), default="dot", help="Output format; dot is for Graphviz."
)
@filter_options
@PORTS
@key_options
@OUTPUT_FILE
@STRICT
@click.option("--exit-status", is_flag=True, help="Exit code 1 if there is nothing to draw.")
@QUIET
@jobs_option
def command(**given: Any) -> int:
    """Draw clients, topics, groups and brokers of captures, and what flows between them.

    \b
    kdissect graph FILE | dot -Tsvg > graph.svg    a picture
    kdissect stats -z graph FILE                   the same as a table
    """
    folding = TableFolding(given, lambda limits: [Graph(limits)])

    def print_rows(file: BinaryIO, _: Reading) -> int:
        (graph,) = folding.statistics
        rows = graph.result()
        TextOutput(file, given["output"]).lines(FORMS[given["form"]](rows))
        folding.complain_of_left_out(Graph.name, graph)
        return len(rows)

    return folding.print(print_rows)
