"""``kdissect live``, from packets on a cable to lines."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kdissect.capture.files import read_packets
from kdissect.capture.writer import PcapngWriter
from kdissect.live.journal import status_of
from kdissect.model import Fault, Packet
from kdissect.system import landlock, seccomp
from tests.amount import some
from tests.cli.run import CAPTURES, ROOT, ask_no_tshark, run, run_with, spawn
from tests.lab import LAB
from tests.live.machine import (
    Network,
    children,
    end,
    eventually,
    kdissect_of,
    network,
    start,
    until_it_captures,
)
from tests.live.requires import requires_namespaces

BASIC, ERRORS = CAPTURES / "basic-kafka43.pcapng", CAPTURES / "errors.pcapng"
AS_ROOT = "--allow-root"

pytest.importorskip("scapy")


@pytest.fixture(scope="module")
def cable() -> Iterator[Network]:
    with network() as made:
        yield made


class Live:
    """A ``kdissect live`` on one end of the cable."""

    def __init__(self, cable: Network, folder: Path, *arguments: object) -> None:
        self.cable = cable
        common = ("-i", "vb", AS_ROOT, "--spool", folder, "-q")
        self.process = cable.start("live", *common, *arguments)
        self.folder = until_it_captures(self.process, folder)

    def replay(self, *captures: Path) -> None:
        before = self.written
        self.cable.replay(*captures)
        count = sum(isinstance(item, Packet) for path in captures for item in read_packets([path]))
        eventually(lambda: self.written >= before + count)

    @property
    def written(self) -> int:
        status = status_of(str(self.folder))
        return 0 if status is None else status.written

    def close(self) -> None:
        """End it, whatever became of the test."""
        for pid in _family(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        self.process.wait()

    def end(self) -> tuple[int, list[dict[str, Any]], str]:
        code, out, error = end(self.process)
        return code, [json.loads(line) for line in out.splitlines()], error


def write_tls(path: Path) -> None:
    """A capture of TLS without its secrets."""
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        for item in read_packets([LAB / "tls13" / "capture.pcapng.zst"]):
            if isinstance(item, Packet):
                writer.write(item)


Begin = Callable[..., Live]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Starts captures, which end with the test."""
    begun: list[Live] = []

    def make(cable: Network, *arguments: object) -> Live:
        begun.append(Live(cable, tmp_path, *arguments))
        return begun[-1]

    yield make
    for each in begun:
        each.close()


@requires_namespaces
@pytest.mark.parametrize("form", some(["ndjson", "records", "connections", "faults"], 2))
def test_rows_are_those_that_reading_the_spool_gives(
    begin: Begin, cable: Network, tmp_path: Path, form: str
) -> None:
    out = tmp_path / "out.pcapng"
    live = begin(cable, "-T", form, "-w", out)
    live.replay(BASIC, ERRORS)
    code, rows, error = live.end()
    assert (code, error) == (0, "")
    read = run_with(b"", "read", out, "-T", form)
    assert rows == [json.loads(line) for line in read.lines]
    assert rows or form == "faults"
    original = run_with(b"", "read", BASIC, "-T", form)
    assert len(rows) >= len(original.lines)


@requires_namespaces
def test_lines_come_at_once(begin: Begin, cable: Network, tmp_path: Path) -> None:
    live = begin(cable, "-T", "ndjson", "-Y", "api == Metadata", "-e", "api,response_time_ns")
    live.replay(BASIC)
    assert live.process.stdout is not None
    row = json.loads(live.process.stdout.readline())
    assert row["api"] == "Metadata"
    code, rows, _ = live.end()
    assert code == 0
    assert {each["api"] for each in rows} == {"Metadata"}


@requires_namespaces
def test_while_nothing_is_decrypted_it_is_told_why(begin: Begin, cable: Network, tmp_path: Path) -> None:
    capture = tmp_path / "tls.pcapng"
    write_tls(capture)
    live = begin(cable, "-T", "ndjson")
    live.replay(capture)
    assert live.process.stderr is not None
    assert live.process.stderr.readline() == (
        b"kdissect: no exchange so far; not decoded: 11 TLS connections (no secret; kdissect doctor tls "
        b"says how to get one)\n"
    )


@requires_namespaces
def test_what_waits_for_its_secret_is_shown_when_that_comes_although_no_packet_does(
    begin: Begin, cable: Network, tmp_path: Path
) -> None:
    capture, keys = tmp_path / "tls.pcapng", tmp_path / "keys.log"
    write_tls(capture)
    live = begin(cable, "-T", "ndjson", "--keylog", keys)
    live.replay(capture)
    keys.write_bytes((LAB / "tls13" / "keys.log").read_bytes())
    assert live.process.stdout is not None
    rows = [json.loads(live.process.stdout.readline()) for _ in range(55)]
    assert {row["number"] for row in rows} == set(range(1, 56))
    code, more, _ = live.end()
    assert (code, more, len(rows)) == (0, [], 55)


@requires_namespaces
def test_with_a_filter_the_packets_of_what_is_shown_are_written(
    begin: Begin, cable: Network, tmp_path: Path
) -> None:
    out = tmp_path / "out.pcapng"
    live = begin(cable, "-T", "ndjson", "-Y", "api == Produce", "-w", out)
    live.replay(BASIC)
    _, rows, _ = live.end()
    again = [json.loads(line) for line in run_with(b"", "read", out, "-T", "ndjson").lines]
    assert [each["correlation_id"] for each in rows] == [each["correlation_id"] for each in again]
    assert {each["api"] for each in again} == {"Produce"}
    assert out.stat().st_mode & 0o777 == 0o600


@requires_namespaces
def test_files_turn_and_together_are_the_capture(begin: Begin, cable: Network, tmp_path: Path) -> None:
    live = begin(cable, "-T", "ndjson", "-w", tmp_path / "out.pcapng", "-b", "filesize:20")
    live.replay(BASIC)
    _, rows, _ = live.end()
    files = sorted(tmp_path.glob("out_*.pcapng"))
    assert len(files) > 1
    together = [json.loads(line) for line in run_with(b"", "read", *files, "-T", "ndjson").lines]
    assert rows == together


@requires_namespaces
def test_a_trigger_writes_what_came_around_a_hit(begin: Begin, cable: Network, tmp_path: Path) -> None:
    out = tmp_path / "hit.pcapng"
    live = begin(cable, "-T", "ndjson", "--trigger", "error", "-w", out, "--after", "1ms")
    live.replay(ERRORS)
    _, rows, error = live.end()
    files = sorted(tmp_path.glob("hit_*.pcapng"))
    assert files
    assert error.count("--trigger: writing") == len(files)
    with_error = [each for each in rows if each["error"]]
    found = [json.loads(line) for line in run_with(b"", "read", *files, "-T", "ndjson").lines]
    assert {(each["correlation_id"], each["error"]) for each in with_error} <= {
        (each["correlation_id"], each["error"]) for each in found
    }


@requires_namespaces
def test_it_begins_and_ends_where_it_is_told(begin: Begin, cable: Network, tmp_path: Path) -> None:
    live = begin(cable, "-T", "ndjson", "--start-on", "api == Metadata", "--stop-on", "api == Produce")
    cable.replay(BASIC)
    out, error = live.process.communicate(timeout=30)
    rows = [json.loads(line) for line in out.splitlines()]
    assert (live.process.returncode, error) == (0, b"")
    assert rows[0]["api"] == "Metadata"
    assert rows[-1]["api"] == "Produce"
    assert [each["api"] for each in rows].count("Produce") == 1


@requires_namespaces
def test_a_stop_condition_ends_it(begin: Begin, cable: Network, tmp_path: Path) -> None:
    live = begin(cable, "-T", "ndjson", "-a", "packets:20", "-w", tmp_path / "out.pcapng")
    cable.replay(BASIC)
    _, error = live.process.communicate(timeout=30)
    assert (live.process.returncode, error) == (0, b"")
    assert sum(isinstance(item, Packet) for item in read_packets([tmp_path / "out.pcapng"])) >= 20


@requires_namespaces
@pytest.mark.parametrize("who", ["capture", "decoder"])
def test_whoever_is_killed_the_spool_is_whole_and_the_rest_ends(
    begin: Begin, cable: Network, tmp_path: Path, who: str
) -> None:
    out = tmp_path / "out.pcapng"
    live = begin(cable, "-T", "ndjson", "-w", out)
    live.replay(BASIC)
    (kdissect,) = {live.process.pid, *_kdissects(live.process.pid)} - _wrappers(live.process.pid)
    capture = children(kdissect)["capture"]
    os.kill(capture if who == "capture" else kdissect, signal.SIGKILL)
    rows, error = live.process.communicate(timeout=30)
    eventually(lambda: not Path(f"/proc/{capture}/fd").exists() or not os.listdir(f"/proc/{capture}/fd"))
    items = list(read_packets([out]))
    assert not [item for item in items if isinstance(item, Fault)]
    assert len(items) == sum(isinstance(item, Packet) for item in read_packets([BASIC]))
    if who == "capture":
        assert live.process.returncode == 3
        assert b"the capture process was killed by signal 9" in error
        assert len(rows.splitlines()) == len(run_with(b"", "read", BASIC, "-T", "ndjson").lines)


def _family(pid: int) -> list[int]:
    """A process and those it has started, for as long as it runs."""
    try:
        return [pid, *(each for child in children(pid).values() for each in _family(child))]
    except OSError:
        return []


def _kdissects(pid: int) -> list[int]:
    return [child for line, child in children(pid).items() if "-m kdissect" in line]


def _wrappers(pid: int) -> set[int]:
    """``ip netns exec`` becomes what it starts; where it does not, it is no kdissect itself."""
    return set() if b"kdissect" in Path(f"/proc/{pid}/cmdline").read_bytes() else {pid}


@requires_namespaces
def test_an_interface_that_goes_down_is_told_and_packets_come_again(begin: Begin, tmp_path: Path) -> None:
    with network() as own:
        live = begin(own, "-T", "ndjson", "-e", "api")
        live.replay(BASIC)
        own.ip("link", "set", "vb", "down")
        eventually(lambda: _said(live, "vb went down"))
        own.ip("link", "set", "vb", "up")
        eventually(lambda: _said(live, "vb is up again"))
        live.replay(BASIC)
        code, rows, error = live.end()
    assert code == 0
    assert error.count("vb went down") == error.count("vb is up again") == 1
    assert len(rows) >= 2 * 10


@requires_namespaces
def test_who_decodes_has_no_packet_socket_and_is_confined(begin: Begin, cable: Network) -> None:
    live = begin(cable, "-T", "ndjson", "-e", "api")
    live.replay(BASIC)
    decoder = kdissect_of(live.process.pid)
    capture = children(decoder)["capture"]
    packet_sockets = {line.split()[-1] for line in _of(decoder, "net/packet").splitlines()[1:]}
    assert len(packet_sockets & _sockets(capture)) == 1
    assert not packet_sockets & _sockets(decoder)
    if landlock.version() and seccomp.is_offered():
        eventually(lambda: re.search(r"Seccomp:\s+2", _of(decoder, "status")) is not None)
    code, rows, error = live.end()
    assert (code, error, len(rows)) == (0, "", len(run_with(b"", "read", BASIC, "-T", "ndjson").lines))


def _of(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()


def _sockets(pid: int) -> set[str]:
    """Inodes of the sockets that a process has."""
    links = [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()]
    return {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}


@requires_namespaces
@pytest.mark.parametrize("before", [(), ("down",)], ids=["at once", "down before"])
def test_an_interface_that_is_gone_ends_it(begin: Begin, tmp_path: Path, before: tuple[str, ...]) -> None:
    with network() as own:
        live = begin(own, "-T", "faults")
        live.replay(BASIC)
        written = live.written
        for state in before:
            own.ip("link", "set", "vb", state)
            eventually(lambda: _said(live, "vb went down"))
        own.ip("link", "del", "vb")
        out, error = live.process.communicate(timeout=30)
    assert live.process.returncode == 3
    assert b"vb is gone" in error
    row = json.loads(out.splitlines()[-1])
    assert (row["layer"], row["kind"], row["packet"]) == ("file", "interface-gone", written)


def _said(live: Live, words: str) -> bool:
    status = status_of(str(live.folder))
    return status is not None and any(words in note for note in status.notes)


@requires_namespaces
def test_metrics_are_served_while_it_runs(begin: Begin, cable: Network, tmp_path: Path) -> None:
    pytest.importorskip("prometheus_client")
    live = begin(cable, "-T", "ndjson", "-e", "api", "--prometheus", ":19464")
    live.replay(BASIC)
    script = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:19464').read().decode())"
    expected = len(run_with(b"", "read", BASIC, "-T", "ndjson", "-Y", "api == Metadata").lines)

    def counted() -> bool:
        # Fails while nobody listens yet.
        done = subprocess.run(cable.command("-c", script), capture_output=True, check=False, cwd=ROOT)
        return f'kdissect_requests_total{{api="Metadata"}} {expected}.0' in done.stdout.decode().split("\n")

    eventually(counted)
    code, _, error = live.end()
    assert code == 0
    assert (
        "--prometheus: 127.0.0.1 port 19464 has no password: everybody who reaches it reads the metrics\n"
        in error
    )


def test_a_capture_on_standard_input_is_live(tmp_path: Path) -> None:
    done = spawn("live", AS_ROOT, "-i", "-", "-T", "ndjson", stdin=BASIC.read_bytes())
    assert done.code == 0
    expected = [json.loads(line) for line in run_with(b"", "read", BASIC, "-T", "ndjson").lines]
    assert [json.loads(line) for line in done.lines] == expected


def test_a_file_that_grows_is_followed_until_it_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "growing.pcapng"
    whole = BASIC.read_bytes()
    path.write_bytes(whole[: len(whole) // 2 + 1])
    process = start([sys.executable, "-m", "kdissect", "read", "--follow", "-T", "ndjson", str(path)])
    assert process.stdout is not None
    first = process.stdout.readline()
    with path.open("ab") as file:
        file.write(whole[len(whole) // 2 + 1 :])
    time.sleep(0.3)
    code, out, error = end(process)
    assert (code, error) == (0, "")
    assert (first + out).decode().splitlines() == run_with(b"", "read", BASIC, "-T", "ndjson").lines


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-",), "standard input"),
        (("nowhere.pcapng",), "No such file"),
        ((BASIC, "--two-pass"), "reads only once"),
    ],
)
def test_what_cannot_be_followed_is_told(
    capsysbinary: pytest.CaptureFixture[bytes], arguments: tuple[object, ...], words: str
) -> None:
    done = run(capsysbinary, "read", "--follow", *arguments)
    assert done.code in (2, 3)
    assert words in done.err


def test_interfaces_are_listed(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    done = run(capsysbinary, "interfaces", "-T", "ndjson")
    names = [json.loads(line)["name"] for line in done.lines]
    assert done.code == 0
    assert "any" in names
    assert "lo" in names


def test_doctor_tells_whether_capturing_is_permitted(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_no_tshark(monkeypatch)
    done = run(capsysbinary, "doctor", "-T", "ndjson")
    (row,) = [json.loads(line) for line in done.lines if '"capturing"' in line]
    assert row["state"] in ("ok", "forbidden", "impossible")


def test_doctor_prints_the_line_that_mends_it(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("kdissect.cli.commands.doctor.socket.socket", refuse)
    ask_no_tshark(monkeypatch)
    done = run(capsysbinary, "doctor", "-T", "ndjson")
    (row,) = [json.loads(line) for line in done.lines if '"capturing"' in line]
    assert row["state"] == "forbidden"
    assert "sudo setpriv --reuid=" in row["details"]
    assert row["details"].endswith("live -i any")
