"""``kdissect spark runs``."""

from __future__ import annotations

import os
from typing import Any

import click

from kdissect.cli.errors import Unreadable, Wrong
from kdissect.cli.exit_codes import DONE
from kdissect.cli.formats import check_writable
from kdissect.cli.output import OUTPUT_FILE, open_output
from kdissect.cli.spark_sessions import refuse_no_tables
from kdissect.cli.statistics_output import TablesOutput
from kdissect.present.form import Clock
from kdissect.present.options import PLAIN
from kdissect.present.tables import FORMATS
from kdissect.spark.runs import FOLDER, RUNS, Runs, RunsError
from kdissect.spark.storage import is_remote


@click.command("runs")
@click.argument("folder", metavar="DIR")
@click.option("-T", "form", type=click.Choice(("table", *FORMATS)), default="table", help="Output format.")
@OUTPUT_FILE
def command(**given: Any) -> int:
    """List the runs of batch --append: what each run read and wrote.

    DIR is the folder of the tables, or that of --runs.
    """
    folder = given["folder"]
    if is_remote(folder):
        raise Wrong(f"{folder}: is elsewhere; name the folder of --runs, which is on this machine")
    inner = os.path.join(folder, FOLDER)
    for each in (folder, inner) if os.path.lexists(inner) else (folder,):
        refuse_no_tables(each, each)
    runs = Runs(inner if os.path.isdir(inner) else folder)
    check_writable(given["form"], given["output"], needs_pandas=True)
    try:
        rows = runs.rows()
    except RunsError as error:
        raise Wrong(str(error)) from None
    if not rows:
        raise Unreadable(f"{folder}: has no runs; kdissect spark batch … --append --out {folder} makes one")
    with open_output(given["output"]) as file:
        out = TablesOutput(file, given["output"], given["form"], 1, PLAIN, Clock("u"))
        out.write(RUNS.name, RUNS, rows, whole=True)
    return DONE
