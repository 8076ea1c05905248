"""Capturing by libpcap, which other systems than Linux do; here it works too."""

from __future__ import annotations

import socket
import time
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest

from kdissect.capture.blocks import Captured
from kdissect.live import libpcap
from kdissect.live.errors import BadFilterError, NoInterfaceError, NotPermittedError
from kdissect.live.handle import PcapSource
from kdissect.live.sources import Interfaces
from tests.live.requires import requires_raw_sockets
from tests.live.test_ring import segments_of, talk
from tests.waiting import wait_until

pytestmark = [
    requires_raw_sockets,
    pytest.mark.skipif(not libpcap.is_available(), reason="libpcap is not installed"),
]


def test_every_byte_of_a_connection_comes() -> None:
    size = 200_000  # what libpcap has room for without being read
    with socket.create_server(("127.0.0.1", 0)) as server:
        wanted = Interfaces((), f"tcp port {server.getsockname()[1]}", is_promiscuous=False)
        with closing(PcapSource("lo", wanted)) as source:
            talk(server, size)
            packets: list[Captured] = []

            def all_came() -> bool:
                block = source.read()
                packets.extend(() if block is None else block[1])
                return bool(packets) and _sum(packets) == size

            assert wait_until(all_came, 20), _sum(packets)
            assert source.counts() == (len(packets), 0)
            assert source.interfaces[0].link_type == 1
            assert source.read() is None


def test_packets_that_arrived_just_before_the_end_are_read() -> None:
    size = 1_000
    with socket.create_server(("127.0.0.1", 0)) as server:
        wanted = Interfaces((), f"tcp port {server.getsockname()[1]}", is_promiscuous=False)
        with closing(PcapSource("lo", wanted)) as source:
            talk(server, size)
            source.stop()
            packets: list[Captured] = []
            while (block := source.read()) is not None:
                packets.extend(block[1])
            assert _sum(packets) == size


def _sum(packets: list[Captured]) -> int:
    segments = segments_of(packets, 1)
    return sum(length for _, length in {(each.seq, len(each.payload)) for each in segments})


@pytest.mark.parametrize(
    ("name", "text", "error"), [("nix9", "tcp", NoInterfaceError), ("lo", "prt 9", BadFilterError)]
)
def test_what_cannot_be_opened_is_told(name: str, text: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"nix9|prt 9"):
        PcapSource(name, Interfaces((), text))


class FakeLibrary:
    """A line on which there is always one packet more, as Npcap has it."""

    PCAP_ERRBUF_SIZE = 256

    def __init__(self, refusal: bytes = b"") -> None:
        self.refusal = refusal
        self.asked: list[tuple[str, int]] = []
        self.opened = b""

    def pcap_open_live(self, name: bytes, *given: Any) -> int:
        self.opened = name
        given[-1].value = self.refusal
        return 0 if self.refusal else 1

    def pcap_next_ex(self, *_: Any) -> int:
        time.sleep(0.0001)
        return 1

    def pcap_setbuff(self, _: int, size: int) -> None:
        self.asked.append(("buffer", size))

    def pcap_setmintocopy(self, _: int, size: int) -> None:
        self.asked.append(("at least", size))

    def __getattr__(self, name: str) -> Any:
        assert name.startswith(("pcap_", "bpf_"))
        return lambda *_: 0


def fake(monkeypatch: pytest.MonkeyPatch, library: FakeLibrary) -> None:
    library.pcap_pkthdr = libpcap.binding().pcap_pkthdr  # type: ignore[attr-defined]
    library.bpf_program = libpcap.binding().bpf_program  # type: ignore[attr-defined]
    monkeypatch.setattr(libpcap, "binding", lambda: library)


def test_npcap_is_asked_for_room_and_not_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    library = FakeLibrary()
    fake(monkeypatch, library)
    source = PcapSource("Ethernet", Interfaces((), "tcp"), "NPF_1")
    assert library.asked == [("buffer", 16 << 20), ("at least", 0)]
    assert library.opened == b"NPF_1"
    assert source.interfaces[0].name == "Ethernet"


def test_a_busy_line_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, FakeLibrary())
    source = PcapSource("Ethernet", Interfaces((), "tcp"))
    monkeypatch.setattr(source, "_header", SimpleNamespace(contents=_HEAD))
    monkeypatch.setattr("kdissect.live.handle.ctypes.byref", lambda _: None)
    monkeypatch.setattr("kdissect.live.handle.ctypes.string_at", lambda *_: b"x")
    assert source.read() is not None
    source.stop()
    until = time.monotonic() + 10
    while source.read() is not None:
        assert time.monotonic() < until


_HEAD = SimpleNamespace(ts=SimpleNamespace(tv_sec=1, tv_usec=2), len=1, caplen=1)


def test_who_is_denied_access_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, FakeLibrary(b"Error opening adapter: Access is denied. (5)"))
    with pytest.raises(NotPermittedError, match="Ethernet: Error opening adapter: Access is denied"):
        PcapSource("Ethernet", Interfaces((), "tcp"))
