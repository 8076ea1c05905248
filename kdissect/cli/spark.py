"""``kdissect spark``: the pipeline on Spark. Its commands are in modules of their own."""

from __future__ import annotations

import click

from kdissect.cli.group import HelpfulGroup
from kdissect.cli.spark_batch import batch
from kdissect.cli.spark_report import report
from kdissect.cli.spark_stats import stats
from kdissect.cli.spark_stream import stream


@click.group(cls=HelpfulGroup, commands=[batch, stream, stats, report])
def command() -> None:
    """Many captures → tables, on Spark: on this machine or on a cluster."""
