"""Captures → counts of folds (statistics, findings), which many tasks make, and which are added in order.

    keep     one task reads and dissects a capture point and keeps the events in files, one after another
             (:mod:`kdissect.spark.event_files`), if several tasks are to count them
    count    a task feeds each of its parts, which is a file, to new folds. Decoding bodies and counting is
             what is shared out. Where tasks share no folder, each of them reads and dissects all of the
             capture point, so that numbers and names are those of ``kdissect read``, and takes its parts
    add      one task for each capture point adds the parts in their order, and makes the rows

A fold needs the events of all connections, because a group or a transaction uses many. So no task gets only
some of the connections.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from kdissect.analysis.part import C, Part, counted
from kdissect.analysis.whole import WholeFold
from kdissect.capture.points import find_points
from kdissect.capture.reader import PACKET_OVERHEAD, Points
from kdissect.collector import rarely_collected
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.lazy import Later
from kdissect.model import Fault
from kdissect.present.arrow import ArrowWriter, arrow_schema
from kdissect.present.columns import Table
from kdissect.spark.event_files import kept_names, kept_pieces
from kdissect.spark.fault_names import named
from kdissect.spark.fold_question import FoldQuestion, FoldRows
from kdissect.spark.job import Job, RowMaker, units_of
from kdissect.spark.job_descriptions import described
from kdissect.spark.one_pass import keep_events
from kdissect.spark.plan import CapturePoint, capture_points, replicas_of, task_numbers
from kdissect.spark.progress import Note
from kdissect.spark.replay import all_events, size_of
from kdissect.spark.row_filter import Choice
from kdissect.spark.settings import TableSettings
from kdissect.spark.shared_folders import room
from kdissect.spark.storage import list_files
from kdissect.spark.tables import with_point
from kdissect.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
else:
    pa = Later("pyarrow")

PARTS_A_TASK = 4
"""About how many parts a task has if nothing is compressed. With more parts, the tasks have more equal work;
with fewer, less is sent and added."""
_AROUND = PACKET_OVERHEAD + 54
"""About how many bytes a message takes in a file beside its own: the headers of a packet."""
PARTS_DDL = "point int, part int, data binary"
_PARTS = pa.schema([("point", pa.int32()), ("part", pa.int32()), ("data", pa.binary())])
_ROWS_DDL = "point int, `table` int, left_out bigint, data binary"
_ROWS = pa.schema(
    [("point", pa.int32()), ("table", pa.int32()), ("left_out", pa.int64()), ("data", pa.binary())]
)
_DAMAGE, _READ = -1, -2
"""Numbers in place of a table: for the faults of files, and for the number of bytes read, which is stored as
left out rows."""
_LAST = (1 << 31) - 1
"""The number in place of a part, for how many bytes a task read."""


class CountedPoints(NamedTuple):
    """The results of all capture points."""

    tables: tuple[pa.Table, ...]
    """The tables in the order of the question. If capture points have names, the first column has them."""
    left_out: tuple[int, ...]
    """For each table, how often something was left out because there was no room."""
    damage: list[Fault]
    """The first faults of files."""
    read: int = 0
    """Bytes of captures that all tasks read together."""

    @property
    def rows(self) -> int:
        """How many rows all tables have together."""
        return sum(map(len, self.tables))


class CountedAlone(NamedTuple):
    """The results of one capture point."""

    rows: Sequence[FoldRows]
    """The rows of each table."""
    damage: list[Fault]
    """The first faults of its files."""


class _FoldTask(NamedTuple):
    """Some parts of one capture point: every ``tasks``-th, from ``first`` on."""

    point: int
    paths: tuple[str, ...]
    first: int
    tasks: int
    part_bytes: int | None
    """About how long a part is; None if everything is one part."""
    points: Points | None
    """The capture points that kdissect found in its files, if the user named none."""


class _KeptTask(NamedTuple):
    """Some parts of one capture point, in consecutive files."""

    point: int
    before: int
    """The number of earlier parts."""
    rows: RowMaker
    paths: tuple[str, ...]
    """The captures that the parts come from."""


class _SentPart(NamedTuple, Generic[C]):
    """A part, and the damage to files in its events."""

    part: Part[C]
    damage: list[Fault]


def found(
    spark: SparkSession, settings: TableSettings, paths: list[str], question: FoldQuestion[C]
) -> CountedPoints:
    """Have captures counted. One job, which has ended when this returns, reads the captures once.

    :raises CaptureError: there is no file, a key log is missing, or a key cannot be used.
    :raises ValueError: a file belongs to no capture point, or the filter is wrong.
    """
    Choice(settings)  # errors are reported before any task starts
    settings.refuse_unusable()
    points = capture_points(list_files(paths), settings.capture_point)
    counts = [replicas_of(point, settings) for point in points]
    several = [several_points(point, settings) for point in points]
    with room(spark, settings) as folder:
        keeps = [
            folder is not None and count > 1 and found is None
            for count, found in zip(counts, several, strict=True)
        ]
        tasks: list[_FoldTask | _KeptTask] = []
        for at, point in enumerate(points):
            if not keeps[at]:
                tasks += _replicas(at, point, counts[at], several[at])
        key, read = b"", 0
        if folder is not None and any(keeps):
            key, of_files, read = _kept_tasks(spark, points, counts, keeps, settings, folder)
            tasks += of_files
        every = spark.range(0, len(tasks), 1, len(tasks))
        work = partial(_count, tuple(tasks), key, settings, question)
        parts = every.mapInArrow(work, PARTS_DDL)
        told = f"count {plural(len(points), 'capture point')} in {plural(len(tasks), 'task')}"
        with described(spark, told):
            made = added(parts, tuple(point.name for point in points), settings, question)
        return made._replace(read=made.read + read)


def _replicas(at: int, point: CapturePoint, count: int, several: Points | None) -> list[_FoldTask]:
    part_bytes = None if count == 1 else max(1, point.size // (PARTS_A_TASK * count))
    return [_FoldTask(at, point.paths, index, count, part_bytes, several) for index in range(count)]


def _kept_tasks(
    spark: SparkSession,
    points: Sequence[CapturePoint],
    counts: Sequence[int],
    keeps: Sequence[bool],
    settings: TableSettings,
    folder: str,
) -> tuple[bytes, list[_KeptTask], int]:
    """Have capture points dissected, and assign the kept parts to tasks. It also returns how many bytes were
    read."""
    own = [at for at, each in enumerate(keeps) if each]
    units = units_of([points[at] for at in own], [counts[at] for at in own], keeps=True)
    job, outcomes = keep_events(spark, Job(units, (), settings), folder)
    places = {point.name: at for at, point in enumerate(points)}
    tasks = []
    for outcome in outcomes:
        before = 0
        for each in outcome.kept:
            at = places[each.point]
            tasks.append(_KeptTask(at, before, each, points[at].paths))
            before += max(1, len(each.files))
    return job.key, tasks, sum(each.read for each in outcomes)


def added(
    parts: DataFrame, names: tuple[str, ...], settings: TableSettings, question: FoldQuestion[C]
) -> CountedPoints:
    """Have parts added in their order, and made into rows.

    :param parts: parts in the form :data:`PARTS_DDL`, as :func:`part_batch` makes them.
    :param names: the names of the capture points.
    """
    ordered = parts.repartitionById(len(names), "point").sortWithinPartitions("point", "part")
    rows = ordered.mapInArrow(partial(_add, names, settings, question), _ROWS_DDL).toArrow().to_pylist()
    rows.sort(key=lambda row: (row["point"], row["table"]))
    damage = [each for row in rows if row["table"] == _DAMAGE for each in pickle.loads(row["data"])]
    tables: list[pa.Table] = []
    left_out: list[int] = []
    for at, table in enumerate(question.tables):
        own = [row for row in rows if row["table"] == at]
        batches = list(chain.from_iterable(pa.ipc.open_stream(row["data"]) for row in own))
        schema = arrow_schema(with_point(table, settings.capture_point is not None))
        # PySpark refuses lists without a chunk, which a table without batches has.
        tables.append(pa.Table.from_batches(batches, schema) if batches else schema.empty_table())
        left_out.append(sum(row["left_out"] for row in own))
    read = sum(row["left_out"] for row in rows if row["table"] == _READ)
    return CountedPoints(tuple(tables), tuple(left_out), damage, read)


def counted_alone(
    paths: Sequence[str],
    settings: TableSettings,
    question: FoldQuestion[C],
    note: Note,
    points: Points | None,
) -> CountedAlone:
    """Count one capture point in a single task.

    :param points: the capture points in its files, if there are several.
    :raises CaptureError: a key log, or a key, cannot be read.
    """
    sent = _part(all_events(paths, settings, note, points), paths, settings, question, note)
    whole = WholeFold(question.new)
    whole.add(sent.part, set())
    whole.finish()
    return CountedAlone(question.rows(whole.counted), sent.damage)


def several_points(point: CapturePoint, settings: TableSettings) -> Points | None:
    """The capture points that kdissect recognises in files; None if there is one, or the user named them."""
    return find_points(point.paths, settings.limits) if settings.capture_point is None else None


# -- in the tasks -----------------------------------------------------------------------------------


class _EventParts:
    """Assigns events to parts. Every task must ask for the same events in the same order."""

    def __init__(self, part_bytes: int | None) -> None:
        self._most = part_bytes
        self._part = 0
        self._load = 0

    def part(self, event: Event) -> int:
        """The part of an event."""
        if self._most is not None and isinstance(event, Exchange):
            if self._load >= self._most:
                self._part += 1
                self._load = 0
            self._load += size_of(event) + _AROUND * len(event.messages)
        return self._part


def _count(
    tasks: Sequence[_FoldTask | _KeptTask],
    key: bytes,
    settings: TableSettings,
    question: FoldQuestion[C],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The second step: numbers of tasks → pickled parts."""
    for number in task_numbers(batches):
        task = tasks[number]
        note = Note(settings.progress, f"folds-{number}")
        with rarely_collected():
            if isinstance(task, _KeptTask):
                parts = _parts_of_files(task, key, settings, question, note)
            else:
                parts = _parts(task, settings, question, note)
            for part, sent in parts:
                yield part_batch(task.point, part, sent.part, sent.damage)
        yield _batch(_PARTS, (task.point, _LAST, pickle.dumps(note.read)))
        note.write()


def _parts_of_files(
    task: _KeptTask, key: bytes, settings: TableSettings, question: FoldQuestion[C], note: Note
) -> Iterator[tuple[int, _SentPart[C]]]:
    names = kept_names(task.rows.names, key)
    for at, file in enumerate(task.rows.files):
        pieces = kept_pieces(file, key, names, settings.limits)
        events = chain.from_iterable(piece.events for piece in pieces)
        yield task.before + at, _part(events, task.paths, settings, question, note)
    if not task.rows.files:
        yield task.before, _part((), (), settings, question, note)


def _parts(
    task: _FoldTask, settings: TableSettings, question: FoldQuestion[C], note: Note
) -> Iterator[tuple[int, _SentPart[C]]]:
    is_empty = True
    events = all_events(task.paths, settings, note, task.points)
    for part, own in groupby(events, _EventParts(task.part_bytes).part):
        is_empty = False
        if part % task.tasks == task.first:
            yield part, _part(own, task.paths, settings, question, note)
    if is_empty and task.first == 0:
        yield 0, _part((), (), settings, question, note)


def _part(
    own: Iterable[Event],
    paths: Sequence[str],
    settings: TableSettings,
    question: FoldQuestion[C],
    note: Note,
) -> _SentPart[C]:
    damage: list[Fault] = []
    chooser = None if settings.filter is None else Choice(settings)
    made = counted(((each,) for each in _watched(own, settings, note, damage)), question.new, chooser)
    return _SentPart(made, [named(each, paths) for each in damage])


def _watched(
    events: Iterable[Event], settings: TableSettings, note: Note, damage: list[Fault]
) -> Iterator[Event]:
    for event in events:
        if isinstance(event, Exchange):
            note.rows_of(size_of(event))
        elif isinstance(event, Fault) and event.layer == "file":
            note.damage += 1
            if len(damage) < settings.limits.rows:
                damage.append(event)
        yield event


def _add(
    points: Sequence[str],
    settings: TableSettings,
    question: FoldQuestion[C],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The third step: the parts of capture points, in order → rows, as Arrow streams."""
    every = (
        row
        for batch in batches
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    )
    for at, parts in groupby(every, lambda row: row[0]):
        whole, chosen = WholeFold(question.new), set[int]()
        damage: list[Fault] = []
        read = 0
        with rarely_collected():
            for _, part, data in parts:
                if part == _LAST:
                    read += pickle.loads(data)
                    continue
                sent: _SentPart[C] = pickle.loads(data)
                whole.add(sent.part, chosen)
                damage += sent.damage[: settings.limits.rows - len(damage)]
        whole.finish()
        yield _batch(_ROWS, (at, _DAMAGE, 0, pickle.dumps(damage)))
        yield _batch(_ROWS, (at, _READ, read, b""))
        made = zip(question.tables, question.rows(whole.counted), strict=True)
        for number, (table, rows) in enumerate(made):
            data = _stream(with_point(table, settings.capture_point is not None, points[at]), rows.rows)
            yield _batch(_ROWS, (at, number, rows.left_out, data))


def part_batch(point: int, number: int, part: Part[C], damage: list[Fault]) -> pa.RecordBatch:
    """A part in the form in which it is sent to the task that adds it.

    :param damage: the damage to files in its events.
    """
    data = pickle.dumps(_SentPart(part, damage), pickle.HIGHEST_PROTOCOL)
    return _batch(_PARTS, (point, number, data))


def _stream(table: Table, rows: Iterable[Any]) -> bytes:
    file = io.BytesIO()
    writer = ArrowWriter(table, file)
    for row in rows:
        writer.write(row)
    writer.close()
    return file.getvalue()


def _batch(schema: pa.Schema, row: Sequence[Any]) -> pa.RecordBatch:
    arrays = [pa.array([value], field.type) for value, field in zip(row, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)
