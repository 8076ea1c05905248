"""``kdissect graph``: captures → who exchanges what with whom, as text that other programs draw."""

from __future__ import annotations

from typing import Any, BinaryIO

import click

from kdissect.analysis.graph import Graph
from kdissect.cli.filters import filter_options
from kdissect.cli.folding import TableFolding
from kdissect.cli.jobs import jobs_option
from kdissect.cli.output import TextOutput
from kdissect.cli.reading import Reading
from kdissect.cli.tls_keys import key_options
from kdissect.present.graphs import FORMS


@click.command()
@click.argument("files", nargs=-1, metavar="FILE… | -")
@click.option("-r", "more_files", multiple=True, metavar="FILE", help="A capture, as with tshark.")
@click.option(
    "-T", "form", type=click.Choice(tuple(FORMS)), default="dot", help="Output format; dot is for Graphviz."
)
@filter_options
@click.option(
    "-d", "decode_as", multiple=True, metavar="tcp.port==N,kafka", help="Treat traffic of this port as Kafka."
)
@key_options
@click.option(
    "-o", "output", metavar="FILE", help="Write to this file instead of stdout. An existing file is replaced."
)
@click.option("--strict", is_flag=True, help="Exit code 4 if there are faults.")
@click.option("--exit-status", is_flag=True, help="Exit code 1 if there is nothing to draw.")
@click.option("-q", "--quiet", is_flag=True, help="Print no progress and no closing line.")
@jobs_option
def command(**given: Any) -> int:
    """Draw clients, topics, groups and brokers of captures, and what flows between them.

    \b
    kdissect graph FILE | dot -Tsvg > graph.svg    a picture
    kdissect stats -z graph FILE                   the same as a table
    """
    folding = TableFolding(given, lambda limits: [Graph(limits)])
    (graph,) = folding.statistics

    def print_rows(file: BinaryIO, _: Reading) -> int:
        rows = graph.result()
        TextOutput(file, given["output"]).lines(FORMS[given["form"]](rows))
        folding.complain_of_left_out(Graph.name, graph)
        return len(rows)

    return folding.print(print_rows)
