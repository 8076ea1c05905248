"""``kdissect client``: requests of any version to a broker, made with the analyser's own encoder.

Each command is a module beside this one. They share ``asking`` (a run of a command), ``connecting`` (the
broker and the login), ``drafts`` (records to produce) and ``replay`` (requests that are sent again).
"""

from __future__ import annotations

import click

from kdissect.cli.commands.client import conformance, fetch, metadata, produce, send
from kdissect.cli.group import HelpfulGroup


@click.group(cls=HelpfulGroup)
def command() -> None:
    """Send requests to a broker, in any version, and see each exchange to the last byte.

    ApiVersions negotiates versions, unless --api-version forces one. The exit code is 6 if the broker fails:
    it is absent, does not answer, refuses, or is not a broker.
    """


for each in (metadata, fetch, produce, send, conformance):
    command.add_command(each.command)
