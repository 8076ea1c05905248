"""Captures → all tables that are wanted: each capture is read once and dissected once.

    units     what tasks do: each reads a capture point, or what is new there
    rows      what further tasks do: they make rows of events that units kept, where several tasks are to
    outcome   what a task tells the driver: its files, the bytes that it read, what is wrong with captures

Tasks write files of Parquet into a folder that nobody reads yet (:func:`write_tables`). Only the files of
outcomes count: a task that dies, and is done again, leaves nothing twice. Where the driver does not see what
workers write, Spark itself takes the rows (:func:`wide_tables`).
"""

from __future__ import annotations

import pickle
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from kdissect.capture.reader import Item
from kdissect.collector import rarely_collected
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.lazy import Later
from kdissect.model import Fault
from kdissect.names import TopicNames
from kdissect.present.arrow import arrow_schema
from kdissect.present.sources import sources_of
from kdissect.session.conversation import Connection
from kdissect.spark.changes import change_batch
from kdissect.spark.event_files import FOLDER as KEPT
from kdissect.spark.event_files import Keeper, kept_names, kept_pieces
from kdissect.spark.fault_names import named
from kdissect.spark.job import BatchUnit, Job, RequestedTable, RowMaker, RunCounts, TaskOutcome, Unit, rows_of
from kdissect.spark.job_descriptions import described
from kdissect.spark.micro_batch import events_at_end, events_of_batch, events_of_drain
from kdissect.spark.plan import task_numbers
from kdissect.spark.progress import Note
from kdissect.spark.quality import NOT_CAPTURED
from kdissect.spark.replay import Shares, blocks_of, last_pass, size_of
from kdissect.spark.row_filter import Choice
from kdissect.spark.rows import PacketRows, PointRows
from kdissect.spark.settings import TableSettings
from kdissect.spark.sinks import FileSink, TaskFile
from kdissect.spark.storage import join
from kdissect.spark.tables import TABLES, table_at
from kdissect.spark.wide_rows import Widener, wide_ddl
from kdissect.spark.writing import remove

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
else:
    pa = Later("pyarrow")

_MISSING, _GAP_BYTES = TABLES["exchanges"].column("missing"), TABLES["connections"].column("gap_bytes")
_OUTCOME_DDL = "outcome binary"
_OUTCOME = pa.schema([("outcome", pa.binary())])


def write_tables(spark: SparkSession, job: Job, folder: str) -> list[TaskOutcome]:
    """Have the tasks write files into a folder, in which each table has its own folder. If Spark gives a task
    up, this raises Spark's own error.

    :param folder: a new folder that driver and workers share.
    :returns: the result of each task, in the order of the tasks.
    """
    job = job._replace(key=secrets.token_bytes(32))
    outcomes = _outcomes(spark, job, folder)
    kept = tuple(rows for each in outcomes for rows in each.kept)
    if kept:
        more = job._replace(units=kept, first=len(job.units))
        outcomes += _outcomes(spark, more, folder)
        remove(join(folder, KEPT))
    return outcomes


def keep_events(spark: SparkSession, job: Job, folder: str) -> tuple[Job, list[TaskOutcome]]:
    """Have units keep their events, and make no rows of them; return the job with the key of the kept events.

    :param folder: a new folder that driver and workers share; the caller removes it when the files are not
        needed any more.
    """
    job = job._replace(key=secrets.token_bytes(32))
    return job, _outcomes(spark, job, folder)


def _outcomes(spark: SparkSession, job: Job, folder: str) -> list[TaskOutcome]:
    count = len(job.units)
    every = spark.range(0, count, 1, count)
    with described(spark, job.words):
        rows = every.mapInArrow(partial(_write, job, folder), _OUTCOME_DDL).collect()
    return [pickle.loads(row.outcome) for row in rows]  # from our own tasks


def wide_tables(spark: SparkSession, job: Job) -> tuple[DataFrame, list[TaskOutcome]]:
    """The tables, which Spark keeps until ``unpersist``.

    :func:`~kdissect.spark.wide_rows.table_in` finds one by its key. Units must keep no events.
    """
    count = len(job.units)
    schema = f"{wide_ddl((each.key, each.table) for each in job.tables)}, `_outcome` struct<outcome:binary>"
    wide = spark.range(0, count, 1, count).mapInArrow(partial(_widen, job), schema).persist()
    with described(spark, job.words):
        told = wide.where("_outcome is not null").select("_outcome.outcome").collect()
    return wide, [pickle.loads(row.outcome) for row in told]


# -- in the tasks -----------------------------------------------------------------------------------


def _write(job: Job, folder: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number in task_numbers(batches):
        task = _task(job, number, folder)
        sinks = {
            at: FileSink(
                *(folder, job.tables[at].key, job.first + number, schema, job.tables[at].epochs),
                is_first=number == 0,
            )
            for at, schema in task.schemas.items()
        }
        try:
            for at, batch in task.batches():
                sinks[at].write(batch)
            written = tuple(file for sink in sinks.values() if (file := sink.close()) is not None)
        except BaseException:
            for sink in sinks.values():
                sink.abandon()
            task.abandon()
            raise
        yield _outcome_batch(task.outcome(written))


def _widen(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number in task_numbers(batches):
        task = _task(job, number, None)
        own = task.schemas
        schemas = [(each.key, own[at]) for at, each in enumerate(job.tables)]
        widener = Widener([*schemas, ("_outcome", _OUTCOME)])
        for at, batch in task.batches():
            yield from widener.widened(at, (batch,))
        yield from widener.widened(len(job.tables), (_outcome_batch(task.outcome(())),))


class _WholeCapture:
    """A capture point, read from beginning to end.

    :ivar names: the names of topic ids that are known at the end. :ivar findings: the changes of findings.
    """

    def __init__(self, unit: Unit, settings: TableSettings, note: Note) -> None:
        self._unit = unit
        self._settings = settings
        self._note = note
        self.names = TopicNames()
        self.findings: list[dict[str, Any]] = []

    def blocks(self) -> Iterator[tuple[Sequence[Item], Iterator[Event]]]:
        """Packets that come together, with their events."""
        reading = last_pass(self._unit.paths, self._settings, self._note)
        self.names = reading.names
        yield from blocks_of(reading, self._settings, self._note)


class _NewTraffic:
    """The new part of a capture point, with the methods of :class:`_WholeCapture`. Its packets become no
    rows."""

    def __init__(self, unit: BatchUnit, settings: TableSettings, note: Note) -> None:
        states, batch, point, judgement = unit.states, unit.batch, unit.point, unit.judgement
        if unit.drained_at is not None:
            self._events = events_of_drain(states, batch, point, settings, unit.drained_at, judgement)
        elif unit.spans is None:
            self._events = events_at_end(states, batch, point, settings, judgement)
        else:
            self._events = events_of_batch(states, batch, point, unit.spans, settings, note, judgement)

    @property
    def names(self) -> TopicNames:
        return self._events.names

    @property
    def findings(self) -> list[dict[str, Any]]:
        return self._events.findings

    def blocks(self) -> Iterator[tuple[Sequence[Item], Iterator[Event]]]:
        yield (), iter(self._events)


class _PassTask:
    """A task of the pass. It makes the rows of some of the wanted tables."""

    def __init__(self, job: Job, number: int, unit: Unit | BatchUnit | RowMaker) -> None:
        self._job = job
        self._begun = time.process_time()
        self._note = Note(job.settings.progress, f"tables-{job.first + number}")
        self._damage: list[Fault] = []
        self._paths = unit.paths if isinstance(unit, Unit) else ()
        self._made_rows: Counter[str] = Counter()
        self._tally = RunCounts()
        self.rows = {
            at: _rows_of(each, unit)
            for at, each in enumerate(job.tables)
            if each.is_of(unit) and not each.is_of_findings
        }
        """The rows of each table of captures that it makes, by the table's index."""
        self._packets = [(at, rows) for at, rows in self.rows.items() if isinstance(rows, PacketRows)]
        self._others = [(at, rows) for at, rows in self.rows.items() if isinstance(rows, PointRows)]
        self._of_findings = [
            at for at, each in enumerate(job.tables) if each.is_of(unit) and each.is_of_findings
        ]
        self._point = unit.point or None
        self._number = unit.batch if isinstance(unit, BatchUnit) else 0

    @property
    def schemas(self) -> dict[int, pa.Schema]:
        """The schema of each table that it makes, without moments."""
        found = {at: rows.schema for at, rows in self.rows.items()}
        return found | {at: arrow_schema(self._job.tables[at].table) for at in self._of_findings}

    def batches(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The record batches of all tables that it makes, with the table's index."""
        with rarely_collected():
            for at, batch in chain(self._made(), self._rest()):
                self._made_rows[self._job.tables[at].key] += batch.num_rows
                yield at, batch
        self._note.write()

    def outcome(self, written: tuple[TaskFile, ...]) -> TaskOutcome:
        """The result of the task."""
        made, cpu_seconds = dict(self._made_rows), time.process_time() - self._begun
        return TaskOutcome(self._note.read, written, self._damage, made, self._tally, cpu_seconds=cpu_seconds)

    def abandon(self) -> None:
        """Remove the files that the task left beside those of tables, after it failed."""

    def _made(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        raise NotImplementedError

    def _rest(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows that still wait in batches, after all events were taken in."""
        for at, each in self.rows.items():
            for batch in each.close():
                yield at, batch

    def _feed_event(self, event: Event) -> Iterator[tuple[int, pa.RecordBatch]]:
        for at, rows in self._others:
            if rows.takes(event):
                for batch in rows.feed(event):
                    yield at, batch

    def _changes(self, findings: list[dict[str, Any]]) -> Iterator[tuple[int, pa.RecordBatch]]:
        for at in self._of_findings:
            batch = change_batch(self._job.tables[at].table, self._point, self._number, findings)
            if batch is not None:
                yield at, batch

    def _report_file(self, event: Event) -> None:
        """Report faults of files."""
        if isinstance(event, Fault) and event.layer == "file":
            self._note.damage += 1
            if len(self._damage) < self._job.settings.limits.rows:
                self._damage.append(named(event, self._paths))

    def _count_event(self, event: Event) -> None:
        """Count what becomes rows."""
        if isinstance(event, Exchange):
            self._note.rows_of(size_of(event))
        if self._job.tallies:
            self._tally = self._tally.plus(_tally_of(event, self._job.settings))


class _Dissecting(_PassTask):
    """A task that reads captures, as its unit says."""

    def __init__(self, job: Job, number: int, unit: Unit | BatchUnit) -> None:
        super().__init__(job, number, unit)
        reads = _WholeCapture if isinstance(unit, Unit) else _NewTraffic
        self._source = reads(unit, job.settings, self._note)  # type: ignore[arg-type]


class _WholePoint(_Dissecting):
    """A task that makes all rows of what it reads, or a share of them."""

    def __init__(self, job: Job, number: int, unit: Unit | BatchUnit) -> None:
        super().__init__(job, number, unit)
        self._share, self._shares = (unit.share, unit.shares) if isinstance(unit, Unit) else (0, 1)

    def _made(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        owners = Shares(self._shares)
        for items, events in self._source.blocks():
            for at, of_packets in self._packets:
                for batch in of_packets.feed(items):
                    yield at, batch
            for event in events:
                is_exchange = isinstance(event, Exchange)
                is_own = (owners.owner(event) if isinstance(event, Exchange) else 0) == self._share
                if is_own:
                    self._report_file(event)
                    self._count_event(event)
                    yield from self._feed_event(event)
                elif is_exchange and self._share == 0:
                    # Whether a connection is shown depends on all of its exchanges.
                    for _, rows in self._others:
                        if rows.name == "connections":
                            rows.takes(event)
        yield from self._changes(self._source.findings)


class _Keeping(_Dissecting):
    """A task that makes the rows of connections, and keeps the events for other tasks to make rows of."""

    def __init__(self, job: Job, number: int, unit: Unit | BatchUnit, folder: str) -> None:
        super().__init__(job, number, unit)
        self._unit = unit
        self._keeper = Keeper(folder, job.key, unit.file_bytes)
        packets = (each for each in job.tables if each.settings.table == "packets")
        self._of_packets = [_packet_rows(each, unit) for each in packets]
        self._kept: tuple[RowMaker, ...] = ()

    def _made(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        unit, keeper = self._unit, self._keeper
        for items, events in self._source.blocks():
            for rows in self._of_packets:
                keeper.add_packets(rows.sources(items))
            for event in events:
                self._report_file(event)
                yield from self._feed_event(event)
                keeper.add(event)
        names = keeper.close(self._source.names)
        self._kept = rows_of(unit.point, keeper.files, names, unit.tasks)
        yield from self._changes(self._source.findings)

    def outcome(self, written: tuple[TaskFile, ...]) -> TaskOutcome:
        return super().outcome(written)._replace(kept=self._kept)

    def abandon(self) -> None:
        self._keeper.abandon()


class _Making(_PassTask):
    """A task that makes rows of events that another task kept."""

    def __init__(self, job: Job, number: int, unit: RowMaker) -> None:
        super().__init__(job, number, unit)
        self._unit = unit

    def _made(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        key, limits = self._job.key, self._job.settings.limits
        names = kept_names(self._unit.names, key)
        for file in self._unit.files:
            for piece in kept_pieces(file, key, names, limits):
                for at, rows in self._packets:
                    for batch in rows.add(piece.packets):
                        yield at, batch
                events = piece.events
                events.reverse()
                while events:  # the decoded values of an event take many times its bytes, so they are dropped
                    event = events.pop()
                    self._count_event(event)
                    yield from self._feed_event(event)


def _tally_of(event: Event, settings: TableSettings) -> RunCounts:
    faults = sum(1 for _ in sources_of("faults", event, settings.shown))
    if isinstance(event, Exchange):
        return RunCounts(1, int(_MISSING.value(event, settings.shown) in NOT_CAPTURED), faults)
    if isinstance(event, Connection):
        return RunCounts(faults=faults, gap_bytes=_GAP_BYTES.value(event, settings.shown) or 0)
    return RunCounts(faults=faults)


def _task(job: Job, number: int, folder: str | None) -> _PassTask:
    """The task with this number.

    :param folder: the folder for files of events that other tasks use.
    """
    unit = job.units[number]
    if isinstance(unit, RowMaker):
        return _Making(job, number, unit)
    if unit.tasks == 1 or folder is None:
        return _WholePoint(job, number, unit)
    return _Keeping(job, number, unit, folder)


def _rows_of(wanted: RequestedTable, unit: Unit | BatchUnit | RowMaker) -> PointRows | PacketRows:
    if wanted.settings.table == "packets":
        return _packet_rows(wanted, unit)
    return PointRows(wanted.table, unit.point, wanted.settings, Choice(wanted.settings))


def _packet_rows(wanted: RequestedTable, unit: Unit | BatchUnit | RowMaker) -> PacketRows:
    at_point = table_at(wanted.table, unit.point, wanted.settings.head)
    shares = (unit.share, unit.shares) if isinstance(unit, Unit) else ()
    return PacketRows(at_point, wanted.settings.limits, *shares)


def _outcome_batch(outcome: TaskOutcome) -> pa.RecordBatch:
    return pa.record_batch([pa.array([pickle.dumps(outcome)], pa.binary())], schema=_OUTCOME)
