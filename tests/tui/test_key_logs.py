"""Key logs that grow while the screens are on: of a capture that goes on, and of a file that is followed."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import pytest

from kdissect.capture.files import read_packets
from kdissect.capture.writer import PcapngWriter
from kdissect.model import Packet
from tests.lab import LAB
from tests.live.machine import network, requires_namespaces
from tests.tui.terminals import Terminal

CAPTURE = LAB / "tls13" / "capture.pcapng.zst"
KEY_LOG = LAB / "tls13" / "keys.log"
EXCHANGES = b"55 exchanges"

pytest.importorskip("cryptography")


def write_plain(file: BinaryIO) -> None:
    """The capture's packets, without any secret."""
    writer = PcapngWriter(file)
    for item in read_packets([CAPTURE]):
        if isinstance(item, Packet):
            writer.write(item)


def grow(path: Path) -> None:
    """Write a key log line by line, in pieces that are no lines."""
    data = KEY_LOG.read_bytes()
    with path.open("ab", buffering=0) as file:
        for at in range(0, len(data), 1_000):
            file.write(data[at : at + 1_000])


def test_of_a_file_that_is_followed_keys_may_come_after_the_last_packet(tmp_path: Path) -> None:
    capture, keys = tmp_path / "capture.pcapng", tmp_path / "keys.log"
    with capture.open("wb") as file:
        write_plain(file)
    terminal = Terminal("tui", "--follow", capture, "--keylog", keys)
    with closing(terminal):
        terminal.until(b"0 exchanges")
        grow(keys)
        terminal.until(EXCHANGES)


@requires_namespaces
def test_of_a_live_capture_keys_may_come_after_the_last_packet(tmp_path: Path) -> None:
    pytest.importorskip("scapy")
    keys = tmp_path / "keys.log"
    capture = tmp_path / "capture.pcapng"
    with capture.open("wb") as file:
        write_plain(file)
    with network() as cable:
        command = cable.command("-m", "kdissect", "tui", "-i", "vb", "--allow-root", "--keylog", keys)
        terminal = Terminal(command=command)
        with closing(terminal):
            terminal.until(b"0 dropped")
            cable.replay(capture)
            terminal.until(b"0 exchanges")
            grow(keys)
            terminal.until(EXCHANGES)
