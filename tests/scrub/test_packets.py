"""Headers tell of the connection what they told, and nothing of its owner."""

from __future__ import annotations

from struct import pack

import pytest

from kdissect.capture.segments import SegmentReader
from kdissect.limits import DEFAULTS
from kdissect.model import Packet, Segment
from kdissect.scrub.packets import Headers, Layers, kept_options, mend
from kdissect.scrub.values import Scrubber
from tests.capture.build import ethernet, extension, ipv4, ipv6, packet, tcp
from tests.scrub.runs import KEY

PAYLOAD = b"what was said"
OPTIONS = b"\x02\x04\x05\xb4\x01\x03\x03\x07\x04\x02\x08\x0a" + bytes(range(8))


def vxlan(frame: bytes) -> bytes:
    return ipv4(pack(">HHHH", 1, 4789, 16 + len(frame), 0xABCD) + b"\x08\0\0\0\0\0\x2a\0" + frame, 17)


def gre(inner: bytes) -> bytes:
    return ipv4(pack(">HHI", 0x2000, 0x0800, 99) + inner, 47)


def framed(data: bytes) -> bytes:
    """With hardware addresses."""
    return b"\x02secretmac!!"[:12].ljust(12, b"m") + data[12:]


FORMS = {
    "ethernet": (framed(ethernet(ipv4(tcp(PAYLOAD)))), 1),
    "options": (ethernet(ipv4(tcp(PAYLOAD, options=OPTIONS))), 1),
    "ip options": (ethernet(ipv4(tcp(PAYLOAD), options=b"\x07\x04\x04\0")), 1),
    "vlan": (framed(ethernet(ipv4(tcp(PAYLOAD)), tags=(0x8100, 0x88A8))), 1),
    "ipv6": (ethernet(ipv6(tcp(PAYLOAD)), 0x86DD), 1),
    "extensions": (
        ethernet(ipv6(extension(60, b"\x01\x04tell") + extension(6) + tcp(PAYLOAD), 0), 0x86DD),
        1,
    ),
    "raw": (ipv4(tcp(PAYLOAD)), 101),
    "null": (b"\x02\0\0\0" + ipv4(tcp(PAYLOAD)), 0),
    "loop": (b"\0\0\0\x02" + ipv4(tcp(PAYLOAD)), 108),
    "sll": (b"\0\0\0\x01\0\x06secretma\x08\0" + ipv4(tcp(PAYLOAD)), 113),
    "sll2": (b"\x08\0\0\0\0\0\0\x02\0\x01\0\x06secretma" + ipv4(tcp(PAYLOAD)), 276),
    "vxlan": (ethernet(vxlan(framed(ethernet(ipv4(tcp(PAYLOAD)))))), 1),
    "gre": (ethernet(gre(ipv4(tcp(PAYLOAD)))), 1),
    "ip in ip": (ethernet(ipv4(ipv4(tcp(PAYLOAD)), 4)), 1),
}


def scrubbed(name: str) -> tuple[Packet, Packet, Layers]:
    """The packet, and what becomes of it with its payload as it was."""
    data, link_type = FORMS[name]
    before = packet(data, link_type)
    layers = Headers(Scrubber(KEY), DEFAULTS).layers(before)
    assert layers is not None
    layers.out[layers.payload : layers.payload + len(PAYLOAD)] = PAYLOAD
    mend(layers, layers.out, layers.length, b"\0\0")
    return before, before._replace(data=bytes(layers.out)), layers


def segment_of(each: Packet) -> Segment:
    found = SegmentReader().feed(each)
    assert isinstance(found, Segment)
    return found


@pytest.mark.parametrize("name", FORMS)
def test_the_segment_is_the_same_between_other_addresses(name: str) -> None:
    before, after, _ = scrubbed(name)
    was, now = segment_of(before), segment_of(after)
    kept = ("seq", "ack", "flags", "window", "payload", "length", "network", "timestamp_ns")
    assert [getattr(was, each) for each in kept] == [getattr(now, each) for each in kept]
    assert was.source[-2:] == now.source[-2:]
    addresses = Scrubber(KEY).addresses
    assert now.source[:-2] == addresses.packed(was.source[:-2])
    assert now.destination[:-2] == addresses.packed(was.destination[:-2])


@pytest.mark.parametrize("name", FORMS)
def test_hardware_addresses_and_what_extensions_say_are_gone(name: str) -> None:
    _, after, _ = scrubbed(name)
    assert b"secret" not in after.data
    assert b"tell" not in after.data


@pytest.mark.parametrize("name", FORMS)
def test_checksums_are_right(name: str) -> None:
    _, after, layers = scrubbed(name)
    for _, at, end in layers.networks:
        if after.data[at] >> 4 == 4:
            assert ones_sum(after.data[at:end]) == 0xFFFF
    _, at, end = layers.networks[-1]
    ends = after.data[at + 12 : at + 20] if after.data[at] >> 4 == 4 else after.data[at + 8 : at + 40]
    covered = after.data[layers.tcp : layers.tcp + layers.length]
    assert ones_sum(ends + pack(">HH", 6, layers.length) + covered) == 0xFFFF


def ones_sum(data: bytes) -> int:
    """The sum of RFC 1071, as it is written there."""
    data += bytes(len(data) % 2)
    total = sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@pytest.mark.parametrize("name", FORMS)
def test_a_packet_that_breaks_off_anywhere_is_left_out_or_kept_as_far_as_it_goes(name: str) -> None:
    data, link_type = FORMS[name]
    headers = Headers(Scrubber(KEY), DEFAULTS)
    for end in range(len(data)):
        layers = headers.layers(packet(data[:end], link_type, wire_length=len(data)))
        assert layers is None or len(layers.out) == end


def test_options_that_say_how_a_connection_works_stay() -> None:
    assert kept_options(OPTIONS) == OPTIONS
    sack = b"\x01\x01\x05\x0a" + bytes(range(8))
    assert kept_options(sack) == sack


@pytest.mark.parametrize(
    "option",
    [b"\x13\x12" + b"md5 of a password"[:16], b"\x1e\x0cmultipath!", b"\x22\x0acookies!", b"\xfe\x04ab"],
)
def test_other_options_are_passed_over(option: bytes) -> None:
    assert kept_options(option + OPTIONS[:4]) == b"\x01" * len(option) + OPTIONS[:4]


@pytest.mark.parametrize(
    "options", [b"\x02", b"\x02\x00\x05\xb4", b"\x02\x09\x05\xb4", b"\x08\x0a12345678"[:6]]
)
def test_broken_options_are_passed_over(options: bytes) -> None:
    assert kept_options(options) == b"\x01" * len(options)


@pytest.mark.parametrize(
    ("data", "link_type"),
    [
        (ethernet(ipv4(pack(">HHHH", 53, 53, 8, 0) + b"a name", 17)), 1),
        (ethernet(bytes(28), 0x0806), 1),
        (b"", 1),
        (ipv4(tcp(PAYLOAD)), 147),
        (ethernet(ipv4(tcp(PAYLOAD), version=5)), 1),
    ],
)
def test_what_has_no_tcp_is_left_out(data: bytes, link_type: int) -> None:
    assert Headers(Scrubber(KEY), DEFAULTS).layers(packet(data, link_type)) is None
