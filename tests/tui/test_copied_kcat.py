"""A kcat command that was copied prints the records from the offset on that the line shows.

It runs where kcat is there, against a broker that has what the captured broker had.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from kdissect import read
from kdissect.exchange import Exchange
from kdissect.present.detail import Detail
from kdissect.present.options import Options
from kdissect.record.sets import read_record_set
from kdissect.tui.copying import copied
from tests.amount import some
from tests.cli.run import CAPTURES
from tests.client.broker import TestBroker
from tests.tui.test_copying import lines

if shutil.which("kcat") is None:
    pytest.skip("kcat is not installed", allow_module_level=True)

OPTIONS = Options(embedded=True)
VERSIONS = {"ApiVersions": (0, 3), "Metadata": (0, 9), "ListOffsets": (0, 5), "Fetch": (0, 11)}
"""Those that name topics: versions with topic ids are newer than what kcat asks for."""


EXCHANGE = next(
    each
    for each in read(CAPTURES / "basic-kafka43.pcapng")
    if each.api == "Fetch" and any(each.record_sets())
)
PLACES = {(each.topic, each.partition): each for each in EXCHANGE.record_sets()}
RECORDS = {where: list(read_record_set(place.data).records()) for where, place in PLACES.items()}


def commands() -> list[str]:
    """Those of all lines of the tree, and of what was produced to the same partitions before."""
    found = set()
    for exchange in (*produced(), EXCHANGE):
        detail = Detail(exchange, OPTIONS)
        found |= {copied("kcat command", detail, spots, OPTIONS) for spots in lines(detail)}
    return sorted(each for each in found if each is not None)


def produced() -> Iterator[Exchange]:
    for each in read(CAPTURES / "basic-kafka43.pcapng"):
        places = list(each.record_sets()) if each.api == "Produce" else []
        if places and all((place.topic, place.partition) in PLACES for place in places):
            yield each
            return


def answered(broker: TestBroker) -> None:
    """Let the broker have the records."""

    def offsets(_: int, body: dict[str, Any]) -> dict[str, Any]:
        (topic,) = body["topics"]
        (part,) = topic["partitions"]
        have = RECORDS[topic["name"], part["partitionIndex"]]
        at = {-2: have[0].offset, -1: have[-1].offset + 1}[part["timestamp"]]
        known = {"partitionIndex": part["partitionIndex"], "errorCode": 0, "timestamp": -1, "offset": at}
        return {"topics": [{"name": topic["name"], "partitions": [known]}]}

    def fetch(_: int, body: dict[str, Any]) -> dict[str, Any]:
        responses = []
        for topic in body["topics"]:
            for part in topic["partitions"]:
                where = topic["topic"], part["partition"]
                end = RECORDS[where][-1].offset + 1
                known = {"partitionIndex": part["partition"], "highWatermark": end, "lastStableOffset": end}
                known["records"] = PLACES[where].data if part["fetchOffset"] < end else b""
                responses.append({"topic": topic["topic"], "partitions": [known]})
        return {"responses": responses}

    broker.partitions = 1 + max(partition or 0 for _, partition in PLACES)
    broker.answers |= {"ListOffsets": offsets, "Fetch": fetch}


COMMANDS = commands()


@pytest.mark.parametrize(
    "command", some(COMMANDS, 8, COMMANDS[-1]), ids=lambda each: each.rpartition("-p ")[2]
)
def test_it_prints_the_records_from_there_on(command: str) -> None:
    with TestBroker(VERSIONS) as broker:
        answered(broker)
        words = shlex.split(command.replace(EXCHANGE.broker, broker.address))
        ran = subprocess.run(words, capture_output=True, timeout=30, check=False)
    assert ran.returncode == 0, ran.stderr
    options = dict(zip(words[3::2], words[4::2], strict=True))
    first = 0 if options["-o"] == "beginning" else int(options["-o"])
    have = RECORDS[options["-t"], int(options["-p"])]
    assert ran.stdout == b"".join((each.value or b"") + b"\n" for each in have if each.offset >= first)
