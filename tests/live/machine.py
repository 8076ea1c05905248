"""What the machine permits, and a network of our own to capture on."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tests.live.replay import send, sender
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
_numbers = itertools.count()
_NETWORK = 0x40000000
"""CLONE_NEWNET: what a thread enters."""


@functools.cache
def may_capture() -> bool:
    """Whether packet sockets are permitted."""
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except (OSError, AttributeError):
        return False
    return True


@functools.cache
def may_make_namespaces() -> bool:
    """Whether network namespaces can be made."""
    name = f"kd-probe-{os.getpid()}"
    if not may_capture() or shutil.which("ip") is None:
        return False
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode == 0
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return made


class Network:
    """A namespace with two ends of a cable, ``va`` and ``vb``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def ip(self, *arguments: str) -> None:
        """Run ``ip`` in it."""
        subprocess.run(["ip", "-n", self.name, *arguments], check=True, capture_output=True)

    def command(self, *arguments: object) -> list[str]:
        """A command line of Python, to be run in it."""
        return ["ip", "netns", "exec", self.name, sys.executable, *map(str, arguments)]

    def start(self, *arguments: object, **variables: str) -> subprocess.Popen[bytes]:
        """Start kdissect in it, with these environment variables beside those that are there."""
        return start(self.command("-m", "kdissect", *arguments), variables)

    def replay(self, *captures: object) -> None:
        """Send the packets of captures from ``va``.

        A socket stays in the namespace of the thread that opened it: no process must be started there.
        """
        with ThreadPoolExecutor(1) as thread, thread.submit(self._sender).result() as sending:
            send(sending, *map(str, captures))

    def _sender(self) -> socket.socket:
        """Enter the namespace, with this thread alone."""
        libc = ctypes.CDLL(None, use_errno=True)
        with Path("/run/netns", self.name).open() as there:
            if libc.setns(there.fileno(), _NETWORK):
                raise OSError(ctypes.get_errno(), "the namespace cannot be entered", self.name)
        return sender("va")


@contextmanager
def network() -> Iterator[Network]:
    """A namespace of our own, for as long as this lasts."""
    name = f"kd-{os.getpid()}-{next(_numbers)}"
    subprocess.run(["ip", "netns", "add", name], check=True, capture_output=True)
    made = Network(name)
    try:
        made.ip("link", "add", "va", "type", "veth", "peer", "name", "vb")
        for interface in ("va", "vb"):
            made.ip("link", "set", interface, "mtu", "65535")
        for interface in ("lo", "va", "vb"):
            made.ip("link", "set", interface, "up")
        yield made
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True, capture_output=True)


def start(command: list[str], variables: Mapping[str, str] = MappingProxyType({})) -> subprocess.Popen[bytes]:
    """Start a process with pipes."""
    environment = {**os.environ, **variables}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, bufsize=0)


def until_it_captures(process: subprocess.Popen[bytes], folder: Path) -> Path:
    """Wait until ``kdissect live --spool FOLDER`` has begun; gives the folder of its journal."""

    def begun() -> Path | None:
        return next((each.parent for each in folder.glob("*/journal") if b"\n" in each.read_bytes()), None)

    assert wait_until(lambda: begun() is not None or process.poll() is not None, 30)
    found = begun()
    assert found is not None, process.communicate()
    return found


def end(process: subprocess.Popen[bytes], number: int = signal.SIGINT) -> tuple[int, bytes, str]:
    """Have it end; gives exit code, stdout and stderr."""
    process.send_signal(number)
    out, error = process.communicate(timeout=30)
    return process.returncode, out, error.decode()


def children(pid: int) -> dict[str, int]:
    """Processes that a process has started, by a word of their command line."""
    found: dict[str, int] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            line = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            found["capture" if "spawn_main" in line else line] = int(child)
    return found


def eventually(done: Callable[[], bool], seconds: float = 20) -> None:
    """Wait for something that must come about."""
    assert wait_until(done, seconds), "it did not come about in time"


class Look(NamedTuple):
    """What a process had at one time."""

    memory: int
    """Bytes."""
    descriptors: int
    cpu: float
    """Seconds of a processor, since it began."""


def look_at(pid: int) -> Look:
    """:raises OSError: there is no such process any more."""
    folder = Path("/proc", str(pid))
    fields = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    times = (folder / "stat").read_text().rpartition(")")[2].split()
    cpu = (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")
    return Look(int(fields["RssAnon"].split()[0]) * 1024, len(list((folder / "fd").iterdir())), cpu)


def kdissect_of(pid: int) -> int:
    """The process of kdissect behind ``ip netns exec``, which becomes what it starts, or is its parent."""
    is_it = b"kdissect" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return pid if is_it else children(pid).popitem()[1]


@contextmanager
def ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlast us."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@functools.cache
def nobody() -> tuple[str, ...]:
    """A command line that runs Python as a user who may do nothing, with what sudo leaves in the environment;
    empty where that cannot be.

    Python may stand where only we can read it: the system's own does then, with our packages.
    """
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return ()
    become = ["setpriv", "--reuid=nobody", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
    packages = [str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))]
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        path, home = f"PATH={os.environ['PATH']}", pwd.getpwnam("nobody")
        of_sudo = (f"SUDO_UID={home.pw_uid}", f"SUDO_GID={home.pw_gid}", "HOME=/root")
        found = [*become, "env", "-i", path, f"PYTHONPATH={':'.join(packages)}", *of_sudo, python]
        tried = [*found, "-c", f"import click, kdissect, subprocess; subprocess.run(['{python}', '-V'])"]
        if subprocess.run(tried, capture_output=True, check=False).returncode == 0:
            return tuple(found)
    return ()
