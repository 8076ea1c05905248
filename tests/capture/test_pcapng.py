"""pcapng files: sections, interfaces, clocks, every block with packets, and damage."""

from __future__ import annotations

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.capture.pcapng import PcapngReader
from kdissect.capture.reader import Interface, Item
from kdissect.limits import DEFAULTS
from kdissect.model import CaptureError, Fault, Packet, Secrets
from tests.capture.build import block, enhanced, interface, obsolete, option, padded, section, simple

BEGIN = section() + interface()


def read(data: bytes, piece: int = 1 << 20) -> list[Item]:
    reader = PcapngReader(data)
    items: list[Item] = []
    for at in range(0, len(data), piece):
        items += reader.feed(data[at : at + piece])
    return items + reader.close()


def packets(items: list[Item]) -> list[bytes]:
    return [item.data for item in items if isinstance(item, Packet)]


def faults(items: list[Item]) -> list[tuple[str, int | None]]:
    return [(item.kind, item.offset) for item in items if isinstance(item, Fault)]


@pytest.mark.parametrize("order", ["<", ">"])
def test_reads_the_three_kinds_of_packet_blocks(order: str) -> None:
    data = (
        section(order)
        + interface(101, order=order)
        + enhanced(b"first", 7, wire_length=60, order=order)
        + simple(b"second", order=order)
        + obsolete(b"third", 1 << 33, drops=9, order=order)
    )
    assert read(data) == [
        Packet(1, 7_000, 101, b"first", 60),
        Packet(2, 0, 101, b"second", 6),
        Packet(3, (1 << 33) * 1_000, 101, b"third", 5),
    ]


def test_a_simple_packet_is_as_long_as_the_snap_length_lets_it() -> None:
    data = section() + interface(1, snap_length=4) + simple(b"four", wire_length=1_000)
    assert read(data) == [Packet(1, 0, 1, b"four", 1_000)]


@pytest.mark.parametrize(
    ("options", "ticks", "expected"),
    [
        (b"", 3, 3_000),
        (option(9, b"\x09"), 3, 3),
        (option(9, b"\x00"), 3, 3_000_000_000),
        (option(9, b"\x0c"), 2_999, 2),
        (option(9, b"\x81"), 3, 1_500_000_000),
        (option(9, b"\xa0"), 1 << 32, 1_000_000_000),
        (option(9, b"\xff"), 1 << 63, 0),
        (option(14, pack("<q", 10)), 1, 10_000_001_000),
        (option(14, pack("<q", -1)), 0, -1_000_000_000),
        (option(9, b"\x09") + option(14, pack("<q", 1)), 5, 1_000_000_005),
    ],
)
def test_times_follow_the_interface_clock(options: bytes, ticks: int, expected: int) -> None:
    items = read(section() + interface(options=options) + enhanced(b"x", ticks))
    assert [item.timestamp_ns for item in items if isinstance(item, Packet)] == [expected]


def test_a_time_beyond_64_bits_is_a_fault_and_the_packet_stays() -> None:
    items = read(section() + interface(options=option(9, b"\x00")) + enhanced(b"x", (1 << 64) - 1))
    assert items[0] == Packet(1, 0, 1, b"x", 1)
    assert isinstance(items[1], Fault)
    assert (items[1].kind, items[1].packet) == ("bad-block", 1)


def test_each_section_has_its_own_interfaces_and_byte_order() -> None:
    reader = PcapngReader(section())
    data = (
        section()
        + interface(1, options=option(2, b"eth0") + option(3, b"the first"))
        + interface(113, options=option(9, b"\x09"))
        + enhanced(b"a", 1, 0)
        + enhanced(b"b", 1, 1)
        + section(">")
        + interface(276, 96, order=">")
        + enhanced(b"c", 1, 0, order=">")
    )
    items = reader.feed(data) + reader.close()
    assert items == [
        Packet(1, 1_000, 1, b"a", 1, 0),
        Packet(2, 1, 113, b"b", 1, 1),
        Packet(3, 1_000, 276, b"c", 1, 2),
    ]
    assert reader.interfaces == [
        Interface(1, 0, "eth0", "the first"),
        Interface(113),
        Interface(276, 96),
    ]


@pytest.mark.parametrize("make", [enhanced, obsolete])
def test_comments_are_kept(make: type[enhanced] | type[obsolete]) -> None:  # type: ignore[valid-type]
    options = option(1, "grüß".encode()) + option(2, bytes(4)) + option(1, b"\xff") + option(0, b"")
    items = read(BEGIN + make(b"data", options=options))  # type: ignore[misc]
    assert [item.comments for item in items if isinstance(item, Packet)] == [("grüß", "\ufffd")]


def test_secrets_are_given_in_their_place() -> None:
    secrets = block(0x0A, pack("<II", 0x544C534B, 5) + padded(b"keys\n"))
    items = read(BEGIN + enhanced(b"a") + secrets + enhanced(b"b"))
    assert items[1] == Secrets(0x544C534B, b"keys\n")
    assert packets(items) == [b"a", b"b"]


def test_other_blocks_are_passed_over_without_a_word() -> None:
    others = b"".join(block(kind, b"whatever") for kind in (4, 7, 0xBAD, 0x40000BAD, 0x7FFF1234))
    assert packets(read(section() + others + interface() + others + enhanced(b"x") + others)) == [b"x"]
    assert faults(read(BEGIN + others)) == []


def test_statistics_tell_the_packets_that_were_lost() -> None:
    counts = option(4, pack("<Q", 100)) + option(5, pack("<Q", 3)) + option(7, pack("<Q", 2))
    data = BEGIN + block(5, pack("<III", 0, 0, 0) + counts)
    reader = PcapngReader(data)
    assert reader.feed(data) + reader.close() == []
    (found,) = reader.interfaces
    assert found._replace(counts=None) == Interface(1, received=100, dropped=3, dropped_by_system=2)


def test_refuses_what_only_begins_like_pcapng() -> None:
    with pytest.raises(CaptureError, match="byte-order magic"):
        PcapngReader(b"\x0a\x0d\x0d\x0a" + bytes(24))
    with pytest.raises(CaptureError, match="cut short"):
        PcapngReader(section()[:10])


def with_length(data: bytes, length: int) -> bytes:
    return data[:4] + pack("<I", length) + data[8:]


@pytest.mark.parametrize("length", [0, 7, 8, 13, 44, 60, 4_000, 17 << 20, (1 << 31) - 4, (1 << 32) - 4])
def test_a_block_length_that_cannot_be_costs_its_block(length: int) -> None:
    head = BEGIN + enhanced(b"before" * 9)
    data = head + with_length(enhanced(b"damaged" * 5), length) + enhanced(b"after") + enhanced(b"end")
    items = read(data)
    assert packets(items) == [b"before" * 9, b"after", b"end"]
    assert faults(items) == [("bad-length", len(head))]


def test_lengths_that_disagree_cost_their_block() -> None:
    damaged = enhanced(b"damaged")[:-4] + pack("<I", 99)
    items = read(BEGIN + damaged + enhanced(b"after"))
    assert packets(items) == [b"after"]
    assert faults(items) == [("bad-length", len(BEGIN))]


def test_a_section_header_after_damage_is_found_in_either_byte_order() -> None:
    damaged = with_length(enhanced(b"damaged"), 0)
    second = section(">") + interface(101, order=">") + enhanced(b"second", order=">")
    items = read(BEGIN + damaged + second)
    assert packets(items) == [b"second"]
    assert faults(items) == [("bad-length", len(BEGIN))]


def test_damage_that_nothing_follows_is_one_fault() -> None:
    items = read(BEGIN + enhanced(b"good") + with_length(enhanced(b"damaged"), 5) + bytes(400))
    assert packets(items) == [b"good"]
    assert [kind for kind, _ in faults(items)] == ["bad-length"]


@pytest.mark.parametrize("cut", range(1, 36))
def test_a_cut_tail_is_a_fault_behind_the_whole_packets(cut: int) -> None:
    whole = BEGIN + enhanced(b"good")
    items = read(whole + enhanced(b"tail")[:cut])
    assert packets(items) == [b"good"]
    assert faults(items) == [("cut-short", len(whole))]


@pytest.mark.parametrize(
    ("damaged", "kind"),
    [
        (enhanced(b"x", number=999), "bad-interface"),
        (enhanced(b"x", captured=1 << 31), "bad-block"),
        (enhanced(b"x", captured=5), "bad-block"),
        (enhanced(b"x" * 300_000), "bad-block"),
        (simple(b"x", wire_length=100), "bad-block"),
        (obsolete(b"x", number=1), "bad-interface"),
        (block(6, b""), "bad-block"),
        (block(2, bytes(16)), "bad-block"),
        (block(3, b""), "bad-block"),
        (block(1, b""), "bad-block"),
        (block(5, bytes(8)), "bad-block"),
        (block(5, pack("<III", 8, 0, 0)), "bad-block"),
        (block(0x0A, pack("<II", 1, 100) + b"keys"), "bad-block"),
        (interface(options=b"\x02\0\xff\xff"), "bad-block"),
    ],
)
def test_contents_that_do_not_fit_cost_their_block_only(damaged: bytes, kind: str) -> None:
    items = read(BEGIN + damaged + enhanced(b"after"))
    assert packets(items) == [b"after"]
    assert faults(items) == [(kind, len(BEGIN))]


def test_a_broken_interface_keeps_its_number() -> None:
    items = read(section() + block(1, b"") + interface(101) + enhanced(b"x", number=1))
    assert [(item.link_type, item.interface) for item in items if isinstance(item, Packet)] == [(101, 0)]


def test_broken_options_cost_themselves_only() -> None:
    items = read(BEGIN + enhanced(b"data", options=option(1, b"said") + pack("<HH", 1, 500)))
    assert items[0] == Packet(1, 0, 1, b"data", 4, 0, ("said",))
    assert faults(items) == [("bad-block", len(BEGIN))]


@given(
    st.lists(
        st.sampled_from(
            [enhanced(b"x"), with_length(enhanced(b"y" * 30), 13), section(">"), BEGIN, b"\6\0\0\0"]
        )
    ),
    st.integers(1, 90),
    st.integers(0, 60),
)
def test_pieces_of_any_size_give_the_same(blocks: list[bytes], piece: int, cut: int) -> None:
    data = BEGIN + b"".join(blocks)
    data = data[: max(len(BEGIN), len(data) - cut)]
    assert read(data, piece) == read(data)


def test_no_more_than_one_block_waits() -> None:
    reader = PcapngReader(BEGIN, DEFAULTS._replace(block_bytes=1_000))
    reader.feed(BEGIN)
    for _ in range(100):
        reader.feed(b"\6\0\0\0" * 400)
        assert reader._waiting_bytes <= 2_600
