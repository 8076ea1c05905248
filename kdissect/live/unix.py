"""A libpcap handle ─► blocks of packets: how interfaces are captured from on systems without a packet ring
(macOS, the BSDs). As far as it goes: kdissect is tested on Linux, where this works too."""

from __future__ import annotations

import ctypes
from typing import Any

from kdissect.capture.blocks import Captured
from kdissect.capture.links import RAW
from kdissect.capture.reader import Interface
from kdissect.live import libpcap
from kdissect.live.errors import BadFilterError, LiveError, NoInterfaceError, NotPermittedError
from kdissect.live.sources import Counts, Interfaces

_TIMEOUT_MS = 20
_MOST_PACKETS = 5_000
"""Of a block."""
_RAW_NUMBERS = (12, 14)
"""What DLT_RAW is on some systems."""


class PcapSource:
    """One interface, opened by libpcap, which wants the privilege itself.

    :raises LiveError: it cannot be opened.
    """

    def __init__(self, name: str, wanted: Interfaces) -> None:
        library = self._library = libpcap.binding()
        if library is None:
            raise LiveError("capturing needs libpcap here")
        self._name = name
        self._error = ctypes.create_string_buffer(library.PCAP_ERRBUF_SIZE)
        self._handle = library.pcap_open_live(
            name.encode(), wanted.snap_length, wanted.is_promiscuous, _TIMEOUT_MS, self._error
        )
        if not self._handle:
            said = self._error.value.decode("utf-8", "replace")
            kind = NotPermittedError if "permi" in said.lower() else NoInterfaceError
            raise kind(f"{name}: {said}")
        self._filter(wanted.filter)
        # Without this a line on which nothing comes would hold us for ever.
        library.pcap_setnonblock(self._handle, 1, self._error)
        link_type: int = library.pcap_datalink(self._handle)
        link_type = RAW if link_type in _RAW_NUMBERS else link_type
        self.interfaces = (Interface(link_type, wanted.snap_length, name),)
        self._header = ctypes.POINTER(library.pcap_pkthdr)()
        self._data: Any = ctypes.POINTER(ctypes.c_ubyte)()
        self._received = 0
        self._trouble: str | None = None
        self._is_over = False

    def _filter(self, text: str) -> None:
        library = self._library
        program = library.bpf_program()
        if library.pcap_compile(self._handle, ctypes.byref(program), text.encode(), 1, 0xFFFFFFFF) < 0:
            said = library.pcap_geterr(self._handle).decode("utf-8", "replace")
            raise BadFilterError(f"{text!r} is no capture filter: {said}")
        library.pcap_setfilter(self._handle, ctypes.byref(program))
        library.pcap_freecode(ctypes.byref(program))

    def fileno(self) -> int:
        found: int = self._library.pcap_get_selectable_fd(self._handle)
        return found

    def read(self) -> tuple[int, list[Captured]] | None:
        packets: list[Captured] = []
        header, data = ctypes.byref(self._header), ctypes.byref(self._data)
        while len(packets) < _MOST_PACKETS and not self._is_over:
            got = self._library.pcap_next_ex(self._handle, header, data)
            if got == 0:
                break
            if got < 0:
                self._is_over = True
                self._trouble = self._library.pcap_geterr(self._handle).decode("utf-8", "replace")
                break
            head = self._header.contents
            # Where the binding reads eight bytes, macOS has four, and nobody knows what behind them.
            microseconds = head.ts.tv_usec & 0xFFFF_FFFF
            time_ns = head.ts.tv_sec * 1_000_000_000 + microseconds * 1_000
            packets.append((time_ns, head.len, ctypes.string_at(self._data, head.caplen)))
        self._received += len(packets)
        return (0, packets) if packets else None

    def counts(self) -> Counts:
        """Packets that were read and those that libpcap says were dropped."""
        said = self._library.pcap_stat()
        if self._library.pcap_stats(self._handle, ctypes.byref(said)) < 0:
            return Counts(self._received, 0)
        return Counts(self._received + said.ps_drop, said.ps_drop)

    def fill(self) -> float:
        return 0.0

    def trouble(self) -> str | None:
        said, self._trouble = self._trouble, None
        return None if said is None else f"{self._name}: {said}"

    def is_over(self) -> bool:
        return self._is_over

    def stop(self) -> None:
        """What has come can still be read, one block of it."""

    def close(self) -> None:
        self._library.pcap_close(self._handle)
