"""``kdissect client``: requests of any version to a broker, made with the analyser's own encoder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click

from kdissect.cli import DONE, NOTHING_MATCHED, OTHER_SIDE_FAILED
from kdissect.cli.asking import Asking, output_options, packets_option
from kdissect.cli.connecting import connection_options
from kdissect.cli.drafts import drafts_from, headers_from
from kdissect.cli.errors import Wrong, complain
from kdissect.cli.formats import see_that_it_can_be_written, writer_of
from kdissect.cli.group import HelpfulGroup
from kdissect.cli.output import TextOutput, open_output
from kdissect.cli.sending import send
from kdissect.client import fetch as fetching
from kdissect.client import produce as producing
from kdissect.client.cluster import Cluster, topics_of
from kdissect.client.errors import AskingError, OtherSideError
from kdissect.client.io import now_ns
from kdissect.present.conformance import CHECKS
from kdissect.present.form import Clock, plural
from kdissect.present.options import Options
from kdissect.present.statistics_text import table_lines
from kdissect.present.tables import FORMATS
from kdissect.protocol.errors import error_name
from kdissect.record.compression import CODECS

_ACKS = {"all": -1, "-1": -1, "1": 1, "0": 0}


@click.group(cls=HelpfulGroup)
def command() -> None:
    """Ask a broker exactly one thing, in exactly one version, and see the exchange to the last byte.

    Versions are negotiated by ApiVersions unless --api-version forces one. The exit code is 6 where the
    broker fails: it is not there, does not answer, refuses, or is none.
    """


command.add_command(send)


@command.command()
@connection_options
@click.argument("topics", nargs=-1, metavar="[TOPIC…]")
@click.option("--api-version", type=click.IntRange(0, 32_767), metavar="N", help="Of Metadata, forced.")
@click.option("--create", is_flag=True, help="Let the broker make topics that are not there.")
@output_options
def metadata(**given: Any) -> int:
    """The brokers, and these topics, or all of them."""
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
@click.argument("topic")
@click.argument("file", required=False, metavar="[FILE | -]")
@click.option(
    "-p", "--partition", type=click.IntRange(0), metavar="N", help="Else by the key, as Kafka does."
)
@click.option("--key", metavar="TEXT", help="Of the record that --value gives.")
@click.option("--value", metavar="TEXT", help="One record, instead of FILE.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="Of every record.")
@click.option("--timestamp", type=int, metavar="MS", help="Of every record; else now, or what NDJSON says.")
@click.option(
    "--input",
    "input_form",
    type=click.Choice(("lines", "ndjson")),
    default="lines",
    show_default=True,
    help="What FILE holds: a value a line, or a row of the table records a line.",
)
@click.option("--key-separator", metavar="TEXT", help="What stands between key and value of a line.")
@click.option("--codec", type=click.Choice(CODECS), default="none", show_default=True)
@click.option("--acks", type=click.Choice(tuple(_ACKS)), default="all", show_default=True)
@click.option(
    "--message-format", type=click.IntRange(0, 2), metavar="0|1|2", help="The magic of the records."
)
@click.option("--api-version", type=click.IntRange(0, 32_767), metavar="N", help="Of Produce, forced.")
@click.option("--batch", type=click.IntRange(1), default=1_000, show_default=True, metavar="N")
@click.option("--create", is_flag=True, help="Let the broker make the topic if it is not there.")
@output_options
def produce(**given: Any) -> int:
    """Write records to TOPIC: those of FILE, of stdin, or the one of --value."""
    asking = Asking(given, "text")
    manner = producing.Manner(
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
    drafts = _drafts(given)
    written: list[producing.Written] = []

    async def flow(cluster: Cluster) -> None:
        topic = await cluster.topic(given["topic"], create=given["create"])
        for group in producing.batches(drafts, given["batch"], 1 << 20):
            answers = producing.produce(cluster, topic, group, manner, now_ns() // 1_000_000)
            async for exchange, counts in answers:
                asking.show(exchange)
                written.extend(producing.outcome(exchange, topic.name, counts))

    try:
        return asking.run(flow)
    finally:
        if asking.talks:
            for each in producing.summed(written):
                at = "" if each.base_offset is None else f", from offset {each.base_offset}"
                complain(f"{each.topic}-{each.partition}: {plural(each.records, 'record')}{at}")


def _drafts(given: dict[str, Any]) -> Iterator[producing.Draft]:
    if given["key"] is not None and given["value"] is None:
        raise Wrong("--key goes with --value; keys of FILE: --key-separator or --input ndjson")
    if given["value"] is not None:
        if given["file"] is not None:
            raise Wrong("--value is the record; FILE gives others: one of them")
        key, value = (
            None if text is None else text.encode("utf-8", "surrogateescape")
            for text in (given["key"], given["value"])
        )
        found = iter([producing.Draft(key, value)])
    else:
        path = given["file"] or "-"
        found = drafts_from(path, given["input_form"], given["key_separator"], given["bytes_form"])
    headers = headers_from(given["headers"])
    for draft in found:
        yield draft._replace(
            headers=draft.headers + headers,
            timestamp=draft.timestamp if given["timestamp"] is None else given["timestamp"],
            partition=draft.partition if given["partition"] is None else given["partition"],
        )


@command.command()
@connection_options
@click.argument("topic")
@click.option(
    "-p", "--partition", "partitions", type=click.IntRange(0), multiple=True, metavar="N", help="Else all."
)
@click.option(
    "--from",
    "start",
    default="earliest",
    show_default=True,
    metavar="OFFSET|TIME",
    help="An offset, earliest, latest, or a time: 2026-05-01T12:00:00Z, @1777636800000 (ms).",
)
@click.option("-c", "count", type=click.IntRange(1), metavar="N", help="Stop after N rows.")
@click.option("--follow", is_flag=True, help="Go on with what is written from now on.")
@click.option(
    "--isolation",
    type=click.Choice(("read_uncommitted", "read_committed")),
    default="read_uncommitted",
    show_default=True,
)
@click.option(
    "--max-bytes",
    type=click.IntRange(1),
    default=1 << 20,
    show_default=True,
    metavar="N",
    help="Of a partition, in one answer.",
)
@click.option("--max-wait", type=click.IntRange(0), default=500, show_default=True, metavar="MS")
@click.option("--api-version", type=click.IntRange(0, 32_767), metavar="N", help="Of Fetch, forced.")
@click.option("--exit-status", is_flag=True, help="Exit code 1 if nothing is shown.")
@output_options
def fetch(**given: Any) -> int:
    """The records of TOPIC, from where it begins to where it ended when reading began."""
    if given["max_wait"] >= given["timeout"] * 1_000:
        raise Wrong(f"--max-wait {given['max_wait']} is longer than --timeout: no answer could come in time")
    asking = Asking(given, "records")
    manner = fetching.Manner(
        _start(given["start"]),
        given["follow"],
        given["isolation"] == "read_committed",
        max_wait_ms=given["max_wait"],
        partition_max_bytes=given["max_bytes"],
        api_version=given["api_version"],
    )

    async def flow(cluster: Cluster) -> None:
        topic = await cluster.topic(given["topic"])
        indexes = list(given["partitions"]) or [each.number for each in topic.partitions]
        answers = fetching.fetch(cluster, topic, indexes, manner, asking.options.limits)
        async for exchange, wanted in answers:
            left = None if given["count"] is None else given["count"] - asking.printed
            asking.show(exchange, _first(wanted, left))
            if given["count"] is not None and asking.printed >= given["count"]:
                return

    code = asking.run(flow)
    return NOTHING_MATCHED if given["exit_status"] and not asking.printed else code


def _first(wanted: fetching.Wanted, most: int | None) -> Any:
    """What keeps the records that were asked for, and no more than so many of them."""
    kept = 0

    def keep(_: Any, row: Any) -> bool:
        nonlocal kept
        if (most is not None and kept >= most) or not wanted.has(row):
            return False
        kept += 1
        return True

    return keep


def _start(text: str) -> fetching.Start:
    if text in ("earliest", "latest"):
        return fetching.Start(None, fetching.EARLIEST if text == "earliest" else fetching.LATEST)
    if re.fullmatch(r"\d{1,18}", text):
        return fetching.Start(int(text), None)
    if re.fullmatch(r"@\d{1,18}", text):
        return fetching.Start(None, int(text[1:]))
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise Wrong(
            f"--from {text}: an offset, earliest, latest, a date and time, or @MS is needed"
        ) from None
    when = when if when.tzinfo is not None else when.astimezone()
    return fetching.Start(None, int((when - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000))


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

    asking = Asking({"show_secrets": False, **given, "form": None}, "text")
    checks: list[Check] = []
    rows: list[Any] = checks
    options = Options()
    with open_output(given["output"]) as file:
        writer = None if given["form"] == "table" else writer_of(given["form"], CHECKS, file, options)

        async def flow(cluster: Cluster) -> None:
            async for check in checks_of(cluster, given["changing"]):
                if check.is_right and given["only_wrong"]:
                    continue
                checks.append(check)
                if writer is not None:
                    writer.write(check)
                    file.flush()

        try:
            asking.run(flow, prints=False)
        finally:
            if writer is not None:
                writer.close()
            else:
                output = TextOutput(file, given["output"])
                for line in table_lines(CHECKS, rows, options, Clock("r", now_ns())):
                    output.line(line)
    failed = sum(not check.is_right for check in checks)
    if failed:
        complain(f"{plural(failed, 'check')} of {len(checks)} not right")
    return OTHER_SIDE_FAILED if failed else DONE
