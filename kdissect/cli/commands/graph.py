"""``kdissect graph``: captures → who exchanges what with whom, as text that other programs draw."""

from __future__ import annotations

from typing import Any, BinaryIO

import click

from kdissect.analysis.fold import Statistic
from kdissect.analysis.graph import Graph
from kdissect.cli.filters import filter_options
from kdissect.cli.folding import Folding
from kdissect.cli.jobs import jobs_option
from kdissect.cli.output import TextOutput
from kdissect.cli.reading import Reading
from kdissect.cli.tls_keys import key_options
from kdissect.limits import Limits
from kdissect.present.graphs import FORMS


@click.command()
@click.argument("files", nargs=-1, metavar="FILE… | -")
@click.option("-r", "more_files", multiple=True, metavar="FILE", help="A capture, as tshark has it.")
@click.option(
    "-T", "form", type=click.Choice(tuple(FORMS)), default="dot", help="How it prints; dot is Graphviz's."
)
@filter_options
@click.option("-d", "decode_as", multiple=True, metavar="tcp.port==N,kafka", help="Take a port for Kafka's.")
@key_options
@click.option(
    "-o", "output", metavar="FILE", help="Write there instead of stdout; a file of that name is replaced."
)
@click.option("--strict", is_flag=True, help="Exit code 4 if there are faults.")
@click.option("--exit-status", is_flag=True, help="Exit code 1 if there is nothing to draw.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no closing line.")
@jobs_option
def command(**given: Any) -> int:
    """Draw clients, topics, groups and brokers of captures, and what flows between them.

    kdissect graph FILE | dot -Tsvg > graph.svg draws it. kdissect stats -z graph has the same as a table.
    """
    graph: list[Graph] = []

    def make(limits: Limits) -> list[Statistic]:
        graph.append(Graph(limits))
        return list(graph)

    folding = Folding(given, make)

    def print_rows(file: BinaryIO, _: Reading) -> int:
        rows = graph[0].result()
        TextOutput(file, given["output"]).lines(FORMS[given["form"]](rows))
        folding.complain_of_left_out(Graph.name, graph[0])
        return len(rows)

    return folding.run(print_rows)
