"""How the capture process waits: for packets, and for the pipe to who started it to be shut."""

from __future__ import annotations

import select
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from kdissect.live.sources import PacketSource

if TYPE_CHECKING:
    from kdissect.system import Pipe

TURN_SECONDS = 0.01
"""How long packets of sources that nobody can wait for lie there, at most."""


class WayToWait(Protocol):
    """One way to wait."""

    def wait(self, seconds: float) -> bool:
        """Wait until there may be packets, for at most so many seconds. Gives whether the pipe was closed."""

    def forget(self, source: PacketSource) -> None:
        """A source is over."""


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
    """Waits for the pipe, a moment at a time, where sources have no descriptor: nothing of them is used."""

    def __init__(self, control: Pipe) -> None:
        self._control = control

    def wait(self, seconds: float) -> bool:
        try:
            return self._control.poll(min(seconds, TURN_SECONDS))
        except OSError:  # Windows' way to say that it is shut
            return True

    def forget(self, source: PacketSource) -> None:
        """Nothing of it is remembered."""


def waiting_for(control: Pipe, sources: Sequence[PacketSource]) -> WayToWait:
    """This system's way."""
    if sys.platform != "win32":
        return ByDescriptors(control.fileno(), sources)
    return InTurns(control)
