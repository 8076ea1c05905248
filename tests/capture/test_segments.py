"""Segments: what packets carry, what is broken; and the fast path agrees with the thorough one and with
dpkt's own reading of the whole packet."""

from __future__ import annotations

from struct import pack

import dpkt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.capture.datagrams import DatagramReader
from kdissect.capture.segments import SegmentReader
from kdissect.limits import DEFAULTS
from kdissect.model import ACK, FIN, RST, SYN, Fault, Packet, Segment
from tests.capture.build import (
    DESTINATION4,
    DESTINATION6,
    SOURCE4,
    SOURCE6,
    ends_of,
    ethernet,
    extension,
    ipv4,
    ipv6,
    ipv6_fragment,
    packet,
    tcp,
)

PORTS = pack(">H", 40_000), pack(">H", 9_092)


def read(data: bytes, link_type: int = 1, wire_length: int | None = None) -> Segment | Fault | None:
    return SegmentReader().feed(packet(data, link_type, 5, wire_length, 77))


def segment(data: bytes, link_type: int = 1, wire_length: int | None = None) -> Segment:
    found = read(data, link_type, wire_length)
    assert isinstance(found, Segment), found
    return found


def test_a_segment_has_the_headers_values() -> None:
    expected = Segment(
        5, 77, SOURCE4 + PORTS[0], DESTINATION4 + PORTS[1], 1_000, 2_000, 0x18, b"data", 4, 7 << 16, 0, 512
    )
    assert segment(ethernet(ipv4(tcp(b"data")))) == expected
    expected = expected._replace(source=SOURCE6 + PORTS[0], destination=DESTINATION6 + PORTS[1], identity=0)
    assert segment(ethernet(ipv6(tcp(b"data")), 0x86DD)) == expected


def test_a_segment_is_known_again_by_identification_and_checksum() -> None:
    header = bytearray(tcp(b"data"))
    header[16:18] = b"\xbe\xef"
    assert segment(ethernet(ipv4(bytes(header), identification=0x1234))).identity == 0x1234BEEF
    assert (
        segment(ethernet(ipv4(bytes(header), identification=0x1234, options=bytes(4)))).identity == 0x1234BEEF
    )
    assert segment(ethernet(ipv6(bytes(header)), 0x86DD)).identity == 0xBEEF
    cut = ethernet(ipv4(bytes(header), identification=0x1234))[:50]
    assert segment(cut, wire_length=58).identity == 0, "the checksum was not captured"


def test_without_the_flag_there_is_no_acknowledgement() -> None:
    assert segment(ethernet(ipv4(tcp(flags=SYN)))).ack is None
    assert segment(ethernet(ipv4(tcp(flags=SYN | FIN | 0xC0)))).flags == 0xC3


def test_padding_behind_the_ip_packet_is_cut_off() -> None:
    assert segment(ethernet(ipv4(tcp(b"ab")) + bytes(10))).payload == b"ab"
    assert segment(ethernet(ipv6(tcp(b"")) + b"fcs!", 0x86DD)).payload == b""


@pytest.mark.parametrize("wire_length", [None, 5_000])
def test_a_length_of_zero_means_all_there_was(wire_length: int | None) -> None:
    for data, headers in (
        (ethernet(ipv4(tcp(b"x" * 3_000), total=0)), 54),
        (ethernet(ipv6(tcp(b"x" * 3_000), length=0), 0x86DD), 74),
    ):
        found = segment(data, wire_length=wire_length)
        assert found.payload == b"x" * 3_000
        assert found.length == (3_000 if wire_length is None else 5_000 - headers)


@pytest.mark.parametrize("keep", [54, 55, 60])
def test_the_snap_length_cuts_the_payload_not_its_length(keep: int) -> None:
    data = ethernet(ipv4(tcp(b"0123456789")))
    found = segment(data[:keep], wire_length=len(data))
    assert (found.payload, found.length) == (b"0123456789"[: keep - 54], 10)


def test_tcp_up_to_its_flags_is_enough() -> None:
    data = ethernet(ipv4(tcp(b"0123456789", options=bytes(12))))
    found = segment(data[:48], wire_length=len(data))
    assert (found.seq, found.payload, found.length) == (1_000, b"", 10)
    fault = read(data[:47], wire_length=len(data))
    assert isinstance(fault, Fault)
    assert "TCP header" in fault.message


@pytest.mark.parametrize(
    "data",
    [
        ethernet(ipv4(tcp(b"data", options=bytes(8)), options=b"\1" * 12)),
        ethernet(ipv4(bytes((6, 1)) + bytes(10) + tcp(b"data"), protocol=51)),
        ethernet(ipv6(extension(6) + tcp(b"data"), 0), 0x86DD),
        ethernet(
            ipv6(
                extension(60)
                + extension(43, b"\1\4" + bytes(12))
                + extension(6, b"\1\x0c" + bytes(12))
                + tcp(b"data"),
                0,
            ),
            0x86DD,
        ),
        ethernet(ipv6(bytes((6, 4)) + bytes(22) + tcp(b"data"), 51), 0x86DD),
        ethernet(ipv6(ipv6_fragment(6, 0, False, 1, tcp(b"data")), 44), 0x86DD),
        ethernet(ipv4(tcp(b"data")), 0x0800, [0x88A8, 0x8100]),
    ],
)
def test_options_extension_headers_and_tags_stand_before_the_segment(data: bytes) -> None:
    found = segment(data + bytes(3))
    assert (found.seq, found.payload, found.length) == (1_000, b"data", 4)


@pytest.mark.parametrize(
    "data",
    [
        ethernet(b"arp", 0x0806),
        ethernet(b"\xaa\xaa\x03", 60),
        ethernet(ipv4(b"udp", 17)),
        ethernet(ipv4(b"udp" * 20, 17, fragment=0x2000)),
        ethernet(ipv6(b"icmp" * 20, 58), 0x86DD),
        ethernet(ipv6(b"", 59), 0x86DD),
        ethernet(ipv6(bytes(40), 50), 0x86DD),
        ethernet(ipv6(extension(17) + b"udp", 0), 0x86DD),
        ethernet(ipv6(ipv6_fragment(17, 8, True, 1, b"x"), 44), 0x86DD),
    ],
)
def test_other_protocols_are_passed_over(data: bytes) -> None:
    assert read(data) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        ethernet(b"")[:13],
        ethernet(b""),
        ethernet(ipv4(tcp())[:19]),
        ethernet(ipv4(tcp(), version=5)),
        ethernet(b"\x44" + ipv4(tcp())[1:]),
        ethernet(b"\x4f" + ipv4(tcp())[1:40]),
        ethernet(ipv4(tcp(), total=19)),
        ethernet(ipv4(tcp(), total=39)),
        ethernet(ipv4(tcp(offset=4))),
        ethernet(ipv4(tcp(offset=6))),
        ethernet(ipv6(tcp())[:39], 0x86DD),
        ethernet(ipv6(tcp(), version=4), 0x86DD),
        ethernet(ipv6(tcp(offset=15)), 0x86DD),
        ethernet(ipv6(extension(6)[:1], 0), 0x86DD),
        ethernet(ipv6(extension(6)[:7], 0), 0x86DD),
        ethernet(ipv6(bytes((6, 200)) + bytes(6), 43), 0x86DD),
        ethernet(ipv4(tcp(), fragment=0x1FFF)),
    ],
)
def test_broken_headers_are_faults_with_their_packet(data: bytes) -> None:
    fault = read(data)
    assert isinstance(fault, Fault)
    assert (fault.layer, fault.kind, fault.packet) == ("link", "bad-header", 5)


def test_too_many_headers_are_refused() -> None:
    data = ethernet(ipv6(extension(60) * 16 + extension(6) + tcp(), 60), 0x86DD)
    fault = read(data)
    assert isinstance(fault, Fault)
    assert (fault.layer, fault.kind) == ("link", "too-many-layers")


def test_an_unknown_link_type_is_told_once_for_each_interface() -> None:
    reader = SegmentReader()
    found = [reader.feed(packet(b"x", 147, number, interface_number=number % 2)) for number in range(1, 9)]
    assert [fault.kind for fault in found if isinstance(fault, Fault)] == ["unknown-link-type"] * 2
    assert found[2:] == [None] * 6


# -- agreement

CLOCK = bytes.fromhex("0101080afedcba9800000001")
payloads = st.binary(max_size=30)
segments = st.builds(
    tcp,
    payloads,
    seq=st.integers(0, 0xFFFFFFFF),
    ack=st.integers(0, 0xFFFFFFFF),
    flags=st.integers(0, 255),
    options=st.sampled_from([b"", bytes(12), CLOCK, CLOCK + bytes(28), bytes(40)]),
    offset=st.sampled_from([None, None, None, 0, 4, 5, 15]),
)
extensions = st.sampled_from([b"", extension(6), extension(6, b"\1\4" + bytes(4)), extension(6, bytes(14))])
internet = st.one_of(
    st.tuples(
        st.just(0x0800),
        st.builds(
            ipv4,
            segments,
            protocol=st.sampled_from([6, 6, 6, 17, 51]),
            total=st.one_of(st.none(), st.none(), st.integers(0, 120)),
            options=st.sampled_from([b"", b"", b"\1" * 4, bytes(40)]),
            fragment=st.sampled_from([0, 0, 0x4000, 0x8000]),
            version=st.sampled_from([4, 4, 4, 5]),
        ),
    ),
    st.tuples(
        st.just(0x86DD),
        st.builds(
            lambda header, body, protocol, length: ipv6(header + body, 0 if header else protocol, length),
            extensions,
            segments,
            st.sampled_from([6, 6, 6, 58]),
            st.one_of(st.none(), st.none(), st.integers(0, 120)),
        ),
    ),
)
FAMILIES = {0x0800: 2, 0x86DD: 30}


def linked(link_type: int, ether_type: int, data: bytes, tags: list[int]) -> bytes:
    if link_type == 1:
        return ethernet(data, ether_type, tags)
    if link_type == 113:
        return bytes(14) + pack(">H", ether_type) + data
    if link_type == 276:
        return pack(">H", ether_type) + bytes(18) + data
    return (pack("<I", FAMILIES[ether_type]) if link_type == 0 else b"") + data


@st.composite
def packets(draw: st.DrawFn) -> Packet:
    link_type = draw(st.sampled_from([0, 1, 1, 101, 113, 276]))
    ether_type, data = draw(internet)
    frame = linked(link_type, ether_type, data, draw(st.sampled_from([[], [], [0x8100], [0x88A8, 0x8100]])))
    frame += bytes(draw(st.sampled_from([0, 0, 6])))
    cut = draw(st.one_of(st.just(0), st.just(0), st.integers(0, len(frame))))
    wire_length = len(frame) + draw(st.sampled_from([0, 0, 100]))
    return packet(frame[: len(frame) - cut], link_type, 3, wire_length, 9)


@pytest.mark.parametrize("cut", [0, 1])
def test_a_timestamp_is_the_clock_of_its_sender(cut: int) -> None:
    for reader in (SegmentReader(), DatagramReader()):
        for options, clock in (
            (CLOCK, 0xFEDCBA98),
            (CLOCK + bytes(8), 0xFEDCBA98),
            (bytes(12), -1),
            (b"", -1),
        ):
            whole = ethernet(ipv4(tcp(b"", options=options)))
            found = reader.feed(packet(whole[: len(whole) - cut], 1, 3, len(whole), 9))
            assert isinstance(found, Segment)
            assert found.clock == (-1 if cut and options == CLOCK else clock)


@given(packets())
def test_the_fast_path_agrees_with_the_thorough_one(given_packet: Packet) -> None:
    assert SegmentReader().feed(given_packet) == DatagramReader().feed(given_packet)


@pytest.mark.parametrize("cut", [0, 1, 40, 41])
def test_options_that_are_cut_are_not_told(cut: int) -> None:
    """Half of them would tell too little: what a SYN offers might be in the other half."""
    whole = linked(0, 0x86DD, ipv6(tcp(b"", options=b"\x01" * 40)), [])
    given_packet = packet(whole[: len(whole) - cut], 0, 3, len(whole), 9)
    for reader in (SegmentReader(), DatagramReader()):
        found = reader.feed(given_packet)
        assert isinstance(found, Segment)
        assert found.options == (b"" if cut else b"\x01" * 40)


@given(packets())
def test_what_a_look_tells_is_what_the_thorough_reading_tells(given_packet: Packet) -> None:
    reader = SegmentReader()
    ends = ends_of(reader, given_packet)
    if ends is None:
        return
    known = DatagramReader().feed(given_packet)
    assert isinstance(known, Segment)
    seen = (reader.seq, reader.ack, reader.window, reader.identity, reader.length)
    assert seen == (known.seq, known.ack, known.window, known.identity, known.length)
    assert given_packet.data[reader.start : reader.start + reader.length] == known.payload
    first, other = known.source, known.destination
    assert ends == first[:-2] + other[:-2] + first[-2:] + other[-2:]
    assert known.flags & (ACK | SYN | RST) == ACK
    assert reader.is_end == (known.flags & FIN != 0)
    assert reader.clock == known.clock
    assert not (reader.is_end and known.length), "what ends with bytes is not ordinary"
    assert (known.network, known.options) == (0, b"")


@pytest.mark.parametrize("flags", [0x10, 0x18])
def test_an_ordinary_packet_is_one_at_a_look(flags: int) -> None:
    whole = ethernet(ipv4(tcp(b"data", flags=flags)))
    for each in (whole, whole + bytes(6), ethernet(ipv6(tcp(b"", flags=flags)), 0x86DD)):
        assert ends_of(SegmentReader(), packet(each)) is not None


@pytest.mark.parametrize("flags", [0x00, 0x02, 0x11, 0x12, 0x14])
def test_what_begins_or_ends_a_connection_is_not(flags: int) -> None:
    assert ends_of(SegmentReader(), packet(ethernet(ipv4(tcp(b"data", flags=flags))))) is None


def test_a_packet_that_is_cut_is_not_one_at_a_look() -> None:
    assert ends_of(SegmentReader(), packet(ethernet(ipv4(tcp(b"data")))[:-1])) is None


def by_dpkt(given_packet: Packet) -> tuple[int, int, int, bytes] | None:
    """Sequence and acknowledgement number, flags and payload as dpkt reads the whole packet, link layer
    and all; None if it finds no TCP."""
    parsers = {0: dpkt.loopback.Loopback, 1: dpkt.ethernet.Ethernet, 113: dpkt.sll.SLL, 276: dpkt.sll2.SLL2}
    layer = parsers.get(given_packet.link_type, dpkt.ip.IP)(given_packet.data)
    while isinstance(layer, dpkt.Packet) and not isinstance(layer, dpkt.tcp.TCP):
        layer = layer.data
    return (layer.seq, layer.ack, layer.flags, bytes(layer.data)) if isinstance(layer, dpkt.tcp.TCP) else None


@given(
    st.sampled_from([0, 1, 101, 113, 276]),
    payloads,
    st.integers(0, 0xFFFFFFFF),
    st.integers(0, 255),
    st.sampled_from([b"", bytes(12)]),
    st.booleans(),
)
def test_whole_packets_read_as_dpkt_reads_them(
    link_type: int, payload: bytes, seq: int, flags: int, options: bytes, six: bool
) -> None:
    inner = tcp(payload, seq, flags=flags, options=options)
    ether_type, data = (0x86DD, ipv6(inner)) if six and link_type != 101 else (0x0800, ipv4(inner))
    given_packet = packet(linked(link_type, ether_type, data, []), link_type)
    found = SegmentReader().feed(given_packet)
    assert isinstance(found, Segment)
    expected = by_dpkt(given_packet)
    assert expected is not None
    seq, ack, flags, payload = expected
    assert (found.seq, found.flags, found.payload) == (seq, flags, payload)
    assert found.ack == (ack if flags & 0x10 else None)


@given(
    st.sampled_from([0, 1, 101, 108, 113, 228, 229, 276, 999]), st.binary(max_size=120), st.integers(0, 200)
)
def test_any_bytes_give_a_segment_a_fault_or_nothing(link_type: int, data: bytes, wire_length: int) -> None:
    reader = SegmentReader(DEFAULTS)
    found = reader.feed(packet(data, link_type, wire_length=wire_length))
    assert found is None or isinstance(found, Segment | Fault)
    assert all(isinstance(item, Fault) for item in reader.close())
