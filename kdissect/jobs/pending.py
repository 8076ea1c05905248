"""Batches on their way: what is known of each until it is written, in its turn."""

from __future__ import annotations

from typing import Any

from kdissect.jobs.batches import Batch
from kdissect.jobs.process import WorkerProcess
from kdissect.jobs.serving import Before, PartTask, Piece, WholePiece, dump, load


class PendingBatch:
    """A batch on its way."""

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
        "size",
        "stale",
        "state",
        "task",
    )

    def __init__(
        self, batch: Batch | None, state: Any, task: PartTask | None = None, before: Before | None = None
    ) -> None:
        self.before = before
        """What is known of all before it, where something is."""
        self.batch = batch
        """None for a part of a capture, which its process has."""
        self.task = task
        """The part."""
        self.edge: bytes | None = None
        """Of a part, when it is dissected."""
        self.stale = 0
        """So many outcomes of it, and what is written before each, count no more."""
        self.begin(state)

    def begin(self, state: Any) -> None:
        """Nothing was done of it yet."""
        self.process: WorkerProcess | None = None
        """What does it, until it is done."""
        self.died: str | None = None
        """How its process ended before its time."""
        self.begin_with(state)

    def begin_with(self, state: Any) -> None:
        """The same, and its process is to begin again."""
        self.state = state
        self.pieces: list[Piece] = []
        """What it wrote before its turn came."""
        self.size = 0
        """Bytes of the pieces."""
        self.is_done = False
        self.after: Any = None
        self.result: Any = None
        self.counted: Any = None
        """What a part says of its events, which nobody here has seen."""
        self.error: Exception | None = None


class KeptPieces:
    """What is written before its turn has come."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.size = 0

    def write(self, piece: Piece) -> None:
        """Keep a piece."""
        if isinstance(piece, bytes):
            self.size += len(piece)
        else:
            whole: WholePiece = load(dump(piece, ()), ())  # whoever wrote it may use what it is made of again
            piece = whole
            self.size += len(whole.data)
        self.pieces.append(piece)
