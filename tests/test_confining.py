"""What a confined process can and cannot do. Each test uses its own process, because confinement is
permanent."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kdissect.system import landlock, seccomp
from kdissect.system.confining import Confinement, in_force, means
from tests.cli.run import ROOT
from tests.live.machine import nobody
from tests.live.requires import requires_nobody

requires_both = pytest.mark.skipif(
    not (landlock.version() and seccomp.is_offered()), reason="this kernel does not offer both"
)

_SCRIPT = """
import ctypes, errno, fcntl, os, socket, subprocess, sys, threading
from kdissect.system.confining import Allowed, confine

folder, elsewhere, named = sys.argv[1:]
opened = open(os.path.join(elsewhere, "opened"), "w")
pair = socket.socketpair()
go = threading.Event()
heard = []

def late():
    go.wait()
    heard.append(attempt(socket.socket))

def attempt(what, *given):
    try:
        what(*given)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"

thread = threading.Thread(target=late)
thread.start()
found = confine(Allowed((named,), (folder,), (os.path.dirname(folder),)))
assert not found.lacking(), found.lacking()

def write(path):
    with open(path, "w") as file:
        file.write("x")

there = os.path.join(folder, "file")
go.set()
thread.join()
print({
    "write elsewhere": attempt(write, os.path.join(elsewhere, "new")),
    "write to what is there": attempt(write, os.path.join(elsewhere, "there")),
    "remove elsewhere": attempt(os.unlink, os.path.join(elsewhere, "there")),
    "move out": attempt(os.rename, named, os.path.join(elsewhere, "moved")),
    "make a folder": attempt(os.mkdir, os.path.join(elsewhere, "folder")),
    "change a mode": attempt(os.chmod, elsewhere, 0o777),
    "change times": attempt(os.utime, elsewhere),
    "cut": attempt(os.truncate, os.path.join(elsewhere, "there"), 0),
    "run": attempt(subprocess.run, [sys.executable, "-c", ""]),
    "internet": attempt(socket.socket),
    "datagrams": attempt(socket.socket, socket.AF_INET, socket.SOCK_DGRAM),
    "this machine": attempt(socket.socket, socket.AF_UNIX),
    "packets": attempt(socket.socket, 17, socket.SOCK_RAW),
    "type": attempt(fcntl.ioctl, 0, 0x5412, b"x"),
    "in another thread": heard[0],
})
# What it needs goes on.
write(there)
write(named)
os.unlink(there)
os.rmdir(folder)
write(os.devnull)
opened.write("x")
opened.close()
pair[0].send(b"x")
assert pair[1].recv(1) == b"x"
assert open(os.path.join(elsewhere, "there")).read() == "kept"
os.waitpid(os.fork() or os._exit(0), 0)
print("fine")
"""


@requires_both
@pytest.mark.parametrize("who", ["this user", pytest.param("nobody", marks=requires_nobody)])
def test_what_is_not_allowed_is_refused_and_the_rest_goes_on(tmp_path: Path, who: str) -> None:
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.getuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    folder, elsewhere, named = tmp_path / "folder", tmp_path / "elsewhere", tmp_path / "named"
    for each in (folder, elsewhere):
        each.mkdir()
        each.chmod(0o777)
    (elsewhere / "there").write_text("kept")
    named.touch()
    for each in (elsewhere / "there", named):
        each.chmod(0o666)
    python = [sys.executable] if who == "this user" else list(nobody())
    done = subprocess.run(
        [*python, "-c", _SCRIPT, str(folder), str(elsewhere), str(named)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
    )
    assert done.stdout.endswith("fine\n"), done.stderr
    found = re.findall(r"'([^']+)': '(\w+)'", done.stdout)
    assert len(found) == 15
    assert {what for what, how in found if how not in ("EPERM", "EACCES", "EXDEV")} == set()


@requires_both
def test_what_is_in_force_is_found_out() -> None:
    assert in_force() == Confinement(True, True, True)
    assert re.fullmatch(r"Landlock \d+ and seccomp", means())


def test_where_nothing_is_offered_it_goes_on_and_says_what_is_lacking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kdissect.system.landlock.version", lambda: 0)
    monkeypatch.setattr("kdissect.system.seccomp._processor", lambda: None)
    assert in_force().lacking() == "write files, run programs, use the network"
    assert means() == ""


@requires_both
@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_older_versions_of_landlock_confine_as_far_as_they_go(
    monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    monkeypatch.setattr("kdissect.system.landlock.version", lambda: version)
    monkeypatch.setattr("kdissect.system.seccomp._processor", lambda: None)
    assert in_force() == Confinement(True, True, False)


@pytest.mark.parametrize("column", [0, 1])
def test_a_filter_leads_every_refused_call_to_its_refusal(column: int) -> None:
    processor = list(seccomp._PROCESSORS.values())[column]
    refused = {name: numbers[column] for name, numbers in seccomp.REFUSED.items()}
    known = set(refused.values()) | {processor.ioctl}
    for number in (*sorted(number for number in known if number is not None), 0, 1, 2, 300, 1 << 30 | 59):
        expected = number in refused.values() or number >= 1 << 30
        assert _runs(processor, processor.audit, number, 0) != expected, number
        assert not _runs(processor, processor.audit + 1, number, 0)
    for argument, is_allowed in ((0x5413, True), (0x5412, False), (0x541C, False)):
        assert _runs(processor, processor.audit, processor.ioctl, argument) == is_allowed


def _runs(processor: seccomp._Processor, architecture: int, number: int, argument: int) -> bool:
    """Whether the kernel would allow a call, by interpreting the instructions."""
    program = seccomp._program(processor)
    steps = list(seccomp._STEP.iter_unpack(program))
    at = loaded = 0
    memory = {0: number, 4: architecture, 24: argument}
    while True:
        code, then, otherwise, value = steps[at]
        at += 1
        if code == 0x20:
            loaded = memory[value]
        elif code == 0x06:
            return bool(value == 0x7FFF0000)
        else:
            at += then if (loaded == value if code == 0x15 else loaded >= value) else otherwise
