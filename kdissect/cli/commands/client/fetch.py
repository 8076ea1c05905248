"""``kdissect client fetch``: the records of a topic, from an offset or a time to the end, or without end."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from kdissect.cli.commands.client.asking import Asking, output_options
from kdissect.cli.commands.client.connecting import INT32_MAX, api_version_option, connection_options
from kdissect.cli.errors import Wrong, complain
from kdissect.cli.exit_codes import NOTHING_MATCHED
from kdissect.cli.spans import SpanOption
from kdissect.client import fetch as fetching
from kdissect.client.cluster import Cluster
from kdissect.client.errors import AskingError
from kdissect.client.offsets import EARLIEST, LATEST, FetchStart


@click.command("fetch")
@connection_options
@click.argument("topic")
@click.option(
    "-p",
    "--partition",
    "partitions",
    type=click.IntRange(0, INT32_MAX),
    multiple=True,
    metavar="N",
    help="Partition to read. Default: all.",
)
@click.option(
    "--from",
    "start",
    default="earliest",
    show_default=True,
    metavar="OFFSET|TIME",
    help="Where to begin: an offset, earliest, latest, or a time: 2026-05-01T12:00:00Z, @1777636800000 (ms).",
)
@click.option("-c", "count", type=click.IntRange(1), metavar="N", help="Stop after N rows.")
@click.option("--follow", is_flag=True, help="Go on with new records.")
@click.option(
    "--isolation",
    type=click.Choice(("read_uncommitted", "read_committed")),
    default="read_uncommitted",
    show_default=True,
    help="Whether to read records of open and aborted transactions.",
)
@click.option(
    "--max-bytes",
    type=click.IntRange(1, INT32_MAX),
    default=1 << 20,
    show_default=True,
    metavar="N",
    help="Most bytes of a partition in one answer.",
)
@click.option(
    "--max-wait",
    type=SpanOption("ms", 0, INT32_MAX, whole=True),
    default=500,
    show_default=True,
    metavar="TIME",
    help="How long the broker may wait for data, in ms: 500, 2s.",
)
@api_version_option("Fetch")
@click.option("--exit-status", is_flag=True, help="Exit code 1 if nothing is shown.")
@output_options
def command(**given: Any) -> int:
    """Print the records of TOPIC, from its beginning to its current end."""
    if given["max_wait"] >= given["timeout"] * 1_000:
        raise Wrong(
            f"--max-wait {given['max_wait']} is longer than --timeout: the response could not come in time"
        )
    manner = fetching.FetchOptions(
        _start(given["start"]),
        given["follow"],
        given["isolation"] == "read_committed",
        max_wait_ms=given["max_wait"],
        partition_max_bytes=given["max_bytes"],
        api_version=given["api_version"],
    )
    if manner.api_version is not None:
        try:
            fetching.check(manner, manner.api_version)
        except AskingError as error:
            raise Wrong(str(error)) from None
    asking = Asking(given, "records")

    async def flow(cluster: Cluster) -> None:
        topic = await cluster.topic(given["topic"])
        indexes = list(given["partitions"]) or [each.number for each in topic.partitions]
        leaders = await fetching.begin(cluster, topic, indexes, manner)
        answers = fetching.fetch(cluster, topic, leaders, manner, asking.options.limits)
        asked = 0
        async for exchange, wanted in answers:
            asked += 1
            left = None if given["count"] is None else given["count"] - asking.printed
            asking.show(exchange, _first(wanted, left))
            if given["count"] is not None and asking.printed >= given["count"]:
                return
        shown = asking.printed if asking.table == "records" else asked
        nothing = fetching.why_nothing(topic.name, leaders, manner.start.offset, shown)
        if nothing is not None:
            complain(nothing)

    code = asking.run(flow, ends_with_reader=True)
    return code or (NOTHING_MATCHED if given["exit_status"] and not asking.printed else code)


def _first(wanted: fetching.RequestedRecords, most: int | None) -> Any:
    """The function that keeps the requested records, and at most ``most`` of them."""
    kept = 0

    def keep(_: Any, row: Any) -> bool:
        nonlocal kept
        if (most is not None and kept >= most) or not wanted.has(row):
            return False
        kept += 1
        return True

    return keep


def _start(text: str) -> FetchStart:
    if text in ("earliest", "latest"):
        return FetchStart(None, EARLIEST if text == "earliest" else LATEST)
    if re.fullmatch(r"[0-9]{1,18}", text):
        return FetchStart(int(text), None)
    if re.fullmatch(r"@[0-9]{1,18}", text):
        return FetchStart(None, int(text[1:]))
    try:
        when = datetime.fromisoformat(text)
        when = when if when.tzinfo is not None else when.astimezone()
    except (ValueError, OverflowError, OSError):
        raise Wrong(
            f"--from {text}: an offset, earliest, latest, a date and time, or @MS is needed"
        ) from None
    since = (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    return FetchStart(None, max(since, 0))  # no record is older, and numbers below 0 are names of ends
