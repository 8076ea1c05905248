"""The ring, on this machine's loopback and on a cable of our own."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from kdissect.capture.blocks import Captured
from kdissect.capture.segments import SegmentReader
from kdissect.live import devices, privileged
from kdissect.live.bpf import COOKED, ETHERNET, SNAP_LENGTH, program_of
from kdissect.live.ring import BLOCKS, RingListenSocket
from kdissect.model import Packet, Segment
from tests.live.requires import requires_raw_sockets

pytestmark = requires_raw_sockets
pytest.importorskip("scapy")


def ring(name: str, port: int, snap_length: int = SNAP_LENGTH) -> RingListenSocket:
    """A ring on an interface, with what is of a port."""
    link_type = COOKED if name == devices.ANY else ETHERNET
    program = program_of(f"tcp port {port}", link_type, snap_length, socket.if_nametoindex("lo"))
    interface = "" if name == devices.ANY else name
    (opened,) = privileged.open_sockets([privileged.SocketRequest(interface, program, link_type == COOKED)])
    return RingListenSocket(opened, interface, link_type, snap_length)


def everything(source: RingListenSocket) -> list[Captured]:
    source.stop()
    packets: list[Captured] = []
    while (block := source.read()) is not None:
        packets += block[1]
    return packets


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def talk(server: socket.socket, size: int) -> None:
    """Send so many bytes through a connection."""
    with socket.create_connection(server.getsockname()) as client, closing(server.accept()[0]) as accepted:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        accepted.settimeout(20)
        left = size
        while left:
            client.sendall(bytes(min(left, 1 << 20)))
            wanted = min(left, 1 << 20)
            while wanted:
                got = len(accepted.recv(wanted))
                wanted -= got
                left -= got


def segments_of(packets: list[Captured], link_type: int) -> list[Segment]:
    reader = SegmentReader()
    found = [
        reader.feed(Packet(number, time_ns, link_type, data, length, 0, ()))
        for number, (time_ns, length, data) in enumerate(packets, 1)
    ]
    return [each for each in found if isinstance(each, Segment)]


@pytest.mark.parametrize("name", ["lo", devices.ANY])
def test_every_byte_of_a_connection_comes_once_in_whole_frames(server: socket.socket, name: str) -> None:
    size = 20 << 20
    with closing(ring(name, server.getsockname()[1])) as source:
        before_ns = time.time_ns()
        talk(server, size)
        packets = everything(source)
        counts = source.counts()
    assert counts == (len(packets), 0)
    assert all(length == len(data) for _, length, data in packets)
    assert max(len(data) for _, _, data in packets) > 65_535
    assert before_ns <= packets[0][0] <= packets[-1][0] <= time.time_ns()
    assert any(time_ns % 1_000 for time_ns, _, _ in packets)
    segments = segments_of(packets, source.link_type)
    assert len(segments) == len(packets)
    assert len({data for _, _, data in packets}) == len(packets)
    # The system may send bytes again, in another frame and cut elsewhere.
    sent = [each for each in segments if each.payload]
    covered, first = 0, sent[0].seq
    for begin, length in sorted(((each.seq - first) % 2**32, len(each.payload)) for each in sent):
        assert begin <= covered
        covered = max(covered, begin + length)
    assert covered == size


def test_frames_are_cut_at_the_snap_length(server: socket.socket) -> None:
    with closing(ring("lo", server.getsockname()[1], 96)) as source:
        talk(server, 100_000)
        packets = everything(source)
    assert max(len(data) for _, _, data in packets) == 96
    assert max(length for _, length, _ in packets) > 30_000


def test_what_comes_while_nobody_reads_is_dropped_and_counted(server: socket.socket) -> None:
    with closing(ring("lo", server.getsockname()[1])) as source:
        talk(server, (BLOCKS + 20) << 20)
        assert source.fill() == 1.0
        packets = everything(source)
        received, dropped = source.counts()
        assert source.counts() == (received, dropped)
    assert dropped > 0
    assert received == len(packets) + dropped


def test_a_socket_that_was_passed_on_cannot_be_turned_to_something_else() -> None:
    program = program_of("tcp port 1", ETHERNET, 96, None)
    (opened,) = privileged.open_sockets([privileged.SocketRequest("lo", program)])
    with opened, pytest.raises(OSError, match="permitted"):
        opened.setsockopt(socket.SOL_SOCKET, 26, b"\1" + bytes(7) + (id(program)).to_bytes(8, "little"))


def test_an_interface_that_does_not_exist_is_an_error_with_its_name() -> None:
    with pytest.raises(OSError, match="No such device") as caught:
        privileged.open_sockets([privileged.SocketRequest("nix0", program_of("tcp", ETHERNET, 96, None))])
    assert caught.value.filename == "nix0"


def test_no_descriptor_is_left_open(server: socket.socket) -> None:
    before = len(os.listdir("/proc/self/fd"))
    ring("lo", server.getsockname()[1]).close()
    assert len(os.listdir("/proc/self/fd")) == before
