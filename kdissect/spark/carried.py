"""What is carried from batch to batch of a stream: the reading of each capture point, and how far its
files were read. :mod:`kdissect.spark.states` keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kdissect.insight.judge import Judge
from kdissect.source import Pass
from kdissect.spark.growing import Bookmark, ReadSum

Trail = list[list[list[Any]]]
"""What was read, batch by batch: the values of spans (:class:`~kdissect.spark.spool.FileSpan`)."""
TRAIL_SPANS = 2_000
"""A state that came of more spans is not made again: they stand in the line that is read of each state."""


@dataclass
class Carried:
    """The state of one capture point."""

    reading: Pass
    packets: int = 0
    """How many were read."""
    last_ns: int | None = None
    """The latest time of a packet, ns since the epoch; None before any."""
    items: dict[str, int] = field(default_factory=dict)
    """By path, how many packets and other things of a file were taken in."""
    final: set[str] = field(default_factory=set)
    """The files of which nothing more is to come."""
    sizes: dict[str, int] = field(default_factory=dict)
    """By path, up to which byte it was read."""
    firsts: dict[str, int | None] = field(default_factory=dict)
    """By path, the time of the first packet, ns since the epoch, by which a file is known under a name that
    comes again."""
    bookmarks: dict[str, Bookmark] = field(default_factory=dict)
    """By path, where one goes on when a file has grown. Without one, a file is read from its beginning
    again, and what was taken in is passed over."""
    sums: dict[str, ReadSum] = field(default_factory=dict)
    """By path, what was read of a file that is not final, by which it is known again."""
    trail: Trail | None = field(default_factory=list)
    """From what the state can be made again; None if it cannot be, because a file is gone, for example."""
    has_secrets: bool = False
    """Whether TLS secrets were given beside the captures: key logs, or private keys."""
    judge: Judge | None = None
    """What findings are judged by, if they are."""
    findings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Those that were told, by key."""
    _last_path: str | None = None

    @property
    def bytes_read(self) -> int:
        """How many bytes of the files that are there were read."""
        return sum(self.sizes.values())

    def rename(self, old: str, new: str) -> None:
        """The file has a new name: what was read of it stays known.

        :raises KeyError: nothing was read under the old name.
        """
        for each in (self.items, self.sizes):
            each[new] = each.pop(old)
        self.firsts[new] = self.firsts.pop(old)
        self.bookmarks.pop(old, None)
        self.sums.pop(old, None)
        if old in self.final:
            self.final.remove(old)
            self.final.add(new)

    def forget(self, path: str) -> None:
        """The file is gone, or another one has its name now."""
        for each in (self.items, self.sizes, self.firsts, self.bookmarks, self.sums):
            each.pop(path, None)
        self.final.discard(path)

    def reads(self, spans: Sequence[Sequence[Any]], paths: Sequence[str], is_lost: bool) -> None:
        """Note what is read next.

        :param spans: their values.
        :param paths: their files.
        :param is_lost: whether a file that was read before is gone.
        """
        if self.trail is None or is_lost:
            self.trail = None
            return
        new = [list(span) for span in spans]
        last = self.trail[-1] if self.trail else []
        if len(new) == 1 and len(last) == 1 and self._last_path == paths[0]:
            self.trail[-1] = new  # more of the same file
        elif new:
            self.trail.append(new)
        self._last_path = paths[0] if len(paths) == 1 else None
        if sum(map(len, self.trail)) > TRAIL_SPANS:
            self.trail = None

    def drained(self) -> Drained:
        """What stays when its reading has ended."""
        reading = self.reading
        numbering = reading.numbering
        return Drained(
            *(self.packets, self.last_ns, self.items, sorted(self.final), self.sizes, self.firsts),
            *(numbering.connections, numbering.exchanges, list(reading.names.order)),
        )


class Drained(NamedTuple):
    """A state of which nothing is open any more: how far files were read, numbers, and names of topic ids.
    The first six fields are those of :class:`Carried`."""

    packets: int
    last_ns: int | None
    items: dict[str, int]
    final: list[str]
    sizes: dict[str, int]
    firsts: dict[str, int | None]
    connections: int
    """How many have a number …"""
    exchanges: int
    """… and how many exchanges."""
    names: list[tuple[str, str, int]]
    """Topic id, name, and the packet that told it."""

    def begun(self, reading: Pass) -> Carried:
        """The state with a new reading, which goes on with the numbers, and has the names.

        :param reading: one that has read nothing. It is changed.
        """
        numbering = reading.numbering
        numbering.connections, numbering.exchanges = self.connections, self.exchanges
        for each in self.names:
            reading.names.learn(*each)
        return Carried(
            *(reading, self.packets, self.last_ns, self.items, set(self.final), self.sizes, self.firsts),
            trail=None,
        )
