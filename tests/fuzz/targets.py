"""What is fuzzed: the places where bytes of others come in. Each takes any bytes, looks at all that comes of
them, and raises only where kdissect is wrong.
"""

from __future__ import annotations

import gzip
import io
import lzma
import pickle
import tarfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import NamedTuple, cast

from kdissect.capture.files import read_packets
from kdissect.capture.segments import SegmentReader
from kdissect.dissect import Dissector, Event
from kdissect.exchange import Exchange
from kdissect.faults import KINDS
from kdissect.limits import DEFAULTS
from kdissect.logdir.checkpoints import read_facts
from kdissect.logdir.indexes import OFFSET, TIME, TRANSACTION, read_entries
from kdissect.logdir.segment import read_batches
from kdissect.logdir.snapshot import read_snapshot
from kdissect.message import parse_request, parse_response
from kdissect.model import (
    ACK,
    FIN,
    PSH,
    RST,
    SYN,
    CaptureError,
    Chunk,
    DecodeError,
    Direction,
    Endpoint,
    Fault,
    Frame,
    Packet,
    Segment,
)
from kdissect.record.batch import Batch
from kdissect.session.briefs import Interest
from kdissect.tls.decrypting import Tls
from kdissect.tls.keylog import TlsSecrets
from tests.acceptance.mutate import look_at_message, look_at_records
from tests.accounts import astray
from tests.fuzz.commands import config, config_seeds, log, log_seeds, schema, schema_seeds
from tests.fuzz.payloads import payload, payload_seeds
from tests.lab import DATA, Case, dissected_case
from tests.tcp.segments import BROKER, CLIENT
from tests.test_dissect_short import told, without_rows

SLOWEST_S = 1.0
"""CPU time that an input may take; none is larger than 64 KiB."""
LARGEST = 65_536

Look = Callable[[bytes], None]
Seeds = Callable[[], Iterable[bytes]]


class Target(NamedTuple):
    """One place."""

    look: Look
    seeds: Seeds
    """Inputs to begin with: what real brokers and clients said."""
    guides: tuple[str, ...]
    """Packages and modules whose branches tell the fuzzer what is new: what the inputs come to. Each that is
    watched runs three times as long."""
    largest: int = LARGEST
    """Bytes of an input that the fuzzer makes."""


class TooSlowError(Exception):
    """An input took longer than it may."""


def timed(look: Look, data: bytes) -> None:
    """Look at an input.

    :raises TooSlowError: it took too long.
    """
    begin = time.process_time()
    look(data)
    seconds = time.process_time() - begin
    if seconds > SLOWEST_S:
        raise TooSlowError(f"{seconds:.2f} s for {len(data):,} bytes")


def _check(faults: Iterable[Fault]) -> None:
    for each in faults:
        assert each.kind in KINDS
        assert "\n" not in each.message


# -- capture files


def capture(data: bytes) -> None:
    """A capture file, compressed or not."""
    reader = SegmentReader()
    with suppress(CaptureError):
        for item in read_packets(["capture"], DEFAULTS, lambda _: cast(io.BufferedIOBase, io.BytesIO(data))):
            if isinstance(item, Packet):
                found = reader.feed(item)
                _check([found] if isinstance(found, Fault) else ())
            elif isinstance(item, Fault):
                _check([item])
    _check(reader.close())


def capture_seeds() -> Iterator[bytes]:
    captures = DATA.parents[1] / "captures"
    for path in sorted(captures.glob("*.pcap*")):
        yield path.read_bytes()[:3_000]
    for name in ("ipv6", "java43-denied"):
        packed = Case(name).capture.read_bytes()
        yield packed[:3_000]
        yield gzip.compress(packed[:2_000], mtime=0)


# -- segments

_FLAGS = (ACK, ACK | PSH, ACK, SYN, SYN | ACK, FIN | ACK, RST, RST | ACK)
_ENDS: tuple[Endpoint, Endpoint] = (CLIENT, BROKER)
_LIMITS = (
    DEFAULTS,
    DEFAULTS._replace(pending_requests=2, reorder_bytes=600, reorder_one_sided_bytes=300),
    DEFAULTS._replace(waiting_bytes=3_000, settle_bytes=100),
    DEFAULTS._replace(frame_bytes=60, connections=1, waiting_bytes=30_000),
)


def streams(data: bytes) -> None:
    """Segments of one connection, after a byte that says by which limits: a byte with side and flags, a
    length, how far the numbers are from where they should be, the payload. What is in the messages and
    records others look at."""
    limits = _LIMITS[data[0] % len(_LIMITS)] if data else DEFAULTS
    dissector = Dissector(limits)
    events: list[Event] = []
    for segment in _segments(data[1:]):
        events += dissector.feed(segment)
    events += dissector.close()
    assert dissector.held_bytes == 0
    assert astray(events) == {}
    quick = Dissector(limits, briefs=Interest())
    briefs = [event for segment in _segments(data[1:]) for event in quick.feed(segment)]
    in_brief = [*map(told, briefs), *map(told, quick.close())]
    assert in_brief == without_rows([told(event) for event in events], in_brief)
    for event in events:
        if isinstance(event, Exchange):
            whole = event.request is not None and event.response is not None and not event.response.is_cut
            assert (event.missing is None) == whole
            _check(event.session_faults)
        elif isinstance(event, Fault):
            _check([event])


def _segments(data: bytes) -> Iterator[Segment]:
    at, number, said = 0, 0, [1, 1]
    while at + 3 <= len(data):
        control, length = data[at], int.from_bytes(data[at + 1 : at + 3], "big")
        at += 3
        off = [0, 0]
        for which, bit in enumerate((0x10, 0x20)):
            if control & bit:
                off[which] = int.from_bytes(data[at : at + 2], "big", signed=True)
                at += 2
        payload = data[at : at + length]
        at += length
        side, flags = control & 1, _FLAGS[control >> 1 & 7]
        number += 1
        seq = (said[side] + off[0]) & 0xFFFFFFFF
        ack = (said[1 - side] + off[1]) & 0xFFFFFFFF if flags & ACK else None
        cut = 7 if control & 0x40 else 0
        time_ns = number * (2_000_000_000 if control & 0x80 else 1_000)
        ends = _ENDS[side], _ENDS[1 - side]
        yield Segment(number, time_ns, *ends, seq, ack, flags, payload, len(payload) + cut)
        if not off[0]:
            said[side] += len(payload) + cut + bool(flags & (SYN | FIN))


def stream_seeds() -> Iterator[bytes]:
    for name in ("kafkajs-on-39", "sasl-scram-256", "broker-0.9", "java43-denied"):
        for packets in list(_connections(name))[:6]:
            out = b"\0"
            for segment in packets[:12]:
                side = 0 if segment.source == packets[0].source else 1
                flags = _FLAGS.index(segment.flags & ~PSH) if segment.flags & ~PSH in _FLAGS else 0
                out += bytes((side | flags << 1,)) + len(segment.payload).to_bytes(2, "big") + segment.payload
            yield out[:1_000]


def _connections(name: str) -> Iterable[list[Segment]]:
    reader = SegmentReader()
    by_ends: defaultdict[frozenset[Endpoint], list[Segment]] = defaultdict(list)
    for item in Case(name).packets():
        if isinstance(item, Packet) and isinstance(segment := reader.feed(item), Segment):
            by_ends[frozenset((segment.source, segment.destination))].append(segment)
    return by_ends.values()


# -- messages


def messages(data: bytes) -> None:
    """A request, or after a byte that is 1 to 255 a response: its API key and version, then its bytes."""
    kind, payload = data[:1], data[1:]
    try:
        if kind in (b"", b"\0"):
            look_at_message(parse_request(_frame(payload)))
        elif len(payload) >= 3:
            look_at_message(parse_response(_frame(payload[2:]), payload[0], payload[1]))
    except DecodeError:
        pass


def _frame(payload: bytes) -> Frame:
    return Frame(Direction.TO_BROKER, 0, payload, len(payload), 1, 0, 1, 0, (1,))


def message_seeds() -> Iterator[bytes]:
    seen = set()
    for name in ("sweep-44", "sweep-39", "java43-basic", "broker-0.9"):
        for exchange in dissected_case(name).exchanges:
            key, version = exchange.api_key, exchange.api_version
            if key is None or version is None or (key, version) in seen:
                continue
            seen.add((key, version))
            if exchange.request is not None:
                yield b"\0" + exchange.request.frame.payload[:2_000]
            if exchange.response is not None:
                yield bytes((1, key, version)) + exchange.response.frame.payload[:2_000]


# -- records


def records(data: bytes) -> None:
    """A record set."""
    look_at_records(data)


def record_seeds() -> Iterator[bytes]:
    for name in ("librdkafka-new", "zk39-ibp28", "java39-transactions", "broker-0.9"):
        for exchange in dissected_case(name).exchanges:
            for place in exchange.record_sets():
                if 0 < len(place.data) <= 2_000:
                    yield place.data


# -- TLS

TLS_SEEDS = ("tls13", "tls12-aiokafka")


@cache
def _secrets() -> bytes:
    """Those of the seeds, pickled: they are told once, and each input has its own."""
    secrets = TlsSecrets()
    for name in TLS_SEEDS:
        secrets.add((Case(name).folder / "keys.log").read_bytes())
    return pickle.dumps(secrets)


def tls(data: bytes) -> None:
    """Both directions of a TLS connection: a byte with the side, a length, the bytes."""
    machine = Tls(pickle.loads(_secrets()))
    offsets, at, number = [0, 0], 0, 0
    while at + 3 <= len(data):
        side, length = data[at] & 1, int.from_bytes(data[at + 1 : at + 3], "big")
        part = data[at + 3 : at + 3 + length]
        at += 3 + length
        number += 1
        if part:
            _check_pieces(machine.feed(side, Chunk(offsets[side], part, number, number)))
            offsets[side] += len(part)
    _check_pieces(machine.close())
    machine.summary()
    assert machine.held_bytes == 0


def _check_pieces(pieces: Iterable[tuple[int, object]]) -> None:
    _check(piece for _, piece in pieces if isinstance(piece, Fault))


def tls_seeds() -> Iterator[bytes]:
    for name in TLS_SEEDS:
        for packets in list(_connections(name))[:4]:
            out = b""
            for segment in packets:
                if segment.payload and len(out) < 8_000:
                    side = 0 if segment.source == packets[0].source else 1
                    out += bytes((side,)) + len(segment.payload).to_bytes(2, "big") + segment.payload
            yield out


# -- log directories

_TEXTS = ("offset-checkpoint", "leader-epoch-checkpoint", "quorum-state", "properties")
_INDEXES = (OFFSET, TIME, TRANSACTION)


def logdir(data: bytes) -> None:
    """A file of a log directory, after a byte that says of which kind."""
    kind, content = data[:1], data[1:]

    def read_at(position: int, size: int) -> bytes:
        return content[position : position + size]

    which = kind[0] % 9 if kind else 0
    if which == 0:
        for _, batch in read_batches(read_at, len(content), base_offset=0):
            if isinstance(batch, Batch):
                batch.records()
                _check(batch.faults)
            else:
                _check([batch])
    elif which <= 3:
        _check(each for each in read_entries(_INDEXES[which - 1], read_at, len(content), 7)
               if isinstance(each, Fault))  # fmt: skip
    elif which == 4:
        _check(read_snapshot(content)[1])
    else:
        _check(each for each in read_facts(_TEXTS[which - 5], content) if isinstance(each, Fault))


def logdir_seeds() -> Iterator[bytes]:
    wanted = {
        ".log": 0, ".index": 1, ".timeindex": 2, ".txnindex": 3, ".snapshot": 4,
        "-offset-checkpoint": 5, "leader-epoch-checkpoint": 6, "quorum-state": 7, ".properties": 8,
    }  # fmt: skip
    counts: defaultdict[int, int] = defaultdict(int)
    with tarfile.open(fileobj=io.BytesIO(lzma.decompress((DATA / "logdirs.tar.xz").read_bytes()))) as archive:
        for member in archive:
            which = next((number for suffix, number in wanted.items() if member.name.endswith(suffix)), None)
            file = archive.extractfile(member) if member.isfile() and which is not None else None
            if file is not None and which is not None and member.size and counts[which] < 12:
                counts[which] += 1
                yield bytes((which,)) + file.read(2_000)


TARGETS = {
    "capture": Target(capture, capture_seeds, ("kdissect.capture",)),
    "streams": Target(
        streams,
        stream_seeds,
        ("kdissect.tcp", "kdissect.session", "kdissect.protocol.framing", "kdissect.dissect"),
        largest=1_024,  # a dozen segments; bytes in the midst of which a frame is searched cost most
    ),
    "messages": Target(messages, message_seeds, ("kdissect.message", "kdissect.protocol"), largest=8_192),
    "records": Target(
        records,
        record_seeds,
        (
            *(
                "kdissect.record",
                "kdissect.embedded",
                "kdissect.protocol.cursor",
                "kdissect.protocol.json_text",
            ),
            *("kdissect.present.batches", "kdissect.present.plain_records", "kdissect.present.record_text"),
        ),
    ),
    "tls": Target(tls, tls_seeds, ("kdissect.tls",), largest=8_192),
    "logdir": Target(
        logdir, logdir_seeds, ("kdissect.logdir", "kdissect.record", "kdissect.protocol.cursor")
    ),
    "log": Target(
        log,
        log_seeds,
        ("kdissect.cli.commands.log", "kdissect.logdir", "kdissect.present"),
        largest=8_192,
    ),
    "schema": Target(
        schema,
        schema_seeds,
        (
            "kdissect.cli.commands.schema",
            "kdissect.protocol.importing",
            "kdissect.protocol.vetting",
            "kdissect.protocol.merging",
            "kdissect.protocol.definition",
        ),
        largest=8_192,
    ),
    "payload": Target(payload, payload_seeds, ("kdissect.payload",), largest=4_096),
    "config": Target(
        config,
        config_seeds,
        ("kdissect.cli.config", "kdissect.settings", "kdissect.present.columns", "tomllib"),
        largest=4_096,
    ),
}
