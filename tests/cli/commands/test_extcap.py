"""``kdissect extcap``, as Wireshark calls it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdissect.capture.pcapng import HEADER_BYTES, PcapngReader
from kdissect.cli import wireshark_pipe
from kdissect.cli.wireshark_pipe import WiresharkPipe
from kdissect.model import Packet
from tests.cli.run import CAPTURES, run
from tests.live.machine import Network, ended, eventually, network, nobody
from tests.live.requires import requires_namespaces, requires_nobody

pytest.importorskip("scapy")
posix = pytest.mark.skipif(sys.platform == "win32", reason="needs named pipes")
CAPTURE = CAPTURES / "basic-kafka43.pcapng"


def test_interfaces_are_listed(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    ran = run(capsysbinary, "extcap", "--extcap-interfaces", "--extcap-version=4.6")
    assert ran.code == 0
    assert ran.lines[0].startswith("extcap {version=")
    assert any(line.startswith("interface {value=kdissect-lo}") for line in ran.lines)


def test_link_types_and_arguments_are_told(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    of_lo = ("--extcap-interface", "kdissect-lo")
    assert run(capsysbinary, "extcap", "--extcap-dlts", *of_lo).lines[0].startswith("dlt {number=1}")
    assert run(capsysbinary, "extcap", "--extcap-config", *of_lo).lines[0].startswith("arg {number=0}")


@pytest.mark.parametrize("name", ["kdissect-nix9", "lo"])
def test_an_interface_that_has_vanished_is_one_line(
    capsysbinary: pytest.CaptureFixture[bytes], name: str
) -> None:
    ran = run(capsysbinary, "extcap", "--capture", "--extcap-interface", name, "--fifo", "x")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, b"", 1)
    assert f"{name}: there is no such interface any more" in ran.err


def test_a_capture_filter_is_checked_while_it_is_typed(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    asked = ("extcap", "--extcap-interface", "kdissect-lo", "--extcap-capture-filter")
    assert run(capsysbinary, *asked, "tcp port 9092").out == b""
    assert b"tcp prt" in run(capsysbinary, *asked, "tcp prt 9092").out


def test_without_a_question_it_says_whose_it_is(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    ran = run(capsysbinary, "extcap")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "kdissect wireshark install" in ran.err


@posix
@requires_nobody
def test_no_permission_is_one_line_with_the_way_out(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    pipe.write_bytes(b"")
    pipe.chmod(0o666)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o005 != 0o005:  # those that pytest made
            folder.chmod(0o755)
    arguments = ("--capture", "--extcap-interface", "kdissect-lo", "--fifo", pipe)
    done = subprocess.run(
        [*nobody(), "-m", "kdissect", "extcap", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (5, 1), done.stderr
    assert done.stderr.startswith("kdissect: lo: you are not permitted to capture: start Wireshark so: ")
    assert done.stderr.endswith(" wireshark\n")


def test_what_went_wrong_is_said_before_the_pipe_is_closed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Wireshark looks for a message once, when the pipe is closed, and shows an empty one else."""
    pipe = (tmp_path / "pipe").open("wb")
    said: list[tuple[bool, str]] = []
    monkeypatch.setattr(WiresharkPipe, "_open_pipe", lambda _: pipe)
    monkeypatch.setattr(wireshark_pipe, "complain", lambda text: said.append((pipe.closed, text)))
    given = {"comments": True, "port": None, "keylog": None, "key_log": None, "fifo": "pipe"}
    filtered = {"capture_filter": "tcp prt 9092", "allow_root": True}
    code = WiresharkPipe("lo", {**given, **filtered}).run()
    assert code in (2, 5)  # without the right to capture that is said first
    assert [is_closed for is_closed, _ in said] == [False]
    assert pipe.closed


class Reader(threading.Thread):
    """Wireshark's end of the pipe."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self._path = path
        self.data = b""
        self.start()

    def run(self) -> None:
        with self._path.open("rb", buffering=0) as pipe:
            while piece := pipe.read(1 << 16):
                self.data += piece

    @property
    def packets(self) -> list[Packet]:
        reader = PcapngReader(self.data[:HEADER_BYTES])
        return [item for item in reader.feed(self.data) if isinstance(item, Packet)]


@pytest.fixture
def cable() -> Iterator[Network]:
    with network() as made:
        yield made


def begin(cable: Network, folder: Path) -> tuple[subprocess.Popen[bytes], Reader]:
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    process = cable.start(
        *("extcap", "--capture", "--extcap-interface", "kdissect-vb", "--fifo", pipe),
        *("--comments", "true", "--allow-root"),
    )
    reader = Reader(pipe)
    eventually(lambda: bool(reader.data) or process.poll() is not None)
    return process, reader


@posix
@requires_namespaces
def test_packets_come_with_what_is_known_of_exchanges(cable: Network, tmp_path: Path) -> None:
    process, reader = begin(cable, tmp_path)
    with ended(process):
        cable.replay(CAPTURE)
        eventually(lambda: any("api=Fetch" in text for each in reader.packets for text in each.comments))
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (0, b"")
    told = [text for each in reader.packets for text in each.comments]
    assert all(text.startswith("kdissect exchange: number=") for text in told)


@posix
@requires_namespaces
def test_an_interface_that_vanishes_ends_it_with_one_line(cable: Network, tmp_path: Path) -> None:
    process, _ = begin(cable, tmp_path)
    with ended(process):
        cable.ip("link", "del", "vb")
        _, error = process.communicate(timeout=60)
    assert (process.returncode, error.count(b"\n")) == (3, 1)
    assert error.startswith(b"kdissect: vb is gone")
