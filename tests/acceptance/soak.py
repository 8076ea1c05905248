"""Long captures in little memory: however many connections, requests and bytes come, memory does not grow.

    python -m tests.acceptance.soak [--scale 1.0] [--real-limits] [SCENARIO ...]

Packets are made as they are read, so that nothing but kdissect holds them. Every scenario runs in a process
of its own; what it holds at the middle of its run must be what it holds at the end.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kdissect.dissect import Dissector, Event
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import RST, Endpoint, Fault, Segment
from kdissect.record.records import Record
from tests.acceptance.wire import packets
from tests.kafka import METADATA_RESPONSE_1, Talk, request, response
from tests.record.build import batch, bodies

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
MOST_BYTES = 400 * MIB
GROWTH = 0.05
"""How much of what is held at the middle may come to it up to the end: what allocators need."""
SLACK = 4 * MIB
PACKETS_BETWEEN_LOOKS = 500
BROKER: Endpoint = bytes((10, 0, 0, 2)) + (9092).to_bytes(2, "big")

CONNECTIONS = 1_000_000
REQUESTS = 1_000_000
STREAM_BYTES = 1_000_000_000


class Held(NamedTuple):
    """What a scenario took."""

    packets: int
    events: dict[str, int]
    middle: int
    """Resident bytes."""
    end: int
    peak: int
    seconds: float

    @property
    def is_flat(self) -> bool:
        """Whether nothing was added in the second half."""
        return self.end <= self.middle * (1 + GROWTH) + SLACK


def _client(number: int) -> Endpoint:
    return (0x0B000000 + number // 50_000).to_bytes(4, "big") + (10_000 + number % 50_000).to_bytes(2, "big")


def _moved(segments: list[Segment], number: int, at: int) -> Iterator[Segment]:
    """A conversation as that of another client, from packet ``at`` on."""
    client = _client(number)
    for segment in segments:
        at += 1
        if segment.source == BROKER:
            yield segment._replace(packet=at, timestamp_ns=at * 1_000, destination=client)
        else:
            yield segment._replace(packet=at, timestamp_ns=at * 1_000, source=client)


def _ask(correlation: int) -> bytes:
    return request("Metadata", 1, correlation, topics=[{"name": "orders"}])


def connections(scale: float) -> Iterator[Segment]:
    """A million, within seconds of capture time: two in three are closed, one of them by a reset."""
    talks = []
    for end in ("fin", "rst", "open"):
        talk = Talk(broker=BROKER).ask(_ask(1)).answer(response("Metadata", 1, 1, **METADATA_RESPONSE_1))
        if end == "fin":
            talk.close()
        elif end == "rst":
            talk._add(talk.client, flags=RST)
        talks.append(talk.segments)
    at = 0
    for number in range(int(CONNECTIONS * scale)):
        segments = talks[number % 3]
        yield from _moved(segments, number, at)
        at += len(segments)


def unanswered(scale: float) -> Iterator[Segment]:
    """A million requests, on one connection."""
    talk = Talk(broker=BROKER)
    for number in range(int(REQUESTS * scale)):
        talk.ask(_ask(number))
        yield from talk.segments
        at = talk.segments[-1].packet
        talk.segments = _Counting(at)
    yield from talk.segments


def unanswered_on_many(scale: float) -> Iterator[Segment]:
    """A million requests, five on a connection: in the middle there are more connections than the limit."""
    talk = Talk(broker=BROKER)
    for number in range(5):
        talk.ask(_ask(number))
    at = 0
    for number in range(int(REQUESTS * scale) // 5):
        yield from _moved(talk.segments, number, at)
        at += len(talk.segments)


def unknown(scale: float) -> Iterator[Segment]:
    """A million connections that say a kilobyte of something else."""
    segments = Talk(broker=BROKER).say(Talk().client, b"\0\0\1\0" + b"?" * 1_000).segments
    at = 0
    for number in range(int(CONNECTIONS * scale)):
        yield from _moved(segments, number, at)
        at += len(segments)


def stream(scale: float) -> Iterator[Segment]:
    """A gigabyte: fetched records of a megabyte a response."""
    yield from _fetches(STREAM_BYTES * scale)


def lossy_stream(scale: float) -> Iterator[Segment]:
    """The same of which one packet in twenty was lost."""
    randomly = random.Random(1)
    for segment in _fetches(STREAM_BYTES * scale):
        if randomly.random() > 0.05:
            yield segment


def one_sided_lossy_streams(scale: float) -> Iterator[Segment]:
    """The same of a hundred connections, of which the client's side was not captured."""
    randomly = random.Random(1)
    made = 0
    for number, segment in enumerate(_fetches(STREAM_BYTES * scale)):
        if segment.source == BROKER and randomly.random() > 0.05:
            made += 1
            # Each connection has its hundredth of the packets: a hole behind each of them.
            yield segment._replace(packet=made, timestamp_ns=made * 1_000, destination=_client(number % 100))


def _fetches(size: float) -> Iterator[Segment]:
    record = Record(0, 0, None, bytes(1_000))
    records = batch(bodies((record,) * 1_000), count=1_000, base_offset=0)
    partition = {
        "partitionIndex": 0, "errorCode": 0, "highWatermark": 1, "lastStableOffset": 1,
        "abortedTransactions": None, "records": b64encode(records).decode(),
    }  # fmt: skip
    topics = [{"topic": "orders", "partitions": [partition]}]
    answer = response("Fetch", 4, 0, throttleTimeMs=0, responses=topics)[4:]
    ask = request(
        "Fetch", 4, 0, replicaId=-1, maxWaitMs=500, minBytes=1, maxBytes=1 << 20, isolationLevel=0,
        topics=[{"topic": "orders", "partitions": []}],
    )  # fmt: skip
    talk = Talk(broker=BROKER)
    for number in range(1, int(size / len(answer)) + 1):
        correlation = number.to_bytes(4, "big")
        talk.ask(ask[:4] + correlation + ask[8:]).answer(correlation + answer)
        yield from talk.segments
        talk.segments = _Counting(talk.segments[-1].packet)


class _Counting(list[Segment]):
    """An empty list of segments of which so many were made before."""

    def __init__(self, before: int) -> None:
        super().__init__()
        self._before = before

    def __len__(self) -> int:
        return super().__len__() + self._before


SCENARIOS: dict[str, Callable[[float], Iterator[Segment]]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        *(connections, unanswered, unanswered_on_many, unknown),
        *(stream, lossy_stream, one_sided_lossy_streams),
    )
}


def scaled(scale: float) -> Limits:
    """Limits that a smaller run reaches as the whole run reaches the real ones."""
    return DEFAULTS._replace(
        connections=int(DEFAULTS.connections * scale), waiting_bytes=int(DEFAULTS.waiting_bytes * scale)
    )


def resident(what: str = "VmRSS") -> int:
    """Bytes of this process in memory, or with ``VmHWM`` the most there were."""
    found = re.search(rf"{what}:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def soak(name: str, scale: float, limits: Limits) -> Held:
    """Run a scenario, in this process."""
    dissector = Dissector(limits)
    begin = time.process_time()
    events: Counter[str] = Counter()
    looks: list[int] = []
    number = 0
    for number, item in enumerate(packets(SCENARIOS[name](scale)), 1):
        _count(dissector.feed(item), events)
        if number % PACKETS_BETWEEN_LOOKS == 0:
            looks.append(resident())
    _count(dissector.close(), events)
    seconds = time.process_time() - begin
    return Held(number, dict(events), looks[len(looks) // 2], looks[-1], resident("VmHWM"), seconds)


def _count(events: Iterable[Event], counts: Counter[str]) -> None:
    for event in events:
        if isinstance(event, Exchange):
            counts["exchanges" if event.missing is None else f"exchanges, {event.missing}"] += 1
        else:
            counts[event.kind if isinstance(event, Fault) else f"connections, {event.end}"] += 1


def soak_apart(name: str, scale: float, real_limits: bool = False) -> Held:
    """Run a scenario in a process of its own."""
    command = [sys.executable, "-m", "tests.acceptance.soak", "--here", "--scale", str(scale), name]
    if real_limits:
        command.append("--real-limits")
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT).stdout)
    return Held(*found)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.soak", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument(
        "--scale", type=float, default=1.0, help="a part of it, under limits as much smaller (default 1)"
    )
    parser.add_argument("--real-limits", action="store_true", help="a part of it under the real limits")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.scenarios or list(SCENARIOS)
    limits = DEFAULTS if options.real_limits else scaled(options.scale)
    if options.here:
        sys.stdout.write(json.dumps(soak(names[0], options.scale, limits)))
        return 0
    too_much = 0
    for name in names:
        held = soak_apart(name, options.scale, options.real_limits)
        is_fine = held.is_flat and held.peak < MOST_BYTES
        too_much += not is_fine
        sys.stdout.write(
            f"{name:26} {held.packets:>10,} packets {held.seconds:6.0f} s CPU"
            f"   middle {held.middle / MIB:4.0f}  end {held.end / MIB:4.0f}  peak {held.peak / MIB:4.0f} MiB"
            f"{'' if is_fine else '  TOO MUCH'}\n    {held.events}\n"
        )
        sys.stdout.flush()
    return 1 if too_much else 0


if __name__ == "__main__":
    sys.exit(main())
