"""libpcap (Npcap on Windows), through scapy's binding: it compiles filters, and captures on systems without a
TPACKET_V3 ring."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from kdissect.live.errors import BadFilterError

_FLAWS = (ImportError, OSError)
"""The errors that scapy's module raises without libpcap."""


@cache
def binding() -> Any:
    """The module with libpcap's functions; None without scapy or libpcap."""
    try:
        from scapy.libs import winpcapy
    except _FLAWS:
        return None
    return winpcapy


def is_available() -> bool:
    """Whether libpcap can be used."""
    return binding() is not None


def install_hint() -> str:
    """How to install it, for the user."""
    if sys.platform == "win32":
        return "install Npcap (https://npcap.com), which the Wireshark installer also installs"
    return "install libpcap (Debian: apt install libpcap0.8)"


def version() -> str:
    """The version in libpcap's own words."""
    said: bytes = binding().pcap_lib_version()
    return said.decode("utf-8", "replace")


def compile_filter(text: str, link_type: int, snap_length: int) -> bytes:
    """A capture filter as instructions of eight bytes, which accept ``snap_length`` bytes of a packet.

    :param link_type: a DLT number. For Ethernet and raw IP, some systems have a DLT other than the LINKTYPE.
    :raises BadFilterError: libpcap rejects the filter; the text is libpcap's.
    """
    library = binding()
    with _without_device(library, link_type, snap_length) as handle:
        program = library.bpf_program()
        if library.pcap_compile(handle, ctypes.byref(program), text.encode(), 1, 0xFFFFFFFF) < 0:
            said = library.pcap_geterr(handle)
            raise BadFilterError(f"{text!r} is not a capture filter: {said.decode('utf-8', 'replace')}")
        try:
            return ctypes.string_at(program.bf_insns, 8 * program.bf_len)
        finally:
            library.pcap_freecode(ctypes.byref(program))


@contextmanager
def _without_device(library: Any, link_type: int, snap_length: int) -> Iterator[Any]:
    handle = library.pcap_open_dead(link_type, snap_length)
    try:
        yield handle
    finally:
        library.pcap_close(handle)


def devices() -> list[tuple[str, str]]:
    """Names and descriptions of the interfaces that libpcap finds."""
    library = binding()
    first = ctypes.POINTER(library.pcap_if_t)()
    error = ctypes.create_string_buffer(library.PCAP_ERRBUF_SIZE)
    if library.pcap_findalldevs(ctypes.byref(first), error) < 0:
        return []
    found: list[tuple[str, str]] = []
    at = first
    while at:
        said: bytes = at.contents.description or b""
        name: bytes = at.contents.name
        found.append((name.decode("utf-8", "replace"), said.decode("utf-8", "replace")))
        at = at.contents.next
    library.pcap_freealldevs(first)
    return found
