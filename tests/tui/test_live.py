"""``kdissect tui -i``, in a terminal: the screens over a capture that goes on."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kdissect.capture.files import read_packets
from kdissect.exchange import Exchange
from kdissect.live.journal import status_of
from kdissect.model import Fault
from tests.dissecting import dissect
from tests.kafka import METADATA_RESPONSE_1, framed, request, response
from tests.live.requires import requires_raw_sockets
from tests.tui.terminals import Terminal, end_with_q
from tests.waiting import wait_until

pytestmark = requires_raw_sockets
pytest.importorskip("scapy")


@pytest.fixture
def port() -> int:
    """One that nobody else talks on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        found: int = server.getsockname()[1]
    return found


@pytest.fixture
def terminal(port: int, tmp_path: Path) -> Iterator[Terminal]:
    command = ("tui", "-i", "lo", "--allow-root", "-f", f"tcp port {port}")
    shown = Terminal(*command, TMPDIR=str(tmp_path), KDISSECT_PAGE="exchanges")
    try:
        shown.until(b"0 dropped")
        yield shown
    finally:
        shown.close()


def talk(port: int, count: int) -> None:
    """So many exchanges on a connection."""
    with (
        socket.create_server(("127.0.0.1", port)) as server,
        socket.create_connection(("127.0.0.1", port)) as client,
        closing(server.accept()[0]) as broker,
    ):
        for number in range(count):
            client.sendall(framed(request("Metadata", 1, number, topics=[])))
            broker.recv(1000)
            broker.sendall(framed(response("Metadata", 1, number, **METADATA_RESPONSE_1)))
            client.recv(1000)


def test_exchanges_come_to_the_screen_and_nothing_is_left_at_the_end(
    terminal: Terminal, port: int, tmp_path: Path
) -> None:
    talk(port, 7)
    terminal.until(b"7 exchanges")
    terminal.send(b"8")
    terminal.until(b"waits to be written")
    terminal.send(b"1")
    terminal.until(b"Metadata v1")
    end_with_q(terminal, unsaved=True)
    assert list(tmp_path.glob("kdissect-live-*")) == []


def test_a_capture_that_brings_nothing_says_so_on_every_screen(terminal: Terminal, port: int) -> None:
    terminal.resize(80, 24)  # the first line has no room for it
    for key in (b"1", b"9", b"T"):
        terminal.send(key)
        terminal.until(f"no packet has matched tcp port {port} so far; ".encode())
    terminal.send(b"\x11")
    assert terminal.end() == 0


def test_screens_that_are_killed_leave_a_spool_that_can_be_read(
    terminal: Terminal, port: int, tmp_path: Path
) -> None:
    talk(port, 7)
    terminal.until(b"7 exchanges")
    terminal.process.send_signal(signal.SIGKILL)
    (folder,) = tmp_path.glob("kdissect-live-*")

    def is_complete() -> bool:
        capture = read_packets(folder.glob("*.pcapng"))
        assert not [item for item in capture if isinstance(item, Fault)]
        return capture.interfaces[0].received is not None  # what is written at a clean end

    assert wait_until(is_complete, 20)


def test_without_the_decoder_the_capture_goes_on_and_is_kept(
    terminal: Terminal, port: int, tmp_path: Path
) -> None:
    talk(port, 7)
    terminal.until(b"7 exchanges")
    decoder, capture = sorted(helpers(terminal), key=is_capture)
    assert (is_capture(decoder), is_capture(capture)) == (False, True)
    os.kill(decoder, signal.SIGKILL)
    terminal.until(b"the decoder was killed by signal 9")
    (folder,) = tmp_path.glob("kdissect-live-*")
    before = status_of(str(folder))
    assert before is not None
    talk(port, 7)
    assert wait_until(lambda: (status_of(str(folder)) or before).written >= before.written + 14, 20)
    terminal.send(b"8")
    terminal.until(b"the capture goes on and writes to ")
    terminal.send(b"1")
    terminal.until(b"Metadata v1")  # what was decoded is there to be looked at
    terminal.send(b"qq")
    assert terminal.end() == 0
    assert f"the captured packets are in {folder}".encode() in terminal.output
    assert exchanges_in(folder) == 14


def test_without_the_capture_process_what_came_before_is_shown(
    terminal: Terminal, port: int, tmp_path: Path
) -> None:
    talk(port, 7)
    terminal.until(b"7 exchanges")
    (capture,) = filter(is_capture, helpers(terminal))
    os.kill(capture, signal.SIGKILL)
    terminal.until(
        b"the capture process was killed by signal 9; the packets that it had written are complete"
    )
    terminal.send(b"8")
    terminal.until(b"1 of them with Kafka")
    terminal.send(b"1qq")
    assert terminal.end() == 0
    assert list(tmp_path.glob("kdissect-live-*")) == []


def helpers(terminal: Terminal) -> list[int]:
    """The processes beside that of the screens."""
    spawned = b"spawn_main"
    return [pid for pid in terminal.children() if spawned in Path(f"/proc/{pid}/cmdline").read_bytes()]


def is_capture(pid: int) -> bool:
    """Whether it has a packet socket's ring."""
    return "socket:[" in Path(f"/proc/{pid}/maps").read_text()


def exchanges_in(folder: Path) -> int:
    """How many a spool holds; it is whole."""
    events = list(dissect(read_packets(sorted(folder.glob("*.pcapng")))))
    assert not [event for event in events if isinstance(event, Fault)]
    return sum(isinstance(event, Exchange) for event in events)
