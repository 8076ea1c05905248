"""Captures of real brokers and clients: every packet, no fault, both paths alike, and back through the
writer."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from kdissect.capture.datagrams import DatagramReader
from kdissect.capture.files import read_packets
from kdissect.capture.pcapng import PcapngReader
from kdissect.capture.segments import SegmentReader
from kdissect.capture.writer import PcapngWriter
from kdissect.model import Packet, Secrets, Segment

LAB = Path(__file__).parents[1] / "data" / "lab"
CAPTURES = sorted(LAB.glob("*/capture*.zst"))

each_capture = pytest.mark.parametrize("path", CAPTURES, ids=lambda path: f"{path.parent.name}/{path.name}")


def test_the_captures_are_here() -> None:
    assert {"java43-basic", "ipv6", "broker-0.9"} <= {path.parent.name for path in CAPTURES}


@each_capture
def test_every_packet_is_read_without_a_fault(path: Path) -> None:
    items = list(read_packets([path]))
    packets = [item for item in items if isinstance(item, Packet)]
    assert len(packets) == json.loads((path.parent / "case.json").read_text())["stats"]["packets"]
    assert {type(item) for item in items} <= {Packet, Secrets}
    fast, thorough = SegmentReader(), DatagramReader()
    segments = [fast.feed(packet) for packet in packets]
    assert all(isinstance(segment, Segment) for segment in segments)
    assert segments == [thorough.feed(packet) for packet in packets]
    assert fast.close() == []


@each_capture
def test_what_is_written_reads_back_equal(path: Path) -> None:
    capture = read_packets([path])
    file = io.BytesIO()
    writer = PcapngWriter(file, capture.interfaces)
    given = [item for item in capture if isinstance(item, Packet | Secrets)]
    for item in given:
        writer.write(item)
    reader = PcapngReader(file.getvalue())
    found = reader.feed(file.getvalue()) + reader.close()
    assert found == given
    names = [interface[:4] for interface in reader.interfaces]
    assert names == [interface[:4] for interface in capture.interfaces]
