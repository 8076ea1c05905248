"""Captures that other programs make, by these programs themselves: dumpcap, tcpdump, tcpdump over ssh."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kdissect.capture.files import read_packets
from kdissect.live.journal import Status, status_of
from kdissect.model import Packet
from tests.cli.run import CAPTURES, run_with, spawn
from tests.live.machine import ROOT, Network, end, ended, eventually, network, nobody, until_it_captures
from tests.live.requires import requires_namespaces, requires_nobody

pytestmark = requires_namespaces

BASIC = CAPTURES / "basic-kafka43.pcapng"
PACKETS = sum(isinstance(item, Packet) for item in read_packets([BASIC]))
PORT = 2222


def requires(program: str) -> pytest.MarkDecorator:
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")
    return pytest.mark.skipif(found is None, reason=f"{program} is not installed")


@pytest.fixture(scope="module")
def cable() -> Iterator[Network]:
    with network() as made:
        yield made


def rows_of_basic() -> list[Any]:
    return [_told(json.loads(line)) for line in run_with(b"", "read", BASIC, "-T", "ndjson").lines]


def _told(row: dict[str, Any]) -> list[Any]:
    """What does not depend on when and how it was captured."""
    return [row[name] for name in ("number", "api", "correlation_id", "error", "request", "response")]


def captured(
    cable: Network, folder: Path, interface: str, *, search: Path | None = None, copies: int = 1
) -> tuple[list[Any], str, Status]:
    """What ``live`` shows of a replayed capture, what it says, and how the capture went.

    :param copies: how often each packet comes.
    """
    command = cable.command("-m", "kdissect", "live", "-i", interface, "--allow-root", "--spool", folder)
    path = f"{search or folder}:{os.environ['PATH']}"
    with ended(
        subprocess.Popen(
            [*command, "-T", "ndjson"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PATH": path},
        )
    ) as process:
        journal = until_it_captures(process, folder)
        cable.replay(BASIC)
        eventually(lambda: _status(journal).written >= copies * PACKETS)
        status = _status(journal)
        code, out, error = end(process)
    assert code == 0, error
    return [_told(json.loads(line)) for line in out.splitlines()], error, status


def _status(journal: Path) -> Status:
    return status_of(str(journal)) or Status()


@pytest.mark.parametrize(
    "program", [pytest.param(each, marks=requires(each)) for each in ("tcpdump", "dumpcap")]
)
def test_a_program_here(cable: Network, tmp_path: Path, program: str) -> None:
    rows, error, status = captured(cable, tmp_path, f"{program}:vb")
    assert rows == rows_of_basic()
    assert (status.written, status.dropped) == (PACKETS, 0)
    assert "has ended" not in error


@pytest.mark.parametrize(
    ("program", "words"),
    [
        pytest.param("tcpdump", "tcpdump:nix0: tcpdump: nix0: No such", marks=requires("tcpdump")),
        pytest.param("dumpcap", "dumpcap:nix0: dumpcap: .*no device named", marks=requires("dumpcap")),
    ],
)
def test_an_interface_that_a_program_does_not_know_is_one_line_in_its_words(program: str, words: str) -> None:
    done = spawn("live", "-i", f"{program}:nix0", "--allow-root")
    assert (done.code, done.out, done.err.count("\n")) == (2, b"", 1)
    assert re.search(words, done.err)


@pytest.mark.parametrize(
    "program", [pytest.param(each, marks=requires(each)) for each in ("tcpdump", "dumpcap")]
)
def test_a_filter_that_a_program_does_not_understand_is_one_line_in_its_words(program: str) -> None:
    done = spawn("live", "-i", f"{program}:lo", "-f", "tcp prt 9", "--allow-root")
    assert (done.code, done.out, done.err.count("\n")) == (2, b"", 1)
    assert "syntax error" in done.err or "filter" in done.err


@requires_nobody
@pytest.mark.parametrize(
    "program", [pytest.param(each, marks=requires(each)) for each in ("tcpdump", "dumpcap")]
)
def test_who_may_not_have_a_program_capture_is_told_the_way_out(program: str) -> None:
    done = subprocess.run(
        [*nobody(), "-m", "kdissect", "live", "-i", f"{program}:lo"],
        cwd=ROOT,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (5, b"", 1), done
    assert b"permission to" in done.stderr
    assert b"sudo setpriv --reuid=nobody" in done.stderr


@requires("tcpdump")
def test_a_program_that_is_killed_ends_the_capture_with_what_it_wrote(cable: Network, tmp_path: Path) -> None:
    process = cable.start("live", "-i", "tcpdump:vb", "--allow-root", "--spool", tmp_path, "-T", "ndjson")
    with ended(process):
        journal = until_it_captures(process, tmp_path)
        cable.replay(BASIC)
        eventually(lambda: _status(journal).written >= PACKETS)
        for pid in _running(b"tcpdump\0-n\0-U"):
            os.kill(pid, signal.SIGKILL)
        out, error = process.communicate(timeout=30)
    assert process.returncode == 0
    assert [_told(json.loads(line)) for line in out.splitlines()] == rows_of_basic()
    assert b"tcpdump:vb has ended" in error


@requires("tcpdump")
def test_a_pipe_from_a_program(cable: Network, tmp_path: Path) -> None:
    read, write = os.pipe()
    dump = subprocess.Popen(
        ["ip", "netns", "exec", cable.name, "tcpdump", "-i", "vb", "-U", "-w", "-"],
        stdout=write,
        stderr=subprocess.PIPE,
    )
    os.close(write)
    live = subprocess.Popen(
        [sys.executable, "-m", "kdissect", "live", "-i", "-", "--allow-root", "-T", "ndjson"],
        cwd=ROOT,
        stdin=read,
        stdout=subprocess.PIPE,
    )
    os.close(read)
    with ended(dump), ended(live):
        assert dump.stderr is not None
        assert b"listening on vb" in dump.stderr.readline()
        cable.replay(BASIC)
        assert live.stdout is not None
        expected = rows_of_basic()
        # They come while the program goes on.
        rows = [_told(json.loads(live.stdout.readline())) for _ in expected[:-10]]
        dump.send_signal(signal.SIGINT)
        rows += [_told(json.loads(line)) for line in live.stdout]
        assert live.wait(30) == 0
    assert rows == expected


def _running(words: bytes) -> list[int]:
    """Processes whose command line begins so."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_bytes().startswith(words):
                found.append(int(folder.name))
        except OSError:  # it has ended
            continue
    return found


@contextmanager
def ssh_server(cable: Network, folder: Path) -> Iterator[None]:
    """An ssh server in the network, and an ``ssh`` in the folder that is let in."""
    for name in ("host", "client"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(key, check=True)
    server, client = folder / "sshd_config", folder / "ssh_config"
    server.write_text(
        f"ListenAddress 127.0.0.1:{PORT}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/client.pub\n"
        "StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin prohibit-password\n"
    )
    client.write_text(
        f"Host *\nIdentityFile {folder}/client\nIdentitiesOnly yes\nUserKnownHostsFile {folder}/known\n"
        "StrictHostKeyChecking accept-new\nLogLevel ERROR\nBatchMode yes\n"
    )
    program = folder / "ssh"
    program.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {client} "$@"\n')
    program.chmod(0o700)
    Path("/run/sshd").mkdir(exist_ok=True)  # without which it does not start
    sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
    command = ["ip", "netns", "exec", cable.name, str(sshd), "-D", "-e", "-f", str(server)]
    with ended(subprocess.Popen(command, stderr=subprocess.PIPE)) as process:
        assert process.stderr is not None
        assert b"Server listening" in process.stderr.readline()
        yield


@requires("sshd")
@requires("tcpdump")
def test_over_ssh_it_is_what_goes_on_there_without_what_ssh_sends(cable: Network, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "spool").mkdir()
    before = set(_running(b"tcpdump\0-n\0-U"))
    with ssh_server(cable, tmp_path / "home"):
        rows, error, status = captured(
            cable, tmp_path / "spool", f"ssh://127.0.0.1:{PORT}/vb", search=tmp_path / "home"
        )
        assert rows == rows_of_basic()
        assert status.written == PACKETS
        assert "has ended" not in error
        # What ssh itself sends goes over the same interface here, and would be sent again and again.
        rows, _, status = captured(
            cable, tmp_path / "spool", f"ssh://127.0.0.1:{PORT}/any", search=tmp_path / "home", copies=2
        )
        assert status.written == 2 * PACKETS
        # Every packet comes twice, in whatever order: numbers may be others.
        assert sorted(str(row[1:]) for row in rows) == sorted(str(row[1:]) for row in rows_of_basic())
        cable.replay(BASIC)  # there it ends with the next packet that it cannot hand on
        eventually(lambda: set(_running(b"tcpdump\0-n\0-U")) <= before)


@requires("sshd")
def test_what_ssh_says_is_told_in_one_line(cable: Network, tmp_path: Path) -> None:
    with ssh_server(cable, tmp_path):
        command = cable.command("-m", "kdissect", "live", "--allow-root", "-i")
        for where, words in (
            (f"ssh://127.0.0.1:{PORT}/nix0", b"nix0: No such device"),
            ("ssh://127.0.0.1:2/lo", b"Connection refused"),
            (f"ssh://nobody@127.0.0.1:{PORT}/lo", b"Permission denied"),
        ):
            done = subprocess.run(
                [*command, where],
                cwd=ROOT,
                capture_output=True,
                env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
                timeout=60,
                check=False,
            )
            assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1), done
            assert words in done.stderr
            assert where.encode() in done.stderr
