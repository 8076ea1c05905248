"""Capturing by libpcap, which other systems than Linux do; here it works too."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest

from kdissect.capture.blocks import Captured
from kdissect.live import libpcap
from kdissect.live.errors import BadFilterError, NoInterfaceError
from kdissect.live.session import wait_until
from kdissect.live.sources import Interfaces
from kdissect.live.unix import PcapSource
from tests.live.machine import requires_raw_sockets
from tests.live.test_ring import segments_of, talk

pytestmark = [
    requires_raw_sockets,
    pytest.mark.skipif(not libpcap.is_there(), reason="libpcap is not installed"),
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


def _sum(packets: list[Captured]) -> int:
    segments = segments_of(packets, 1)
    return sum(length for _, length in {(each.seq, len(each.payload)) for each in segments})


@pytest.mark.parametrize(
    ("name", "text", "error"), [("nix9", "tcp", NoInterfaceError), ("lo", "prt 9", BadFilterError)]
)
def test_what_cannot_be_opened_is_told(name: str, text: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"nix9|prt 9"):
        PcapSource(name, Interfaces((), text))
