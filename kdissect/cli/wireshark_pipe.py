"""A live capture into the pipe of Wireshark. Each packet has a comment with what it completes."""

from __future__ import annotations

import os
import select
import sys
from contextlib import ExitStack, closing, suppress
from typing import Any, BinaryIO

import click

from kdissect.capture.writer import PcapngWriter
from kdissect.cli.capturing import live_in_own_home, opened, started, way_out, with_capability
from kdissect.cli.config import load_config
from kdissect.cli.errors import CaptureRefused, Wrong, complain
from kdissect.cli.exit_codes import DONE, UNREADABLE
from kdissect.cli.interrupts import stopped_by_signals
from kdissect.cli.tls_keys import keys_of
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.live.bpf import DEFAULT_FILTER, SNAP_LENGTH
from kdissect.live.privileged import invoking_user
from kdissect.live.session import CaptureSession
from kdissect.live.spooled import Spooled
from kdissect.model import Fault, Packet
from kdissect.present.comments import exchange_comment, with_packets
from kdissect.source import Input, Pass
from kdissect.system.confining import Allowed, confine

_REPORTED_KINDS = ("interface-gone", "packets-lost")
"""Faults that lead to a message, and affect the exit code."""


class WiresharkPipe:
    """One capture.

    :param name: the name of the interface.
    :param given: the options of ``kdissect extcap``.
    :raises Wrong: one of them is wrong.
    """

    def __init__(self, name: str, given: dict[str, Any]) -> None:
        live_in_own_home()
        config = load_config()
        self._name = name
        self._config = config
        self._tells_exchanges = given["comments"]
        self._fifo: str = given["fifo"]
        port = given["port"] or ""
        if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
            raise Wrong(f"port {port}: a port is a number from 1 to 65535")
        self._ports = config.ports | ({int(port)} if port else set())
        self._key_logs = () if not given["key_log"] else (given["key_log"],)
        self._wanted = {
            "interfaces": (name,),
            "capture_filter": given["capture_filter"] or DEFAULT_FILTER,
            "snap_length": SNAP_LENGTH,
            "not_promiscuous": False,
            "allow_root": given["allow_root"],
        }
        self._faults: list[Fault] = []

    def run(self) -> int:
        """Capture until Wireshark closes the pipe; return the exit code."""
        # Open it before dropping privileges: under sudo the pipe is root's.
        with self._open_pipe() as pipe:
            try:
                return self._capture(pipe)
            except click.ClickException as error:
                # Wireshark looks for a message once, when the pipe is closed.
                complain(error.format_message())
                return error.exit_code

    def _capture(self, pipe: BinaryIO) -> int:
        keys = keys_of({"key_logs": self._key_logs, "rsa_keys": ()}, self._config.limits, growing=True)
        limits = self._config.limits
        with ExitStack() as stack:
            found = self._opened()
            session = started(found, lambda: CaptureSession(found.openers))
            stack.enter_context(closing(session))
            source = Input(
                (),
                limits,
                self._ports,
                self._config.topics,
                open_packets=lambda: Spooled(session.folder, limits, consume=True),
                adds_tcp=False,
            )
            reading = Pass(source, keys.secrets, keys.growing)
            stack.callback(reading.close)
            reading.open()
            confine(Allowed((), (session.folder,), (os.path.dirname(session.folder),)))
            with stopped_by_signals(session.stop), suppress(BrokenPipeError):
                self._write(reading, pipe)
            session.stop()
            return self._end(session)

    def _open_pipe(self) -> BinaryIO:
        try:
            return open(self._fifo, "wb", buffering=1 << 16)
        except OSError as error:
            raise Wrong(f"{self._fifo}: Wireshark's pipe cannot be opened: {error.strerror}") from None

    def _opened(self) -> Any:
        """The interface, opened.

        :raises CaptureRefused: it is not permitted; the text says how to start Wireshark.
        :raises Wrong: it would be decoded as root, or the filter is wrong.
        """
        user, _ = invoking_user()
        if sys.platform != "win32" and os.geteuid() == 0 and user is None and not self._wanted["allow_root"]:
            raise Wrong(
                "Wireshark runs as root, but kdissect does not decode bytes as root: start Wireshark by "
                f"{with_capability(['wireshark'], 'USER')}, or choose Decode as root beside the interface"
            )
        try:
            return opened(self._wanted)
        except CaptureRefused:
            how = way_out()
            if sys.platform == "linux":
                how = f"start Wireshark so: {with_capability(['wireshark'])}"
            raise CaptureRefused(f"{self._name}: you are not permitted to capture: {how}") from None

    def _write(self, reading: Pass, pipe: BinaryIO) -> None:
        """Write packets as they come, each with a comment on what it completes."""
        packets = reading.open()
        writer = PcapngWriter(pipe, packets.interfaces)
        pipe.flush()
        assert isinstance(packets, Spooled)
        for item in packets.with_pauses():
            if item is None:
                for event in reading.key_log_events():
                    self._note(event)
                pipe.flush()
                if _has_no_reader(pipe):
                    return
                continue
            said = []
            for event in reading.feed(item):
                self._note(event)
                if isinstance(event, Exchange) and self._tells_exchanges:
                    ends = (event.request_packet, event.response_packet)
                    said.append(with_packets(exchange_comment(event), ends))
            if isinstance(item, Packet):
                writer.write(item._replace(comments=(*item.comments, *said)) if said else item)
        for event in reading.end():
            self._note(event)
        pipe.flush()

    def _note(self, event: Event) -> None:
        if isinstance(event, Fault) and event.kind in _REPORTED_KINDS:
            self._faults.append(event)

    def _end(self, session: CaptureSession) -> int:
        """The exit code, and at most one line about an error."""
        session.join()
        told = [each.message for each in self._faults[:1]]
        death = session.death()
        told += [] if death is None else [death]
        if not told:
            return DONE
        complain("; ".join(told))
        return UNREADABLE


def _has_no_reader(pipe: BinaryIO) -> bool:
    """Whether Wireshark has closed the pipe, if that can be found out without writing."""
    if sys.platform == "win32":
        return False
    poll = select.poll()
    poll.register(pipe, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))
