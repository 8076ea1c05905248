"""The captures for measuring speed: traffic of real brokers and clients many times over, and large captures
of made messages.

Made messages have versions that Wireshark 4.0 decodes too (Produce up to 8, Fetch up to 11), so that tshark
does the same work. Only the clients of ``modern`` use newer ones. Broker ports are 9092.
"""

from __future__ import annotations

import json
import random
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.traffic import FILE_HEAD, REAL, grow, multiply_real
from kdissect.model import ACK, PSH, SYN
from kdissect.protocol.encode import encode
from kdissect.protocol.schema import message_struct
from kdissect.record.compression import CODECS
from kdissect.record.records import Record
from kdissect.record.write import write_batch

ETHERNET_SEGMENT, JUMBO_SEGMENT = 1_448, 8_948
"""Payload bytes of a full segment, with TCP timestamps, at an MTU of 1,500 and of 9,000."""
VALUE_BYTES = 200
_BEGIN_NS = 1_700_000_000_000_000_000
_PORT = 9_092
_TOPICS = ("orders", "clicks", "payments", "metrics-by-minute")
_PRODUCE, _FETCH, _METADATA = 0, 1, 3
_PRODUCE_VERSION, _FETCH_VERSION, _METADATA_VERSION = 7, 11, 8


class Talk:
    """One connection: messages in, the packets of a capture out."""

    def __init__(self, number: int, segment_bytes: int) -> None:
        self._segment_bytes = segment_bytes
        client = bytes((10, number >> 16 & 0xFF, number >> 8 & 0xFF, number & 0xFF))
        broker = bytes((10, 255, 0, 1))
        self._ends = (client + broker, broker + client)
        port = 32_768 + number % 28_000
        self._ports = (struct.pack(">HH", port, _PORT), struct.pack(">HH", _PORT, port))
        self._next = [1_000, 5_000]
        self._identification = [0, 0]

    def opened(self, clock: Clock) -> Iterator[bytes]:
        """The handshake."""
        yield self._packet(0, SYN, b"", clock)
        self._next[0] += 1
        yield self._packet(1, SYN | ACK, b"", clock)
        self._next[1] += 1
        yield self._packet(0, ACK, b"", clock)

    def said(self, side: int, message: bytes, clock: Clock) -> Iterator[bytes]:
        """A message of the client (0) or broker (1). Every other full segment is acknowledged."""
        data = struct.pack(">I", len(message)) + message
        step = self._segment_bytes
        for count, at in enumerate(range(0, len(data), step)):
            piece = data[at : at + step]
            yield self._packet(side, ACK | (PSH if at + step >= len(data) else 0), piece, clock)
            self._next[side] = (self._next[side] + len(piece)) % (1 << 32)
            if count % 2:
                yield self._packet(1 - side, ACK, b"", clock)

    def _packet(self, side: int, flags: int, payload: bytes, clock: Clock) -> bytes:
        self._identification[side] = (self._identification[side] + 1) & 0xFFFF
        ack = self._next[1 - side] if flags & ACK else 0
        tcp = struct.pack(">IIBBHHH", self._next[side], ack, 8 << 4, flags, 65_535, 0, 0)
        options = b"\1\1\x08\x0a" + struct.pack(">II", clock.now_ns // 1_000_000 % (1 << 32), 0)
        size = 20 + 32 + len(payload)
        ip = struct.pack(">BBHHHBBH", 0x45, 0, size, self._identification[side], 0x4000, 64, 6, 0)
        data = bytes(12) + b"\x08\0" + ip + self._ends[side] + self._ports[side] + tcp + options + payload
        seconds, rest = divmod(clock.tick(), 1_000_000_000)
        return struct.pack("<IIII", seconds, rest, len(data), len(data)) + data


class Clock:
    """A clock that advances by 20 µs for each packet."""

    def __init__(self) -> None:
        self.now_ns = _BEGIN_NS

    def tick(self) -> int:
        self.now_ns += 20_000
        return self.now_ns


class Values:
    """Values like those of producers: JSON with many repetitions, but not only. Seeded."""

    def __init__(self, size: int = VALUE_BYTES) -> None:
        dice = random.Random(1)
        self._texts = []
        for number in range(5_000):
            value: dict[str, Any] = {
                "user": f"u-{dice.randrange(1_000_000):06}",
                "city": f"{dice.choice('KLMNPRST')}{'aeiou'[number % 5]}{dice.randrange(300)}burg",
                "amount": dice.randrange(100_000) / 100,
                "state": dice.choice(("new", "paid", "sent", "returned")),
            }
            text = json.dumps(value)[:-1] + ', "note": "'
            self._texts.append(
                (text + f"{dice.getrandbits(8 * size):x}"[: size - len(text) - 2] + '"}').encode()
            )

    def batch(self, first: int, count: int, codec: int) -> bytes:
        """A record batch of magic 2."""
        records = [
            Record(
                number,
                _BEGIN_NS // 1_000_000 + number,
                b"k-%d" % (number % 10_000),
                self._texts[number % 5_000],
            )
            for number in range(first, first + count)
        ]
        return write_batch(records, codec)


def request(api_key: int, version: int, correlation: int, body: dict[str, Any]) -> bytes:
    """A request without its size, in a version that is not flexible."""
    head = struct.pack(">hhih", api_key, version, correlation, 7) + b"bench-1"
    return head + encode(message_struct(api_key, version, "request"), body)


def response(api_key: int, version: int, correlation: int, body: dict[str, Any]) -> bytes:
    """A response without its size, in a version that is not flexible."""
    return struct.pack(">i", correlation) + encode(message_struct(api_key, version, "response"), body)


def produced(correlation: int, topic: str, data: bytes) -> tuple[bytes, bytes]:
    """A Produce request and the response to it."""
    partition = {"index": correlation % 6, "records": data}
    asked = {"acks": -1, "timeoutMs": 30_000, "topicData": [{"name": topic, "partitionData": [partition]}]}
    stored = {"index": correlation % 6, "errorCode": 0, "baseOffset": correlation, "logAppendTimeMs": -1}
    answered = {"responses": [{"name": topic, "partitionResponses": [stored]}]}
    return (
        request(_PRODUCE, _PRODUCE_VERSION, correlation, asked),
        response(_PRODUCE, _PRODUCE_VERSION, correlation, answered),
    )


def fetched(correlation: int, topic: str, sets: list[bytes]) -> tuple[bytes, bytes]:
    """A Fetch request and the response to it, with a partition for each record set."""
    wanted = [
        {"partition": at, "fetchOffset": correlation, "partitionMaxBytes": 1 << 20} for at in range(len(sets))
    ]
    asked = {
        "replicaId": -1,
        "maxWaitMs": 500,
        "minBytes": 1,
        "topics": [{"topic": topic, "partitions": wanted}],
    }
    given = [
        {"partitionIndex": at, "errorCode": 0, "highWatermark": correlation, "records": data}
        for at, data in enumerate(sets)
    ]
    answered = {"responses": [{"topic": topic, "partitions": given}]}
    return (
        request(_FETCH, _FETCH_VERSION, correlation, asked),
        response(_FETCH, _FETCH_VERSION, correlation, answered),
    )


def described(correlation: int, topics: int) -> tuple[bytes, bytes]:
    """A Metadata request for all topics and the response to it."""
    brokers = [{"nodeId": node, "host": f"broker-{node}.example.com", "port": _PORT} for node in range(3)]
    found = []
    for number in range(topics):
        partitions = [
            {"partitionIndex": at, "leaderId": at, "replicaNodes": [0, 1, 2], "isrNodes": [0, 1, 2]}
            for at in range(3)
        ]
        found.append({"errorCode": 0, "name": f"topic-{number}", "partitions": partitions})
    return (
        request(_METADATA, _METADATA_VERSION, correlation, {"topics": None}),
        response(_METADATA, _METADATA_VERSION, correlation, {"brokers": brokers, "topics": found}),
    )


Exchanges = Iterator[tuple[bytes, bytes]]


def _dense(values: Values) -> Exchanges:
    """One small record in each message, and polls without records."""
    correlation = 0
    while True:
        data = values.batch(correlation, 1, 0)
        yield produced(correlation + 1, _TOPICS[correlation % 4], data)
        yield fetched(correlation + 2, _TOPICS[correlation % 4], [data])
        yield fetched(correlation + 3, _TOPICS[correlation % 4], [b""])
        correlation += 3


def _bulk(values: Values, codec: int) -> Exchanges:
    """Produced batches of 80 records (the Java client's 16 KiB), and fetches of eight batches at a time."""
    correlation = 0
    while True:
        sets = [values.batch(correlation * 80 + at, 80, codec) for at in range(0, 640, 80)]
        for data in sets:
            correlation += 1
            yield produced(correlation, _TOPICS[correlation % 4], data)
        correlation += 1
        yield fetched(correlation, _TOPICS[correlation % 4], [b"".join(sets[:4]), b"".join(sets[4:])])


def _metadata(topics: int) -> Exchanges:
    correlation = 0
    while True:
        correlation += 1
        yield described(correlation, topics)


def write(path: Path, size: int, exchanges: Exchanges, segment_bytes: int, connections: int) -> None:
    """Write a capture of about ``size`` bytes, in which connections take turns."""
    clock = Clock()
    talks = [Talk(number, segment_bytes) for number in range(connections)]
    with open(path, "wb", buffering=1 << 20) as file:
        file.write(FILE_HEAD)
        for talk in talks:
            file.writelines(talk.opened(clock))
        turn = 0
        # The messages of some rounds are made once and repeated, because making them takes longer than
        # everything else.
        said: list[tuple[bytes, bytes]] = []
        made = 0
        while file.tell() < size:
            if made < 16 << 20:
                said.append(next(exchanges))
                made += len(said[-1][0]) + len(said[-1][1])
            asked, answered = said[turn % len(said)]
            talk = talks[turn % connections]
            file.writelines(talk.said(0, asked, clock))
            file.writelines(talk.said(1, answered, clock))
            turn += 1


def _codec(codec: int) -> Callable[[Path, int], None]:
    return lambda path, size: write(path, size, _bulk(Values(), codec), ETHERNET_SEGMENT, 4)


def _lab(case: str) -> Callable[[Path, int], None]:
    return lambda path, size: multiply_real(path, case, size)


KINDS: dict[str, Callable[[Path, int], None]] = {
    **{case: _lab(case) for case in REAL},
    "modern": grow,
    "dense": lambda path, size: write(path, size, _dense(Values(100)), ETHERNET_SEGMENT, 20),
    **{f"bulk-{name}": _codec(codec) for codec, name in enumerate(CODECS)},
    "jumbo": lambda path, size: write(path, size, _bulk(Values(), 0), JUMBO_SEGMENT, 4),
    "connections": lambda path, size: write(path, size, _dense(Values(100)), ETHERNET_SEGMENT, 5_000),
    "metadata": lambda path, size: write(path, size, _metadata(1_000), ETHERNET_SEGMENT, 4),
}
"""The functions that write captures, by the names of the captures."""


def main(name: str, path: str, size: str) -> None:
    """Write one of :data:`KINDS`, of about ``size`` bytes."""
    KINDS[name](Path(path), int(size))


if __name__ == "__main__":
    main(*sys.argv[1:])
