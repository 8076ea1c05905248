"""A process that decodes untrusted bytes gives up what it does not need: writing elsewhere, running programs,
the network. On systems without such means it goes on without."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kdissect.lazy import Later
from kdissect.system import landlock, seccomp
from kdissect.system.landlock import Allowed

if TYPE_CHECKING:
    import socket
    import subprocess
    import tempfile
else:
    socket = Later("socket")
    subprocess = Later("subprocess")
    tempfile = Later("tempfile")

__all__ = ["Allowed", "Confinement", "confine", "in_force", "means"]


class Confinement(NamedTuple):
    """What a process has given up."""

    writing: bool = False
    """Writing files, except where it is allowed."""
    programs: bool = False
    network: bool = False

    def lacking(self) -> str:
        """What it has not given up, in words; empty if it has given up everything."""
        words = ("write files", "run programs", "use the network")
        return ", ".join(word for word, given_up in zip(words, self, strict=True) if not given_up)


def confine(allowed: Allowed = Allowed()) -> Confinement:  # noqa: B008 - it cannot be changed
    """Give up everything that is not allowed. Open files and sockets stay open.

    Landlock restricts this thread only; seccomp restricts the other threads too.
    """
    files = landlock.restrict(allowed) > 0
    calls = seccomp.restrict()
    return Confinement(files, files or calls, calls)


def in_force() -> Confinement:
    """What a confined process cannot do here, found out by a trial in a child process. The caller must have
    no other threads."""
    if sys.platform != "linux":
        return Confinement()
    pid = os.fork()
    if pid == 0:
        found = 0
        try:
            found = _tried()
        finally:
            os._exit(found)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return Confinement(*(bool(code > 0 and code & 1 << bit) for bit in range(3)))


def _tried() -> int:
    """Confine this process, and try what it can no longer do: one bit for each."""
    confine()
    return sum(_is_refused(attempt) << bit for bit, attempt in enumerate((_write, _run, _reach)))


def means() -> str:
    """The means that the system offers, in words."""
    version = landlock.version()
    offered = [f"Landlock {version}"] if version else []
    if seccomp.is_offered():
        offered.append("seccomp")
    return " and ".join(offered)


def _is_refused(attempt: Callable[[], None]) -> bool:
    try:
        attempt()
    except OSError:
        return True
    return False


def _write() -> None:
    with tempfile.TemporaryFile():
        pass


def _run() -> None:
    subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=False, stdin=subprocess.DEVNULL)


def _reach() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM):
        pass
