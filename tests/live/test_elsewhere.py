"""Capturing where there is no packet ring: as macOS does it, by libpcap.

It is this system all the same, called by another name: what the names lead to is tried, not those systems.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kdissect.cli.commands.doctor import _capturing_elsewhere
from kdissect.live import libpcap
from tests.cli.run import CAPTURES, ROOT
from tests.live.machine import end, network, until_it_captures
from tests.live.requires import requires_namespaces

pytest.importorskip("scapy")

_CALLED = """
import asyncio, click, os, subprocess, sys, multiprocessing.connection
from kdissect.cli import main
from kdissect.live import libpcap
libpcap.is_available()  # which loads that of this system
sys.platform, *sys.argv[1:] = sys.argv[1:]
sys.exit(main(sys.argv[1:]))
"""


def called(platform: str, *arguments: object) -> list[str]:
    """A command line that runs kdissect on a system of another name."""
    return [sys.executable, "-c", _CALLED, platform, *map(str, arguments)]


def run(platform: str, *arguments: object, **environment: str) -> tuple[int, str, str]:
    without_sudo = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")}
    done = subprocess.run(
        called(platform, *arguments),
        cwd=ROOT,
        env={**without_sudo, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@requires_namespaces
@pytest.mark.skipif(not libpcap.is_available(), reason="libpcap is not installed")
def test_without_a_ring_libpcap_captures(tmp_path: Path) -> None:
    capture = CAPTURES / "basic-kafka43.pcapng"
    live = ("live", "-i", "vb", "--allow-root", "--spool", tmp_path, "-T", "ndjson", "-q")
    with network() as cable:
        command = ["ip", "netns", "exec", cable.name, *called("darwin", *live)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            until_it_captures(process, tmp_path)
            cable.replay(capture)
            code, out, error = end(process)
    assert (code, error) == (0, "")
    expected = run(sys.platform, "read", capture, "-T", "ndjson", "-q")[1]
    apis = [[json.loads(line)["api"] for line in text.splitlines()] for text in (out.decode(), expected)]
    assert apis[0] == apis[1]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("-i", "nix9"), 2, "nix9: "),
        (("-i", "lo", "-f", "tcp prt 9"), 2, "'tcp prt 9' is not a capture filter"),
    ],
)
@pytest.mark.skipif(not libpcap.is_available(), reason="libpcap is not installed")
@requires_namespaces
def test_what_libpcap_refuses_is_one_line(arguments: tuple[str, ...], code: int, words: str) -> None:
    found, out, error = run("darwin", "live", "--allow-root", *arguments)
    assert (found, out, error.count("\n")) == (code, "", 1), error
    assert words in error


@requires_namespaces
def test_root_is_shown_a_way_that_exists_there() -> None:
    for environment in ({}, {"SUDO_UID": "65534", "SUDO_GID": "65534"}):
        code, out, error = run("darwin", "live", "-i", "lo", **environment)
        assert (code, out, error.count("\n")) == (2, "", 1), error
        assert "sudo tcpdump -U -w - -i INTERFACE" in error
        assert "setpriv" not in error


@pytest.mark.skipif(not libpcap.is_available(), reason="libpcap is not installed")
def test_doctor_tells_how_far_it_goes() -> None:
    code, out, error = run("darwin", "doctor")
    assert (code, error) == (0, "")
    line = next(line for line in out.splitlines() if line.startswith("capturing"))
    assert "untested" in line
    assert "tested on Linux" in line


@pytest.mark.skipif(not libpcap.is_available(), reason="libpcap is not installed")
def test_doctor_tells_what_is_missing_to_read_the_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("kdissect.cli.commands.doctor.glob", lambda _: ["/dev/bpf0", "/dev/bpf1"])
    monkeypatch.setattr("kdissect.cli.commands.doctor.os.access", lambda *_: False)
    state, details = _capturing_elsewhere()[1:]
    assert state == "forbidden"
    assert "ChmodBPF" in details
