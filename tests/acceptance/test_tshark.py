"""The bytes of every direction of every connection are those that tshark follows, with reassembly of segments
that are out of order switched on; where they are not, it is listed here why."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from kdissect.capture.files import read_packets
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Chunk, Fault, Gap, Segment, endpoint_text
from kdissect.session import conversation
from kdissect.tcp.duplex import Duplex, Piece
from tests.lab import Case, dissected
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


class WatchedDuplex(Duplex):
    """A Duplex that keeps what it gives out."""

    made: ClassVar[list[WatchedDuplex]] = []
    __slots__ = ("pieces",)

    def __init__(self, segment: Segment, limits: Limits = DEFAULTS) -> None:
        super().__init__(segment, limits)
        self.pieces: list[Piece] = []
        self.made.append(self)

    def feed(self, segment: Segment) -> Sequence[Piece]:
        return self._note(super().feed(segment))

    def close(self) -> Sequence[Piece]:
        return self._note(super().close())

    def _note(self, pieces: Sequence[Piece]) -> Sequence[Piece]:
        self.pieces += pieces
        return pieces

    def said(self) -> Said:
        """What both sides said."""
        out = {endpoint_text(endpoint): b"" for endpoint in self.endpoints}
        for side, piece in self.pieces:
            if not isinstance(piece, Fault):
                out[endpoint_text(self.endpoints[side])] += _bytes(piece)
        return out


def _bytes(piece: Chunk | Gap) -> bytes:
    return piece.data if isinstance(piece, Chunk) else b"[%d bytes missing in capture file]" % piece.length


def ours(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Said]:
    """What kdissect says of each connection."""
    monkeypatch.setattr(WatchedDuplex, "made", [])
    monkeypatch.setattr(conversation, "Duplex", WatchedDuplex)
    dissected(read_packets([path]))
    return [duplex.said() for duplex in WatchedDuplex.made]


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


def differing(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The connections of which tshark says something else."""
    mine = ours(path, monkeypatch)
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


@pytest.mark.parametrize("name", SHAPES)
def test_the_bytes_of_every_shape_are_those_that_tshark_follows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert bool(differing(shared(f"testdata/tcp/{name}.pcap"), monkeypatch)) == (name in TSHARK_IS_WRONG)


@pytest.mark.parametrize("name", LAB)
def test_the_bytes_of_real_captures_are_those_that_tshark_follows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert differing(Case(name).capture, monkeypatch) == []


def test_where_tshark_is_wrong_the_bytes_are_those_of_the_capture_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_order = ours(shared("testdata/tcp/00_base.pcap"), monkeypatch)
    assert ours(shared("testdata/tcp/02_ooo_far.pcap"), monkeypatch) == in_order
