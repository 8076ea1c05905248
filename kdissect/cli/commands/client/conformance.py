"""``kdissect client conformance``: whether a broker answers every version as the schema defines."""

from __future__ import annotations

from typing import Any

import click

from kdissect.cli.commands.client.asking import Asking, packets_option
from kdissect.cli.commands.client.connecting import connection_options
from kdissect.cli.errors import Wrong, complain
from kdissect.cli.exit_codes import DONE, OTHER_SIDE_FAILED
from kdissect.cli.formats import check_writable, writer_of
from kdissect.cli.output import TextOutput, inputs_of, open_output
from kdissect.client.cluster import Cluster
from kdissect.client.conformance import BrokerCheck
from kdissect.client.conformance import conformance as checks_of
from kdissect.client.loop import now_ns
from kdissect.present.conformance import CHECKS
from kdissect.present.form import Clock, plural
from kdissect.present.options import Options
from kdissect.present.statistics_text import table_lines
from kdissect.present.tables import FORMATS


@click.command("conformance")
@connection_options
@click.option(
    "-T",
    "form",
    type=click.Choice(("table", *FORMATS)),
    default="table",
    show_default=True,
    help="Output format.",
)
@click.option("-o", "output", metavar="FILE", help="Write to this file instead of stdout.")
@click.option("--wrong", "only_wrong", is_flag=True, help="Print only what is wrong.")
@click.option(
    "--changing", is_flag=True, help="Also send requests that may change data, with default values."
)
@click.option(
    "--yes", is_flag=True, help="Confirm --changing. Do not use it on a broker that somebody needs."
)
@packets_option
def command(**given: Any) -> int:
    """Ask every version that a broker advertises, and check each answer against the schema.

    Only requests that change nothing are sent. The exit code is 6 if something is wrong.
    """
    if given["changing"] and not given["yes"]:
        raise Wrong(
            "--changing sends requests that may change data: if this broker is only for tests, give --yes too"
        )
    check_writable(given["form"], given["output"])
    asking = Asking(given, None)
    checks: list[BrokerCheck] = []
    rows: list[Any] = checks
    made = failed = 0
    options = Options()
    with open_output(given["output"], inputs_of(given)) as file:
        writer = None if given["form"] == "table" else writer_of(given["form"], CHECKS, file, options)

        async def flow(cluster: Cluster) -> None:
            nonlocal made, failed
            async for check in checks_of(cluster, given["changing"]):
                made += 1
                failed += not check.is_right
                if check.is_right and given["only_wrong"]:
                    continue
                checks.append(check)
                if writer is not None:
                    writer.write(check)
                    file.flush()

        try:
            asking.run(flow)
        finally:
            if writer is not None:
                writer.close()
            elif checks:
                output = TextOutput(file, given["output"])
                for line in table_lines(CHECKS, rows, options, Clock("r", now_ns())):
                    output.line(line)
    if failed:
        complain(f"{plural(failed, 'check')} of {made:,} failed")
    return OTHER_SIDE_FAILED if failed else DONE
