"""``kdissect client metadata``: the brokers and the topics."""

from __future__ import annotations

from typing import Any

import click

from kdissect.cli.commands.client.asking import Asking, output_options
from kdissect.cli.commands.client.connecting import api_version_option, connection_options
from kdissect.cli.errors import Wrong
from kdissect.client.cluster import Cluster, topics_of
from kdissect.client.errors import AskingError, OtherSideError
from kdissect.client.versions import request_struct
from kdissect.protocol.apis import METADATA
from kdissect.protocol.errors import error_name


@click.command("metadata")
@connection_options
@click.argument("topics", nargs=-1, metavar="[TOPIC…]")
@api_version_option("Metadata")
@click.option("--create", is_flag=True, help="Let the broker create missing topics.")
@output_options
def command(**given: Any) -> int:
    """Print the brokers, and these topics or all of them."""
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
