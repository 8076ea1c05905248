"""``kdissect diff``: two captures, states or reports → the changes."""

from __future__ import annotations

from typing import Any

import click

from kdissect.cli.compared_screens import is_for_screens, show
from kdissect.cli.errors import Wrong, complain
from kdissect.cli.exit_codes import DONE, NOTHING_MATCHED
from kdissect.cli.filters import filter_options
from kdissect.cli.formats import check_writable, writer_of
from kdissect.cli.inputs import PORTS
from kdissect.cli.jobs import jobs_option
from kdissect.cli.output import OUTPUT_FILE, QUIET, TextOutput, open_output
from kdissect.cli.report_inputs import side_of
from kdissect.cli.tls_keys import key_options
from kdissect.insight.diff import differences
from kdissect.insight.difference import WORSE
from kdissect.present.diffs import DIFF, diff_lines, summary
from kdissect.present.html.diff import diff_page
from kdissect.present.options import PLAIN

_HELP = """What changed between two captures: findings, rates, times, errors, versions, sizes.

BEFORE and AFTER are captures, reports (kdissect report) or states (--state). Only significant changes
are printed: larger than chance, and large enough to matter. The rest is counted.

On a terminal, without -T, -o, --all, --fail-on and -q, the screens show both sides; Enter leads to the
exchanges of either.
"""


@click.command(help=_HELP)
@click.argument("before", metavar="BEFORE")
@click.argument("after", metavar="AFTER")
@click.option(
    "-T",
    "form",
    type=click.Choice(("table", "ndjson", "csv", "tsv", "parquet", "arrow", "html")),
    help="Output format. Default: the screens on a terminal, elsewhere a table.",
)
@click.option("--all", "all_of_them", is_flag=True, help="Print all that was compared.")
@click.option(
    "--fail-on", type=click.Choice((WORSE,)), help="Exit code 1 if something significant is worse in AFTER."
)
@filter_options
@PORTS
@key_options
@OUTPUT_FILE
@QUIET
@jobs_option
def command(**given: Any) -> int:
    """Compare two captures."""
    before, after = given["before"], given["after"]
    if before == after == "-":
        raise Wrong("BEFORE and AFTER are both standard input: name a file for one of them")
    form = given["form"] or "table"
    check_writable(form, given["output"])
    sides = side_of(before, given), side_of(after, given)
    found = differences(sides[0].report, sides[1].report)
    if is_for_screens(given):
        return show(sides, found, given) or max(side.code for side in sides)
    told = [each for each in found if each.significant or given["all_of_them"]]
    with open_output(given["output"], (before, after)) as file:
        output = TextOutput(file, given["output"])
        if form == "table":
            for line in diff_lines(told, output.room):
                output.line(line)
        elif form == "html":
            output.write(diff_page(before, after, told, summary(found)).encode())
        else:
            writer = writer_of(form, DIFF, file, PLAIN)
            for each in told:
                writer.write(each)
            writer.close()
    if not given["quiet"]:
        complain(summary(found))
    is_worse = any(each.significant and each.verdict == WORSE for each in found)
    damage = max(side.code for side in sides)
    return damage or (NOTHING_MATCHED if given["fail_on"] and is_worse else DONE)
