"""Traffic of each topic and partition: batches, records, bytes, codecs, errors, in each direction.

- ``produce``: record sets of Produce requests
- ``fetch``: of Fetch responses to consumers
- ``replicate``: of Fetch responses to brokers and controllers, which follow the partition
- ``share``: of ShareFetch responses
- ``snapshot``: of FetchSnapshot responses
"""

from __future__ import annotations

from typing import Self

from kdissect.analysis.batches import Batches
from kdissect.analysis.clusters import Clusters
from kdissect.analysis.counters import Grades, Span
from kdissect.analysis.declared import (
    BYTES,
    EXCHANGE,
    PARTITION_COLUMN,
    TOPIC_CLUSTER_COLUMN,
    TOPIC_COLUMN,
    column,
    first_and_last,
    graded_errors,
)
from kdissect.analysis.fold import OneTable, Row
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.shared_parts import SharedSet, errors_of, record_sets
from kdissect.analysis.versions import replica_id_of
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Request, Token

DIRECTIONS = {"Produce": "produce", "Fetch": "fetch", "ShareFetch": "share", "FetchSnapshot": "snapshot"}


class _PartitionTraffic:
    __slots__ = ("batches", "corrupt", "errors", "exchanges", "span")

    def __init__(self) -> None:
        self.exchanges = 0
        self.batches = Batches()
        self.corrupt = Span()
        """Exchanges with damaged records."""
        self.errors = Grades()
        self.span = Span()

    def add(self, exchange: Exchange, found: SharedSet) -> None:
        """Count a record set of an exchange."""
        batches = found.batches
        self.batches.merge(batches)
        if batches.corrupt:
            if found.place.message.is_cut:  # then the capture lacks bytes, not the log
                self.batches.corrupt -= batches.corrupt
            else:
                self.corrupt.add(exchange._begun(), exchange.number)

    def merge(self, later: _PartitionTraffic) -> None:
        self.exchanges += later.exchanges
        self.batches.merge(later.batches)
        self.corrupt.merge(later.corrupt)
        self.errors.merge(later.errors)
        self.span.merge(later.span)


class Topics(OneTable[tuple[Topic, str, int | None, str], _PartitionTraffic]):
    """The statistic ``topics``."""

    apis = frozenset(DIRECTIONS)
    name = "topics"
    about = "per partition and direction: batches, records, bytes, rates, codecs, errors"
    columns = (
        TOPIC_COLUMN,
        TOPIC_CLUSTER_COLUMN,
        PARTITION_COLUMN,
        column(
            "direction",
            "text",
            "produce, fetch (by consumers), replicate (by brokers), share or snapshot",
        ),
        column(
            "exchanges",
            "int64",
            "exchanges with records or errors of the partition, including empty record sets",
        ),
        column("batches", "int64", "whole batches of records; in magic 0 and 1, outer messages"),
        column("records", "int64", "records in them, as their headers announce"),
        column("bytes", "int64", "bytes of the record sets as sent, compressed or not"),
        column("records_per_s", "float64", "records a second between the first and the last exchange"),
        column("bytes_per_s", "float64", "bytes per second between the first and the last exchange"),
        column("batch_bytes_min", "int64", "the smallest batch", unit=BYTES),
        column("batch_bytes_mean", "int64", "the mean batch, rounded down", unit=BYTES),
        column("batch_bytes_max", "int64", "the largest batch", unit=BYTES),
        column("codecs", "texts", "codecs that occur: none, gzip, snappy, lz4, zstd"),
        column(
            "control_batches", "int64", "batches of control records, which are not counted above", rare=True
        ),
        column(
            "partial_batches",
            "int64",
            "batches that the end of a record set cuts; not counted above",
            rare=True,
        ),
        column(
            "corrupt_batches",
            "int64",
            "batches whose checksum is wrong, and sets whose rest cannot be read",
            rare=True,
        ),
        column(
            "corrupt_exchanges",
            "int64s",
            "the first and the last exchange with corrupt batches",
            unit=EXCHANGE,
        ),
        column(
            "uncounted_batches", "int64", "batches that do not say how many records they contain", rare=True
        ),
        *graded_errors("error codes of the partition in responses"),
        *first_and_last("exchange"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(_PartitionTraffic, limits)
        self.latest.keep_clusters(Clusters(self.room))
        self._labels = Labels(self.latest, limits)

    def _exchange(self, exchange: Exchange) -> None:
        direction = DIRECTIONS.get(exchange.api or "")
        if direction is None:
            return
        if direction == "fetch" and replica_id(exchange) >= 0:
            direction = "replicate"
        broker = self.latest.clusters.at(exchange)
        here: dict[int, _PartitionTraffic] = {}
        for found in record_sets(exchange, self.limits):
            place = found.place
            topic = self._labels.topic(place.topic, place.topic_id)
            row = self._row(exchange, (topic, broker, place.partition, direction), here)
            if row is not None and place.data:
                row.add(exchange, found)
        for error in errors_of(exchange) if exchange.error is not None else ():
            if error.partition is not None:
                topic = self._labels.topic(error.topic, error.topic_id)
                row = self._row(exchange, (topic, broker, error.partition, direction), here)
                if row is not None:
                    row.errors.add(error.grave)

    def _row(
        self, exchange: Exchange, key: tuple[Topic, str, int | None, str], here: dict[int, _PartitionTraffic]
    ) -> _PartitionTraffic | None:
        """The row of a key, with the exchange counted once; ``here`` has the rows that already counted it."""
        row = self._rows.row(key)
        if row is not None and id(row) not in here:
            here[id(row)] = row
            row.exchanges += 1
            row.span.add(exchange.begun_ns, exchange.number)
        return row

    def merge(self, later: Self) -> None:
        self._labels.merge(later._labels)
        super().merge(later)

    def result(self) -> list[Row]:
        rows = self._labels.by_cluster(self._rows.rows, _PartitionTraffic)
        return [_result(key, row) for key, row in sorted(rows.items(), key=lambda each: _order(each[0]))]


_replica_of: tuple[Request | Token | None, int] = (None, -1)
"""The request of the last call, and its id: many statistics ask for the same one. One value, so that no
thread sees a mix of two."""


def replica_id(exchange: Exchange) -> int:
    """The id of a broker or controller that fetches as a follower. It is -1 for a consumer, and if the
    request was not captured."""
    global _replica_of  # noqa: PLW0603 - a memory of one
    request, shared = exchange.request, exchange.shared
    if request is None:
        return -1
    if shared is not None:
        told: int | None = shared.replica_id
        if told is None:
            told = shared.replica_id = replica_id_of(request.body())
        return told
    of, found = _replica_of
    if of is not request:
        found = replica_id_of(request.body())
        _replica_of = request, found
    return found


def _order(key: tuple[int | str | None, ...]) -> tuple[str, int, str, str]:
    topic, cluster, partition, direction = key
    return str(topic or ""), partition if isinstance(partition, int) else -1, str(direction), str(cluster)


def _result(key: tuple[int | str | None, ...], row: _PartitionTraffic) -> Row:
    topic, cluster, partition, direction = key
    found, span = row.batches, row.span
    return {
        "topic": topic,
        "cluster_id": cluster or None,
        "partition": partition,
        "direction": direction,
        "exchanges": row.exchanges,
        "batches": found.batches,
        "records": found.records,
        "bytes": found.set_bytes,
        "records_per_s": span.rate(found.records),
        "bytes_per_s": span.rate(found.set_bytes),
        "batch_bytes_min": found.smallest,
        "batch_bytes_mean": found.batch_bytes // found.batches if found.batches else None,
        "batch_bytes_max": found.largest,
        "codecs": sorted(found.codecs),
        "control_batches": found.control,
        "partial_batches": found.partial,
        "corrupt_batches": found.corrupt,
        "corrupt_exchanges": row.corrupt.numbers,
        "uncounted_batches": found.uncounted,
        **row.errors.columns(),
        "first_ns": span.first_ns,
        "last_ns": span.last_ns,
    }
