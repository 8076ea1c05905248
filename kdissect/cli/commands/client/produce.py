"""``kdissect client produce``: records from arguments, a file or stdin → a topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import click

from kdissect.cli.commands.client.asking import Asking, output_options
from kdissect.cli.commands.client.connecting import INT32_MAX, api_version_option, connection_options
from kdissect.cli.commands.client.drafts import Drafts, headers_from
from kdissect.cli.errors import Wrong, complain
from kdissect.cli.exit_codes import DONE
from kdissect.client import produce as producing
from kdissect.client.cluster import Cluster
from kdissect.client.errors import AskingError, OtherSideError
from kdissect.client.loop import now_ns
from kdissect.present.form import plural
from kdissect.record.compression import CODECS

_ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}
_MOST_BYTES = 1 << 20
"""The most bytes of one request, roughly."""


@click.command("produce")
@connection_options
@click.argument("topic")
@click.argument("file", required=False, metavar="[FILE | -]")
@click.option(
    "-p",
    "--partition",
    type=click.IntRange(0, INT32_MAX),
    metavar="N",
    help="Partition to write to. Default: by the key, as Kafka does.",
)
@click.option("--key", metavar="TEXT", help="Key of the record of --value.")
@click.option("--value", metavar="TEXT", help="Write one record with this value, instead of FILE.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="Header of every record.")
@click.option(
    "--timestamp",
    type=click.IntRange(-1, (1 << 63) - 1),
    metavar="MS",
    help="Timestamp of every record. Default: now, or what NDJSON says.",
)
@click.option(
    "--input",
    "input_form",
    type=click.Choice(("lines", "ndjson")),
    default="lines",
    show_default=True,
    help="Form of FILE: one value per line, or one row of the table records per line.",
)
@click.option("--key-separator", metavar="TEXT", help="Separator between key and value in a line.")
@click.option(
    "--codec",
    type=click.Choice(CODECS),
    default="none",
    show_default=True,
    help="Compression of the batches.",
)
@click.option(
    "--acks",
    type=click.Choice(tuple(_ACKS)),
    default="all",
    show_default=True,
    help="Replicas that must have the records before the broker answers: all in sync (-1) or the "
    "leader (1). 0: no answer.",
)
@click.option("--message-format", type=click.IntRange(0, 2), metavar="0|1|2", help="Magic of the records.")
@api_version_option("Produce")
@click.option(
    "--batch",
    type=click.IntRange(1),
    default=1_000,
    show_default=True,
    metavar="N",
    help="Most records in one request.",
)
@click.option("--create", is_flag=True, help="Let the broker create the topic if it is missing.")
@output_options
def command(**given: Any) -> int:
    """Write records to TOPIC: those of FILE, of stdin, or the one of --value."""
    manner = _manner(given)
    asking = Asking(given, "text")
    drafts = _drafts(given)
    if isinstance(drafts, Drafts) and drafts.can_be_checked:
        drafts.check()
        if not drafts.records:
            complain(f"{drafts.summary()}: nothing is sent")
            return DONE
    written: list[producing.PartitionOutcome] = []
    is_over = False

    async def flow(cluster: Cluster) -> None:
        nonlocal is_over
        topic = await cluster.topic(given["topic"], create=given["create"])
        for group in producing.batches(_with_options(drafts, given), given["batch"], _MOST_BYTES):
            answers = producing.produce(cluster, topic, group, manner, now_ns() // 1_000_000)
            async for exchange, counts in answers:
                asking.show(exchange)
                outcome = producing.outcome(exchange, topic.name, counts)
                written.extend(outcome.written)
                if outcome.refusal is not None:
                    raise OtherSideError(outcome.refusal)
        is_over = True

    try:
        code = asking.run(flow)
    finally:
        # For written records, only these lines tell where a run broke off.
        if asking.shows_summary or not is_over:
            for each in producing.summed(written):
                at = "" if each.base_offset is None else f", from offset {each.base_offset}"
                complain(f"{each.topic}-{each.partition}: {plural(each.records, 'record')}{at}")
    if isinstance(drafts, Drafts) and (not drafts.records or drafts.left_out):
        complain(drafts.summary() + (": nothing was sent" if not drafts.records else ""))
    return code


def _manner(given: dict[str, Any]) -> producing.ProduceOptions:
    """The options of produce.

    :raises Wrong: no version of Produce supports them.
    """
    manner = producing.ProduceOptions(
        _ACKS[given["acks"]],
        CODECS.index(given["codec"]),
        given["message_format"],
        given["api_version"],
        int(given["timeout"] * 1_000),
    )
    try:
        producing.bounds(manner)
        if manner.api_version is not None:
            producing.check(manner, manner.api_version)
    except AskingError as error:
        raise Wrong(str(error)) from None
    return manner


def _drafts(given: dict[str, Any]) -> Drafts | list[producing.Draft]:
    """The records to produce.

    :raises Wrong: options contradict each other.
    """
    headers_from(given["headers"])
    separator = given["key_separator"]
    if given["key"] is not None and given["value"] is None:
        raise Wrong("--key needs --value; for keys in FILE give --key-separator or --input ndjson")
    if given["value"] is not None:
        if given["file"] is not None:
            raise Wrong("--value and FILE both contain records: give only one of them")
        if separator is not None or given["input_form"] == "ndjson":
            raise Wrong("--input and --key-separator describe FILE: leave them out with --value")
        key, value = (
            None if text is None else text.encode("utf-8", "surrogateescape")
            for text in (given["key"], given["value"])
        )
        return [producing.Draft(key, value)]
    if separator is not None and given["input_form"] == "ndjson":
        raise Wrong("--key-separator needs --input lines: NDJSON rows have their own keys")
    if separator == "":
        raise Wrong("--key-separator is empty: give at least one character")
    return Drafts(given["file"] or "-", given["input_form"], separator, given["bytes_form"])


def _with_options(drafts: Iterable[producing.Draft], given: dict[str, Any]) -> Iterator[producing.Draft]:
    """The records, with the values that options set for every record."""
    headers = headers_from(given["headers"])
    for draft in drafts:
        yield draft._replace(
            headers=draft.headers + headers,
            timestamp=draft.timestamp if given["timestamp"] is None else given["timestamp"],
            partition=draft.partition if given["partition"] is None else given["partition"],
        )
