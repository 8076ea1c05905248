"""How the capture process waits: for packets, and for the pipe of the process that started it to be
closed."""

from __future__ import annotations

import select
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kdissect.live.sources import PacketSource

if TYPE_CHECKING:
    from kdissect.system import Pipe

TURN_SECONDS = 0.01
"""The longest time that packets wait in sources without a descriptor."""


class WayToWait(Protocol):
    """One way to wait."""

    def wait(self, seconds: float) -> bool:
        """Wait until there may be packets, for at most ``seconds``. Return whether the pipe was closed."""

    def forget(self, source: PacketSource) -> None:
        """Stop waiting for a source: it is over."""


if sys.platform != "win32":

    class ByDescriptors:
        """Waits for whichever descriptor can be read first."""

        def __init__(self, control: int, sources: Sequence[PacketSource]) -> None:
            self._control = control
            self._poll = select.poll()
            for descriptor in (control, *(source.fileno() for source in sources)):
                self._poll.register(descriptor, select.POLLIN)

        def wait(self, seconds: float) -> bool:
            return any(descriptor == self._control for descriptor, _ in self._poll.poll(seconds * 1_000))

        def forget(self, source: PacketSource) -> None:
            self._poll.unregister(source.fileno())


class InTurns:
    """Waits for the pipe, a moment at a time. For sources without a descriptor."""

    def __init__(self, control: Pipe) -> None:
        self._control = control

    def wait(self, seconds: float) -> bool:
        try:
            return self._control.poll(min(seconds, TURN_SECONDS))
        except OSError:  # Windows raises this if the pipe is closed
            return True

    def forget(self, source: PacketSource) -> None:
        """Do nothing: no source is remembered."""


def waiting_for(control: Pipe, sources: Sequence[PacketSource]) -> WayToWait:
    """The way to wait on this system."""
    if sys.platform != "win32":
        return ByDescriptors(control.fileno(), sources)
    return InTurns(control)
