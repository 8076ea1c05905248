"""What tasks do that make tables, and what they give back.

A :class:`Unit` reads a capture point, and a :class:`BatchUnit` what is new at one. It makes all
rows itself, or keeps the events for others (:mod:`kdissect.spark.kept`). A :class:`RowMaker` makes rows of
what was kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kdissect.later import Later
from kdissect.model import Fault
from kdissect.present.arrow import arrow_schema
from kdissect.present.columns import Table
from kdissect.spark.changes import FINDING_CHANGES
from kdissect.spark.kept import KeptFile
from kdissect.spark.plan import CapturePoint, tasks_for
from kdissect.spark.questions import Judgement
from kdissect.spark.settings import TableSettings
from kdissect.spark.shape import epochs
from kdissect.spark.sinks import TaskFile, moments_in
from kdissect.spark.spool import FileSpan
from kdissect.spark.states import States
from kdissect.spark.tables import with_point
from kdissect.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = Later("pyarrow")

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


class BatchUnit(NamedTuple):
    """What a task does that goes on with a capture point (:mod:`kdissect.spark.step`)."""

    point: str
    spans: tuple[FileSpan, ...] | None
    """What it reads; None: nothing more comes, and what is open comes to light."""
    states: States
    """What batches left."""
    batch: int
    drained_at: int | None = None
    """The batch whose drained state is kept then, if connections begin anew."""
    judgement: Judgement | None = None
    """How findings are told, which change with each batch."""
    tasks: int = 1
    """As of a :class:`Unit`."""
    file_bytes: int = LEAST_FILE_BYTES


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
        if self.is_of_findings:
            return with_point(FINDING_CHANGES, self.settings.capture_point is not None)
        return self.settings.full_table(self.settings.table)

    @property
    def is_of_findings(self) -> bool:
        """Whether its rows tell how findings changed."""
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
        """Whether a task makes rows of it. Whether a connection is shown depends on all of its exchanges: so
        one task makes all rows of connections. It also makes those of findings."""
        if not isinstance(unit, RowMaker) and unit.tasks == 1:
            return True
        is_of_first = self.settings.table == "connections" or self.is_of_findings
        return is_of_first is not isinstance(unit, RowMaker)


class RunCounts(NamedTuple):
    """Counts that describe a run, for tables and for messages."""

    exchanges: int = 0
    not_captured: int = 0
    """Exchanges that lack a side because it was not captured."""
    faults: int = 0
    gap_bytes: int = 0
    """Bytes of connections that were not captured."""

    def plus(self, other: RunCounts) -> RunCounts:
        """Both together."""
        return RunCounts(*(one + more for one, more in zip(self, other, strict=True)))


class TaskOutcome(NamedTuple):
    """The result of a task."""

    read: int
    """Bytes of captures."""
    written: tuple[TaskFile, ...]
    damage: list[Fault]
    """What is wrong with files; of many, the first."""
    rows: Mapping[str, int]
    """How many it made of each table."""
    tally: RunCounts = RunCounts()
    """Where that is asked."""
    kept: tuple[RowMaker, ...] = ()
    """What others are to make rows of."""
    cpu_seconds: float = 0.0
    """Processor time of its Python."""


class Job(NamedTuple):
    """What all tasks know."""

    units: tuple[Unit | BatchUnit | RowMaker, ...]
    wanted: tuple[WantedTable, ...]
    settings: TableSettings
    """How captures are read."""
    tallies: bool = False
    """Whether it matters what may be in no table: faults, for example."""
    key: bytes = b""
    """With which tasks know what other tasks of this job kept."""
    first: int = 0
    """The number of the first task: the tasks of a job before it have numbers too."""

    @property
    def words(self) -> str:
        """What its tasks do."""
        return _words_of(self.units)


def _words_of(units: Sequence[Unit | BatchUnit | RowMaker]) -> str:
    if any(isinstance(each, RowMaker) for each in units):
        return f"make rows of what was dissected, in {plural(len(units), 'task')}"
    points = plural(len({each.point for each in units}), "capture point")
    batches = sorted({each.batch for each in units if isinstance(each, BatchUnit)})
    return f"batch {batches[0]}: dissect what is new of {points}" if batches else f"read and dissect {points}"


def units_of(points: Sequence[CapturePoint], tasks: Sequence[int], *, keeps: bool) -> tuple[Unit, ...]:
    """The units, the largest first: so no large one begins when the others are finished.

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
    """A task for each capture point. If much is new there, others make the rows.

    :param batch: the number of the batch.
    :param spans: what is new, of all capture points; None: write what is open.
    :param drained_at: the batch whose drained state is left; None where nothing is drained.
    :param cores: how many tasks can run at a time; None where none can keep events for others.
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
    """What the tasks do with kept events: each gets files that follow one another. There is always one task,
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
