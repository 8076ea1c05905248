"""Damage captures and messages at random: whatever the bytes are, there come exchanges and faults, never an
exception, an endless loop, or a byte that is not accounted for.

    python -m tests.acceptance.mutate --count 1000000 [--seed 0]

Every mutation has a seed of its own, which is printed when it fails; ``--only SEED`` runs that one again.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from io import BytesIO

from kdissect.capture.segments import SegmentReader
from kdissect.exchange import Exchange
from kdissect.faults import KINDS
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Message, parse_request, parse_response
from kdissect.model import DecodeError, Direction, Endpoint, Frame, Node, Packet, Segment
from kdissect.present.batches import batch_objects
from kdissect.present.columns import EXCHANGES
from kdissect.present.exchange_text import ExchangeLines
from kdissect.present.options import Options
from kdissect.present.tables import row_line
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.json_form import dumps, to_json
from kdissect.protocol.json_plan import way_of
from kdissect.protocol.json_text import JsonText
from kdissect.protocol.json_walk import Walk
from kdissect.protocol.schema import Struct
from kdissect.protocol.survey import find_places, route
from kdissect.record.sets import read_record_set
from kdissect.session.evidence import examine_request
from tests.lab import Case, dissected, dissected_case

CASES = (
    "broker-0.9",
    "java43-denied",
    "kafkajs-on-39",
    "librdkafka-new",
    "sasl-scram-256",
    "sweep-44",
    "wrong-requests",
    "zk39-ibp28",
)
"""Cases whose connections and messages are damaged: old and new, with records of every codec and SASL."""

OPTIONS = Options(records=True)
LONGEST_CONNECTION = 30
"""Packets."""
LONGEST_MESSAGE = 2_000
SLOWEST_S = 5.0
"""A mutation that takes longer is a failure: its few kilobytes take a millisecond."""

ODD_BYTES = (0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF)


@cache
def connections() -> tuple[tuple[Packet, ...], ...]:
    """The packets of short connections."""
    found = []
    for name in CASES:
        reader = SegmentReader()
        by_ends: defaultdict[frozenset[Endpoint], list[Packet]] = defaultdict(list)
        for item in Case(name).packets():
            if isinstance(item, Packet):
                segment = reader.feed(item)
                if isinstance(segment, Segment):
                    by_ends[frozenset((segment.source, segment.destination))].append(item)
        found += [tuple(packets) for packets in by_ends.values() if 8 <= len(packets) <= LONGEST_CONNECTION]
    return tuple(found)


@cache
def messages() -> tuple[tuple[bytes, Message], ...]:
    """Requests and responses, and their bytes."""
    return tuple(
        (message.frame.payload, message)
        for name in CASES
        for exchange in dissected_case(name).exchanges
        for message in exchange.messages
        if len(message.frame.payload) <= LONGEST_MESSAGE and message.api_key is not None
    )


def damage(data: bytes, randomly: random.Random) -> bytes:
    """The bytes with one to four defects."""
    out = bytearray(data)
    for _ in range(randomly.randint(1, 4)):
        at = randomly.randrange(len(out) + 1)
        end = min(len(out), at + randomly.randint(1, 8))
        match randomly.randrange(7):
            case 0 if at < len(out):
                out[at] ^= 1 << randomly.randrange(8)
            case 1 if at < len(out):
                out[at] = randomly.choice(ODD_BYTES)
            case 2:
                out[at:end] = randomly.randbytes(end - at)
            case 3:
                out[at:end] = bytes((randomly.choice(ODD_BYTES),)) * (end - at)
            case 4:
                del out[at:end]
            case 5:
                out[at:at] = out[at:end]
            case _:
                del out[at:]
    return bytes(out)


def damaged_capture(randomly: random.Random) -> list[Packet]:
    """A connection, or two at once, with packets damaged, lost, doubled, cut or in another order."""
    packets = [packet for _ in range(randomly.choice((1, 1, 2))) for packet in randomly.choice(connections())]
    for _ in range(randomly.randint(1, 6)):
        at = randomly.randrange(len(packets))
        packet = packets[at]
        match randomly.randrange(6):
            case 0 if len(packets) > 1:
                del packets[at]
            case 1:
                packets.insert(randomly.randrange(len(packets) + 1), packet)
            case 2:
                other = randomly.randrange(len(packets))
                packets[at], packets[other] = packets[other], packet
            case 3:
                packets[at] = packet._replace(data=packet.data[: randomly.randrange(len(packet.data) + 1)])
            case _:
                packets[at] = packet._replace(data=damage(packet.data, randomly))
    first = randomly.randrange(len(packets)) if randomly.random() < 0.2 else 0
    return [packet._replace(number=number) for number, packet in enumerate(packets[first:], 1)]


def check_capture(randomly: random.Random) -> None:
    """Dissect a damaged capture, and look at all there is in it."""
    found = dissected(damaged_capture(randomly))
    assert [exchange.number for exchange in found.exchanges] == list(range(1, len(found.exchanges) + 1))
    for fault in found.faults:
        assert fault.kind in KINDS
    for exchange in found.exchanges:
        look_at(exchange)
    for connection in found.connections:
        assert 0 <= connection.skipped_bytes <= connection.bytes_to_broker + connection.bytes_from_broker


def look_at(exchange: Exchange) -> None:
    """Ask an exchange for everything it can tell."""
    assert exchange.messages
    whole = exchange.request is not None and exchange.response is not None and not exchange.response.is_cut
    assert (exchange.missing is None) == whole
    assert all(fault.kind in KINDS for fault in exchange.faults)
    str((exchange.topics, exchange.error, exchange.client_id, exchange.latency_ns))
    for place in exchange.record_sets():
        look_at_records(place.data)
    for message in exchange.messages:
        look_at_message(message)
    line = BytesIO()
    ExchangeLines(line, OPTIONS).write(exchange)
    assert line.getvalue() == row_line(EXCHANGES, exchange, OPTIONS)


def look_at_message(message: Message) -> None:
    """Decode, draw and print a message."""
    body = message.decoded()
    if body.struct is not None:
        text = dumps(to_json(body.struct, body.values))
        data = message.frame.payload[message.body_start :]
        assert text_of_bytes(body.struct, data, message.limits) in (None, text)
        way = route(body.struct)
        if way is not None:
            find_places(way, Cursor(data, limits=message.limits))
    assert all(fault.kind in KINDS for fault in body.faults)
    root = message.annotate()
    assert end_of_leaves(root, 0) == len(message.frame.payload)


def text_of_bytes(struct: Struct, data: bytes, limits: Limits = DEFAULTS) -> str | None:
    """A struct in Kafka's JSON, written without decoding it; None where it has to be decoded."""
    way, out = way_of(struct), JsonText()
    walk = Walk(Cursor(data, limits=limits), out)
    with suppress(DecodeError):
        walk.write(way)
        if walk.cursor.position == len(data):
            return out.take().decode("ascii")
    return None


def look_at_records(data: bytes) -> None:
    """Read and print every record of a set, broken or not."""
    found = read_record_set(data)
    as_text = dumps(batch_objects(data, OPTIONS._replace(as_text=True)), has_raw=True)
    assert as_text == dumps(batch_objects(data, OPTIONS))
    assert len(list(found.records())) <= 64 * len(data) + 1_000_000
    assert all(fault.kind in KINDS for fault in found.faults)


def end_of_leaves(node: Node, position: int) -> int:
    """Where the last leaf ends, if the leaves join from ``position`` on."""
    if not node.children:
        assert node.start == position
        return node.end
    for child in node.children:
        position = end_of_leaves(child, position)
    return position


def check_message(randomly: random.Random) -> None:
    """Read a damaged message as what it was."""
    payload, known = randomly.choice(messages())
    payload = damage(payload, randomly)
    frame = Frame(Direction.TO_BROKER, 0, payload, len(payload), 1, 0, 1, 0, (1,))
    data = len(payload).to_bytes(4, "big") + payload
    examine_request(data, 0, DEFAULTS._replace(frame_bytes=1 << 20))
    exchange = Exchange(0, bytes(6), bytes(6), missing="gap")
    try:
        if known.kind == "request":
            exchange.request = parse_request(frame)
        else:
            exchange.response = parse_response(frame, known.api_key, known.api_version)
    except DecodeError:
        return
    look_at(exchange)


KINDS_OF_MUTATION: tuple[Callable[[random.Random], None], ...] = (check_capture, *[check_message] * 7)
"""Captures cost more: one in eight."""


def check(seed: str) -> None:
    """Run the mutation of this seed. It fails with whatever kdissect raises, or an AssertionError."""
    randomly = random.Random(seed)
    begin = time.process_time()
    randomly.choice(KINDS_OF_MUTATION)(randomly)
    seconds = time.process_time() - begin
    assert seconds < SLOWEST_S, f"{seconds:.1f} s"


def failures(seeds: Iterable[str]) -> Iterable[str]:
    """The seeds that fail, each with its traceback on the error stream."""
    for seed in seeds:
        try:
            check(seed)
        except Exception:
            sys.stderr.write(f"seed {seed} failed\n{traceback.format_exc()}\n")
            yield seed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.mutate", description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="how many mutations (default %(default)s)")
    parser.add_argument(
        "--seed", default="0", help="another seed gives other mutations (default %(default)s)"
    )
    parser.add_argument("--only", metavar="SEED", help="run the mutation of this seed only")
    options = parser.parse_args()
    seeds = [options.only] if options.only else (f"{options.seed}-{n}" for n in range(options.count))
    begin = time.perf_counter()
    failed = list(failures(seeds))
    seconds = time.perf_counter() - begin
    sys.stdout.write(f"{len(failed)} of {options.count} mutations failed, {seconds:.0f} s\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
