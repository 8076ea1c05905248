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
from tests.live.machine import network
from tests.live.requires import requires_namespaces
from tests.tui.terminals import Terminal

CAPTURE = LAB / "tls13" / "capture.pcapng.zst"
KEY_LOG = LAB / "tls13" / "keys.log"
EXCHANGES = b"55 exchanges"

pytest.importorskip("cryptography")


def write_plain(file: BinaryIO, most: int = 1_000) -> None:
    """The capture's packets, without any secret; those after the first ``most`` are left out."""
    writer = PcapngWriter(file)
    for item in read_packets([CAPTURE]):
        if isinstance(item, Packet) and item.number <= most:
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


def test_connections_in_tls_are_listed_while_they_go_on(tmp_path: Path) -> None:
    """One of three is over; the handshake of the last is not complete."""
    capture, keys = tmp_path / "capture.pcapng", tmp_path / "keys.log"
    with capture.open("wb") as file:
        write_plain(file, 50)
    terminal = Terminal("tui", "--follow", capture, "--keylog", keys)
    with closing(terminal):
        terminal.until(b"nothing is decrypted of 2 TLS connections: no secret; kdissect doctor tls")
        terminal.send(b"2")
        terminal.until(b"going on (TLS 1.3: no secret for client")
        terminal.until(b"3 connections")
        terminal.until(b"TLS_AES_256_GCM_SHA384")
        grow(keys)
        terminal.until(b"certificate 1 of 2")


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
