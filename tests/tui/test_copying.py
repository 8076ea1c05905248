"""What is copied of an exchange, and the commands of other tools."""

from __future__ import annotations

import shlex
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pytest

from kdissect import read
from kdissect.exchange import Exchange, RecordSetPlace
from kdissect.model import Node
from kdissect.present.branch import Branch, NodePlace
from kdissect.present.detail import Detail, TreeSpot
from kdissect.present.options import Options
from kdissect.tui.copying import FORMS, copied, kcat_command, tshark_command, value_of, wireshark_command
from tests.cli.run import CAPTURES
from tests.present.captures import SECRET, secret_talks, write_capture

OPTIONS = Options(embedded=True)


def lines(detail: Detail) -> list[list[TreeSpot]]:
    """Every line, after those around it."""
    out, waiting = [], [[spot] for spot in detail.spots]
    while waiting:
        spots = waiting.pop()
        out.append(spots)
        waiting += [[*spots, below] for below in detail.open(spots[-1])]
    return out


def test_a_path_is_that_of_the_schema() -> None:
    exchanges = [each for each in read(CAPTURES / "errors.pcapng") if each.api == "CreateTopics"]
    detail = Detail(exchanges[0], OPTIONS)
    paths = [copied("path", detail, spots, OPTIONS) for spots in lines(detail)]
    assert "createtopics.request.topics[0].name" in paths
    assert "createtopics.response.header.correlationId" in paths


def test_values_are_copied_whole() -> None:
    for value in (b"\xff" * 1000, b"plain" * 100):
        node = Node("memberMetadata", "bytes", value, 0, len(value))
        spot = TreeSpot(
            "memberMetadata: …", "bytes", value, 0, len(value), Branch(node, value, NodePlace(), OPTIONS)
        )
        text = value_of(spot)
        assert (text.encode() if value.isascii() else b64decode(text)) == value


def test_no_secret_is_copied(tmp_path: Path) -> None:
    secret = SECRET.encode()
    coded = [SECRET, b64encode(secret)[:-4].decode(), secret.hex()]
    for exchange in read(write_capture(tmp_path / "c.pcapng", *secret_talks())):
        detail = Detail(exchange, OPTIONS)
        for spots in lines(detail):
            for form in FORMS:
                text = copied(form, detail, spots, OPTIONS, ["x.pcapng"]) or ""
                assert [each for each in coded if each in text] == [], (form, spots[-1].text)


OPTIONS = Options(embedded=True)
BASIC = CAPTURES / "basic-kafka43.pcapng"


def first(api: str) -> Exchange:
    return next(each for each in read(BASIC) if each.api == api and list(each.record_sets()))


def commands(exchange: Exchange) -> set[str]:
    """The kcat commands of all lines."""
    detail = Detail(exchange, OPTIONS)
    found = (copied("kcat command", detail, spots, OPTIONS) for spots in lines(detail))
    return {each for each in found if each is not None}


def test_kcat_reads_the_partition_and_offset_of_the_line() -> None:
    exchange = first("Fetch")
    found = commands(exchange)
    topic = exchange.topics[0]
    assert f"kcat -C -e -b {exchange.broker} -t {topic} -p 0 -o 0" in found  # fetchOffset, and the batch's
    record = next(each for each in sorted(found) if each.endswith("-o 3"))
    assert record.startswith(f"kcat -C -e -b {exchange.broker} -t {topic} -p ")


def test_kcat_of_a_produced_record_has_no_offset_that_only_the_producer_counted() -> None:
    exchange = first("Produce")
    offsets = {each.rpartition("-o ")[2] for each in commands(exchange)}
    place = next(iter(exchange.record_sets()))
    assert offsets <= {"beginning", str(exchange.assigned_base_offset(place))}


def test_there_is_no_kcat_command_without_a_partition() -> None:
    exchange = next(each for each in read(BASIC) if each.api == "ApiVersions")
    assert kcat_command(exchange, ()) is None


@pytest.mark.parametrize("topic", ["a\x1b[201~\nrm -rf ~\n", "a b", "a'b", "", "x" * 250])
def test_there_is_no_kcat_command_for_a_topic_that_kafka_refuses(topic: str) -> None:
    exchange = first("Fetch")
    assert kcat_command(exchange, ()) is not None
    place = next(iter(exchange.record_sets()))
    assert kcat_command(cast(Exchange, Renamed(exchange, place._replace(topic=topic))), ()) is None
    assert kcat_command(cast(Exchange, Renamed(exchange, place)), ()) is not None


class Renamed:
    """An exchange with one record set."""

    def __init__(self, exchange: Exchange, place: RecordSetPlace) -> None:
        self._exchange = exchange
        self._place = place

    def record_sets(self) -> Iterator[RecordSetPlace]:
        return iter([self._place])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._exchange, name)


def test_names_of_files_are_quoted(tmp_path: Path) -> None:
    exchange = first("Fetch")
    path = str(tmp_path / "a b; $(x).pcapng")
    assert f"-r '{path}'" in tshark_command(exchange, [path])
    assert path in wireshark_command(exchange, [path])


@pytest.mark.parametrize(
    ("packets", "expected"),
    [((4, 6), "{4, 6}"), ((7, 5, 6), "{5..7}"), ((1, 2, 4, 5, 9), "{1..2, 4..5, 9}")],
)
def test_packets_in_a_row_are_a_range_of_tshark(packets: tuple[int, ...], expected: str) -> None:
    exchange = first("Fetch")
    frame = mock.Mock(packets=packets)
    messages = [mock.Mock(frame=frame)]
    command = tshark_command(cast(Exchange, mock.Mock(messages=messages, broker=exchange.broker)), ["x"])
    assert f"frame.number in {expected}" in command


def test_a_connection_with_tls_is_decrypted_before_it_is_kafka(tmp_path: Path) -> None:
    exchange, log = first("Fetch"), tmp_path / "key log"
    port = exchange.broker.rpartition(":")[2]
    log.write_text("")
    layers = ["-d", f"tcp.port=={port},tls", "-d", f"tls.port=={port},kafka"]
    for logs, options in (
        ((), []),
        ((str(log),), ["-o", f"tls.keylog_file:{log}"]),
        ((str(log), str(log)), []),  # it takes only one
        ((str(tmp_path),), []),  # and no folder
    ):
        words = shlex.split(tshark_command(exchange, ["x"], logs))
        assert words[3:-3] == [*layers, *options]
        assert wireshark_command(exchange, ["x"], logs)[3:-2] == [*layers, *options]


def test_a_negative_offset_is_not_counted_from_the_end() -> None:
    exchange = first("Fetch")
    place = next(iter(exchange.record_sets()))
    with mock.patch.object(Renamed, "assigned_base_offset", create=True, return_value=-1):
        command = kcat_command(cast(Exchange, Renamed(exchange, place)), ())
    assert command is not None
    assert command.endswith("-o beginning")
    assert kcat_command(cast(Exchange, Renamed(exchange, place._replace(partition=-1))), ()) is None
