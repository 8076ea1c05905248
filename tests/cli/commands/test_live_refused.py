"""``kdissect live``: what does not go is refused in one line, with the way out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.run import ROOT, run, spawn
from tests.live.machine import nobody
from tests.live.requires import requires_nobody, requires_raw_sockets

AS_ROOT = "--allow-root"

pytest.importorskip("scapy")


@requires_raw_sockets
def test_a_wrong_interface_names_those_there_are(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    done = run(capsysbinary, "live", AS_ROOT, "-i", "nix9")
    assert done.code == 2
    assert done.err.startswith("kdissect: there is no interface nix9; there are any, lo")


@requires_raw_sockets
def test_a_wrong_capture_filter_is_one_line(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    done = run(capsysbinary, "live", AS_ROOT, "-i", "lo", "-f", "tcp prt 9")
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "tcp prt 9" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "-i eth0"),
        (("-",), "-i -"),
        (("eth0", "-T", "ndjson"), "-i eth0"),
        (("-i", "-", "-f", "tcp port 1", AS_ROOT), "use -Y"),
        (("-i", "lo", "-Y", "api = x"), "-Y"),
        (("-i", "lo", "-b", "files:2"), "-w FILE"),
        (("-i", "lo", "-w", "x", "-b", "files:2"), "the size of a file"),
        (("-i", "lo", "-a", "hours:2"), "-a hours:2: the form is"),
        (("-i", "lo", "--trigger", "error"), "-w FILE"),
        (("-i", "lo", "--trigger", "error", "-w", "x", "--before", "1 year"), "--before 1 year"),
        (("-i", "lo", "--prometheus", "here"), "--prometheus here: the form is"),
        (("-i", "lo", "--slow"), "slow_ms"),
        (("-i", "lo", "-w", "-"), "-w -"),
        (("-i", "ssh://host", AS_ROOT), "ssh://user@host:port/interface"),
    ],
)
def test_what_does_not_go_is_refused_with_the_way_out(
    capsysbinary: pytest.CaptureFixture[bytes], arguments: tuple[str, ...], words: str
) -> None:
    done = run(capsysbinary, "live", *arguments)
    assert done.code == 2
    assert words in done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="this is about root")
def test_root_is_refused_unless_it_is_wanted(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)
    done = run(capsysbinary, "live", "-i", "lo")
    assert done.code == 2
    assert "setpriv" in done.err
    assert "--allow-root" in done.err


@pytest.mark.skipif(os.geteuid() != 0, reason="this is about root")
def test_root_does_not_become_who_cannot_go_on(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Python in root's home: as the user behind sudo nothing more could be loaded."""
    hidden = tmp_path / "root"
    hidden.mkdir(mode=0o700)
    (hidden / "python").symlink_to(sys.executable)
    monkeypatch.setenv("SUDO_UID", "65534")
    monkeypatch.setenv("SUDO_GID", "65534")
    monkeypatch.setattr(sys, "executable", str(hidden / "python"))
    done = run(capsysbinary, "live", "-i", "lo")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "install them where everybody can read them" in done.err


@pytest.mark.parametrize(("given", "words"), [(b"", "is empty"), (b"no capture" * 9, "is not a capture")])
def test_a_pipe_without_a_capture_is_an_input_that_cannot_be_read(given: bytes, words: str) -> None:
    done = spawn("live", AS_ROOT, "-i", "-", stdin=given)
    assert (done.code, done.err.count("\n")) == (3, 1), done.err
    assert words in done.err


def test_without_permission_the_exit_code_is_5_and_the_line_that_mends_it_is_told(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise PermissionError(1, "Operation not permitted", "lo")

    monkeypatch.setattr("kdissect.live.privileged.open_sockets", refuse)
    done = run(capsysbinary, "live", AS_ROOT, "-i", "lo")
    assert done.code == 5
    assert done.err.startswith("kdissect: not permitted to capture on lo: run sudo setpriv --reuid=")


@requires_nobody
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("live", "-i", "lo"), 5, "not permitted to capture on lo: run sudo setpriv --reuid=nobody"),
        (("live", "-i", "any"), 5, "not permitted to capture on any: run sudo setpriv --reuid=nobody"),
        (("live", "-i", "nix0"), 2, "there is no interface nix0; there are any, lo"),
        (("live", "-i", "lo", "-f", "tcp prt 9"), 2, "'tcp prt 9'"),
    ],
)
def test_who_may_not_capture_is_told_in_one_line(arguments: tuple[str, ...], code: int, words: str) -> None:
    command = [*nobody(), "-m", "kdissect", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    error = done.stderr.decode()
    assert (done.returncode, done.stdout, error.count("\n")) == (code, b"", 1), error
    assert words in error


@requires_nobody
@requires_raw_sockets
def test_the_line_that_is_printed_mends_it() -> None:
    command = list(nobody())
    at = command.index("--inh-caps=-all")
    command[at : at + 2] = ["--inh-caps=+net_raw", "--ambient-caps=+net_raw"]
    command += ["-m", "kdissect", "live", "-i", "lo", "-a", "duration:1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    # Others may talk over the loopback meanwhile, and not in Kafka's protocol.
    assert done.stderr.startswith(b"kdissect: no Kafka was found: ")
    assert done.stderr.count(b"\n") == 1
