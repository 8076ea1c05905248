"""The sources of a capture process: blocks of packets, and counts."""

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
    """The counts of a source since it began."""

    received: int = 0
    """Packets that passed the filter, including those that were dropped."""
    dropped: int = 0


class PacketSource(Protocol):
    """A source of packets."""

    @property
    def interfaces(self) -> Sequence[Interface]:
        """The interfaces of its packets. There is at least one; the counts belong to the first. More may be
        added."""

    def fileno(self) -> int:
        """A descriptor that becomes readable when packets arrive."""

    def read(self) -> tuple[int, list[Captured]] | None:
        """The number of an interface, and packets that arrived on it; None if there are no packets yet."""

    def counts(self) -> SourceCounts:
        """The counts so far."""

    def fill(self) -> float:
        """The share of the packet memory that is in use."""

    def trouble(self) -> str | None:
        """An error since the last call, in words; None if there was no error."""

    def is_over(self) -> bool:
        """Whether no more packets can come."""

    def has_vanished(self) -> bool:
        """Whether it is over because its interface no longer exists."""

    def stop(self) -> None:
        """Take in no more packets. Packets that already arrived can still be read."""

    def close(self) -> None:
        """Release all resources."""


class SourceOpener(Protocol):
    """Makes a source, in the capture process."""

    def __call__(self) -> PacketSource:
        """Open the source."""

    def close(self) -> None:
        """Close the descriptors of the source, in the process that passed them on."""
