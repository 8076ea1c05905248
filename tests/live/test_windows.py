"""What Windows would be given, on this system: without what it lacks, and with stand-ins for what it has
(:mod:`tests.live.as_windows.sitecustomize`), in every process that kdissect starts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from kdissect.capture.files import read_packets
from kdissect.cli.root import root
from kdissect.live import libpcap
from kdissect.live.journal import Status, status_of
from kdissect.model import Packet
from tests.amount import some
from tests.cli.run import CAPTURES, run_with
from tests.live.as_windows.sitecustomize import ADAPTER, SCREENS
from tests.live.machine import (
    ROOT,
    Network,
    children,
    end,
    ended,
    eventually,
    kdissect_of,
    network,
    until_it_captures,
)
from tests.live.requires import requires_namespaces
from tests.tui.terminals import Terminal

pytest.importorskip("scapy")
pytestmark = pytest.mark.skipif(
    not libpcap.is_available(), reason="the stand-in for Npcap is libpcap, which is not installed"
)

BASIC, ERRORS = CAPTURES / "basic-kafka43.pcapng", CAPTURES / "errors.pcapng"
PACKETS = sum(isinstance(item, Packet) for item in read_packets([BASIC]))
LOOK = {"PYTHONPATH": f"{ROOT / 'tests/live/as_windows'}:{ROOT}"}
"""The environment in which Python looks like Windows' own."""
CTRL_C, CTRL_BREAK = signal.SIGINT, signal.SIGUSR1


def run(*arguments: object, stdin: bytes = b"", script: str = "") -> tuple[int, str, str]:
    """Run kdissect, or a script, there."""
    program = ["-c", script] if script else ["-m", "kdissect"]
    done = subprocess.run(
        [sys.executable, *program, *map(str, arguments)],
        cwd=ROOT,
        input=stdin,
        env={**os.environ, **LOOK},
        capture_output=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_it_looks_like_windows() -> None:
    """Else the other tests of this file would say nothing."""
    script = """
import kdissect.system, os, sys
try:
    import fcntl
except ImportError:
    print(sys.platform, hasattr(os, "fork"), hasattr(os, "geteuid"), kdissect.system.lock.__module__)
"""
    assert run(script=script) == (0, "win32 False False kdissect.system.windows\n", "")


def test_every_command_can_be_imported() -> None:
    commands = [[name, "--help"] for name in root.list_commands(None)]  # type: ignore[arg-type]
    script = f"""
from kdissect.cli import main
print([name for name, *_ in {commands!r} if main([name, "--help"]) != 0], file=__import__("sys").stderr)
"""
    code, out, error = run(script=script)
    assert (code, error) == (0, "[]\n")
    assert out.count("Usage: ") == len(commands) > 10


@pytest.mark.parametrize("arguments", some([("-T", "ndjson", "--two-pass"), ("-T", "tree")], 1))
def test_captures_are_read_as_everywhere(arguments: tuple[str, ...]) -> None:
    data = BASIC.read_bytes()
    expected = run_with(data, "read", "-", *arguments)
    assert run("read", "-", *arguments, stdin=data) == (0, expected.out.decode(), "")


def test_what_is_shown_is_written(tmp_path: Path) -> None:
    out = tmp_path / "out.pcapng"
    shown = run("read", "-", "-T", "ndjson", "-Y", "api == Produce", "-w", out, stdin=BASIC.read_bytes())[1]
    rows = [json.loads(line)["correlation_id"] for line in shown.splitlines()]
    again = [json.loads(line)["correlation_id"] for line in run_with(b"", "read", out, "-T", "ndjson").lines]
    assert rows == again
    assert rows


class Live:
    """A ``kdissect live`` there, on ``lo``, to which Windows gives another name."""

    def __init__(self, cable: Network, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.process = process
        self.journal = until_it_captures(process, folder)
        self.pid = kdissect_of(process.pid)
        cable_replay(cable)
        eventually(lambda: self.status.written >= PACKETS)

    @property
    def status(self) -> Status:
        return status_of(str(self.journal)) or Status()


def cable_replay(cable: Network) -> None:
    command = cable.command("-m", "tests.live.replay", "lo", BASIC)
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True, timeout=60)


@contextmanager
def live(folder: Path, *arguments: object) -> Iterator[Live]:
    with network() as cable:
        command = cable.command("-m", "kdissect", "live", "-i", ADAPTER, "--spool", folder, "-q", *arguments)
        environment = {**os.environ, **LOOK}
        pipe = subprocess.PIPE
        with ended(subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, env=environment)) as process:
            yield Live(cable, process, folder)


def rows_of(out: bytes) -> list[Any]:
    return [json.loads(line) for line in out.splitlines()]


@requires_namespaces
@pytest.mark.parametrize("key", some([CTRL_C, CTRL_BREAK], 1), ids=lambda key: key.name)
def test_rows_are_those_that_reading_the_spool_gives(tmp_path: Path, key: signal.Signals) -> None:
    path = tmp_path / "out.pcapng"
    with live(tmp_path, "-T", "ndjson", "-w", path) as capture:
        assert capture.status[:4] == (PACKETS, 0, 0, PACKETS)
        code, out, error = end(capture.process, key)
    assert (code, error) == (0, "")
    assert rows_of(out) == rows_of(run_with(b"", "read", path, "-T", "ndjson").out)
    names = ("api", "correlation_id", "request_bytes", "error")
    expected = rows_of(run_with(b"", "read", BASIC, "-T", "ndjson").out)
    assert [[row[name] for name in names if name in row] for row in rows_of(out)] == [
        [row[name] for name in names if name in row] for row in expected
    ]
    capture_read = read_packets([path])
    assert sum(isinstance(item, Packet) for item in capture_read) == PACKETS
    assert [(each.name, each.received, each.dropped) for each in capture_read.interfaces] == [
        (ADAPTER, PACKETS, 0)
    ]
    assert list(tmp_path.iterdir()) == [path]  # nothing is left of the spool


@requires_namespaces
def test_with_a_filter_the_packets_of_what_is_shown_are_written(tmp_path: Path) -> None:
    path = tmp_path / "out.pcapng"
    with live(tmp_path, "-T", "ndjson", "-w", path, "-Y", "api == Produce") as capture:
        _, out, error = end(capture.process)
    assert error == ""
    again = rows_of(run_with(b"", "read", path, "-T", "ndjson").out)
    assert {row["api"] for row in again} == {"Produce"}
    assert [row["correlation_id"] for row in again] == [row["correlation_id"] for row in rows_of(out)]


@requires_namespaces
def test_files_that_turn_are_read_and_go_when_nobody_reads_them_any_more(tmp_path: Path) -> None:
    turning = ("-w", tmp_path / "out.pcapng", "-b", "packets:40", "-b", "files:3")
    rows = tmp_path / "rows"
    with live(tmp_path, "-T", "ndjson", "-o", rows, *turning) as capture:
        eventually(lambda: len(list(tmp_path.glob("out_*"))) == 3)
        code, _, error = end(capture.process)
    # What had gone before it was read is told; what was being read stayed.
    assert code == 0
    assert all("not decoded" in line for line in error.splitlines())
    assert rows_of(rows.read_bytes())
    assert len(list(tmp_path.glob("out_*"))) == 3


@requires_namespaces
def test_the_capture_ends_when_who_started_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "out.pcapng"
    with live(tmp_path, "-T", "ndjson", "-w", path) as capture:
        os.kill(capture.pid, signal.SIGKILL)
        eventually(lambda: list(tmp_path.iterdir()) == [path])
    found = read_packets([path])
    assert sum(isinstance(item, Packet) for item in found) == PACKETS
    assert found.interfaces[0].received == PACKETS  # what is written at a clean end


@requires_namespaces
def test_a_capture_process_that_dies_is_told_and_what_it_wrote_is_read(tmp_path: Path) -> None:
    with live(tmp_path, "-T", "ndjson", "-w", tmp_path / "out.pcapng") as capture:
        os.kill(children(capture.pid)["capture"], signal.SIGKILL)
        out, error = capture.process.communicate(timeout=30)
    assert capture.process.returncode == 3
    assert b"the capture process was killed" in error
    assert len(rows_of(out)) == len(run_with(b"", "read", BASIC, "-T", "ndjson").lines)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("-i", "nix9"), 2, f"there is no interface nix9; there are .*{ADAPTER[:10]}"),
        (
            ("-i", "-"),
            2,
            r"kdissect cannot capture from - on Windows: dumpcap -i INTERFACE -w - \| kdissect read -",
        ),
        (("-i", "ssh://host/eth0"), 2, "kdissect cannot capture from ssh://host/eth0 on Windows: dumpcap"),
        (("-i", ADAPTER, "-f", "tcp prt 9"), 2, "'tcp prt 9' is not a capture filter"),
    ],
)
def test_what_does_not_go_is_one_line(arguments: tuple[str, ...], code: int, words: str) -> None:
    found, out, error = run("live", *arguments)
    assert (found, out, error.count("\n")) == (code, "", 1), error
    assert re.search(words, error), error


def test_the_screens_take_no_standard_input() -> None:
    script = """
import sys
from kdissect.cli import main
for each in (sys.stdout, sys.stderr):
    each.isatty = lambda: True
sys.exit(main(["tui", "-"]))
"""
    code, _, error = run(script=script, stdin=b"x")
    assert (code, error.count("\n")) == (2, 1), error
    assert "give --follow" in error


def test_interfaces_have_the_names_of_windows() -> None:
    code, out, error = run("interfaces", "-T", "ndjson")
    assert (code, error) == (0, "")
    found = {row["name"]: row for row in map(json.loads, out.splitlines())}
    assert found[ADAPTER]["address"] == "127.0.0.1"
    assert "lo" not in found


@pytest.mark.parametrize(
    ("lacks", "state", "words"),
    [
        ("", "untested", "no process gives up its privileges"),
        ("libpcap.is_available = lambda: False", "absent", "install Npcap (https://npcap.com)"),
        ("libpcap.devices = lambda: []", "forbidden", "start the terminal as an administrator"),
    ],
)
def test_doctor_tells_what_is_missing(lacks: str, state: str, words: str) -> None:
    script = f"""
from kdissect.cli import main
from kdissect.live import libpcap
{lacks}
main(["doctor", "-T", "ndjson"])
"""
    code, out, error = run(script=script)
    assert (code, error) == (0, "")
    (row,) = (row for row in map(json.loads, out.splitlines()) if row["what"] == "capturing")
    assert (row["state"], words in row["details"]) == (state, True), row


def test_who_may_not_capture_is_told_what_to_do() -> None:
    script = f"""
import sys
from kdissect.cli import main
from kdissect.live import libpcap
libpcap.devices = lambda: []
sys.exit(main(["live", "-i", {ADAPTER!r}]))
"""
    code, out, error = run(script=script)
    assert (code, out, error.count("\n")) == (5, "", 1), error
    assert "Restrict Npcap driver's access to Administrators only" in error


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Any]:
    """Starts a command in a terminal, with a home and temporary files of its own."""
    begun: list[Terminal] = []
    (tmp_path / "temporary").mkdir()

    def start(*arguments: object) -> Terminal:
        home = {"XDG_STATE_HOME": str(tmp_path / "state"), "TMPDIR": str(tmp_path / "temporary")}
        environment: dict[str, Any] = {**home, **LOOK, SCREENS: "1", "KDISSECT_PAGE": "exchanges"}
        begun.append(Terminal(*arguments, **environment))
        return begun[-1]

    yield start
    for terminal in begun:
        terminal.close()


def turn_to(terminal: Terminal, key: bytes, words: bytes) -> None:
    """Press the key of a page, again if it came while the page before was still being put up."""
    for _ in range(10):
        terminal.send(key)
        with suppress(AssertionError):
            terminal.until(words, 5)
            return
    terminal.until(words, 0)


def test_the_screens_decode_filter_count_and_list(begin: Any, tmp_path: Path) -> None:
    pytest.importorskip("textual")
    terminal = begin("tui", BASIC)
    terminal.until(b"71 exchanges")
    terminal.until(b"RequestHeader")  # drawn from what the process that decodes has written
    terminal.send(b"/")
    terminal.until(b"Enter applies")
    terminal.send(b"api == Produce and request.header.correlationId >= 0\r")  # asked in another process
    terminal.until("✓ 14".encode())
    for key, words in ((b"3", b"java43-basic"), (b"5", b"134 ms"), (b"7", b"310 records")):
        turn_to(terminal, key, words)  # counted, and listed, in others
    terminal.send(b"\x1a")
    terminal.until(b"no shell to go back to")
    turn_to(terminal, b"1", b"RequestHeader")
    terminal.send(b"w")
    terminal.until(b"shown: 14 exchanges")
    terminal.send(b"\r")
    terminal.until(b"name.pcapng")
    terminal.send(bytes(tmp_path / "x.pcapng") + b"\r")
    terminal.until(b"written to")
    terminal.send(b"\x11")
    assert terminal.end() == 0
    assert b"Traceback" not in terminal.output
    assert list((tmp_path / "temporary").iterdir()) == []
    rows = rows_of(run_with(b"", "read", tmp_path / "x.pcapng", "-T", "ndjson").out)
    assert [row["api"] for row in rows] == ["Produce"] * 14


def test_the_screens_list_the_interfaces_and_end_at_ctrl_break(begin: Any) -> None:
    pytest.importorskip("textual")
    terminal = begin("tui")
    terminal.until(ADAPTER[:15].encode())
    terminal.process.send_signal(CTRL_BREAK)
    assert terminal.end() == 128 + CTRL_BREAK
