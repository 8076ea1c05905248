"""pcap files: every magic, lengths that lie, and where reading goes on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.capture.pcap import HEADER_BYTES, PcapReader
from kdissect.capture.reader import Item
from kdissect.limits import DEFAULTS
from kdissect.model import CaptureError, Fault, Packet
from tests.capture.build import pcap, record

SECOND = 1_000_000_000
START = 1_700_000_000


def read(data: bytes, piece: int = 1 << 20) -> list[Item]:
    reader = PcapReader(data)
    items: list[Item] = []
    for at in range(HEADER_BYTES, len(data), piece):
        items += reader.feed(data[at : at + piece])
    return items + reader.close()


def packets(items: list[Item]) -> list[bytes]:
    return [item.data for item in items if isinstance(item, Packet)]


def faults(items: list[Item]) -> list[tuple[str, int | None]]:
    return [(item.kind, item.offset) for item in items if isinstance(item, Fault)]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "unit"), [(0xA1B2C3D4, 1_000), (0xA1B23C4D, 1)])
def test_reads_every_magic_in_its_unit_and_byte_order(order: str, magic: int, unit: int) -> None:
    data = pcap([record(b"one", START, 5, 60, order=order), record(b"two", order=order)], order, magic, 113)
    assert read(data)[0] == Packet(1, START * SECOND + 5 * unit, 113, b"one", 60)
    assert packets(read(data)) == [b"one", b"two"]


def test_reads_the_modified_format_where_its_records_prove_it() -> None:
    records = [record(b"packet %d" % i, START + i, extra=bytes(8)) for i in range(3)]
    assert packets(read(pcap(records, magic=0xA1B2CD34))) == [b"packet 0", b"packet 1", b"packet 2"]


def test_refuses_the_modified_magic_on_records_of_the_usual_form() -> None:
    with pytest.raises(CaptureError, match="modified"):
        PcapReader(pcap([record(b"x" * 54) for _ in range(3)], magic=0xA1B2CD34))


def test_refuses_other_versions_and_a_cut_header() -> None:
    with pytest.raises(CaptureError, match=r"version 3\.1"):
        PcapReader(pcap(version=(3, 1)))
    with pytest.raises(CaptureError, match=r"version 2\.5; 2\.0 to 2\.4 can be read"):
        PcapReader(pcap(version=(2, 5)))
    with pytest.raises(CaptureError, match="10 of 24"):
        PcapReader(pcap()[:10])


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("minor", [0, 1, 2])
def test_versions_before_2_3_have_the_lengths_the_other_way_round(minor: int, order: str) -> None:
    # The first length is that on the wire: the helper writes the captured one there.
    records = [
        record(b"cut", captured=60, wire_length=3, order=order),
        record(b"whole", captured=5, wire_length=5, order=order),
        record(b"cut", captured=70_000, wire_length=3, order=order),
    ]
    found = read(pcap(records, order, version=(2, minor)), piece=7)
    assert [(p.data, p.wire_length) for p in found if isinstance(p, Packet)] == [
        (b"cut", 60),
        (b"whole", 5),
        (b"cut", 70_000),
    ]
    assert not faults(found)


def test_version_2_3_has_either_order_and_the_smaller_length_is_the_captured_one() -> None:
    records = [record(b"cut", captured=60, wire_length=3), record(b"cut", captured=3, wire_length=60)]
    found = read(pcap([*records, record(b"whole")], version=(2, 3)))
    assert [(p.data, p.wire_length) for p in found if isinstance(p, Packet)] == [
        (b"cut", 60),
        (b"cut", 60),
        (b"whole", 5),
    ]
    assert not faults(found)


@pytest.mark.parametrize("minor", [0, 2, 3])
def test_lengths_that_lie_are_told_in_old_versions_too(minor: int) -> None:
    good = record(b"whole")
    found = read(pcap([good, record(b"x", captured=1 << 31, wire_length=1 << 31)], version=(2, minor)))
    assert packets(found) == [b"whole"]
    assert [kind for kind, _ in faults(found)] == ["bad-length"]
    assert faults(read(pcap([good, good[:-2]], version=(2, minor))))[0][0] == "cut-short"


def test_files_of_several_versions_one_behind_the_other_are_read() -> None:
    old = pcap([record(b"old", captured=60, wire_length=3)], version=(2, 1))
    new = pcap([record(b"new", wire_length=60)])
    assert packets(read(old + new + old)) == [b"old", b"new", b"old"]


def test_masks_the_bits_that_tell_of_a_frame_check_sequence() -> None:
    reader = PcapReader(pcap([record(b"x")], link_type=0x5400_0001))
    assert reader.interfaces[0].link_type == 1


def test_times_at_the_edges_are_numbers_like_others() -> None:
    items = read(pcap([record(b"a", 0xFFFFFFFF, 500), record(b"b", 0, 0xFFFFFFFF)]))
    assert [item.timestamp_ns for item in items if isinstance(item, Packet)] == [
        0xFFFFFFFF * SECOND + 500_000,
        0xFFFFFFFF * 1_000,
    ]


@pytest.mark.parametrize("cut", [1, 15, 16, 17, 19])
def test_a_cut_tail_is_a_fault_behind_the_whole_packets(cut: int) -> None:
    whole = pcap([record(b"good")])
    items = read(whole + record(b"tail")[:cut])
    assert packets(items) == [b"good"]
    assert faults(items) == [("cut-short", len(whole))]


@pytest.mark.parametrize("captured", [300_000, 1 << 31, (1 << 32) - 1])
def test_a_length_that_cannot_be_costs_its_record_where_the_other_length_leads_on(captured: int) -> None:
    head = pcap([record(b"before")])
    data = head + record(b"damaged", captured=captured) + record(b"after") + record(b"end")
    items = read(data)
    assert packets(items) == [b"before", b"after", b"end"]
    assert faults(items) == [("bad-length", len(head))]


@pytest.mark.parametrize(("more", "kept"), [(0, True), (1, False)])
def test_the_longest_packet_is_one_of_the_limit(more: int, kept: bool) -> None:
    longest = b"x" * (DEFAULTS.packet_bytes + more)
    items = read(pcap([record(b"before"), record(longest), record(b"after"), record(b"end")]))
    assert (longest in packets(items)) is kept
    assert [kind for kind, _ in faults(items)] == ([] if kept else ["bad-length"])


def test_a_length_that_cannot_be_in_the_last_record_ends_the_file() -> None:
    items = read(pcap([record(b"before"), record(b"damaged", captured=1 << 31)]))
    assert packets(items) == [b"before"]
    assert [kind for kind, _ in faults(items)] == ["bad-length"]


def test_reading_stops_where_no_next_record_is_sure() -> None:
    head = pcap([record(b"before")])
    damaged = record(b"damaged", captured=1 << 31, wire_length=3)
    reader = PcapReader(head)
    items = reader.feed((head + damaged + record(b"after") * 5)[HEADER_BYTES:])
    assert packets(items) == [b"before"]
    assert reader.stopped
    assert reader.feed(record(b"more")) == []
    assert faults(items + reader.close()) == [("bad-length", len(head))]


def test_a_record_larger_than_its_packet_is_kept_and_told_once() -> None:
    items = read(pcap([record(b"first", wire_length=1), record(b"second", wire_length=1)]))
    assert packets(items) == [b"first", b"second"]
    assert faults(items) == [("bad-length", HEADER_BYTES)]


def test_joined_files_are_read_as_one_each_with_its_own_header() -> None:
    first = pcap([record(b"micro", START, 1)])
    second = pcap([record(b"nano", START, 1, order=">")], ">", 0xA1B23C4D, link_type=101)
    reader = PcapReader(first)
    items = reader.feed((first + second)[HEADER_BYTES:]) + reader.close()
    assert items == [
        Packet(1, START * SECOND + 1_000, 1, b"micro", 5, 0),
        Packet(2, START * SECOND + 1, 101, b"nano", 4, 1),
    ]
    assert [interface.link_type for interface in reader.interfaces] == [1, 101]


def test_joined_files_of_one_interface_share_its_index() -> None:
    one = pcap([record(b"x")])
    assert [item.interface for item in read(one * 3) if isinstance(item, Packet)] == [0, 0, 0]


def test_an_empty_packet_is_a_packet() -> None:
    assert packets(read(pcap([record(b""), record(b"x")]))) == [b"", b"x"]


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(1, 60), st.integers(0, 500))
def test_pieces_of_any_size_give_the_same(contents: list[bytes], piece: int, cut: int) -> None:
    data = pcap([record(content, captured=1 << 31 if content == b"\0" else None) for content in contents])
    data += pcap([record(b"joined")])
    data = data[: max(HEADER_BYTES, len(data) - cut)]
    assert read(data, piece) == read(data)


def test_no_more_than_one_record_waits() -> None:
    reader = PcapReader(pcap(), DEFAULTS._replace(packet_bytes=1_000))
    piece = record(b"x" * 900) * 3
    for _ in range(100):
        reader.feed(piece[:1_500])
        reader.feed(piece[1_500:])
        assert reader._waiting_bytes <= 916
