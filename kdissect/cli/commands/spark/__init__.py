"""``kdissect spark``: the pipeline on Spark. Its commands are modules beside this one."""

from __future__ import annotations

import click

from kdissect.cli.commands.spark import batch, pack, report, runs, stats, stream
from kdissect.cli.group import HelpfulGroup


@click.group(cls=HelpfulGroup)
def command() -> None:
    """Many captures → tables, on Spark: on this machine or on a cluster."""


for each in (batch, stream, stats, report, runs, pack):
    command.add_command(each.command)
