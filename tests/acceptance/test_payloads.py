"""The records that producers sent and consumers got, as they saw them, are those on the wire."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from kdissect.exchange import Exchange
from kdissect.record.sets import read_record_set
from tests.lab import TLS_CASES, Case, dissected_case, with_file

PAYLOAD_CASES = [name for name in with_file("payloads.ndjson.gz") if name not in TLS_CASES]

LOST = {("java43-basic-loss", "produced"): 60}
"""Records whose packet was taken out: a Produce request of two partitions."""

WITHOUT_HEADERS = ("librdkafka-api-0.10",)
"""Cases whose producer takes the broker for one of 0.10, and so leaves headers out."""


class Found(NamedTuple):
    """A record on the wire."""

    topic: str | None
    partition: int | None
    offset: int | None
    """As assigned by the broker; None where nothing tells it (acks=0)."""
    timestamp: int
    headers: list[list[str | None]]
    magic: int
    codec: str


Data = tuple[str | None, str | None]
"""Key and value in hex, or null."""


def hexed(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def on_the_wire(exchange: Exchange) -> Iterator[tuple[Data, Found]]:
    """The records of a Produce request or a Fetch response."""
    for place in exchange.record_sets():
        base = exchange.assigned_base_offset(place)
        number = 0
        for batch in read_record_set(place.data).batches:
            for record in batch.records():
                offset: int | None = record.offset
                if exchange.api == "Produce":
                    offset = None if base is None else base + number
                headers = [[name, hexed(value)] for name, value in record.headers]
                where = place.topic, place.partition, offset, record.timestamp
                found = Found(*where, headers, batch.magic, batch.codec)
                yield (hexed(record.key), hexed(record.value)), found
                number += 1


def is_it(row: dict[str, Any], found: Found) -> bool:
    """Whether a record on the wire is the one that a client saw, in all that the client knew of it.
    Headers came with magic 2; clients send a batch uncompressed where compression does not pay."""
    return (
        found.topic == row["topic"]
        and row["partition"] in (-1, found.partition)
        and (row["offset"] == -1 or found.offset in (None, row["offset"]))
        and (row["timestamp"] is None or row["timestamp"] < 0 or row["timestamp"] == found.timestamp)
        and (row["codec"] in ("", found.codec) or found.codec == "none")
        and found.headers == (row["headers"] if found.magic == 2 else [])
    )


@pytest.mark.parametrize("role", ["produced", "consumed"])
@pytest.mark.parametrize("name", PAYLOAD_CASES)
def test_every_record_that_a_client_saw_is_on_the_wire(name: str, role: str) -> None:
    apis = ("Produce",) if role == "produced" else ("Fetch", "ShareFetch")
    wire: defaultdict[Data, list[Found]] = defaultdict(list)
    for exchange in dissected_case(name).exchanges:
        if exchange.api in apis:
            for data, found in on_the_wire(exchange):
                wire[data].append(found)
    rows = [row for row in Case(name).payloads() if row["role"] == role]
    assert rows
    if name in WITHOUT_HEADERS:
        rows = [{**row, "headers": []} for row in rows]
    problems = []
    codecs: set[tuple[str, str]] = set()
    for row in rows:
        candidates = wire[row["key"], row["value"]]
        match = next((found for found in candidates if is_it(row, found)), None)
        if match is None:
            problems.append((row, candidates))
            continue
        codecs.add((row["codec"], match.codec))
        if role == "produced":
            candidates.remove(match)
    if lost := LOST.get((name, role)):
        assert len(problems) == lost
    else:
        assert problems[:3] == []
        asked_for = {row["codec"] for row in rows if role == "produced"}
        assert {(codec, codec) for codec in asked_for} <= codecs
