"""Link-layer headers: where IP begins."""

from __future__ import annotations

from struct import pack

import pytest

from kdissect.capture.links import IPV4, IPV6, LINK_TYPES, network
from kdissect.model import DecodeError
from tests.capture.build import ethernet


@pytest.mark.parametrize(
    ("link_type", "data", "expected"),
    [
        (1, ethernet(b""), (IPV4, 14)),
        (1, ethernet(b"", 0x86DD, [0x8100]), (IPV6, 18)),
        (1, ethernet(b"", 0x0800, [0x88A8, 0x8100]), (IPV4, 22)),
        (1, ethernet(b"", 0x0800, [0x9100, 0x9100, 0x8100]), (IPV4, 26)),
        (1, ethernet(b"", 0x0806), (0x0806, 14)),
        (113, bytes(14) + b"\x08\0", (IPV4, 16)),
        (113, bytes(14) + b"\x81\0\0\1\x86\xdd", (IPV6, 20)),
        (276, b"\x86\xdd" + bytes(18), (IPV6, 20)),
        (276, b"\x81\0" + bytes(18) + b"\0\1\x08\0", (IPV4, 24)),
        *((0, pack(order + "I", 2), (IPV4, 4)) for order in "<>"),
        *(
            (link, pack(order + "I", family), (IPV6, 4))
            for link in (0, 108)
            for order in "<>"
            for family in (10, 24, 28, 30)
        ),
        (108, b"\0\0\0\2", (IPV4, 4)),
        (0, pack("<I", 7), (0, 4)),
        *((link, b"\x45", (IPV4, 0)) for link in (12, 14, 101)),
        *((link, b"\x60", (IPV6, 0)) for link in (12, 14, 101)),
        (228, b"", (IPV4, 0)),
        (229, b"", (IPV6, 0)),
    ],
)
def test_finds_the_network_layer(link_type: int, data: bytes, expected: tuple[int, int]) -> None:
    assert network(link_type, data, 16) == expected


@pytest.mark.parametrize("link_type", sorted(LINK_TYPES - {228, 229}))
def test_a_packet_without_its_header_is_a_defect(link_type: int) -> None:
    with pytest.raises(DecodeError):
        network(link_type, b"", 16)


def test_raw_packets_have_version_4_or_6() -> None:
    with pytest.raises(DecodeError, match="version 5"):
        network(101, b"\x50", 16)


def test_tags_are_bounded() -> None:
    with pytest.raises(DecodeError) as raised:
        network(1, ethernet(b"", 0x0800, [0x8100] * 17), 16)
    assert raised.value.kind == "too-many-layers"
    assert network(1, ethernet(b"", 0x0800, [0x8100] * 16), 16) == (IPV4, 78)
