"""Batches that are not written yet, and their results so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kdissect.jobs.batches import Batch
from kdissect.jobs.process import WorkerProcess
from kdissect.jobs.serving import Before, PartTask, Piece, WholePiece, dump, load


class PendingBatch:
    """A batch that is not written yet."""

    __slots__ = (
        "after",
        "batch",
        "before",
        "counted",
        "died",
        "edge",
        "error",
        "is_done",
        "pieces",
        "process",
        "result",
        "seconds",
        "size",
        "stale",
        "state",
        "task",
    )

    def __init__(
        self, batch: Batch | None, state: Any, task: PartTask | None = None, before: Before | None = None
    ) -> None:
        self.before = before
        """The counts of all parts before it, if they are known."""
        self.batch = batch
        """The events; None for a part of a capture, whose events are in its process."""
        self.task = task
        """The part of a capture, if it is one."""
        self.edge: bytes | None = None
        """The edge of a part, once it is dissected."""
        self.stale = 0
        """How many more results to ignore, with the pieces before each, because the batch was begun again."""
        self.begin(state)

    def begin(self, state: Any) -> None:
        """Reset it to a batch that no process has."""
        self.process: WorkerProcess | None = None
        """The process that does it, until it is done."""
        self.died: str | None = None
        """How its process ended, if it ended too early."""
        self.begin_with(state)

    def begin_with(self, state: Any) -> None:
        """Reset its results; its process begins again with this state."""
        self.state = state
        self.pieces: list[Piece] = []
        """The pieces that it wrote before its turn came."""
        self.size = 0
        """The bytes of the pieces."""
        self.is_done = False
        self.after: Any = None
        self.result: Any = None
        self.counted: Any = None
        """The counts of a part's events, which this process does not see."""
        self.seconds = 0.0
        """The CPU seconds that a part took in its process."""
        self.error: Exception | None = None


class KeptPieces:
    """Pieces that are written before their turn has come. From their turn on, they are written at once."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.size = 0
        self._to: Callable[[Piece], None] | None = None
        """The function that writes pieces, once their turn has come."""

    def write_to(self, to: Callable[[Piece], None]) -> None:
        """Write the kept pieces, and from now on each piece: their turn has come."""
        self._to = to
        pieces, self.pieces, self.size = self.pieces, [], 0
        for piece in pieces:
            to(piece)

    def write(self, piece: Piece) -> None:
        """Keep a piece, or write it."""
        if self._to is not None:
            self._to(piece)
            return
        if isinstance(piece, bytes):
            self.size += len(piece)
        else:
            whole: WholePiece = load(dump(piece, ()), ())  # a copy: the writer may use its buffers again
            piece = whole
            self.size += len(whole.data)
        self.pieces.append(piece)
