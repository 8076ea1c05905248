"""Programs for the kernel, run here by an interpreter, beside libpcap's own."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.live import libpcap
from kdissect.live.bpf import COOKED, ETHERNET, own_program, program_of
from kdissect.live.errors import BadFilterError

SNAP = 262_144


def run(program: bytes, packet: bytes, protocol: int = 0x0800, kind: int = 0, interface: int = 7) -> int:
    """What the program answers: how many bytes of the packet to keep."""
    ancillary = {0xFFFFF000: protocol, 0xFFFFF004: kind, 0xFFFFF008: interface}
    code = list(struct.iter_unpack("<HBBI", program))
    accumulator = index = at = 0
    while True:
        operation, if_so, if_not, operand = code[at]
        at += 1
        if operation == 0x06:
            return int(operand)
        if operation in (0x20, 0x28, 0x30, 0x40, 0x48, 0x50):
            size = {0x20: 4, 0x28: 2, 0x30: 1}[operation & ~0x60 | 0x20]
            place = operand + (index if operation & 0x40 else 0)
            if place in ancillary:
                accumulator = ancillary[place]
            elif place + size > len(packet):
                return 0
            else:
                accumulator = int.from_bytes(packet[place : place + size], "big")
        elif operation == 0xB1:
            index = 4 * (packet[operand] & 0xF)
        elif operation == 0x15:
            at += if_so if accumulator == operand else if_not
        elif operation == 0x45:
            at += if_so if accumulator & operand else if_not
        else:
            raise AssertionError(f"an instruction {operation:#x} that is not expected")


def frame(
    source: int,
    destination: int,
    *,
    protocol: int = 6,
    version: int = 4,
    options: int = 0,
    fragment: int = 0,
) -> tuple[bytes, int]:
    """An Ethernet frame, and its type."""
    ports = struct.pack(">HH", source, destination) + bytes(16)
    if version == 4:
        head = struct.pack(">BBHHHBBH8x", 0x45 + options, 0, 40, 0, fragment, 64, protocol, 0)
        return bytes(12) + b"\x08\x00" + head + bytes(4 * options) + ports, 0x0800
    head = struct.pack(">IHBB32x", 6 << 28, 20, protocol, 64)
    return bytes(12) + b"\x86\xdd" + head + ports, 0x86DD


ports = st.sampled_from([9092, 9093, 9094, 80, 0, 65_535])
frames = st.one_of(
    st.builds(
        lambda s, d, p, o, f: frame(s, d, protocol=p, options=o, fragment=f),
        ports,
        ports,
        st.sampled_from([6, 17]),
        st.integers(0, 10),
        st.sampled_from([0, 0x2000, 0x2001, 185, 0x4000]),
    ),
    st.builds(lambda s, d, p: frame(s, d, protocol=p, version=6), ports, ports, st.sampled_from([6, 17, 43])),
    st.just((bytes(12) + b"\x08\x06" + bytes(28), 0x0806)),
)


@pytest.mark.skipif(not libpcap.is_available(), reason="libpcap is not installed")
@given(
    frames.filter(lambda each: each[1] != 0x0800 or not int.from_bytes(each[0][20:22], "big") & 0x1FFF),
    st.sampled_from(["tcp", "tcp port 9092", "tcp port 9092 or 9093", "tcp port 9092 or tcp port 9094"]),
)
def test_our_program_chooses_what_libpcaps_does(packet: tuple[bytes, int], text: str) -> None:
    data, protocol = packet
    theirs = run(libpcap.compile_filter(text, ETHERNET, SNAP), data, protocol)
    assert run(own_program(text, ETHERNET, SNAP), data, protocol) == theirs
    assert run(own_program(text, COOKED, SNAP), data[14:], protocol) == theirs


def test_ports_are_of_either_side_and_either_family() -> None:
    program = own_program("tcp port 9092 or 9093", ETHERNET, 99)
    for version in (4, 6):
        for source, destination, expected in ((9092, 1, 99), (1, 9093, 99), (9094, 1, 0), (1, 1, 0)):
            assert run(program, *frame(source, destination, version=version)) == expected
    assert run(program, *frame(9092, 1, protocol=17)) == 0
    assert run(program, *frame(9092, 1, options=3)) == 99


def test_fragments_without_ports_pass() -> None:
    assert run(own_program("tcp port 9092", ETHERNET, 99), *frame(1, 1, fragment=185)) == 99
    assert run(own_program("tcp port 9092", ETHERNET, 99), *frame(1, 1, fragment=185, protocol=17)) == 0


def test_many_ports_fit() -> None:
    text = "tcp port " + " or ".join(map(str, range(9000, 9060)))
    program = own_program(text, ETHERNET, 99)
    assert all(run(program, *frame(1, port, version=v)) == 99 for port in range(9000, 9060) for v in (4, 6))
    assert run(program, *frame(1, 9060)) == 0


def test_what_goes_out_through_loopback_does_not_count_twice() -> None:
    program = program_of("tcp", ETHERNET, 99, loopback=1)
    data, protocol = frame(1, 2)
    assert run(program, data, protocol, kind=4, interface=1) == 0
    assert run(program, data, protocol, kind=0, interface=1) == 99
    assert run(program, data, protocol, kind=4, interface=2) == 99


@pytest.mark.parametrize("text", ["udp", "tcp port", "tcp port 99999", "port 9092", "tcp port 1 and 2", ""])
def test_without_libpcap_other_filters_are_refused_with_the_way_out(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libpcap, "binding", lambda: None)
    with pytest.raises(BadFilterError, match=r"libpcap|65,536"):
        program_of(text, ETHERNET, SNAP, None)


def test_without_libpcap_ports_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libpcap, "binding", lambda: None)
    assert program_of("tcp port 9092", ETHERNET, SNAP, None) == own_program("tcp port 9092", ETHERNET, SNAP)


@pytest.mark.skipif(not libpcap.is_available(), reason="libpcap is not installed")
def test_a_wrong_filter_is_told_in_libpcaps_words() -> None:
    with pytest.raises(BadFilterError, match="'tcp prt 9' is not a capture filter: can't parse"):
        program_of("tcp prt 9", ETHERNET, SNAP, None)
