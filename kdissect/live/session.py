"""Starts the capture process, and hears how it goes.

The process gets sockets that are open, and no privilege. Its folder holds the journal and, unless the capture
was asked for as a file, the spool; it is removed when the session is closed, unless the capture process was
left to itself, or nobody decoded what is in it.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing, redirect_stderr, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import NamedTuple

from kdissect.live import capturing, devices, privileged
from kdissect.live.bpf import COOKED, DEFAULT_FILTER, ETHERNET, program_of
from kdissect.live.errors import LiveError, NoInterfaceError, NotPermittedError
from kdissect.live.journal import Journal, Status, status_of
from kdissect.live.probing import Probe
from kdissect.live.rotation import Bounds
from kdissect.live.sources import Interfaces, Opener, Source
from kdissect.live.spool import cut_to_whole_blocks

SPOOL_FILE = Bounds(bytes=64 << 20, files=32)
"""The spool of a capture that nobody asked to keep: what is not decoded by the time 2 GiB came after it is
given up, and that is told."""
_END_SECONDS = 10.0
"""How long the capture process may take to end."""


@dataclass(frozen=True)
class _Ring:
    """Opens a ring in the capture process."""

    opened: socket.socket
    name: str
    link_type: int
    snap_length: int

    def __call__(self) -> Source:
        from kdissect.live.ring import RingListenSocket

        interface = "" if self.name == devices.ANY else self.name
        return RingListenSocket(self.opened, interface, self.link_type, self.snap_length)


@dataclass(frozen=True)
class _Pcap:
    """Opens an interface by libpcap in the capture process."""

    name: str
    wanted: Interfaces

    def __call__(self) -> Source:
        from kdissect.live.unix import PcapSource

        return PcapSource(self.name, self.wanted)


class Opened(NamedTuple):
    """Interfaces that can be captured from."""

    openers: list[Opener]
    probe: Probe | None
    """Sees what the capture filter does not let through; None where it lets everything through."""


def open_interfaces(wanted: Interfaces) -> Opened:
    """Have the sockets opened. This is all for which a privilege is needed.

    On other systems than Linux nothing is opened yet: libpcap does it, in the capture process.

    :raises LiveError: the filter is none, there is no such interface, or it is not permitted.
    """
    if sys.platform != "linux":
        return Opened([_Pcap(name, wanted) for name in dict.fromkeys(wanted.names)], None)
    asked = [_asked(name, wanted) for name in dict.fromkeys(wanted.names)]
    count = len(asked)
    if wanted.filter != DEFAULT_FILTER:
        asked += [
            _asked(name, wanted._replace(filter=DEFAULT_FILTER)) for name in dict.fromkeys(wanted.names)
        ]
    try:
        sockets = privileged.open_sockets(asked)
    except PermissionError as error:
        raise NotPermittedError(f"not permitted to capture on {error.filename or devices.ANY}") from None
    except OSError as error:
        raise NoInterfaceError(f"{error.filename or devices.ANY}: {error.strerror}") from None
    openers: list[Opener] = []
    for opened, each in zip(sockets[:count], asked, strict=False):
        link_type = COOKED if each.is_cooked else ETHERNET
        openers.append(_Ring(opened, each.interface or devices.ANY, link_type, wanted.snap_length))
    others = [(opened, not each.is_cooked) for opened, each in zip(sockets, asked, strict=True)][count:]
    return Opened(openers, Probe(others) if others else None)


def _asked(name: str, wanted: Interfaces) -> privileged.Wanted:
    if name == devices.ANY:
        interface, cooked = "", True
        loopback = next((each.number for each in devices.devices() if each.is_loopback), None)
    else:
        found = devices.device(name)
        if not found.is_up:
            raise NoInterfaceError(f"{name} is down: ip link set {name} up")
        interface, cooked = name, not found.has_ethernet_header
        loopback = found.number if found.is_loopback else None
    program = program_of(wanted.filter, COOKED if cooked else ETHERNET, wanted.snap_length, loopback)
    return privileged.Wanted(interface, program, cooked, wanted.is_promiscuous and bool(interface))


class Session:
    """A capture process.

    :param path: where the capture is written, if it is to be kept.
    :param folder: where the folder of the journal is made; None for where temporary files are.
    :raises LiveError: it cannot begin.
    """

    def __init__(
        self,
        openers: Sequence[Opener],
        path: str | None = None,
        rotation: Bounds = SPOOL_FILE,
        stop: Bounds = Bounds(),  # noqa: B008 - it cannot be changed
        folder: str | None = None,
    ) -> None:
        self.folder = tempfile.mkdtemp(prefix="kdissect-live-", dir=folder)
        """Of the journal; whoever follows the capture needs nothing else."""
        job = capturing.Job(self.folder, path or os.path.join(self.folder, "spool.pcapng"), rotation, stop)
        context = get_context("spawn")
        self._control, theirs = context.Pipe()
        self._process = context.Process(
            target=capturing.run, args=(job, tuple(openers), theirs), daemon=True, name="capture"
        )
        self._is_mended = self._is_kept = False
        self._latest = Status()
        try:
            error = self._begin(theirs)
        except BaseException:  # Ctrl-C, say, while a stream is waited for: nothing is captured yet
            if self._process.pid is not None:
                self._process.kill()
                self._process.join()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        if error is not None:
            self.close()
            raise error

    def _begin(self, theirs: Connection) -> LiveError | None:
        """Start the process; gives why it cannot capture."""
        with redirect_stderr(sys.__stderr__):  # Textual's has no descriptor that could be handed on
            self._process.start()
        theirs.close()
        try:
            error: LiveError | None = self._control.recv()
        except EOFError:
            return LiveError("the capture process could not be started")
        return error

    @property
    def pid(self) -> int | None:
        """Of the capture process."""
        return self._process.pid

    def status(self) -> Status:
        """How it goes, or went at the last look, if that cannot be told just now: counts never fall."""
        self._latest = status_of(self.folder) or self._latest
        return self._latest

    def stop(self) -> None:
        """Have it end: what came so far is written, nothing more is taken in."""
        self._control.close()

    def death(self) -> str | None:
        """How the capture process died, if it did not end by itself."""
        code = self._process.exitcode
        if not code:
            return None
        how = f"was killed by signal {-code}" if code < 0 else f"stopped with exit code {code}"
        return f"the capture process {how}; what it had written is whole"

    def join(self) -> None:
        """Wait until it has ended, as it does soon after :meth:`stop`. If it was killed, what it was just
        writing is taken away."""
        self._process.join(_END_SECONDS)
        code = self._process.exitcode
        if code is not None and code < 0 and not self._is_mended:
            self._is_mended = True
            self._mend()

    def _mend(self) -> None:
        latest: str | None = None
        with suppress(OSError):
            with closing(Journal(self.folder)) as journal:
                while (found := journal.next_file()) is not None:
                    latest = found[0]
            if latest is not None:
                cut_to_whole_blocks(latest)

    def keep(self) -> None:
        """Leave the folder when this is closed: nobody has decoded all that is in it."""
        self._is_kept = True

    def close(self) -> None:
        """End it, and remove the folder, unless it is to be kept."""
        self.stop()
        self.join()
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        if not self._is_kept:
            shutil.rmtree(self.folder, ignore_errors=True)


def wait_until(done: Callable[[], bool], seconds: float, every: float = 0.02) -> bool:
    """Wait for something; gives whether it came about in time."""
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= until:
            return False
        time.sleep(every)
    return True
