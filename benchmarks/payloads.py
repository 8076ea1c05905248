"""``python -m benchmarks.payloads [RECORDS]``: how fast values of Avro are decoded, beside fastavro.

Each line has the same values, in CPU seconds, the best of some runs. The first figure is fastavro alone,
which reads each value and does nothing with it. The second is kdissect's decoder alone. The third is
``kdissect read -T records --schemas``, from the packets of a capture to lines of JSON. The last is the same
without decoding. Values are orders with lines, each after the id of its schema; then the same with a key and
headers; then values with a map.
"""
# ruff: noqa: T201

from __future__ import annotations

import io
import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import fastavro

from benchmarks.captures import Clock, Talk
from benchmarks.traffic import FILE_HEAD
from kdissect.cli import main as kdissect
from kdissect.payload.decoder import PayloadDecoder
from kdissect.payload.schemas import RegistrySchema, Schemas
from kdissect.protocol.encode import encode
from kdissect.protocol.schema import message_struct
from kdissect.record.records import Headers, Record
from kdissect.record.write import write_batch

RECORDS = 50_000
RUNS = 3
A_BATCH = 500
LINE = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "sku", "type": "string"}, {"name": "n", "type": "int"}],
}
ORDER = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": ["null", "string"]},
        {"name": "total", "type": "double"},
        {"name": "status", "type": {"type": "enum", "name": "Status", "symbols": ["NEW", "PAID", "SENT"]}},
        {"name": "lines", "type": {"type": "array", "items": LINE}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


TAGS = {
    "type": "record",
    "name": "shop.Tags",
    "fields": [{"name": "id", "type": "long"}, {"name": "tags", "type": {"type": "map", "values": "string"}}],
}
HEADERS = (("traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), ("source", b"shop"))


class Shape(NamedTuple):
    """The shape of records."""

    schema: dict[str, Any]
    value: Callable[[int, random.Random], dict[str, Any]]
    key: bytes | None = None
    headers: Headers = ()


def order(number: int, dice: random.Random) -> dict[str, Any]:
    """One order."""
    lines = [{"sku": f"A-{at}", "n": at} for at in range(dice.randint(0, 4))]
    made: dict[str, Any] = {"id": number, "customer": f"customer-{number % 97}", "total": dice.random() * 100}
    status = dice.choice(["NEW", "PAID", "SENT"])
    return made | {"status": status, "lines": lines, "at": 1_763_800_000_000}


def tags(number: int, dice: random.Random) -> dict[str, Any]:
    """Some tags."""
    return {"id": number, "tags": {f"tag-{at}": "yes" for at in range(dice.randint(0, 4))}}


SHAPES = {
    "orders": Shape(ORDER, order),
    "orders with key and headers": Shape(ORDER, order, b"customer-1", HEADERS),
    "maps": Shape(TAGS, tags),
}


def values(shape: Shape, count: int) -> list[bytes]:
    """Values in the form of Confluent's serializers."""
    dice, schema = random.Random(1), fastavro.parse_schema(shape.schema)
    out = []
    for number in range(count):
        file = io.BytesIO(b"\0\0\0\0\x65")
        file.seek(5)
        fastavro.schemaless_writer(file, schema, shape.value(number, dice))
        out.append(file.getvalue())
    return out


def capture(path: Path, shape: Shape, written: list[bytes]) -> None:
    """A capture of a client that produces them."""
    talk, clock = Talk(0, 1_448), Clock()
    asked, answered = message_struct(0, 7, "request"), message_struct(0, 7, "response")
    with path.open("wb") as file:
        file.write(FILE_HEAD)
        for packet in talk.opened(clock):
            file.write(packet)
        for number, at in enumerate(range(0, len(written), A_BATCH)):
            several = enumerate(written[at : at + A_BATCH])
            records = [Record(n, 1, shape.key, each, shape.headers) for n, each in several]
            part = {"index": 0, "records": write_batch(records)}
            topics = [{"name": "orders", "partitionData": [part]}]
            body = {"transactionalId": None, "acks": 1, "timeoutMs": 1, "topicData": topics}
            head = (0).to_bytes(2, "big") + (7).to_bytes(2, "big") + number.to_bytes(4, "big") + b"\0\1c"
            for packet in talk.said(0, head + encode(asked, body), clock):
                file.write(packet)
            told = {"index": 0, "errorCode": 0, "baseOffset": at, "logAppendTimeMs": -1, "logStartOffset": 0}
            reply = {"responses": [{"name": "orders", "partitionResponses": [told]}], "throttleTimeMs": 0}
            for packet in talk.said(1, number.to_bytes(4, "big") + encode(answered, reply), clock):
                file.write(packet)


def best(work: Callable[[], object]) -> float:
    """CPU seconds of the fastest run."""
    found = []
    for _ in range(RUNS):
        begin = time.process_time()
        work()
        found.append(time.process_time() - begin)
    return min(found)


def measure(name: str, shape: Shape, count: int) -> None:
    """Measure and print one shape."""
    written = values(shape, count)
    schema = fastavro.parse_schema(shape.schema)
    decoder = PayloadDecoder(Schemas([RegistrySchema("AVRO", json.dumps(shape.schema), "101")]))

    def fast() -> None:
        for each in written:
            fastavro.schemaless_reader(io.BytesIO(each[5:]), schema, None)

    def own() -> None:
        for each in written:
            decoder.decode("orders", "value", each)

    with TemporaryDirectory() as folder:
        path, schemas, out = Path(folder, "orders.pcap"), Path(folder, "schemas"), Path(folder, "out.ndjson")
        schemas.mkdir()
        (schemas / "101.avsc").write_text(json.dumps(shape.schema))
        capture(path, shape, written)
        read = ["read", str(path), "-T", "records", "-o", str(out), "-q", "--jobs", "1"]

        def whole() -> None:
            assert kdissect([*read, "--schemas", str(schemas)]) == 0

        def without() -> None:
            assert kdissect(read) == 0

        print(f"{name}: {os.path.getsize(path):,} bytes, {count:,} records")
        for line, work in (
            ("fastavro alone", fast),
            ("decoder alone", own),
            ("capture to JSON, decoded", whole),
            ("the same, not decoded", without),
        ):
            print(f"  {line:26} {best(work) / count * 1e6:7.2f} µs a record")
            if work is whole:
                with out.open() as lines:
                    assert sum('"valueDecoded":{"id":' in line for line in lines) == count


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS
    for name, shape in SHAPES.items():
        measure(name, shape, count)


if __name__ == "__main__":
    main()
