"""The work of tasks that make tables, and their results.

A :class:`Unit` reads a capture point, and a :class:`BatchUnit` the new part of one. It makes all rows itself,
or keeps the events for other tasks (:mod:`kdissect.spark.event_files`). A :class:`RowMaker` makes rows from
kept events.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kdissect.lazy import Later
from kdissect.model import Fault
from kdissect.present.arrow import arrow_schema
from kdissect.present.columns import Table
from kdissect.spark.changes import FINDING_CHANGES
from kdissect.spark.event_files import KeptFile
from kdissect.spark.plan import CapturePoint, tasks_for
from kdissect.spark.questions import Judgement
from kdissect.spark.settings import TableSettings
from kdissect.spark.sinks import TaskFile, moments_in
from kdissect.spark.spool import FileSpan
from kdissect.spark.states import States
from kdissect.spark.table_layout import epochs
from kdissect.spark.tables import with_point
from kdissect.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = Later("pyarrow")

FILES_A_TASK = 3
"""The number of files with the events for one task. With several files, all tasks have about the same
work."""
LEAST_FILE_BYTES = 1 << 20


class Unit(NamedTuple):
    """The work of a task that reads a capture point."""

    point: str
    paths: tuple[str, ...]
    share: int = 0
    """The index of the task's share of the capture point's rows …"""
    shares: int = 1
    """… and the number of shares. For each of them, everything is read and dissected."""
    tasks: int = 1
    """The number of tasks that make rows of the events. With 1, this task makes them."""
    file_bytes: int = LEAST_FILE_BYTES
    """The size of files that keep events for other tasks."""


class BatchUnit(NamedTuple):
    """The work of a task that goes on with a capture point (:mod:`kdissect.spark.micro_batch`)."""

    point: str
    spans: tuple[FileSpan, ...] | None
    """The spans to read. None if nothing more comes, and open exchanges are to be written."""
    states: States
    """The states that batches left."""
    batch: int
    drained_at: int | None = None
    """The batch under which the drained state is kept, if connections begin anew."""
    judgement: Judgement | None = None
    """How to judge findings, which change with each batch."""
    tasks: int = 1
    """As in a :class:`Unit`."""
    file_bytes: int = LEAST_FILE_BYTES


class RowMaker(NamedTuple):
    """The work of a task that makes rows of events."""

    point: str
    files: tuple[KeptFile, ...]
    names: KeptFile
    """The names of topic ids."""


class RequestedTable(NamedTuple):
    """A table that is made."""

    key: str
    """The name under which the caller finds it, because a table may be made in two forms."""
    settings: TableSettings
    """The table and its rows."""
    has_moments: bool = True
    """Whether files have a moment beside each time."""

    @property
    def table(self) -> Table:
        """The columns, without moments."""
        if self.is_of_findings:
            return with_point(FINDING_CHANGES, self.settings.capture_point is not None)
        return self.settings.full_table(self.settings.table)

    @property
    def is_of_findings(self) -> bool:
        """Whether its rows are changes of findings."""
        return self.settings.stats == FINDING_CHANGES.name

    @property
    def epochs(self) -> list[str]:
        """The columns with a moment beside them."""
        return epochs(self.table) if self.has_moments else []

    @property
    def schema(self) -> pa.Schema:
        """The schema of its files."""
        return moments_in(arrow_schema(self.table), self.epochs)

    def is_of(self, unit: Unit | BatchUnit | RowMaker) -> bool:
        """Whether a task makes rows of this table. Whether a connection is shown depends on all of its
        exchanges, so one task makes all rows of connections, and also those of findings."""
        if not isinstance(unit, RowMaker) and unit.tasks == 1:
            return True
        is_of_first = self.settings.table == "connections" or self.is_of_findings
        return is_of_first is not isinstance(unit, RowMaker)


class RunCounts(NamedTuple):
    """Counts about a run, for tables and for messages."""

    exchanges: int = 0
    not_captured: int = 0
    """Exchanges that lack a side because it was not captured."""
    faults: int = 0
    gap_bytes: int = 0
    """Bytes of connections that were not captured."""

    def plus(self, other: RunCounts) -> RunCounts:
        """The sums of both."""
        return RunCounts(*(one + more for one, more in zip(self, other, strict=True)))


class TaskOutcome(NamedTuple):
    """The result of a task."""

    read: int
    """The bytes of captures that it read."""
    written: tuple[TaskFile, ...]
    damage: list[Fault]
    """The first faults of files."""
    rows: Mapping[str, int]
    """The number of rows of each table."""
    tally: RunCounts = RunCounts()
    """Counts of the run, if they are requested."""
    kept: tuple[RowMaker, ...] = ()
    """The work that it leaves for other tasks."""
    cpu_seconds: float = 0.0
    """The processor time of its Python process."""


class Job(NamedTuple):
    """The data that all tasks have."""

    units: tuple[Unit | BatchUnit | RowMaker, ...]
    tables: tuple[RequestedTable, ...]
    settings: TableSettings
    """How captures are read."""
    tallies: bool = False
    """Whether to count things that may be in no table, such as faults."""
    key: bytes = b""
    """The key by which tasks recognise files of other tasks of this job."""
    first: int = 0
    """The number of the first task, because the tasks of an earlier job have numbers too."""

    @property
    def words(self) -> str:
        """The work of its tasks, in words."""
        return _words_of(self.units)


def _words_of(units: Sequence[Unit | BatchUnit | RowMaker]) -> str:
    if any(isinstance(each, RowMaker) for each in units):
        return f"make rows of what was dissected, in {plural(len(units), 'task')}"
    points = plural(len({each.point for each in units}), "capture point")
    batches = sorted({each.batch for each in units if isinstance(each, BatchUnit)})
    return f"batch {batches[0]}: dissect what is new of {points}" if batches else f"read and dissect {points}"


def units_of(points: Sequence[CapturePoint], tasks: Sequence[int], *, keeps: bool) -> tuple[Unit, ...]:
    """The units, the largest first, so that no large one begins when the others have finished.

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


def batch_units(
    states: States,
    batch: int,
    points: Iterable[str],
    spans: Sequence[FileSpan] | None,
    cores: int | None,
    drained_at: int | None = None,
    judgement: Judgement | None = None,
) -> tuple[BatchUnit, ...]:
    """A task for each capture point. If there is much new data, other tasks make the rows.

    :param batch: the number of the batch.
    :param spans: the new spans of all capture points; None to write what is open.
    :param drained_at: the batch whose drained state is kept; None if nothing is drained.
    :param cores: how many tasks can run at a time; None if tasks cannot keep events for others.
    """
    units = []
    total = max(1, sum(span.size for span in spans or ()))
    for point in sorted(set(points)):
        own = None if spans is None else tuple(span for span in spans if span.point == point)
        size = sum(span.size for span in own or ())
        tasks = 1 if cores is None else tasks_for(size, round(cores * size / total))
        more = (drained_at, judgement, tasks, _file_bytes(size, tasks))
        units.append(BatchUnit(point, own, states, batch, *more))
    return tuple(units)


def rows_of(point: str, files: Sequence[KeptFile], names: KeptFile, tasks: int) -> tuple[RowMaker, ...]:
    """The work of the tasks that use kept events: each gets consecutive files. There is always one task,
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
