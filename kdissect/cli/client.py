"""``kdissect client``: requests of any version to a broker, made with the analyser's own encoder."""

from __future__ import annotations

from typing import Any

import click

from kdissect.cli import DONE, OTHER_SIDE_FAILED
from kdissect.cli.asking import Asking, output_options, packets_option
from kdissect.cli.connecting import api_version_option, connection_options
from kdissect.cli.errors import Wrong, complain
from kdissect.cli.fetching import fetch
from kdissect.cli.formats import see_that_it_can_be_written, writer_of
from kdissect.cli.group import HelpfulGroup
from kdissect.cli.output import TextOutput, inputs_of, open_output
from kdissect.cli.producing import produce
from kdissect.cli.sending import send
from kdissect.client.cluster import Cluster, topics_of
from kdissect.client.errors import AskingError, OtherSideError
from kdissect.client.loop import now_ns
from kdissect.client.versions import request_struct
from kdissect.present.conformance import CHECKS
from kdissect.present.form import Clock, plural
from kdissect.present.options import Options
from kdissect.present.statistics_text import table_lines
from kdissect.present.tables import FORMATS
from kdissect.protocol.apis import METADATA
from kdissect.protocol.errors import error_name


@click.group(cls=HelpfulGroup)
def command() -> None:
    """Ask a broker exactly one thing, in exactly one version, and see the exchange to the last byte.

    Versions are negotiated by ApiVersions unless --api-version forces one. The exit code is 6 where the
    broker fails: it is not there, does not answer, refuses, or is none.
    """


for each in (send, produce, fetch):
    command.add_command(each)


@command.command()
@connection_options
@click.argument("topics", nargs=-1, metavar="[TOPIC…]")
@api_version_option("Metadata")
@click.option("--create", is_flag=True, help="Let the broker make topics that are not there.")
@output_options
def metadata(**given: Any) -> int:
    """The brokers, and these topics, or all of them."""
    if given["api_version"] is not None:
        try:
            request_struct(METADATA, given["api_version"])
        except AskingError as error:
            raise Wrong(str(error)) from None
    asking = Asking(given, "tree")
    names = list(given["topics"]) or None

    async def flow(cluster: Cluster) -> None:
        exchange = await cluster.metadata(names, version=given["api_version"], create=given["create"])
        asking.show(exchange)
        for topic in topics_of(exchange).values():
            if topic.error:
                raise OtherSideError(f"topic {topic.name}: {error_name(topic.error)}")

    return asking.run(flow)


@command.command()
@connection_options
@click.option(
    "-T",
    "form",
    type=click.Choice(("table", *FORMATS)),
    default="table",
    show_default=True,
    help="How it prints.",
)
@click.option("-o", "output", metavar="FILE", help="Write there instead of stdout.")
@click.option("--wrong", "only_wrong", is_flag=True, help="Only what is not right.")
@click.option("--changing", is_flag=True, help="Also requests that may change data, with default values.")
@click.option("--yes", is_flag=True, help="Needed for --changing: not on a broker that somebody needs.")
@packets_option
def conformance(**given: Any) -> int:
    """Ask every version that a broker advertises, and see whether it answers as the schema says.

    Only requests that change nothing are sent. The exit code is 6 where something is wrong.
    """
    if given["changing"] and not given["yes"]:
        raise Wrong("--changing sends requests that may change data: --yes says that this broker is for it")
    see_that_it_can_be_written(given["form"], given["output"])
    from kdissect.client.conformance import Check
    from kdissect.client.conformance import conformance as checks_of

    asking = Asking(given, None)
    checks: list[Check] = []
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
        complain(f"{plural(failed, 'check')} of {made:,} not right")
    return OTHER_SIDE_FAILED if failed else DONE
