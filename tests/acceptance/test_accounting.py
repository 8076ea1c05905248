"""No byte goes astray: of every direction of every connection, the messages, the gaps and what was skipped
cover the stream, each byte once."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from kdissect.capture.files import read_packets
from kdissect.model import Fault
from tests.lab import CASES, Case, Dissected, dissected
from tests.shared import SHARED, requires_shared, shared

TCP_SHAPES = sorted(path.name for path in (SHARED / "testdata/tcp").glob("*.pcap")) if SHARED else []

_SAID = re.compile(r"([\d,]+) bytes? from (\S+?)(?: skipped)?: ")
"""How the message of a fault ``gap`` or ``skipped`` begins."""
_HEADLESS = re.compile(r"from (\S+): a frame of [\d,]+ bytes? at byte ([\d,]+), .* ([\d,]+) (?:is|are) left")
"""How that of a frame without a whole header begins, which is in no exchange."""


def check(path: Path) -> None:
    found = dissected(read_packets([path]))
    told = _told(found)
    for connection in found.connections:
        if connection.protocol != "kafka":
            assert connection.skipped_bytes == connection.bytes_to_broker + connection.bytes_from_broker
            continue
        if connection.tls is not None:
            continue  # offsets count what was decrypted; its bytes are accounted for in tests/tls
        sent = {
            connection.client: connection.bytes_to_broker,
            connection.broker: connection.bytes_from_broker,
        }
        for sender, captured in sent.items():
            ranges = told[connection.connection, sender]
            assert _end(sorted(ranges)) - _missing(found, connection.connection, sender) == captured


def _told(found: Dissected) -> dict[tuple[int, str], list[tuple[int, int]]]:
    """Of each connection and sender: the ranges of the stream of which anything is said."""
    told: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for exchange in found.exchanges:
        for message, sender in ((exchange.request, exchange.client), (exchange.response, exchange.broker)):
            if message is not None:
                frame = message.frame
                told[exchange.connection, sender].append(
                    (frame.offset, frame.offset + 4 + len(frame.payload))
                )
    for fault in found.faults:
        if fault.connection is None:
            continue
        if headless := _HEADLESS.match(fault.message):
            begin, captured = (int(headless[group].replace(",", "")) for group in (2, 3))
            told[fault.connection, headless[1]].append((begin, begin + 4 + captured))
        elif (said := _length(fault)) is not None and fault.offset is not None:
            length, sender = said
            told[fault.connection, sender].append((fault.offset, fault.offset + length))
    return told


def _length(fault: Fault) -> tuple[int, str] | None:
    """How many bytes of which sender a fault is about."""
    if fault.kind not in ("gap", "skipped"):
        return None
    said = _SAID.match(fault.message)
    assert said is not None, fault.message
    return int(said[1].replace(",", "")), said[2]


def _missing(found: Dissected, connection: int, sender: str) -> int:
    """Bytes that were not captured."""
    lengths = [
        said[0]
        for fault in found.faults
        if fault.kind == "gap" and fault.connection == connection and (said := _length(fault)) is not None
        if said[1] == sender
    ]
    return sum(lengths)


def _end(ranges: list[tuple[int, int]]) -> int:
    """Where the last range ends, each of which begins where the one before it ends."""
    position = 0
    for begin, end in ranges:
        assert begin == position
        position = end
    return position


@pytest.mark.parametrize("name", CASES)
def test_every_byte_of_a_lab_capture_is_accounted_for(name: str) -> None:
    check(Case(name).capture)


@requires_shared
@pytest.mark.parametrize("name", TCP_SHAPES)
def test_every_byte_is_accounted_for_in_every_shape_of_tcp(name: str) -> None:
    check(shared("testdata/tcp") / name)
