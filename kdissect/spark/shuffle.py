"""Captures → a table, by a packed shuffle: for many tasks, of which none reads everything.

    survey   every part of every file is read once: how many packets it has, whether it is sound
    pack     every part again: its segments, many in one row, go to the bucket of their connection
    facts    every bucket, as in :mod:`kdissect.spark.buckets`
    rows     every bucket again, with the numbers

Segments travel, so it costs more than buckets where all can read everything. It pays where there are too many
tasks for each to read the captures. It gives the same rows, or it is not done. The survey may find files that
overlap in time, a clock that goes back, keys, or fragments that never came together. Then a connection
depends on the packets of others, and buckets make the table.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kdissect.capture.segments import SegmentReader
from kdissect.dissect import Event
from kdissect.model import CaptureError, Packet, Secrets, Segment
from kdissect.spark.choice import Choice
from kdissect.spark.facts import Thing, events_of, facts_of
from kdissect.spark.ordering import FACTS_DDL, Names, fact_batches, numbered, told
from kdissect.spark.packing import PACKED_DDL, Place, pack, task_numbers, unpacked
from kdissect.spark.plan import CapturePoint
from kdissect.spark.progress import Note
from kdissect.spark.rows import batches_of
from kdissect.spark.settings import Settings
from kdissect.spark.splits import Part, PartReader, parts_of
from kdissect.spark.tables import ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SURVEY = pa.schema(
    [
        ("part", pa.int32()),
        ("packets", pa.int64()),
        ("first_ns", pa.int64()),
        ("last_ns", pa.int64()),
        ("is_ordered", pa.bool_()),
        ("is_sound", pa.bool_()),
        ("is_complete", pa.bool_()),
    ]
)
_SURVEY_DDL = (
    "part int, packets bigint, first_ns bigint, last_ns bigint, "
    "is_ordered boolean, is_sound boolean, is_complete boolean"
)
_HEADERS = 54
"""About what a packet had beside its payload."""


def shuffled(
    spark: SparkSession,
    settings: Settings,
    points: Sequence[CapturePoint],
    counts: Sequence[int],
    split_bytes: int,
) -> DataFrame | None:
    """A table; None where something in the captures forbids it. All but the last step has run then.

    :param counts: the buckets of each point.
    :param split_bytes: about how large the parts of large files are.
    """
    Choice(settings)  # a filter that is none is told before any task starts
    places = _places(spark, settings, points, counts, split_bytes)
    if places is None:
        return None
    tasks = sum(counts)
    parts = spark.range(0, len(places), 1, len(places))
    packed = parts.mapInArrow(partial(pack, tuple(places), settings), PACKED_DDL)
    packed = packed.repartitionById(tasks, "task").sortWithinPartitions("task", "packet", "kind").persist()
    of_tasks = [at for at, count in enumerate(counts) for _ in range(count)]
    facts = packed.mapInArrow(partial(_tell, of_tasks, settings), FACTS_DDL).persist()
    known = told(facts, len(points))
    if not all(each.is_within(settings) and (settings.two_pass or each.is_prompt) for each in known):
        facts.unpersist()
        packed.unpersist()
        return None
    both = packed.unionByName(numbered(facts), allowMissingColumns=True).repartitionById(tasks, "task")
    ordered = both.sortWithinPartitions("task", "packet", "kind", "number")
    table = settings.full_table(settings.table)
    of_points = [(points[at].name, known[at].names) for at in of_tasks]
    return ordered.mapInArrow(partial(_dissect, of_points, settings), ddl(table))


def _places(
    spark: SparkSession,
    settings: Settings,
    points: Sequence[CapturePoint],
    counts: Sequence[int],
    split_bytes: int,
) -> list[Place] | None:
    """All parts in order; None where files overlap in time or the like."""
    files = [
        (at, parts_of(file.path, file.size, settings.limits, split_bytes))
        for at, point in enumerate(points)
        for file in point.files
    ]
    surveys = _survey(spark, settings, [part for _, parts in files for part in parts])
    unsound = {part.path for part, row in surveys.items() if part.end is not None and not row["is_sound"]}
    if unsound:
        files = [(at, [Part(parts[0].path)] if parts[0].path in unsound else parts) for at, parts in files]
        surveys |= _survey(spark, settings, [Part(path) for path in unsound])
    places: list[Place] = []
    for at in range(len(points)):
        own = [[(part, surveys[part]) for part in parts] for of, parts in files if of == at]
        # As Capture puts them: those without packets first, then by their first packets.
        own.sort(key=lambda parts: (parts[0][1]["first_ns"] is not None, parts[0][1]["first_ns"] or 0))
        base = 0
        last_ns: int | None = None
        for part, row in chain.from_iterable(own):
            if not (row["is_ordered"] and row["is_complete"]):
                return None
            if last_ns is not None and row["first_ns"] is not None and row["first_ns"] < last_ns:
                return None
            last_ns = last_ns if row["last_ns"] is None else row["last_ns"]
            places.append(Place(part, at, base, sum(counts[:at]), counts[at], len(own) > 1))
            base += row["packets"]
    return places


def _survey(spark: SparkSession, settings: Settings, parts: list[Part]) -> dict[Part, dict[str, Any]]:
    every = spark.range(0, len(parts), 1, len(parts))
    rows = every.mapInArrow(partial(_survey_parts, tuple(parts), settings), _SURVEY_DDL).collect()
    return {parts[row.part]: row.asDict() for row in rows}


def _survey_parts(
    parts: Sequence[Part], settings: Settings, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for number in task_numbers(batches):
        reader, segments = PartReader(parts[number], settings.limits), SegmentReader(settings.limits)
        packets, first_ns, last_ns, is_ordered, has_keys = 0, None, None, True, False
        note = Note(settings.progress, f"survey-{number}")
        try:
            for item in reader:
                if isinstance(item, Packet):
                    note.packet(len(item.data))
                    packets += 1
                    first_ns = item.timestamp_ns if first_ns is None else first_ns
                    is_ordered = is_ordered and (last_ns is None or item.timestamp_ns >= last_ns)
                    last_ns = item.timestamp_ns
                    segments.feed(item)
                has_keys = has_keys or isinstance(item, Secrets)
        except CaptureError:
            pass  # packing tells it
        note.write()
        row = [number, packets, first_ns, last_ns, is_ordered, reader.is_sound]
        row.append(not segments.close() and not has_keys)
        arrays = [pa.array([value], field.type) for value, field in zip(row, _SURVEY, strict=True)]
        yield pa.record_batch(arrays, schema=_SURVEY)


# -- dissecting ---------------------------------------------------------------------------------------


def _tell(
    points: Sequence[int], settings: Settings, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for task, own in groupby(_rows(batches), lambda row: row[0]):
        note = Note(settings.progress, f"facts-{task}")
        things = chain.from_iterable(unpacked(kind, packet, data) for _, packet, kind, data in own)
        yield from fact_batches(facts_of(_noted(things, note), settings), task, points[task])
        note.write()


def _dissect(
    points: Sequence[tuple[str, Names]], settings: Settings, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    full = settings.full_table(settings.table)
    for task, own in groupby(_rows(batches), lambda row: row[0]):
        point, names = points[task]
        note = Note(settings.progress, f"{settings.table}-{task}")
        numbers: deque[tuple[int, int, int]] = deque()
        things = _noted(_things(own, numbers), note)
        events: Iterator[Event] = events_of(things, settings, _taken(numbers), names)
        yield from batches_of(events, full, point, settings, Choice(settings), note)


def _noted(things: Iterable[Thing], note: Note) -> Iterator[Thing]:
    for thing in things:
        if isinstance(thing[1], Segment):
            note.packet(thing[1].length + _HEADERS)
        yield thing


def _things(rows: Iterable[Any], numbers: deque[tuple[int, int, int]]) -> Iterator[Thing]:
    """A bucket's things, from rows of task, packet, kind, data and number; the numbers that they need are
    taken in before them."""
    waiting: tuple[int, int, bytes] | None = None
    for _, packet, kind, data, number in rows:
        if data is None:
            assert number is not None
            numbers.append((kind, packet, number))
            continue
        if waiting is not None:
            yield from unpacked(*waiting)
        waiting = (kind, packet, data)
    if waiting is not None:
        yield from unpacked(*waiting)


def _taken(numbers: deque[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    while numbers:
        yield numbers.popleft()


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch), strict=True)
