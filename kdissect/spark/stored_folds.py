"""Rows of the table ``exchanges`` → counts of folds.

Tasks count their rows, and one task adds the counts, as for captures (:mod:`kdissect.spark.folds`).

The group and the member of a request, and the names of topic ids, are read from the JSON of messages. The
definitions say which messages contain names. A capture with only ids gets the names from another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from kdissect.analysis.chapters import Chapter
from kdissect.analysis.fold_set import Together
from kdissect.analysis.part import ChapterCounts, Part
from kdissect.lazy import Later
from kdissect.limits import Limits
from kdissect.present.columns import Table
from kdissect.present.statistics import table_of
from kdissect.protocol import apis
from kdissect.protocol.entities import GROUP
from kdissect.protocol.schema import message_struct
from kdissect.protocol.topics import can_teach, taught_topics
from kdissect.spark.copies import SEEN_AT
from kdissect.spark.fold_question import FoldRows
from kdissect.spark.folds import PARTS_DDL, CountedPoints, added, part_batch
from kdissect.spark.row_fold import COLUMNS, RowFold, SeenCopy, StoredExchange
from kdissect.spark.settings import TableSettings
from kdissect.spark.stored_groups import StoredGroups
from kdissect.spark.stored_points import StoredPoints
from kdissect.spark.stored_traffic import StoredTraffic
from kdissect.spark.stored_versions import StoredVersions
from kdissect.spark.tables import POINT, body_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
else:
    pa = Later("pyarrow")

_KINDS = ("request", "response")
_FOLDS: Mapping[str, type[RowFold]] = {
    each.name: each for each in (StoredTraffic, StoredGroups, StoredPoints, StoredVersions)
}


@dataclass(frozen=True)
class RowQuestion:
    """Statistics of rows: the name of each, with groupings after commas."""

    texts: tuple[str, ...]
    limits: Limits

    @property
    def tables(self) -> Sequence[Table]:
        return [table_of(type(each)) for each in self.folds()]

    def folds(self) -> list[RowFold]:
        """New folds, which have counted nothing yet."""
        asked = (text.split(",") for text in self.texts)
        return [_FOLDS[name].from_option(self.limits, tuple(how)) for name, *how in asked]

    def new(self) -> Together:
        return Together(self.folds())

    def rows(self, whole: Together) -> Sequence[FoldRows]:
        return [FoldRows(each.result(), each.left_out) for each in whole.statistics]


def counted_rows(exchanges: DataFrame, texts: Sequence[str], limits: Limits) -> CountedPoints:
    """The rows of several statistics. The exchanges are read once.

    :param exchanges: rows of the table, of any number of captures. Beside its columns they have ``software``,
        from their connections, and the copies of :func:`~kdissect.spark.copies.merged`.
    :param texts: the requested statistics, such as ``traffic,topic``.
    """
    from pyspark.sql import functions as f

    question = RowQuestion(tuple(texts), limits)
    folds = question.folds()
    api_key, nothing = f.col("api_key"), f.lit(None).cast("string")
    # Messages are long. A task gets only those that it needs.
    asked = nothing
    if any(each.reads_requests for each in folds):
        asked = f.when(f.contains("request", f.lit(f'"{GROUP}"')), f.col("request"))
    copies = f.array()
    if any(each.reads_copies for each in folds):
        copies = f.transform(SEEN_AT, lambda copy: f.struct(copy[POINT], copy["latency_ns"]))
    reads_names = any(each.reads_names for each in folds)
    teaching = (
        (f.when(api_key.isin(_teachers(kind)), f.col(kind)) if reads_names else nothing).alias(f"told_{kind}")
        for kind in _KINDS
    )
    begun = f.coalesce("request_time_ns", "response_start_ns")
    # Each column has a name, because a table of a catalog cannot have two columns with the same name.
    made = begun.alias("begun"), asked.alias("asked"), copies.alias("copies")
    rows = exchanges.select(*COLUMNS, *made, api_key, *teaching)
    parts = rows.mapInArrow(partial(_count_rows, question), PARTS_DDL)
    return added(parts, ("",), TableSettings(limits=limits), question)


def _teachers(kind: str) -> list[int]:
    """The APIs whose messages of a kind contain the names of topic ids."""
    return [
        key
        for key in apis.api_keys()
        if any(can_teach(message_struct(key, version, kind)) for version in apis.versions(key))
    ]


def _count_rows(question: RowQuestion, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    together = question.new()
    folds = [each for each in together.statistics if isinstance(each, RowFold)]
    for batch in batches:
        for *values, asked, copies, api_key, request, response in zip(
            *(each.to_pylist() for each in batch.columns), strict=True
        ):
            seen = [SeenCopy(*copy.values()) for copy in copies]
            row = StoredExchange._make((*values, body_of(asked), seen))
            for fold in folds:
                fold.count(row)
            for kind, text in zip(_KINDS, (request, response), strict=True):
                for topic_id, name in _taught(api_key, row.api_version, kind, text):
                    for fold in folds:
                        fold.learn(topic_id, name)
    yield part_batch(0, number, Part([ChapterCounts(Chapter(number), together, [])]), [])


def _taught(api_key: int, version: int | None, kind: str, text: str | None) -> Iterable[tuple[str, str]]:
    """The topic ids and names in a message."""
    if text is None or version not in apis.versions(api_key):
        return ()
    struct = message_struct(api_key, version, kind)
    return taught_topics(struct, body_of(text)) if can_teach(struct) else ()
