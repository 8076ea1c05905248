"""A libpcap handle ─► blocks of packets. This captures on systems without a packet ring: macOS, the BSDs and,
with Npcap, Windows. Those are untested. kdissect is tested on Linux, where this works too.
"""

from __future__ import annotations

import ctypes
import time
from typing import Any

from kdissect.capture.blocks import Captured
from kdissect.capture.links import RAW
from kdissect.capture.reader import Interface
from kdissect.live import libpcap
from kdissect.live.errors import BadFilterError, LiveError, NoInterfaceError, NotPermittedError
from kdissect.live.sources import Interfaces, SourceCounts

_TIMEOUT_MS = 20
"""The longest time that the system gathers packets before it hands them over."""
_MOST_PACKETS = 5_000
"""The most packets of a block."""
_BUFFER_BYTES = 16 << 20
"""The buffer size for Npcap. Its default, one megabyte, is full before the next read."""
_END_SECONDS = 0.5
"""How long packets that already arrived are read after the end: on a busy line new ones never stop."""
_RAW_NUMBERS = (12, 14)
"""The values of DLT_RAW on different systems."""


class PcapSource:
    """One interface, opened by libpcap. Opening needs the privilege in this process.

    :param device: libpcap's name for it, if that differs from its name.
    :raises LiveError: it cannot be opened.
    """

    def __init__(self, name: str, wanted: Interfaces, device: str | None = None) -> None:
        library = self._library = libpcap.binding()
        if library is None:
            raise LiveError(f"capturing needs libpcap here: {libpcap.install_hint()}")
        self._name = name
        self._error = ctypes.create_string_buffer(library.PCAP_ERRBUF_SIZE)
        self._handle = library.pcap_open_live(
            (device or name).encode(), wanted.snap_length, wanted.is_promiscuous, _TIMEOUT_MS, self._error
        )
        if not self._handle:
            said = self._error.value.decode("utf-8", "replace")
            is_refused = any(word in said.lower() for word in ("permi", "denied"))
            kind = NotPermittedError if is_refused else NoInterfaceError
            raise kind(f"{name}: {said}")
        self._filter(wanted.filter)
        if hasattr(library, "pcap_setmintocopy"):  # Npcap, which would wait until it has more packets
            library.pcap_setbuff(self._handle, _BUFFER_BYTES)
            library.pcap_setmintocopy(self._handle, 0)
        # Otherwise reading an idle line would block for ever.
        library.pcap_setnonblock(self._handle, 1, self._error)
        link_type: int = library.pcap_datalink(self._handle)
        link_type = RAW if link_type in _RAW_NUMBERS else link_type
        self.interfaces = (Interface(link_type, wanted.snap_length, name),)
        self._header = ctypes.POINTER(library.pcap_pkthdr)()
        self._data: Any = ctypes.POINTER(ctypes.c_ubyte)()
        self._received = 0
        self._trouble: str | None = None
        self._is_over = False
        self._until = float("inf")

    def _filter(self, text: str) -> None:
        library = self._library
        program = library.bpf_program()
        if library.pcap_compile(self._handle, ctypes.byref(program), text.encode(), 1, 0xFFFFFFFF) < 0:
            said = library.pcap_geterr(self._handle).decode("utf-8", "replace")
            raise BadFilterError(f"{text!r} is not a capture filter: {said}")
        library.pcap_setfilter(self._handle, ctypes.byref(program))
        library.pcap_freecode(ctypes.byref(program))

    def fileno(self) -> int:
        found: int = self._library.pcap_get_selectable_fd(self._handle)
        return found

    def read(self) -> tuple[int, list[Captured]] | None:
        packets: list[Captured] = []
        header, data = ctypes.byref(self._header), ctypes.byref(self._data)
        if time.monotonic() > self._until:
            return None
        while len(packets) < _MOST_PACKETS and not self._is_over:
            got = self._library.pcap_next_ex(self._handle, header, data)
            if got == 0:
                break
            if got < 0:
                self._is_over = True
                self._trouble = self._library.pcap_geterr(self._handle).decode("utf-8", "replace")
                break
            head = self._header.contents
            # The binding reads eight bytes; macOS has only four, and the bytes after them are undefined.
            microseconds = head.ts.tv_usec & 0xFFFF_FFFF
            time_ns = head.ts.tv_sec * 1_000_000_000 + microseconds * 1_000
            packets.append((time_ns, head.len, ctypes.string_at(self._data, head.caplen)))
        self._received += len(packets)
        return (0, packets) if packets else None

    def counts(self) -> SourceCounts:
        """The packets that were read, and the packets that libpcap reports as dropped."""
        said = self._library.pcap_stat()
        if self._library.pcap_stats(self._handle, ctypes.byref(said)) < 0:
            return SourceCounts(self._received, 0)
        return SourceCounts(self._received + said.ps_drop, said.ps_drop)

    def fill(self) -> float:
        return 0.0

    def trouble(self) -> str | None:
        said, self._trouble = self._trouble, None
        return None if said is None else f"{self._name}: {said}"

    def is_over(self) -> bool:
        return self._is_over

    def has_vanished(self) -> bool:
        return self._is_over  # libpcap gives up an interface for no other reason

    def stop(self) -> None:
        """Let the system hand over the packets that it gathers: no count would say that they are lost."""
        time.sleep(3 * _TIMEOUT_MS / 1_000)
        self._until = time.monotonic() + _END_SECONDS

    def close(self) -> None:
        self._library.pcap_close(self._handle)
