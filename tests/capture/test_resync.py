"""Where a block begins again after damage, and what only looks like one."""

from __future__ import annotations

from struct import pack

from kdissect.capture.pcap import HEADER_BYTES, PcapReader
from kdissect.capture.pcapng import PcapngReader
from kdissect.capture.reader import Item
from kdissect.capture.runs import PacketRun
from kdissect.model import Packet
from tests.capture.build import enhanced, interface, pcap, record, section

BEGIN = section() + interface()


def packets(data: bytes) -> list[bytes]:
    reader = PcapngReader(data)
    return [item.data for item in reader.feed(data) + reader.close() if isinstance(item, Packet)]


def damaged(payload: bytes) -> bytes:
    block = enhanced(payload)
    return block[:4] + pack("<I", 0) + block[8:]


def test_a_block_inside_a_damaged_packet_is_not_taken_for_the_next() -> None:
    assert packets(BEGIN + damaged(enhanced(b"inside") + b"text") + enhanced(b"after")) == [b"after"]


def test_blocks_out_of_line_are_not_taken_for_the_next() -> None:
    inside = b"x" + enhanced(b"inside") * 3 + b"xyz"
    assert packets(BEGIN + damaged(inside) + enhanced(b"after")) == [b"after"]


def test_a_record_after_a_damaged_one_must_fit_in_all_its_fields() -> None:
    for follower in (
        record(b"x", wire_length=0),
        record(b"x", seconds=1_800_000_000),
        record(b"x", fraction=1_000_000),
        record(b"x", captured=1 << 30),
    ):
        data = pcap([record(b"damaged", captured=1 << 31), follower, record(b"after")])
        reader = PcapReader(data)
        items = reader.feed(data[HEADER_BYTES:])
        assert [item for item in items if isinstance(item, Packet)] == []
        assert reader.stopped


def test_a_large_record_in_small_pieces_is_joined_only_when_it_is_whole() -> None:
    class Counting(PcapReader):
        reads = 0

        def _read(self, buffer: bytes, items: list[Item | PacketRun], final: bool) -> int:
            self.reads += 1
            return super()._read(buffer, items, final)

    data = record(bytes(200_000))
    reader = Counting(pcap())
    for at in range(len(data) - 1):
        assert not reader.feed(data[at : at + 1])
    assert len(reader.feed(data[-1:])) == 1
    assert reader.reads == 3
