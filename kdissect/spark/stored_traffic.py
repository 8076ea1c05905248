"""Rows of the table ``exchanges`` → rows of the statistic ``traffic``.

The rows are counted by the fold that counts exchanges: tasks count their rows, and one adds what they
counted, as for captures (:mod:`kdissect.spark.folds`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import pyarrow as pa

from kdissect.analysis.declared import column
from kdissect.analysis.part import Part
from kdissect.analysis.together import Together
from kdissect.analysis.traffic import Read, Traffic
from kdissect.limits import Limits
from kdissect.present.columns import Table
from kdissect.present.statistics import table_of
from kdissect.spark.fold_question import FoldRows
from kdissect.spark.folds import PARTS_DDL, CountedPoints, added, part_batch
from kdissect.spark.settings import TableSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class StoredExchange(NamedTuple):
    """What a row has that is counted; :class:`~kdissect.analysis.traffic.ExchangeColumns`."""

    number: int
    api: str | None
    api_version: int | None
    broker: str
    client: str
    client_id: str | None
    principal: str | None
    groups: Sequence[str] | None
    transactional_ids: Sequence[str] | None
    topics: Sequence[str]
    error: str | None
    error_class: str | None
    request_size: int | None
    response_size: int | None
    latency_ns: int | None
    software: str | None
    """That of its connection."""
    group: str | None
    member: str | None
    """Those that its request names beside its other fields."""
    begun_ns: int


_MORE: Mapping[str, Read] = {
    "software": attrgetter("software"),
    "group": attrgetter("group"),
    "member": attrgetter("member"),
}


class StoredTraffic(Traffic):
    """The statistic of rows. They may be told apart by more: by what their connections tell, and by fields
    of their requests."""

    columns = (
        column("software", "text", "software of the client, as its connection tells it"),
        column("group", "text", "group that the request names"),
        column("member", "text", "member that the request names"),
        *Traffic.columns,
    )
    groupings = (*Traffic.groupings, *_MORE)
    reads: ClassVar[Mapping[str, Read]] = {**Traffic.reads, **_MORE}


@dataclass(frozen=True)
class TrafficQuestion:
    """Traffic, told apart in several ways.

    :param ways: groupings of each.
    """

    ways: tuple[tuple[str, ...], ...]
    limits: Limits

    @property
    def tables(self) -> Sequence[Table]:
        return [table_of(StoredTraffic) for _ in self.ways]

    def new(self) -> Together:
        return Together([StoredTraffic(self.limits, by) for by in self.ways])

    def rows(self, whole: Together) -> Sequence[FoldRows]:
        return [FoldRows(each.result(), each.left_out) for each in whole.statistics]


def traffic_of(exchanges: DataFrame, ways: Sequence[tuple[str, ...]], limits: Limits) -> CountedPoints:
    """The rows of ``traffic``, told apart in several ways; the exchanges are read once.

    :param exchanges: rows of the table, of any number of captures, with the further columns of a
        :class:`StoredExchange`.
    :param ways: groupings of each.
    """
    from pyspark.sql import functions as f

    begun = f.coalesce("request_time_ns", "response_start_ns").alias("begun_ns")
    columns = [name for name in StoredExchange._fields if name != "begun_ns"]
    question = TrafficQuestion(tuple(ways), limits)
    settings = TableSettings(limits=limits)
    parts = exchanges.select(*columns, begun).mapInArrow(partial(_count, question), PARTS_DDL)
    return added(parts, ("",), settings, question)


def _count(question: TrafficQuestion, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    together = question.new()
    folds = [each for each in together.statistics if isinstance(each, StoredTraffic)]
    for batch in batches:
        for values in zip(*(each.to_pylist() for each in batch.columns), strict=True):
            row = StoredExchange._make(values)
            for fold in folds:
                fold.count(row)
    yield part_batch(0, number, Part(together), [])
