"""The bytes of every direction of every connection are those that tshark follows, with reassembly of segments
that are out of order switched on; where they are not, it is listed here why."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from kdissect.capture.files import read_packets
from kdissect.capture.segments import SegmentReader
from kdissect.limits import DEFAULTS
from kdissect.model import SYN, Chunk, Endpoint, Fault, Gap, Packet, Segment, endpoint_text
from kdissect.tcp.duplex import Duplex, Piece
from tests.amount import some
from tests.lab import Case
from tests.shared import SHARED, requires_shared, shared

pytestmark = [
    pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed"),
    requires_shared,
]

SHAPES = sorted(path.stem for path in (SHARED / "testdata/tcp").glob("*.pcap")) if SHARED else []
LAB = ("ipv6", "java43-denied", "kafkajs-on-39", "sasl-scram-256", "midstream", "java43-basic-loss")

Said = dict[str, bytes]
"""By endpoint what it said, with a mark where bytes are missing."""

_MISSING_AT_THE_END = re.compile(rb"(\[\d+ bytes missing in capture file\])+\Z")
_NUL_BEHIND_MARK = re.compile(rb"(\[\d+ bytes missing in capture file\])\0")

TSHARK_IS_WRONG = {
    "02_ooo_far": "takes what comes five packets late for lost as soon as it is acknowledged",
    "19_port_reuse_same_isn": "takes two connections with the same initial numbers for one",
    "23_snaplen96": "follows no stream of which the snap length cut packets",
}
"""tshark 4.0.17; :mod:`tests.acceptance.test_tcp_shapes` says what is right."""


class Stream:
    """A connection, and what each side of it said."""

    def __init__(self, first: Segment) -> None:
        self.duplex = Duplex(first, DEFAULTS)
        self.said = {endpoint_text(endpoint): b"" for endpoint in self.duplex.endpoints}

    def take(self, pieces: Iterable[Piece]) -> None:
        for side, piece in pieces:
            if not isinstance(piece, Fault):
                self.said[endpoint_text(self.duplex.endpoints[side])] += _bytes(piece)


def _bytes(piece: Chunk | Gap) -> bytes:
    return piece.data if isinstance(piece, Chunk) else b"[%d bytes missing in capture file]" % piece.length


def ours(path: Path) -> list[Said]:
    """What kdissect says of each connection."""
    reader = SegmentReader(DEFAULTS)
    streams: list[Stream] = []
    latest: dict[frozenset[Endpoint], Stream] = {}
    for item in read_packets([path]):
        segment = reader.feed(item) if isinstance(item, Packet) else None
        if not isinstance(segment, Segment):
            continue
        ends = frozenset((segment.source, segment.destination))
        stream = latest.get(ends)
        if stream is None or (segment.flags & SYN and stream.duplex.is_reopened_by(segment)):
            stream = latest[ends] = Stream(segment)
            streams.append(stream)
        stream.take(stream.duplex.feed(segment))
    for stream in streams:
        stream.take(stream.duplex.close())
    return [stream.said for stream in streams]


def theirs(path: Path, streams: int) -> list[Said]:
    """What tshark follows."""
    follow = [word for number in range(streams) for word in ("-z", f"follow,tcp,raw,{number}")]
    options = ("-q", "-o", "tcp.reassemble_out_of_order:TRUE")
    command = ["tshark", "-r", str(path), *options, *follow]
    ran = subprocess.run(command, capture_output=True, check=False, timeout=120, text=True)
    found: dict[int, Said] = {}
    for part in ran.stdout.split("=" * 67):
        heading = re.search(r"Filter: tcp.stream eq (\d+)\nNode 0: (\S+)\nNode 1: (\S+)\n", part)
        if heading is not None:
            nodes = [heading[2], heading[3]]
            said = dict.fromkeys(nodes, b"")
            for line in part[heading.end() :].splitlines():
                said[nodes[line.startswith("\t")]] += bytes.fromhex(line)
            found[int(heading[1])] = {end: _NUL_BEHIND_MARK.sub(rb"\1", data) for end, data in said.items()}
    return [found[number] for number in range(streams)]


def differing(path: Path) -> list[int]:
    """The connections of which tshark says something else."""
    mine = ours(path)
    its = theirs(path, len(mine))
    # Of a side that said nothing tshark may not know the endpoint.
    return [
        number
        for number, (here, there) in enumerate(zip(mine, its, strict=True))
        if _as_followed(here) != _as_followed({end: there.get(end, b"") for end in here})
    ]


def _as_followed(said: Said) -> Said:
    """Up to the last bytes that were captured: tshark does not tell what is missing behind them."""
    return {end: _MISSING_AT_THE_END.sub(b"", data) for end, data in said.items()}


@pytest.mark.parametrize("name", some(SHAPES, 12, *TSHARK_IS_WRONG))
def test_the_bytes_of_every_shape_are_those_that_tshark_follows(name: str) -> None:
    assert bool(differing(shared(f"testdata/tcp/{name}.pcap"))) == (name in TSHARK_IS_WRONG)


@pytest.mark.parametrize("name", LAB)
def test_the_bytes_of_real_captures_are_those_that_tshark_follows(name: str) -> None:
    assert differing(Case(name).capture) == []


def test_where_tshark_is_wrong_the_bytes_are_those_of_the_capture_in_order() -> None:
    in_order = ours(shared("testdata/tcp/00_base.pcap"))
    assert ours(shared("testdata/tcp/02_ooo_far.pcap")) == in_order
