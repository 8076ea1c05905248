"""What the tasks that make tables do, and what they give back.

Unit   reads a capture point: makes all rows itself, or keeps the events for others
Rows   makes rows of events that a Unit kept (:mod:`kdissect.spark.kept`)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from kdissect.model import Fault
from kdissect.present.arrow import arrow_schema
from kdissect.present.columns import Table
from kdissect.spark.kept import KeptFile
from kdissect.spark.plan import CapturePoint
from kdissect.spark.settings import TableSettings
from kdissect.spark.shape import epochs
from kdissect.spark.sinks import TaskFile, moments_in

FILES_A_TASK = 3
"""So many files keep what a task makes rows of: then tasks have nearly the same to do."""
LEAST_FILE_BYTES = 1 << 20


class Unit(NamedTuple):
    """What a task does that reads a capture point."""

    point: str
    paths: tuple[str, ...]
    share: int = 0
    """Which of the capture point's shares of rows …"""
    shares: int = 1
    """… among so many. For each of them, everything is read and dissected."""
    tasks: int = 1
    """So many tasks make rows of the events. One: this task does."""
    file_bytes: int = LEAST_FILE_BYTES
    """Of files that keep events for others."""


class RowMaker(NamedTuple):
    """What a task does that makes rows of events."""

    point: str
    files: tuple[KeptFile, ...]
    names: KeptFile
    """The names of topic ids."""


class WantedTable(NamedTuple):
    """A table that is made."""

    key: str
    """By which it is asked for: a table may be wanted in two forms."""
    settings: TableSettings
    """Which table, and its rows."""
    has_moments: bool = True
    """Whether each time has a moment beside it, in files."""

    @property
    def table(self) -> Table:
        """Its columns, without moments."""
        return self.settings.full_table(self.settings.table)

    @property
    def epochs(self) -> list[str]:
        """The columns with a moment beside them."""
        return epochs(self.table) if self.has_moments else []

    @property
    def schema(self) -> pa.Schema:
        """That of its files."""
        return moments_in(arrow_schema(self.table), self.epochs)

    def is_of(self, unit: Unit | RowMaker) -> bool:
        """Whether a task makes rows of it. Whether a connection is shown depends on all of its exchanges: so
        one task makes all rows of connections."""
        if isinstance(unit, Unit) and unit.tasks == 1:
            return True
        return (self.settings.table == "connections") is isinstance(unit, Unit)


class TaskOutcome(NamedTuple):
    """What came of a task."""

    read: int
    """Bytes of captures."""
    written: tuple[TaskFile, ...]
    damage: list[Fault]
    """What is wrong with files; of many, the first."""
    is_faulty: bool
    """Whether there is any fault, where that is asked."""
    kept: tuple[RowMaker, ...] = ()
    """What others are to make rows of."""


class Job(NamedTuple):
    """What all tasks know."""

    units: tuple[Unit | RowMaker, ...]
    wanted: tuple[WantedTable, ...]
    settings: TableSettings
    """How captures are read."""
    asks_faults: bool = False
    """Whether it matters that there are faults, which may be in no table."""
    key: bytes = b""
    """With which tasks know what other tasks of this job kept."""
    first: int = 0
    """The number of the first task: the tasks of a job before it have numbers too."""


def units_of(points: Sequence[CapturePoint], tasks: Sequence[int], *, keeps: bool) -> tuple[Unit, ...]:
    """The largest first, so that none is begun when the others are over.

    :param keeps: whether tasks can keep events for others.
    """
    both = sorted(zip(points, tasks, strict=True), key=lambda each: -each[0].size)
    if not keeps:
        return tuple(
            Unit(point.name, point.paths, index, count) for point, count in both for index in range(count)
        )
    return tuple(
        Unit(point.name, point.paths, tasks=count, file_bytes=_file_bytes(point.size, count))
        for point, count in both
    )


def rows_of(point: str, files: Sequence[KeptFile], names: KeptFile, tasks: int) -> tuple[RowMaker, ...]:
    """What so many tasks do with kept events: each has files that follow one another. There is always one,
    which makes the files of tables without rows."""
    total = sum(each.size for each in files)
    shares: list[list[KeptFile]] = [[] for _ in range(tasks)]
    before = 0
    for each in files:
        middle = before + each.size // 2
        shares[min(tasks - 1, middle * tasks // total)].append(each)
        before += each.size
    return tuple(RowMaker(point, tuple(share), names) for share in shares if share) or (
        RowMaker(point, (), names),
    )


def _file_bytes(size: int, tasks: int) -> int:
    return max(LEAST_FILE_BYTES, size // (FILES_A_TASK * tasks))
