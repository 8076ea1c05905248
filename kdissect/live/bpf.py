"""A capture filter → the program that the kernel runs on every packet.

The filter language is libpcap's. If libpcap is installed, it compiles the filter. Otherwise ``tcp`` and ``tcp
port N or M …`` still work: this module makes their program.

Every program begins with instructions against duplicates. A packet on the loopback interface is seen on its
way out and on its way in, and only the second counts.
"""

from __future__ import annotations

import re
from struct import Struct

from kdissect.live.errors import BadFilterError

DEFAULT_FILTER = "tcp"
SNAP_LENGTH = 262_144
"""Bytes kept of a packet: libpcap's maximum. On loopback, and with segmentation offload, frames are larger
than 65,535 bytes."""

ETHERNET, COOKED = 1, 276
"""Link types of packets: with their Ethernet header, or with an SLL2 header that kdissect adds."""
_RAW_IP = 12
"""DLT_RAW: libpcap compiles for it if the kernel runs the program on packets without a link header."""

_instruction = Struct("<HBBI").pack
_LOAD_BYTE, _LOAD_HALF, _LOAD_WORD = 0x30, 0x28, 0x20
_LOAD_HALF_INDEXED, _LOAD_HEADER_LENGTH = 0x48, 0xB1
_EQUAL, _ANY_BIT, _RETURN = 0x15, 0x45, 0x06
_ANCILLARY = 0xFFFFF000
_PROTOCOL, _PACKET_TYPE, _INTERFACE = _ANCILLARY, _ANCILLARY + 4, _ANCILLARY + 8
"""Facts that the kernel has about a packet besides its bytes (linux/filter.h: SKF_AD_OFF)."""
_OUTGOING = 4
_TCP, _IPV6_FRAGMENT = 6, 44

_PORTS = re.compile(r"tcp(\s+port\s+\d+(\s+or\s+(tcp\s+)?(port\s+)?\d+)*)?", re.IGNORECASE)
MOST_PORTS = 60
"""The most ports of a filter made here: jumps reach 255 instructions."""


def program_of(text: str, link_type: int, snap_length: int, loopback: int | None) -> bytes:
    """The program for a filter: instructions of eight bytes.

    :param link_type: :data:`ETHERNET` or :data:`COOKED`.
    :param snap_length: bytes to keep of a packet.
    :param loopback: index of the loopback interface, if its packets may come.
    :raises BadFilterError: the text is no filter, or it needs libpcap, which is not installed.
    """
    from kdissect.live import libpcap

    if libpcap.is_available():
        program = libpcap.compile_filter(text, _RAW_IP if link_type == COOKED else link_type, snap_length)
    else:
        program = own_program(text, link_type, snap_length)
    return (b"" if loopback is None else _without_doubles(loopback)) + program


def own_program(text: str, link_type: int, snap_length: int) -> bytes:
    """The program for ``tcp`` or ``tcp port N or M …``; fragments of TCP that have no ports pass too.

    :raises BadFilterError: the text is another filter.
    """
    ports = _ports_of(text)
    base = 14 if link_type == ETHERNET else 0
    code = _Code()
    code.add(_LOAD_HALF, _PROTOCOL)
    code.jump(_EQUAL, 0x0800, "IPv4")
    code.jump(_EQUAL, 0x86DD, "IPv6", "reject")
    code.label("IPv4")
    code.add(_LOAD_BYTE, base + 9)
    code.jump(_EQUAL, _TCP, None, "reject")
    if ports:
        code.add(_LOAD_HALF, base + 6)
        code.jump(_ANY_BIT, 0x1FFF, "accept")
        code.add(_LOAD_HEADER_LENGTH, base)
        for at in (0, 2):
            code.add(_LOAD_HALF_INDEXED, base + at)
            for port in ports:
                code.jump(_EQUAL, port, "accept")
        code.add(_RETURN, 0)
    else:
        code.add(_RETURN, snap_length)
    code.label("IPv6")
    code.add(_LOAD_BYTE, base + 6)
    code.jump(_EQUAL, _TCP, "TCP over IPv6")
    code.jump(_EQUAL, _IPV6_FRAGMENT, None, "reject")
    code.add(_LOAD_BYTE, base + 40)
    code.jump(_EQUAL, _TCP, "accept", "reject")
    code.label("TCP over IPv6")
    for at in (0, 2) if ports else ():
        code.add(_LOAD_HALF, base + 40 + at)
        for port in ports:
            code.jump(_EQUAL, port, "accept")
    if ports:
        code.label("reject")
        code.add(_RETURN, 0)
        code.label("accept")
        code.add(_RETURN, snap_length)
    else:
        code.label("accept")
        code.add(_RETURN, snap_length)
        code.label("reject")
        code.add(_RETURN, 0)
    return code.assembled()


class _Code:
    """A program with labels as targets of jumps. All jumps go forwards."""

    def __init__(self) -> None:
        self._lines: list[tuple[int, int, str | None, str | None]] = []
        self._labels: dict[str, int] = {}

    def add(self, code: int, operand: int) -> None:
        self._lines.append((code, operand, None, None))

    def jump(self, code: int, operand: int, if_so: str | None, if_not: str | None = None) -> None:
        """Jump to a label; without a label, continue with the next instruction."""
        self._lines.append((code, operand, if_so, if_not))

    def label(self, name: str) -> None:
        self._labels[name] = len(self._lines)

    def assembled(self) -> bytes:
        def steps(name: str | None, here: int) -> int:
            return 0 if name is None else self._labels[name] - here - 1

        return b"".join(
            _instruction(code, steps(if_so, here), steps(if_not, here), operand)
            for here, (code, operand, if_so, if_not) in enumerate(self._lines)
        )


def _without_doubles(loopback: int) -> bytes:
    return b"".join(
        (
            _instruction(_LOAD_BYTE, 0, 0, _PACKET_TYPE),
            _instruction(_EQUAL, 0, 3, _OUTGOING),
            _instruction(_LOAD_WORD, 0, 0, _INTERFACE),
            _instruction(_EQUAL, 0, 1, loopback),
            _instruction(_RETURN, 0, 0, 0),
        )
    )


def _ports_of(text: str) -> list[int]:
    words = text.strip()
    if not _PORTS.fullmatch(words):
        raise BadFilterError(
            f"without libpcap a capture filter must be tcp, or tcp port N or M …, not {words!r}: install "
            "libpcap (Debian: libpcap0.8)"
        )
    ports = list(dict.fromkeys(int(word) for word in re.findall(r"\d+", words)))
    if len(ports) > MOST_PORTS or any(port > 65_535 for port in ports):
        raise BadFilterError(f"{words!r}: give at most {MOST_PORTS} ports, each below 65,536")
    return ports
