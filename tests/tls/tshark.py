"""What tshark, given the same key log, reads out of TLS: the differential of :mod:`tests.tls.test_tshark`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from kdissect.capture.segments import SegmentReader
from kdissect.capture.writer import PcapngWriter
from kdissect.client.packets import ConnectionPackets
from kdissect.model import Chunk, Direction, Endpoint, Fault, Gap, Packet, Segment, endpoint_text
from kdissect.tcp.duplex import Duplex
from kdissect.tls.decrypting import Tls
from kdissect.tls.keylog import TlsSecrets
from tests.tls.endpoints import CLIENT, START_NS, Flight

TSHARK = shutil.which("tshark")

SECONDS = 120

BROKER_END: Endpoint = bytes((10, 0, 0, 2)) + (9093).to_bytes(2, "big")

Said = tuple[bytes, bytes]
"""What the client and the broker of a connection said."""


def client_end(number: int) -> Endpoint:
    """Of the connection with this number."""
    return bytes((10, 0, 0, 1)) + (50_000 + number).to_bytes(2, "big")


def packets_of(connections: Iterable[Sequence[Flight]]) -> list[Packet]:
    """Connections, one after the other, as they would be captured."""
    out: list[Packet] = []

    def add(line: ConnectionPackets, sent: Iterable[object]) -> None:
        out.extend(line.packet(each) for each in sent)  # type: ignore[arg-type]

    for number, flights in enumerate(connections):
        line = ConnectionPackets(client_end(number), BROKER_END)
        add(line, line.open(len(out) + 1, START_NS + len(out) * 1000, None))
        for side, data in flights:
            direction = Direction.TO_BROKER if side == CLIENT else Direction.FROM_BROKER
            for at in range(0, len(data), 1460):  # what a packet holds
                part = data[at : at + 1460]
                add(line, line.data(len(out) + 1, START_NS + len(out) * 1000, direction, part))
        add(line, line.close(len(out) + 1, START_NS + len(out) * 1000, Direction.TO_BROKER))
    return out


def ours(packets: Iterable[Packet], secrets: TlsSecrets) -> list[Said]:
    """What our own machine reads out of each connection, by the first packet; gaps are left out, as tshark
    leaves them out."""
    reader = SegmentReader()
    connections: dict[frozenset[Endpoint], tuple[Duplex, Tls, list[bytearray]]] = {}
    for packet in packets:
        segment = reader.feed(packet)
        if isinstance(segment, Segment):
            key = frozenset((segment.source, segment.destination))
            if key not in connections:
                connections[key] = (Duplex(segment), Tls(secrets), [bytearray(), bytearray()])
            duplex, machine, found = connections[key]
            _feed(machine, duplex.feed(segment), found)
    for duplex, machine, found in connections.values():
        _feed(machine, duplex.close(), found)
        _collect(machine.close(), found)
    return [
        (bytes(found[machine.client or 0]), bytes(found[1 - (machine.client or 0)]))
        for _, machine, found in connections.values()
    ]


def _feed(machine: Tls, pieces: Iterable[tuple[int, Chunk | Gap | Fault]], found: list[bytearray]) -> None:
    for side, piece in pieces:
        if not isinstance(piece, Fault):
            _collect(machine.feed(side, piece), found)


def _collect(pieces: Iterable[tuple[int, Chunk | Gap | Fault]], found: list[bytearray]) -> None:
    for side, piece in pieces:
        if isinstance(piece, Chunk):
            found[side] += piece.data


def theirs(packets: Sequence[Packet], folder: Path, broker: Endpoint, *options: str) -> list[Said]:
    """What tshark reads out of each connection, by the first packet.

    :param options: with which it decrypts.
    """
    capture = folder / "capture.pcapng"
    with capture.open("wb") as file:
        writer = PcapngWriter(file)
        for packet in packets:
            writer.write(packet)
    reader = SegmentReader()
    ends = [each for each in map(reader.feed, packets) if isinstance(each, Segment)]
    count = len({frozenset((each.source, each.destination)) for each in ends})
    port = int.from_bytes(broker[-2:], "big")
    taps = [part for number in range(count) for part in ("-z", f"follow,tls,raw,{number}")]
    assert TSHARK is not None
    ran = subprocess.run(
        [TSHARK, "-r", str(capture), "-d", f"tcp.port=={port},tls", *options, "-q", *taps],
        capture_output=True,
        timeout=SECONDS,
        check=True,
        env={**os.environ, "WIRESHARK_CONFIG_DIR": str(folder)},
    )
    return _streams(ran.stdout.decode(), count, endpoint_text(broker))


_STREAM = re.compile(r"Filter: tcp\.stream eq (\d+)\nNode 0: (.*)\nNode 1: .*\n((?:\t?[0-9a-f]+\n)*)")


def _streams(text: str, count: int, broker: str) -> list[Said]:
    """The parts of what ``follow`` prints. Lines of the second node begin with a tab."""
    found: list[Said] = [(b"", b"")] * count
    for number, node, lines in _STREAM.findall(text):
        said = (bytearray(), bytearray())
        for line in lines.splitlines():
            said[line.startswith("\t")].extend(bytes.fromhex(line))
        if node == broker:
            said = said[1], said[0]
        found[int(number)] = bytes(said[0]), bytes(said[1])
    return found
