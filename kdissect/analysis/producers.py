"""Producers: the batches of each to each partition, their form, and those sent again, by the headers of
batches.

A row is a producer, by its producer id or, without one, by client id and address, and a partition.
:mod:`kdissect.analysis.resends` finds the batches that were sent again. No record is unpacked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Self

from kdissect.analysis.clusters import Clusters
from kdissect.analysis.counters import Span
from kdissect.analysis.declared import (
    BYTES,
    CLIENT_ADDRESS_COLUMN,
    CLIENT_ID_COLUMN,
    DURATION,
    EXCHANGE,
    PARTITION_COLUMN,
    TOPIC_CLUSTER_COLUMN,
    TOPIC_COLUMN,
    column,
    first_and_last,
    graded_errors,
)
from kdissect.analysis.fetched_codecs import NOTHING_FETCHED, FetchedWays, as_fetched, fetched_ways
from kdissect.analysis.fold import Batched, OneTable, Row
from kdissect.analysis.labels import Labels
from kdissect.analysis.production import FetchedCodecs, KeptBatches, ProducerKey, Production, take_in
from kdissect.analysis.resends import (
    ACKS_0,
    CODEC,
    CONNECTION,
    OFFSET,
    WIDTH,
    Account,
    SentBatch,
    account_of,
    may_be_again,
    unpacked,
)
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.record.compression import CODECS
from kdissect.session.conversation import Connection


class Producers(Batched, OneTable[ProducerKey, Production]):
    """The statistic ``producers``."""

    apis = frozenset(("Produce", "Fetch"))
    name = "producers"
    about = "batches, order, resends, acks, codecs, clocks of each producer and partition"
    row_bytes = 6_000
    columns = (
        column("producer_id", "int64", "the producer id; null without idempotence"),
        column("producer_epoch", "int16", "its last epoch"),
        CLIENT_ID_COLUMN,
        CLIENT_ADDRESS_COLUMN,
        TOPIC_COLUMN,
        TOPIC_CLUSTER_COLUMN,
        PARTITION_COLUMN,
        column("requests", "int64", "Produce requests"),
        column("batches", "int64", "batches in these requests, including those sent again"),
        column("records", "int64", "records, as the headers of the batches announce"),
        column("bytes", "int64", "bytes of the batches"),
        column("records_per_batch", "float64", "mean"),
        column("bytes_per_record", "float64", "mean"),
        column("records_p50", "int64", "median number of records in a batch"),
        column("bytes_p50", "int64", "median size of a batch", unit=BYTES),
        column("batch_bytes_max", "int64", "the largest batch", unit=BYTES),
        column("first_sequence", "int32", "sequence number of the first batch; null without a producer id"),
        column("last_sequence", "int32", "sequence number of the last batch"),
        column("epochs", "int32", "number of different epochs", rare=True),
        column("transactional", "bool", "whether all batches belong to transactions"),
        column("resent", "int64", "batches that were sent again", rare=True, kept=True),
        column(
            "resent_appended",
            "int64",
            "records that are in the log twice because of that",
            rare=True,
            kept=True,
        ),
        column(
            "absorbed",
            "int64",
            "batches sent again that the broker recognised and did not append",
            rare=True,
            kept=True,
        ),
        column(
            "unanswered",
            "int64",
            "batches sent again to a broker whose connection ended before it answered",
            rare=True,
            kept=True,
        ),
        column(
            "gaps",
            "int64",
            "gaps in the sequence numbers; null if bytes of the connection were not captured",
            rare=True,
            kept=True,
        ),
        column("lost_sequences", "int64", "sequence numbers that are missing in these gaps", rare=True),
        column("overtaken", "int64", "batches that a retry moved behind later batches", rare=True, kept=True),
        column(
            "given_up", "int64", "batches that were sent again and never acknowledged", rare=True, kept=True
        ),
        column(
            "tried_ns", "int64", "the longest time for which the client tried to send such a batch", rare=True
        ),
        column("acks", "texts", "acks of the requests: 0, 1, all"),
        column("codecs", "texts", "codecs of the produced batches: none, gzip, snappy, lz4, zstd"),
        column("uncompressed_bytes", "int64", "bytes of uncompressed batches"),
        column(
            "compressible_to",
            "float64",
            "size of a sample of them after zlib (level 1): 0.3 means 30 %; null without a sample",
        ),
        column("ratio", "float64", "compressed to uncompressed bytes, in a sample of the compressed batches"),
        column(
            "codecs_fetched", "texts", "codecs of the same offsets when consumers and followers fetched them"
        ),
        column("magic", "int16", "lowest record format (magic) of the produced batches"),
        column("magic_fetched", "int16", "record format of the same offsets when they were fetched"),
        column("recompressed", "int64", "batches that were fetched with another codec", rare=True, kept=True),
        column("converted", "int64", "batches that were fetched with another magic", rare=True, kept=True),
        column(
            "linger_p50_ns",
            "int64",
            "median time from the timestamp of a batch's first record to its request",
            unit=DURATION,
        ),
        column("linger_max_ns", "int64", "the longest such time", unit=DURATION),
        column(
            "skew_min_ms",
            "int64",
            "smallest difference between a batch's latest timestamp and the packet's time, ms",
        ),
        column(
            "skew_max_ms",
            "int64",
            "largest such difference, ms; above 0 the timestamp is later than the packet",
        ),
        column(
            "ahead",
            "int64",
            "batches with timestamps more than 5 s later than the packet",
            rare=True,
            kept=True,
        ),
        column(
            "set_back_ns",
            "int64",
            "how far the clock of the capture went back between two of the requests; null without such "
            "timestamps",
            unit=DURATION,
        ),
        *graded_errors("error codes of the partition in responses"),
        column("error_codes", "texts", "names of the errors"),
        column(
            "exchanges",
            "int64s",
            "exchanges that show batches sent again; otherwise the first and the last exchange",
            unit=EXCHANGE,
        ),
        *first_and_last("request"),
    )

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        super().__init__(Production, limits)
        self.latest.keep_clusters(Clusters(self.room))
        self._labels = Labels(self.latest, limits)
        self._kept = KeptBatches(self.room)
        self._blind: dict[int, None] = {}
        """Connections that were not completely captured."""

    def _exchanges(self, exchanges: list[Exchange]) -> None:
        self._take(exchanges, True)

    def _other(self, exchange: Exchange) -> None:
        self._take([exchange], False)

    def _take(self, exchanges: list[Exchange], counts: bool) -> None:
        clusters = self.latest.clusters
        take_in(exchanges, counts, clusters, self._labels, self._rows, self._kept, self._see_no_more)

    def _connection(self, connection: Connection) -> None:
        if connection.gaps or connection.skipped_bytes:
            self._see_no_more(connection.connection)

    def _see_no_more(self, connection: int) -> None:
        if len(self._blind) < self.limits.rows:
            self._blind[connection] = None

    def merge(self, later: Self) -> None:
        self._labels.merge(later._labels)
        self._rows.left_out += later._rows.left_out
        for producer, production in later._rows.items():
            row = self._rows.row(producer)
            if row is not None:
                before = len(row.sent)
                row.merge(production)
                count = len(production.sent) // WIDTH
                if count and not self._kept.has_room(before, count):
                    del row.sent[before:]
        self._kept.merge(later._kept)
        for connection in later._blind:
            self._see_no_more(connection)

    @property
    def left_out(self) -> int:
        return self._rows.left_out + self._kept.left_out

    def result(self) -> list[Row]:
        return list(self.result_rows())

    def result_rows(self) -> Iterator[Row]:
        kept: tuple[dict[Any, Any], ...] = self._rows.rows, self._kept.fetched
        rows = self._labels.by_cluster(self._rows.rows, Production, *kept)
        fetched = self._labels.by_cluster(self._kept.fetched, FetchedCodecs, *kept)
        writers = Counter([key[:3] for key in rows])
        ways = {place: fetched_ways(each) for place, each in fetched.items()}
        for key in sorted([key for key, row in rows.items() if row.counted], key=_order):
            yield self._result(key, rows[key], writers[key[:3]] == 1, ways.get(key[:3], NOTHING_FETCHED))

    def _result(self, key: tuple[Any, ...], row: Production, is_sole: bool, fetched: FetchedWays) -> Row:
        topic, cluster, partition, producer_id, client_id, client = key
        sent, has_id = row.sent, producer_id >= 0
        # Most rows need a few numbers of each batch, which take less time than its objects.
        batches = unpacked(sent) if has_id or row.ahead or may_be_again(sent, has_id) else []
        found = account_of(batches, has_id, is_sole) if batches else Account()
        is_blind = bool(self._blind) and not self._blind.keys().isdisjoint(sent[CONNECTION::WIDTH])
        codecs = sent[CODEC::WIDTH]
        ways, recompressed, converted = as_fetched(sent[OFFSET::WIDTH], codecs, fetched)
        (records_p50,), (bytes_p50,) = row.counts.percentiles(50), row.sizes.percentiles(50)
        (linger_p50,) = row.linger.percentiles(50)
        sequences = [each.sequence for each in batches if each.sequence >= 0] if has_id else []
        lowest = min(codecs, default=None)
        return {
            "producer_id": producer_id if has_id else None,
            "producer_epoch": row.epoch if has_id else None,
            "client_id": client_id,
            "client": client,
            "topic": topic,
            "cluster_id": cluster or None,
            "partition": partition if partition >= 0 else None,
            "requests": row.requests,
            "batches": row.batches,
            "records": row.records,
            "bytes": row.bytes,
            "records_per_batch": row.records / row.batches if row.batches else None,
            "bytes_per_record": row.bytes / row.records if row.records else None,
            "records_p50": records_p50,
            "bytes_p50": bytes_p50,
            "batch_bytes_max": row.sizes.most,
            "first_sequence": sequences[0] if sequences else None,
            "last_sequence": sequences[-1] if sequences else None,
            "epochs": found.epochs,
            "transactional": row.transactional == row.batches,
            "resent": found.resent,
            "resent_appended": found.resent_appended,
            "absorbed": found.absorbed,
            "unanswered": found.unanswered,
            "gaps": None if is_blind else found.gaps,
            "lost_sequences": None if is_blind else found.lost_sequences,
            "overtaken": found.overtaken,
            "given_up": found.given_up,
            "tried_ns": found.tried_ns,
            "acks": ["all" if each == -1 else str(each) for each in sorted(row.acks)],
            "codecs": row.codecs,
            "uncompressed_bytes": row.plain.bytes,
            "compressible_to": row.plain.ratio,
            "ratio": row.packed.ratio,
            "codecs_fetched": [] if not ways else sorted(_codecs(ways)),
            "magic": None if lowest is None else lowest // 8,
            "magic_fetched": min(ways) // 8 if ways else None,
            "recompressed": recompressed,
            "converted": converted,
            "linger_p50_ns": linger_p50,
            "linger_max_ns": row.linger.most,
            "skew_min_ms": row.skew.least,
            "skew_max_ms": row.skew.most,
            "ahead": row.ahead,
            "set_back_ns": _set_back_ns(batches) if row.ahead else None,
            **row.errors.columns(),
            "error_codes": sorted(row.error_names),
            "exchanges": sorted(set(found.telling or _ends(row.span))),
            "first_ns": row.span.first_ns,
            "last_ns": row.span.last_ns,
        }


def _codecs(ways: set[int]) -> set[str]:
    """The names of the codecs in these combinations of codec and magic."""
    return {CODECS[way % 8] for way in ways if way % 8 < len(CODECS)}


def _set_back_ns(batches: list[SentBatch]) -> int:
    """How far the capture's clock went back.

    Requests of a connection are numbered as they came. Each is answered after all requests before it were
    sent. A lost message that was sent again is late, and so are the answers after it. So only an answer shows
    a clock that was set back. For a request without an answer (``acks=0``), a retransmission and a clock set
    back look the same.
    """
    latest: dict[int, int] = {}
    furthest = 0
    for each in sorted(batches, key=lambda batch: batch.number):
        before_ns = max(latest.get(each.connection, each.ns), each.ns)
        latest[each.connection] = before_ns
        told_ns = each.ns if each.state == ACKS_0 else each.done_ns
        if told_ns:
            furthest = max(furthest, before_ns - told_ns)
    return furthest


def _ends(span: Span) -> list[int]:
    return [each for each in (span.first_exchange, span.last_exchange) if each is not None]


def _order(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sort key of a row."""
    topic, cluster, partition, producer_id, client_id, client = key
    return topic or "", max(-1, partition), client_id or "", client, max(-1, producer_id), cluster
