"""Captures that another program makes ─► blocks of packets. The program is ``tcpdump`` or ``dumpcap``, here
or over ssh, or any program that writes a capture to the standard input.

    tcpdump:eth0   dumpcap:eth0   ssh://user@host:port/eth0   -

The input must be a capture file, and is read like any other. Until then it is a stream of unknown origin.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from kdissect.capture import pcap, pcapng
from kdissect.capture.blocks import Captured
from kdissect.capture.files import PCAPNG_MAGIC, begins_like_a_capture, no_capture
from kdissect.capture.reader import Interface, Item, Reader
from kdissect.limits import DEFAULTS
from kdissect.live.errors import (
    LiveError,
    NoCaptureError,
    NoInterfaceError,
    NotPermittedError,
    NotPermittedThereError,
)
from kdissect.live.journal import MOST_NOTES
from kdissect.live.sources import Interfaces, SourceCounts
from kdissect.model import CaptureError, Fault, Packet
from kdissect.system import handed_on
from kdissect.wording import plural

STDIN = "-"
_SSH = "ssh://"
_PROGRAMS = ("tcpdump", "dumpcap")
_INTERFACE = re.compile(r"[A-Za-z0-9_.:@][A-Za-z0-9_.:@-]*")
_HOST = re.compile(r"([A-Za-z0-9_.][A-Za-z0-9_.-]*@)?([A-Za-z0-9_.][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+\])")
_SSH_PORT = 22
_PIECE = 1 << 20
_DROPPED = re.compile(r"(\d+) packets? dropped by kernel|received/dropped on interface [^:]*: \d+/(\d+)")
_DENIED = re.compile(r"operation not permitted|permission to (perform|capture)", re.IGNORECASE)
"""The messages of programs that have no permission to capture. A failed login is a different error."""
_SAID = re.compile(r"(tcpdump|dumpcap|ssh): (?!listening on|cap_set_proc)")
"""The beginning of the line with the error. Advice may follow that line."""
_VANISHED = re.compile(
    r"interface.* (disappeared|no longer exists)|adapter.* no longer (running|attached)|No such device",
    re.IGNORECASE,
)
"""The messages when the interface disappears during a capture."""
_LAST_WORDS = 4096
"""The most bytes kept of a program's last messages."""
_ON_WINDOWS = "dumpcap -i INTERFACE -w - | kdissect read -"
_END_SECONDS = 1.0
"""How long a program may take to write its last packets."""


def is_external(name: str) -> bool:
    """Whether another program captures from this interface."""
    return name == STDIN or name.startswith(_SSH) or name.partition(":")[0] in _PROGRAMS


def command_of(name: str, wanted: Interfaces) -> list[str]:
    """The program and its arguments.

    :raises NoInterfaceError: the name has another form.
    """
    if not name.startswith(_SSH):
        program, _, interface = name.partition(":")
        return _local(program, interface, wanted, wanted.filter)
    parts = urlsplit(name)
    interface = parts.path.removeprefix("/")
    host, port = parts.netloc, None
    head, colon, tail = host.rpartition(":")
    if colon and tail.isdecimal():
        host, port = head, int(tail)
    if not _HOST.fullmatch(host) or not interface:
        raise NoInterfaceError(f"{name}: the form is ssh://user@host:port/interface")
    # Do not capture ssh's own packets: each would be sent to us and captured again.
    filtered = f"({wanted.filter}) and not tcp port {port or _SSH_PORT}"
    remote = shlex.join(_local("tcpdump", interface, wanted, filtered))
    return ["ssh", *(() if port is None else ("-p", str(port))), "--", host, remote]


def _local(program: str, interface: str, wanted: Interfaces, filtered: str) -> list[str]:
    if not _INTERFACE.fullmatch(interface):
        raise NoInterfaceError(f"{interface!r} is not the name of an interface: {program}:eth0")
    common = ["-i", interface, "-s", str(wanted.snap_length), "-w", "-"]
    if not wanted.is_promiscuous:
        common.append("-p")
    if program == "dumpcap":
        return ["dumpcap", "-q", *common, "-f", filtered]
    return ["tcpdump", "-n", "-U", "--time-stamp-precision=nano", *common, "--", filtered]


@dataclass(frozen=True)
class External:
    """Opens the stream in the capture process."""

    name: str
    pid: int | None
    output: Any
    """The descriptor of the program's output."""
    errors: Any
    """The descriptor of the program's messages; None for standard input."""

    def __call__(self) -> PipedCapture:
        return PipedCapture(self.name, self.pid, self.output, self.errors)

    def close(self) -> None:
        """Close the pipes here. When the capture process ends, the program then notices that nobody reads
        them."""
        if self.errors is not None:
            os.close(self.output)
            os.close(self.errors)

    def __reduce__(self) -> tuple[Any, ...]:
        errors = None if self.errors is None else handed_on(self.errors)
        return _arrived, (self.name, self.pid, handed_on(self.output), errors)


def _arrived(name: str, pid: int | None, output: Any, errors: Any) -> External:
    return External(name, pid, output.detach(), None if errors is None else errors.detach())


def opener(name: str, wanted: Interfaces) -> External:
    """Start the program. Call this before privileges are given up: the program may need them.

    :raises LiveError: it cannot be started.
    """
    if sys.platform == "win32":  # Windows cannot wait for several pipes at once
        raise LiveError(f"kdissect cannot capture from {name} on Windows: {_ON_WINDOWS}")
    if name == STDIN:
        return External("standard input", None, sys.stdin.fileno(), None)
    command = command_of(name, wanted)
    program = shutil.which(command[0])
    if program is None:
        raise LiveError(f"{name}: {command[0]} is not installed")
    output, to_output = os.pipe()
    errors, to_errors = os.pipe()
    # In a group of its own: only this process handles Ctrl-C, and the program's last packets must be written.
    # The reader of its pipes notices its end.
    pid = os.posix_spawn(
        program,
        command,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, to_output, 1),
            (os.POSIX_SPAWN_DUP2, to_errors, 2),
        ],
        setpgroup=0,
        setsigdef=[signal.SIGPIPE],
    )
    os.close(to_output)
    os.close(to_errors)
    return External(name, pid, output, errors)


def _set_blocking(descriptor: int, blocking: bool) -> None:
    if sys.platform == "win32":
        raise NotImplementedError
    os.set_blocking(descriptor, blocking)


class PipedCapture:
    """A capture that comes through a pipe. Waits for its beginning.

    :raises LiveError: the program ends before it, or the stream is no capture.
    """

    def __init__(self, name: str, pid: int | None, output: int, errors: int | None) -> None:
        self.name = name
        self.interfaces: list[Interface] = []
        self._pid = pid
        self._output = output
        self._errors = errors
        self._words = b""
        self._ready: deque[tuple[int, list[Captured]]] = deque()
        self._received = 0
        self._troubles: deque[str] = deque()
        self._unreported = 0
        """The number of further faults, which are not reported one by one."""
        self._is_over = False
        if errors is not None:
            _set_blocking(errors, False)
        self._reader, rest = self._begin()
        self._take(self._reader.feed(rest))
        while not self.interfaces and not self._is_over:
            self._feed()
        _set_blocking(output, False)

    def _begin(self) -> tuple[Reader, bytes]:
        head = self._gather(b"", pcapng.HEADER_BYTES)
        try:
            if head[:4] == PCAPNG_MAGIC:
                return pcapng.PcapngReader(head, DEFAULTS, self.interfaces), head
            if head[:4] not in pcap.MAGICS:
                raise no_capture(head)
            head = self._gather(head, pcap.head_bytes(head, DEFAULTS))
            return pcap.PcapReader(head, DEFAULTS, self.interfaces), head[pcap.HEADER_BYTES :]
        except CaptureError as error:
            raise NoCaptureError(f"{self.name}: {error}") from None

    def _gather(self, head: bytes, wanted: int) -> bytes:
        while len(head) < wanted:
            piece = os.read(self._output, _PIECE)
            if not piece:
                raise self._end_reason(head)
            head += piece
        return head

    def _end_reason(self, head: bytes) -> LiveError:
        if self._errors is None:
            said = "is cut short in its header" if begins_like_a_capture(head) else str(no_capture(head))
            return NoCaptureError(f"{self.name}: {said}")
        _set_blocking(self._errors, True)
        while piece := os.read(self._errors, _LAST_WORDS):
            self._words = (self._words + piece)[-_LAST_WORDS:]
        said = self._last_line() or "it ended without a capture"
        if not _DENIED.search(said):
            return LiveError(f"{self.name}: {said}")
        if self.name.startswith(_SSH):
            return NotPermittedThereError(
                f"{self.name}: {said}: log in as a user who may capture, as in {_SSH}root@…"
            )
        return NotPermittedError(f"{self.name}: {said}")

    def fileno(self) -> int:
        return self._output

    def read(self) -> tuple[int, list[Captured]] | None:
        if not self._ready and not self._is_over:
            self._feed()
        return self._ready.popleft() if self._ready else None

    def _feed(self) -> None:
        try:
            piece = os.read(self._output, _PIECE)
        except BlockingIOError:
            return
        if piece:
            self._take(self._reader.feed(piece))
            return
        self._take(self._reader.close())
        self._is_over = True
        self._listen()
        self._troubles.append(f"{self.name} has ended" + (f": {said}" if (said := self._last_line()) else ""))

    def _take(self, items: list[Item]) -> None:
        """Join successive packets of one interface."""
        group: list[Captured] = []
        last = -1
        for item in items:
            if isinstance(item, Packet):
                if item.interface != last:
                    group = []
                    last = item.interface
                    self._ready.append((last, group))
                group.append((max(0, item.timestamp_ns), item.wire_length, item.data))
                self._received += 1
            elif not isinstance(item, Fault):
                continue
            elif len(self._troubles) < MOST_NOTES:
                self._troubles.append(f"{self.name}: {item.message}")
            else:  # faults are reported one by one: a stream of faults would fill the memory
                self._unreported += 1

    def _listen(self) -> None:
        if self._errors is None:
            return
        with suppress(BlockingIOError):
            while piece := os.read(self._errors, _LAST_WORDS):
                self._words = (self._words + piece)[-_LAST_WORDS:]

    def _last_line(self) -> str:
        lines = [line.strip() for line in self._words.decode("utf-8", "replace").split("\n")]
        told = [line for line in lines if _SAID.match(line)] or [line for line in lines if line]
        return told[-1] if told else ""

    def counts(self) -> SourceCounts:
        """The packets received, and the packets that the program reports as dropped at its end."""
        self._listen()
        found = _DROPPED.search(self._words.decode("utf-8", "replace"))
        dropped = 0 if found is None else int(found[1] or found[2])
        return SourceCounts(self._received + dropped, dropped)

    def fill(self) -> float:
        return 0.0

    def trouble(self) -> str | None:
        if not self._troubles and self._unreported:
            self._troubles.append(f"{self.name}: {plural(self._unreported, 'more fault')}")
            self._unreported = 0
        return self._troubles.popleft() if self._troubles else None

    def is_over(self) -> bool:
        return self._is_over and not (self._ready or self._troubles or self._unreported)

    def has_vanished(self) -> bool:
        return self._is_over and _VANISHED.search(self._words.decode("utf-8", "replace")) is not None

    def stop(self) -> None:
        if self._pid is not None:
            with suppress(OSError):  # it has ended, or is another user's: then its pipe is closed
                os.kill(self._pid, signal.SIGTERM)
        until = time.monotonic() + _END_SECONDS
        while self._pid is not None and not self._is_over and time.monotonic() < until:
            self._feed()
            time.sleep(0.01)
        self._is_over = True

    def close(self) -> None:
        os.close(self._output)
        if self._errors is not None:
            os.close(self._errors)
