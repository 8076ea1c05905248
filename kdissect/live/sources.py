"""What a capture process reads from: packets by the block, and what was counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from kdissect.capture.blocks import Captured
from kdissect.capture.reader import Interface
from kdissect.live.bpf import SNAP_LENGTH


class Interfaces(NamedTuple):
    """What to capture."""

    names: Sequence[str]
    filter: str
    snap_length: int = SNAP_LENGTH
    is_promiscuous: bool = True


class SourceCounts(NamedTuple):
    """What a source counted since it began."""

    received: int = 0
    """Packets that passed the filter, those that were dropped among them."""
    dropped: int = 0


class PacketSource(Protocol):
    """Where packets come from."""

    @property
    def interfaces(self) -> Sequence[Interface]:
        """Where they were captured. There is one at least, to which the counts belong; they may grow."""

    def fileno(self) -> int:
        """A descriptor that can be read when packets have come."""

    def read(self) -> tuple[int, list[Captured]] | None:
        """The number of an interface and packets of it that have come; None if no packet is there yet."""

    def counts(self) -> SourceCounts:
        """What was counted so far."""

    def fill(self) -> float:
        """The share of the memory for packets that is taken."""

    def trouble(self) -> str | None:
        """What has gone wrong since the last call, in words."""

    def is_over(self) -> bool:
        """Whether no more packets can come."""

    def has_vanished(self) -> bool:
        """Whether it is over because its interface does not exist any more."""

    def stop(self) -> None:
        """Take no more packets in; those that have come can still be read."""

    def close(self) -> None:
        """Let go of everything."""


class SourceOpener(Protocol):
    """Makes a source, in the capture process."""

    def __call__(self) -> PacketSource:
        """The source."""

    def close(self) -> None:
        """Let go of what was opened for it, in the process that has handed it on."""
