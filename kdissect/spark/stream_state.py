"""The state that is carried from batch to batch of a stream: the reading of each capture point, and how far
its files were read. :mod:`kdissect.spark.states` stores it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from kdissect.source import Pass
from kdissect.spark.tailing import Bookmark, ReadSum

if TYPE_CHECKING:
    from kdissect.insight.judge import Judge

Trail = list[list[list[Any]]]
"""The spans that were read, batch by batch, each as its values (:class:`~kdissect.spark.spool.FileSpan`)."""
TRAIL_SPANS = 2_000
"""The most spans from which a state is made again. They are in the first line of the state, which is read
often."""


@dataclass
class Carried:
    """The state of one capture point."""

    reading: Pass
    packets: int = 0
    """How many packets were read."""
    last_ns: int | None = None
    """The latest time of a packet, ns since the epoch; None before any."""
    items: dict[str, int] = field(default_factory=dict)
    """By path, how many items (packets and others) of a file were taken in."""
    final: set[str] = field(default_factory=set)
    """The files to which nothing more will be added."""
    sizes: dict[str, int] = field(default_factory=dict)
    """By path, the number of bytes that were read."""
    firsts: dict[str, int | None] = field(default_factory=dict)
    """By path, the time of the first packet, ns since the epoch. It shows whether a reused name is the same
    file."""
    bookmarks: dict[str, Bookmark] = field(default_factory=dict)
    """By path, the place from which reading goes on when a file has grown. Without it, a file is read from
    its beginning, and the items that were taken in are skipped."""
    sums: dict[str, ReadSum] = field(default_factory=dict)
    """By path, the checksum of the bytes that were read of a file that is not final. It shows whether the
    file is the same."""
    trail: Trail | None = field(default_factory=list)
    """The spans from which the state can be made again; None if it cannot be, because a file is gone, for
    example."""
    has_secrets: bool = False
    """Whether TLS secrets were given beside the captures: key logs, or private keys."""
    judge: Judge | None = None
    """The judge of findings, if they are judged."""
    findings: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The findings that were reported, by key."""
    _last_path: str | None = None

    @property
    def bytes_read(self) -> int:
        """The bytes that were read of the files that still exist."""
        return sum(self.sizes.values())

    def rename(self, old: str, new: str) -> None:
        """Note that a file has a new name. The record of its read bytes stays.

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
        """Note that a file is gone, or that another file has its name now."""
        for each in (self.items, self.sizes, self.firsts, self.bookmarks, self.sums):
            each.pop(path, None)
        self.final.discard(path)

    def reads(self, spans: Sequence[Sequence[Any]], paths: Sequence[str], is_lost: bool) -> None:
        """Note the spans that are read next.

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
        """The state that stays after its reading has ended."""
        reading = self.reading
        numbering = reading.numbering
        return Drained(
            *(self.packets, self.last_ns, self.items, sorted(self.final), self.sizes, self.firsts),
            *(numbering.connections, numbering.exchanges, list(reading.names.order)),
        )


class Drained(NamedTuple):
    """A state without open connections: how far files were read, numbers, and names of topic ids. The first
    six fields are those of :class:`Carried`."""

    packets: int
    last_ns: int | None
    items: dict[str, int]
    final: list[str]
    sizes: dict[str, int]
    firsts: dict[str, int | None]
    connections: int
    """How many connections have a number …"""
    exchanges: int
    """… and how many exchanges."""
    names: list[tuple[str, str, int]]
    """Topic id, name, and the packet that contained it."""

    def begun(self, reading: Pass) -> Carried:
        """The state with a new reading, which continues the numbers and has the names.

        :param reading: a reading that has read nothing. It is changed.
        """
        numbering = reading.numbering
        numbering.connections, numbering.exchanges = self.connections, self.exchanges
        for each in self.names:
            reading.names.learn(*each)
        return Carried(
            *(reading, self.packets, self.last_ns, self.items, set(self.final), self.sizes, self.firsts),
            trail=None,
        )
