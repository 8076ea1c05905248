"""What is looked at beside a capture."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

from kdissect.cli.commands.live.watching import Watch
from kdissect.live.journal import Status
from kdissect.live.probing import Probe
from kdissect.live.silence import Silence
from tests.waiting import wait_until


def test_sockets_that_see_other_ports_are_closed_once_there_is_kafka() -> None:
    ours, theirs = socket.socketpair()
    session: Any = SimpleNamespace(status=Status)
    reading: Any = SimpleNamespace(exchanges=0, packets=0, in_tls=str)
    with theirs, Watch(session, reading, False, Silence("tcp port 1", Probe([(ours, True)]))):
        assert not wait_until(lambda: ours.fileno() == -1, 0.6)
        reading.exchanges = 1
        assert wait_until(lambda: ours.fileno() == -1, 20)
