"""Rows of the table ``exchanges`` → rows of the statistic ``traffic``.

The rows are counted by the fold that counts exchanges: tasks count their rows, and one adds what they
counted, as for captures (:mod:`kdissect.spark.folds`).

The group and the member of a request, and the names of topic ids, are read from the JSON of messages. The
definitions say which messages tell names. A capture that has ids only gets the names that another one tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from kdissect.analysis.declared import column
from kdissect.analysis.fold import Row
from kdissect.analysis.part import Part
from kdissect.analysis.together import Together
from kdissect.analysis.traffic import Read, Traffic
from kdissect.later import Later
from kdissect.limits import DEFAULTS, Limits
from kdissect.present.columns import Table
from kdissect.present.statistics import table_of
from kdissect.protocol import apis
from kdissect.protocol.entities import GROUP
from kdissect.protocol.schema import message_struct
from kdissect.protocol.topics import can_teach, taught_topics
from kdissect.spark.fold_question import FoldRows
from kdissect.spark.folds import PARTS_DDL, CountedPoints, added, part_batch
from kdissect.spark.settings import TableSettings
from kdissect.spark.tables import body_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
else:
    pa = Later("pyarrow")

_KINDS = ("request", "response")


class StoredExchange(NamedTuple):
    """The values of a row that are counted; :class:`~kdissect.analysis.traffic.ExchangeColumns`."""

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
    begun_ns: int
    """When it began, ns since the epoch."""
    asked: Mapping[str, Any]
    """The body of its request; empty unless rows are told apart by what it says."""

    @property
    def group(self) -> str | None:
        """The group that the request is about."""
        return _text(self.asked.get(GROUP))

    @property
    def member(self) -> str | None:
        """The member that the request says it is from."""
        return _text(self.asked.get("memberId")) or None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


_MORE: Mapping[str, Read] = {name: attrgetter(name) for name in ("software", "group", "member")}
_OF_REQUESTS = ("group", "member")
"""What the request has to be read for."""


class StoredTraffic(Traffic):
    """The statistic of rows. It can group by more: by facts of their connections, and by fields of their
    requests. A topic has its name if any of the rows tells it."""

    columns = (
        column("software", "text", "software of the client, as its connection tells it"),
        column("group", "text", "group that the request names"),
        column("member", "text", "member that the request names"),
        *Traffic.columns,
    )
    groupings = (*Traffic.groupings, *_MORE)
    reads: ClassVar[Mapping[str, Read]] = {**Traffic.reads, **_MORE}

    def __init__(self, limits: Limits = DEFAULTS, by: tuple[str, ...] = ()) -> None:
        super().__init__(limits, by)
        self._names: dict[str, str] = {}
        """Of topic ids; of several, the first in the alphabet, as rows have no order."""

    @property
    def needs_names(self) -> bool:
        """Whether topics are in its rows."""
        return self._by_topic or "topics" in self._asked

    def learn(self, topic_id: str, name: str) -> None:
        """A row tells the name of a topic id. Beyond the limit ``rows``, ids keep no name."""
        known = self._names.get(topic_id)
        if known is None:
            if len(self._names) < self.limits.rows:
                self._names[topic_id] = name
        elif name < known:
            self._names[topic_id] = name

    def merge(self, later: Self) -> None:
        """Add what was counted of other rows, and the names that they told."""
        super().merge(later)
        for topic_id, name in later._names.items():
            self.learn(topic_id, name)

    def result(self) -> list[Row]:
        """The rows of the statistic, with names in place of topic ids where they are known."""
        rows = self._rows.rows
        for key in [*rows] if self._names and self.needs_names else ():
            # The API comes first, topic and layer last, between them what is read of an exchange.
            named = list(key)
            if self._by_topic:
                named[-2] = self._names.get(str(key[-2]), key[-2])
            if "topics" in self._asked:
                at = 1 + self._asked.index("topics")
                named[at] = ", ".join(self._names.get(each, each) for each in str(key[at]).split(", "))
            if tuple(named) != key:
                row = rows.pop(key)
                same = rows.setdefault(tuple(named), row)
                if same is not row:
                    same.merge(row)
        return super().result()


@dataclass(frozen=True)
class TrafficQuestion:
    """Traffic, grouped in several ways.

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
    """The rows of ``traffic``, grouped in several ways. The exchanges are read once.

    :param exchanges: rows of the table, of any number of captures, with the column ``software`` of their
        connections beside its own.
    :param ways: groupings of each.
    """
    from pyspark.sql import functions as f

    question = TrafficQuestion(tuple(ways), limits)
    api_key, nothing = f.col("api_key"), f.lit(None).cast("string")
    # Messages are long. A task gets only those that it reads something from.
    asked = nothing
    if any(name in by for by in ways for name in _OF_REQUESTS):
        asked = f.when(f.contains("request", f.lit(f'"{GROUP}"')), f.col("request"))
    needs_names = any(fold.needs_names for fold in _folds(question.new()))
    teaching = (
        (f.when(api_key.isin(_teachers(kind)), f.col(kind)) if needs_names else nothing).alias(f"told_{kind}")
        for kind in _KINDS
    )
    begun = f.coalesce("request_time_ns", "response_start_ns")
    # Each with a name: a table of a catalog has none of two columns that are called alike.
    asked, begun = asked.alias("asked"), begun.alias("begun")
    rows = exchanges.select(*StoredExchange._fields[:-2], begun, asked, api_key, *teaching)
    parts = rows.mapInArrow(partial(_count, question), PARTS_DDL)
    return added(parts, ("",), TableSettings(limits=limits), question)


def _teachers(kind: str) -> list[int]:
    """The APIs whose messages of a kind tell the names of topic ids."""
    return [
        key
        for key in apis.api_keys()
        if any(can_teach(message_struct(key, version, kind)) for version in apis.versions(key))
    ]


def _folds(together: Together) -> list[StoredTraffic]:
    return [each for each in together.statistics if isinstance(each, StoredTraffic)]


def _count(question: TrafficQuestion, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    together = question.new()
    folds = _folds(together)
    for batch in batches:
        for *values, asked, api_key, request, response in zip(
            *(each.to_pylist() for each in batch.columns), strict=True
        ):
            row = StoredExchange._make((*values, body_of(asked)))
            for fold in folds:
                fold.count(row)
            for kind, text in zip(_KINDS, (request, response), strict=True):
                for topic_id, name in _taught(api_key, row.api_version, kind, text):
                    for fold in folds:
                        fold.learn(topic_id, name)
    yield part_batch(0, number, Part(together), [])


def _taught(api_key: int, version: int | None, kind: str, text: str | None) -> Iterable[tuple[str, str]]:
    """Topic ids and their names that a message tells."""
    if text is None or version not in apis.versions(api_key):
        return ()
    struct = message_struct(api_key, version, kind)
    return taught_topics(struct, body_of(text)) if can_teach(struct) else ()
