"""Tunnels: the segment inside is the one that travelled bare, whatever carries it."""

from __future__ import annotations

from collections.abc import Callable
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.capture.datagrams import DatagramReader
from kdissect.capture.fragments import Fragments
from kdissect.capture.segments import SegmentReader
from kdissect.limits import DEFAULTS
from kdissect.model import Fault, Segment
from tests.capture.build import ethernet, ipv4, ipv6, packet, tcp

INSIDE = ipv4(tcp(b"to the broker"), identification=99)
FRAME = ethernet(INSIDE)
FRAME6 = ethernet(ipv6(tcp(b"to the broker")), 0x86DD)


def udp(port: int, payload: bytes) -> bytes:
    return pack(">HHHH", 55_555, port, 8 + len(payload), 0) + payload


def vxlan(frame: bytes, port: int = 4789) -> bytes:
    return udp(port, b"\x08\0\0\0\0\0\x07\0" + frame)


def vxlan_gpe(protocol: int, inside: bytes) -> bytes:
    return udp(4790, bytes((0x0C, 0, 0, protocol)) + b"\0\0\x07\0" + inside)


def geneve(protocol: int, inside: bytes, options: bytes = b"", first: int = 0, flags: int = 0) -> bytes:
    head = pack(">BBHI", first | len(options) // 4, flags, protocol, 7 << 8)
    return udp(6081, head + options + inside)


def gre(protocol: int, inside: bytes, flags: int = 0, optional: int = 0) -> bytes:
    return pack(">HH", flags, protocol) + bytes(4 * optional) + inside


def mpls(inside: bytes, labels: int = 1) -> bytes:
    return b"".join(pack(">I", 16 << 12 | (i == labels - 1) << 8 | 64) for i in range(labels)) + inside


def pppoe(protocol: bytes, inside: bytes) -> bytes:
    return pack(">BBHH", 0x11, 0, 1, len(protocol) + len(inside)) + protocol + inside


def carried_by(protocol: int, payload: bytes) -> bytes:
    """An Ethernet frame with an outer IPv4 header between other endpoints."""
    return ethernet(ipv4(payload, protocol, identification=5))


TUNNELS = {
    "VXLAN": carried_by(17, vxlan(FRAME)),
    "VXLAN at the port Linux had first": carried_by(17, vxlan(FRAME, 8472)),
    "VXLAN over IPv6": ethernet(ipv6(vxlan(FRAME), 17), 0x86DD),
    "VXLAN with an inner tag": carried_by(17, vxlan(ethernet(INSIDE, 0x0800, [0x8100]))),
    "VXLAN-GPE with Ethernet": carried_by(17, vxlan_gpe(3, FRAME)),
    "VXLAN-GPE with IPv4": carried_by(17, vxlan_gpe(1, INSIDE)),
    "VXLAN-GPE with MPLS": carried_by(17, vxlan_gpe(5, mpls(INSIDE))),
    "Geneve": carried_by(17, geneve(0x6558, FRAME)),
    "Geneve with options": carried_by(17, geneve(0x6558, FRAME, bytes(12))),
    "Geneve with IPv4": carried_by(17, geneve(0x0800, INSIDE)),
    "MPLS over UDP": carried_by(17, udp(6635, mpls(INSIDE))),
    "GRE": carried_by(47, gre(0x0800, INSIDE)),
    "GRE with key": carried_by(47, gre(0x0800, INSIDE, 0x2000, 1)),
    "GRE with checksum, key and sequence": carried_by(47, gre(0x0800, INSIDE, 0xB000, 3)),
    "GRE with Ethernet": carried_by(47, gre(0x6558, FRAME)),
    "GRE with MPLS": carried_by(47, gre(0x8847, mpls(INSIDE, 2))),
    "GRE over IPv6": ethernet(ipv6(gre(0x0800, INSIDE), 47), 0x86DD),
    "ERSPAN I": carried_by(47, gre(0x88BE, FRAME)),
    "ERSPAN II": carried_by(47, gre(0x88BE, b"\x10" + bytes(7) + FRAME, 0x1000, 1)),
    "ERSPAN III": carried_by(47, gre(0x22EB, b"\x20" + bytes(11) + FRAME, 0x1000, 1)),
    "ERSPAN III with a subheader": carried_by(
        47, gre(0x22EB, b"\x20" + bytes(10) + b"\1" + bytes(8) + FRAME)
    ),
    "IP in IP": carried_by(4, INSIDE),
    "IPv4 in IPv6": ethernet(ipv6(INSIDE, 4), 0x86DD),
    "MPLS in IP": carried_by(137, mpls(INSIDE)),
    "MPLS": ethernet(mpls(INSIDE, 3), 0x8847),
    "MPLS behind a tag": ethernet(mpls(INSIDE), 0x8848, [0x8100]),
    "a pseudowire": ethernet(mpls(bytes(4) + FRAME), 0x8847),
    "PPPoE": ethernet(pppoe(b"\0\x21", INSIDE), 0x8864),
    "PPPoE, compressed": ethernet(pppoe(b"\x21", INSIDE), 0x8864),
    "four tunnels": carried_by(4, ipv4(ipv4(ipv4(INSIDE, 4), 4), 4)),
}

OTHERS = {
    "UDP": carried_by(17, udp(53, b"dns" * 10)),
    "UDP cut in its header": carried_by(17, b"\1"),
    "no valid VXLAN": carried_by(17, udp(4789, bytes(8) + FRAME)),
    "Geneve's control packets": carried_by(17, geneve(0x6558, FRAME, flags=0x80)),
    "another version of Geneve": carried_by(17, geneve(0x6558, FRAME, first=0x40)),
    "VXLAN-GPE with something else": carried_by(17, vxlan_gpe(4, FRAME)),
    "PPTP": carried_by(47, gre(0x880B, bytes(40), 0x3001)),
    "GRE with something else": carried_by(47, gre(0x0806, bytes(28))),
    "ARP inside": carried_by(17, vxlan(ethernet(bytes(28), 0x0806))),
    "UDP inside": carried_by(4, ipv4(udp(53, b"dns"), 17)),
    "labels with something else": ethernet(mpls(b"\x50" + bytes(20)), 0x8847),
    "PPPoE with something else": ethernet(pppoe(b"\xc0\x21", b"lcp"), 0x8864),
}


def read(data: bytes, wire_length: int | None = None) -> Segment | Fault | None:
    found = SegmentReader().feed(packet(data, wire_length=wire_length))
    assert found == DatagramReader().feed(packet(data, wire_length=wire_length))
    return found


def read_inside(data: bytes) -> Segment | Fault | None:
    """As :func:`read`, as if it had not come through a tunnel."""
    found = read(data)
    return found._replace(network=0) if isinstance(found, Segment) else found


@pytest.mark.parametrize("name", TUNNELS)
def test_the_segment_inside_is_the_one_that_travels_bare(name: str) -> None:
    bare = read(FRAME)
    assert isinstance(bare, Segment)
    found = read(TUNNELS[name])
    assert isinstance(found, Segment)
    assert found._replace(network=0) == bare
    names_its_network = name.startswith(("VXLAN", "Geneve")) or "key" in name
    assert (found.network != 0) == names_its_network


def test_networks_are_told_apart_by_the_kind_of_their_tunnels_and_by_all_identifiers() -> None:
    def network(data: bytes) -> int:
        found = read(data)
        assert isinstance(found, Segment)
        return found.network

    def in_vxlan(vni: int, frame: bytes) -> bytes:
        return carried_by(17, udp(4789, b"\x08\0\0\0" + (vni << 8).to_bytes(4, "big") + frame))

    def in_gre(key: int, flags: int = 0x2000, before: bytes = b"") -> bytes:
        head = pack(">HH", flags, 0x0800) + before + key.to_bytes(4, "big")
        return carried_by(47, head + INSIDE)

    found = [
        network(in_vxlan(1, FRAME)),
        network(in_vxlan(2, FRAME)),
        network(in_vxlan(1, in_vxlan(2, FRAME))),
        network(in_vxlan(2, in_vxlan(1, FRAME))),
        network(carried_by(17, geneve(0x6558, FRAME))),
        network(in_gre(1)),
        network(in_gre(7)),
    ]
    assert len(set(found)) == len(found)
    assert network(in_gre(7, 0xA000, bytes(4))) == network(in_gre(7))
    assert max(found) < 1 << 63


def test_the_segment_inside_may_be_of_ipv6() -> None:
    bare = read(FRAME6)
    assert isinstance(bare, Segment)
    inside = FRAME6[14:]
    for data in (
        carried_by(17, vxlan(FRAME6)),
        carried_by(41, inside),
        carried_by(47, gre(0x86DD, inside)),
        carried_by(17, vxlan_gpe(2, inside)),
        ethernet(mpls(inside), 0x8847),
        ethernet(pppoe(b"\0\x57", inside), 0x8864),
        ethernet(ipv6(inside, 41), 0x86DD),
    ):
        assert read_inside(data) == bare


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_tunnel_is_passed_over(name: str) -> None:
    assert read(OTHERS[name]) is None


@pytest.mark.parametrize(
    "data",
    [
        carried_by(4, ipv4(ipv4(ipv4(ipv4(INSIDE, 4), 4), 4), 4)),
        ethernet(mpls(INSIDE, 17), 0x8847),
        carried_by(47, gre(0x6558, ethernet(INSIDE, 0x0800, [0x8100] * 17))),
    ],
)
def test_tunnels_and_headers_are_bounded(data: bytes) -> None:
    found = read(data)
    assert isinstance(found, Fault)
    assert (found.layer, found.kind) == ("link", "too-many-layers")


def test_how_deep_tunnels_go_can_be_set() -> None:
    data = packet(carried_by(4, ipv4(INSIDE, 4)))
    assert isinstance(SegmentReader(DEFAULTS._replace(tunnels=1)).feed(data), Fault)
    assert isinstance(SegmentReader(DEFAULTS._replace(tunnels=2)).feed(data), Segment)


@pytest.mark.parametrize("name", TUNNELS)
def test_cut_anywhere_a_tunnel_gives_what_is_there_or_a_fault(name: str) -> None:
    data = TUNNELS[name]
    whole = read(data)
    assert isinstance(whole, Segment)
    for size in range(14, len(data)):
        found = read(data[:size], wire_length=len(data))
        if isinstance(found, Segment):
            assert whole.payload.startswith(found.payload)
            assert found.window in (-1, whole.window)  # -1 where it is cut off
            same = found._replace(payload=whole.payload, identity=whole.identity, window=whole.window)
            assert same == whole
        else:
            assert found is None or found.kind == "bad-header"


def test_an_inner_length_of_zero_is_that_of_the_tunnel() -> None:
    inside = ethernet(ipv4(tcp(b"x" * 3_000), total=0))
    found = read(carried_by(17, vxlan(inside)) + bytes(4))
    assert isinstance(found, Segment)
    assert found.length == len(found.payload) == 3_000


def split(payload: bytes, protocol: int, identification: int, size: int = 40) -> list[bytes]:
    return [
        ipv4(
            payload[at : at + size],
            protocol,
            identification=identification,
            fragment=at // 8 | (0x2000 if at + size < len(payload) else 0),
        )
        for at in range(0, len(payload), size)
    ]


@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize(
    ("protocol", "payload"), [(17, vxlan(FRAME)), (47, gre(0x0800, INSIDE)), (4, INSIDE + bytes(20))]
)
def test_a_tunnel_in_fragments_is_put_together(protocol: int, payload: bytes, turn: int) -> None:
    reader = SegmentReader()
    pieces = split(payload, protocol, 3)[::turn]
    found = [reader.feed(packet(ethernet(each), number=i)) for i, each in enumerate(pieces, 1)]
    bare = read(FRAME)
    assert isinstance(bare, Segment)
    assert found[:-1] == [None] * (len(pieces) - 1)
    assert isinstance(found[-1], Segment)
    assert found[-1]._replace(network=0) == bare._replace(packet=len(pieces))
    assert reader.packets_of(len(pieces)) == tuple(range(1, len(pieces) + 1))
    assert reader.close() == []


def test_the_packets_of_fragments_inside_fragments_are_all_known() -> None:
    reader = SegmentReader()
    outer = [piece for i, each in enumerate(split(tcp(b"x" * 60), 6, 8)) for piece in split(each, 4, i)]
    found = [reader.feed(packet(ethernet(each), number=i)) for i, each in enumerate(outer, 1)]
    assert isinstance(found[-1], Segment)
    assert found[-1].payload == b"x" * 60
    assert reader.packets_of(len(outer)) == tuple(range(1, len(outer) + 1))
    assert reader.packets_of(len(outer) + 1) == (len(outer) + 1,)


def test_a_lost_fragment_is_a_fault_only_where_a_tunnel_is_known_to_be_lost() -> None:
    for payload, first, faults in (
        (udp(53, b"dns" * 50), 0, 0),
        (vxlan(FRAME), 1, 0),
        (vxlan(FRAME), 0, 1),
        (gre(0x0800, INSIDE), 1, 1),
    ):
        reader = SegmentReader()
        protocol = 47 if payload[:2] == b"\0\0" else 17
        for each in split(payload, protocol, 3)[first : first + 1]:
            assert reader.feed(packet(ethernet(each))) is None
        assert [fault.kind for fault in reader.close()] == ["fragment-lost"] * faults


def test_pieces_that_wait_are_bounded_in_number() -> None:
    reader = SegmentReader(DEFAULTS._replace(fragments=10))
    for number in range(1, 100):
        reader.feed(packet(ethernet(split(tcp(bytes(200)), 6, number)[1]), number=number))
    fragments: Fragments = reader._datagrams._fragments
    assert fragments._pieces == len(fragments._datagrams) == 10
    assert len(reader.close()) == 10


WRAPPERS: list[Callable[[bytes], bytes]] = [
    lambda frame: carried_by(17, vxlan(frame)),
    lambda frame: carried_by(17, geneve(0x6558, frame)),
    lambda frame: carried_by(47, gre(0x6558, frame)),
    lambda frame: ethernet(ipv6(gre(0x6558, frame), 47), 0x86DD),
    lambda frame: ethernet(mpls(bytes(4) + frame), 0x8847),
]


@given(st.lists(st.sampled_from(WRAPPERS), max_size=4), st.data())
def test_any_tunnels_inside_each_other_give_the_segment_and_any_damage_no_exception(
    wrappers: list[Callable[[bytes], bytes]], data: st.DataObject
) -> None:
    frame = FRAME
    for wrap in wrappers:
        frame = wrap(frame)
    assert read_inside(frame) == read(FRAME)
    at = data.draw(st.integers(0, len(frame) - 1))
    damaged = frame[:at] + bytes((data.draw(st.integers(0, 255)),)) + frame[at + 1 :]
    found = read(damaged, data.draw(st.sampled_from([None, 0, 9_000])))
    assert found is None or isinstance(found, Segment | Fault)
