"""``python -m tests.compiled.cases SEED``: what the leaves make of many inputs, one line for each.

Run twice, compiled and with ``KDISSECT_PURE=1``, the lines are the same. The inputs are the record sets,
bodies and bytes of the project's captures, whole and damaged, the same for the same seed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from kdissect.capture.files import read_packets
from kdissect.cli.formats import columns_of
from kdissect.dissect import Dissector
from kdissect.exchange import Exchange
from kdissect.message import bare_frame, parse_request, parse_response
from kdissect.model import DecodeError, Fault, Packet, Secrets
from kdissect.present.catalogue import TABLES
from kdissect.present.exchange_text import ExchangeLines
from kdissect.present.options import Options
from kdissect.present.record_columns import ColumnsWriter
from kdissect.present.record_lines import LinesWriter
from kdissect.present.text import Lines
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.json_text import JsonText
from kdissect.protocol.survey import find_places, route
from kdissect.record.scan import read_records
from kdissect.record.sets import read_record_set
from kdissect.tcp.clocks import is_halt, own_time_ns, passed_for_both
from tests.acceptance.mutate import text_of_bytes

CAPTURES = sorted((Path(__file__).resolve().parents[2] / "captures").glob("*.pcap*"))
OPTIONS = Options(records=True)
RECORDS = columns_of(TABLES["records"], [], embedded=False)
DAMAGED = 8
"""Captures."""
BROKEN = 2_000
"""Messages and record sets each."""


@cache
def packets(path: Path) -> list[Packet | Secrets | Fault]:
    return list(read_packets([path]))


@cache
def exchanges(path: Path) -> list[Exchange]:
    dissector = Dissector()
    events = [event for item in packets(path) for event in dissector.feed(item)]
    return [event for event in (*events, *dissector.close()) if isinstance(event, Exchange)]


def captured(items: list[Packet | Secrets | Fault]) -> str:
    """Everything that comes of a capture, as one digest."""
    dissector, lines, out = Dissector(), Lines(), BytesIO()
    rows, records = ExchangeLines(out, OPTIONS), LinesWriter(RECORDS, out, OPTIONS)
    arrow = ColumnsWriter("arrow", RECORDS, out, OPTIONS)
    events = [event for item in items for event in dissector.feed(item)]
    for event in (*events, *dissector.close()):
        if isinstance(event, Exchange):
            out.write(lines.line(event).encode("utf-8", "backslashreplace"))
            rows.write(event)
            sum(records.write(event))
            sum(arrow.write(event))
        else:
            out.write(repr(event).encode("utf-8", "backslashreplace"))
    arrow.close()
    return sha256(out.getvalue()).hexdigest()


def of_message(payload: bytes, key: int | None, version: int | None, kind: str) -> Any:
    """What is said of a message, whatever its bytes are."""
    try:
        frame = bare_frame(payload)
        message = parse_request(frame) if kind == "request" else parse_response(frame, key, version)
    except DecodeError as error:
        return error.args, error.offset, error.kind
    body = message.decoded()
    found = text = None
    if body.struct is not None:
        way = route(body.struct)
        found = None if way is None else find_places(way, Cursor(payload, message.body_start))
        text = text_of_bytes(body.struct, payload[message.body_start :])
    return message.header(), body.values, body.remainder, body.faults, message.annotate(), found, text


def of_records(data: bytes) -> Any:
    """What is said of a record set."""
    found = read_record_set(data)
    return [batch.records() for batch in found.batches], found.faults, found.remainder


def of_body(data: bytes) -> Any:
    """What is said of bytes that are to be the records of a batch."""
    body = read_records(data, 0, len(data), 2**63 - 3, -(2**63), None, 2**31 - 2, 500)
    told = (body.found, body.broken, body.first_problem, body.first_position, body.end)
    return body.records, told, body.stopped, body.over_limit, body.elements, body.not_utf8


def of_text(data: bytes) -> Any:
    """How bytes are written as JSON."""
    out, size = JsonText(), len(data)
    is_text = out.string(data, 0, size)
    out.base64(data, size // 3, size - size // 3)
    out.hexadecimal(data, size // 2, size // 4)
    return is_text, out.take()


def of_numbers(data: bytes) -> Any:
    """What each way of reading a number says of bytes."""
    out: list[Any] = []
    for name in (
        name for name in dir(Cursor) if name.startswith("read_") and name[5:] not in ("bytes", "text")
    ):
        cursor = Cursor(data)
        try:
            out.append((name, repr(getattr(cursor, name)()), cursor.position))
        except DecodeError as error:
            out.append((name, error.args, error.offset, error.kind, cursor.position))
    return out


def of_pause(dice: random.Random) -> Any:
    """What the clock of an end says of a pause."""
    before_ns, pause_ns, after_ns = (dice.randrange(1 << dice.randrange(1, 62)) for _ in range(3))
    own_ns = own_time_ns(dice.getrandbits(33) - (1 << 32), before_ns, pause_ns, after_ns - (1 << 40))
    known_ns = abs(own_ns)
    both = passed_for_both(known_ns, pause_ns, before_ns)
    return own_ns, both, is_halt(known_ns, pause_ns, before_ns, dice.getrandbits(32) * 1_000_000)


def damaged(dice: random.Random, data: bytes) -> bytes:
    """Some bytes changed, or the end cut off."""
    out = bytearray(data)
    for _ in range(dice.randrange(4)):
        if out:
            out[dice.randrange(len(out))] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
    return bytes(out[: dice.randrange(len(out) + 1)] if dice.random() < 0.3 else out)


def lines(seed: int) -> Iterator[str]:
    dice = random.Random(seed)
    for path in CAPTURES:
        yield f"{path.name} {captured(packets(path))}"
    for _ in range(DAMAGED):
        items = list(packets(dice.choice(CAPTURES)))
        for _ in range(dice.randrange(1, 9)):
            at = dice.randrange(len(items))
            item = items[at]
            if isinstance(item, Packet):
                items[at] = item._replace(data=damaged(dice, item.data))
        yield f"damaged capture {captured(items)}"
    messages = [(e, m) for path in CAPTURES for e in exchanges(path) for m in e.messages]
    sets = [place.data for path in CAPTURES for e in exchanges(path) for place in e.record_sets()]
    for number in range(BROKEN):
        exchange, message = dice.choice(messages)
        payload = damaged(dice, message.frame.payload)
        said = of_message(payload, exchange.api_key, exchange.api_version, message.kind)
        yield f"message {number} {_digest(said)}"
        data = damaged(dice, dice.choice(sets))
        yield f"records {number} {_digest(of_records(data))} {_digest(of_body(data[61:]))}"
        yield f"text {number} {_digest(of_text(data))}"
        yield f"numbers {number} {_digest(of_numbers(dice.randbytes(dice.randrange(18))))}"
        yield f"pause {number} {of_pause(dice)}"


def _digest(value: Any) -> str:
    return sha256(repr(value).encode("utf-8", "backslashreplace")).hexdigest()


def main(seed: str) -> None:
    for line in lines(int(seed)):
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
