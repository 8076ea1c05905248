"""Any damage to a capture file gives packets and faults, never an exception, in bounded time."""

from __future__ import annotations

import io
import time
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kdissect.capture.files import read_packets
from kdissect.capture.pcapng import PcapngReader
from kdissect.capture.segments import SegmentReader
from kdissect.capture.writer import PcapngWriter
from kdissect.model import CaptureError, Fault, Packet, Secrets, Segment
from tests.amount import times
from tests.capture.build import pcap, record

DATA = Path(__file__).parents[1] / "data" / "lab"


def original(case: str) -> bytes:
    with zstandard.open(DATA / case / "capture.pcapng.zst", "rb") as file:
        data: bytes = file.read(40_000)
    return data


def as_pcap(data: bytes) -> bytes:
    reader = PcapngReader(data)
    items = reader.feed(data)
    packets = [item for item in items if isinstance(item, Packet)]
    return pcap([record(p.data, p.timestamp_ns // 10**9, wire_length=p.wire_length) for p in packets])


NG = original("java43-basic")
CLASSIC = as_pcap(NG)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from([NG, CLASSIC])))
    for _ in range(draw(st.integers(1, 12))):
        at = draw(st.integers(0, len(data) - 1))
        change = draw(st.sampled_from(["byte", "insert", "delete", "zero", "repeat"]))
        if change == "byte":
            data[at] = draw(st.integers(0, 255))
        elif change == "insert":
            data[at:at] = draw(st.binary(max_size=9))
        elif change == "delete":
            del data[at : at + draw(st.integers(1, 300))]
        elif change == "zero":
            data[at : at + 8] = bytes(8)
        else:
            data[at:at] = data[: draw(st.integers(1, 2_000))]
        if not data:
            break
    return bytes(data)


@settings(
    max_examples=times(50, 150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(mutated())
def test_any_damage_gives_packets_and_faults(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "capture"
    path.write_bytes(data)
    begin = time.process_time()
    try:
        items = list(read_packets([path]))
    except CaptureError:
        return
    reader = SegmentReader()
    writer = PcapngWriter(io.BytesIO())
    for item in items:
        assert isinstance(item, Packet | Secrets | Fault)
        if isinstance(item, Packet):
            found = reader.feed(item)
            assert found is None or isinstance(found, Segment | Fault)
            writer.write(item)
    assert sum(len(item.data) for item in items if isinstance(item, Packet)) <= len(data)
    assert time.process_time() - begin < 5


@pytest.mark.parametrize("at", range(400, 4_000, 97))
def test_one_wrong_byte_in_a_block_costs_few_packets(at: int) -> None:
    data = NG[:at] + bytes((NG[at] ^ 0xFF,)) + NG[at + 1 :]
    reader = PcapngReader(data)
    items = reader.feed(data) + reader.close()
    whole = PcapngReader(NG)
    wanted = sum(isinstance(item, Packet) for item in whole.feed(NG) + whole.close())
    assert sum(isinstance(item, Packet) for item in items) >= wanted - 1
