"""A clock that is set by hand, and a source that gives what it is told."""

from __future__ import annotations

import os
from collections import deque

from kdissect.capture.blocks import Captured
from kdissect.capture.reader import Interface
from kdissect.live.sources import SourceCounts
from kdissect.live.spool import SECOND, SystemClocks

BEGAN_NS = 1_700_000_000 * SECOND


class FakeClock(SystemClocks):
    """Time passes when it is said to."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.step_ns = 0

    def wall_ns(self) -> int:
        return BEGAN_NS + round(self.passed * SECOND) + self.step_ns

    def seconds(self) -> float:
        return self.passed


class FakeSource:
    """Gives blocks that were put into it."""

    def __init__(self, name: str = "eth0") -> None:
        self.interfaces = [Interface(1, 262_144, name)]
        self.blocks: deque[tuple[int, list[Captured]]] = deque()
        self.dropped = self.given = 0
        self.troubles: deque[str] = deque()
        self.is_ended = self.is_gone = self.is_stopped = self.is_closed = False
        self._pipe = os.pipe()

    def put(self, *datas: bytes, interface: int = 0) -> None:
        """More packets, in a block."""
        self.blocks.append((interface, [(BEGAN_NS, len(data), data) for data in datas]))

    def fileno(self) -> int:
        return self._pipe[0]

    def read(self) -> tuple[int, list[Captured]] | None:
        if not self.blocks:
            return None
        self.given += len(self.blocks[0][1])
        return self.blocks.popleft()

    def counts(self) -> SourceCounts:
        return SourceCounts(self.given + self.dropped, self.dropped)

    def fill(self) -> float:
        return 0.25

    def trouble(self) -> str | None:
        return self.troubles.popleft() if self.troubles else None

    def is_over(self) -> bool:
        return self.is_ended

    def has_vanished(self) -> bool:
        return self.is_gone

    def stop(self) -> None:
        self.is_stopped = True

    def close(self) -> None:
        self.is_closed = True
        for descriptor in self._pipe:
            os.close(descriptor)
