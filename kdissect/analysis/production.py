"""The batches that one producer wrote to one partition: their counts, and samples of their compression. The
batches are also kept to find those that were sent again."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from functools import lru_cache
from struct import error
from typing import Any
from zlib import compress, crc32

from kdissect.analysis.clusters import Clusters
from kdissect.analysis.counters import Grades, Span
from kdissect.analysis.fold import MILLISECOND
from kdissect.analysis.headers import HEADER_BYTES, MOST_MS, Header
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.labels import Labels, Topic
from kdissect.analysis.resends import ACKS_0, GOOD, KEPT, REFUSED, UNANSWERED, UNKNOWN, WIDTH
from kdissect.analysis.room import Room
from kdissect.analysis.rows import Rows
from kdissect.analysis.shared_parts import SharedSet, follows_log, record_sets
from kdissect.analysis.speakers import address
from kdissect.exchange import Exchange
from kdissect.limits import Limits
from kdissect.protocol.errors import error_name
from kdissect.protocol.schema import ZERO_UUID
from kdissect.record.batch import CODEC_BITS, codec_name
from kdissect.record.compression import decompress

AHEAD_MS = 5_000
"""A record is dated in the future if its time is this much later than the packet's."""
SAMPLED_BYTES = 256 << 10
"""About one batch per this many bytes is sampled. Its checksum decides, so the choice is always the same."""
_SAMPLED_BYTES = SAMPLED_BYTES
LOOKED_AT_BYTES = 16 << 10
"""The most bytes of an uncompressed batch that are tried."""
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_MILLISECOND, _MOST_MS, _AHEAD_MS, _WIDTH, _CODEC_BITS = MILLISECOND, MOST_MS, AHEAD_MS, WIDTH, CODEC_BITS
_RUN = 3
"""The numbers of one run of fetched batches: first offset, last offset, and magic with codec."""
_RUNS_BYTES = 500
"""The approximate size of the codecs that are kept for a partition."""
MOST_UNPACKED_BYTES = 1 << 20
"""Compressed batches that are larger than this are not unpacked."""
ProducerKey = tuple[Topic, str, int, int, str | None, str]
"""Topic, broker, partition, producer id, client id, address."""
FetchedKey = tuple[Topic, str, int]
"""Topic, broker, partition."""


class Sampled:
    """The compression of batches, or the compression that is possible."""

    __slots__ = ("after", "before", "bytes")

    def __init__(self) -> None:
        self.bytes = 0
        """The bytes of all batches."""
        self.before = 0
        """The uncompressed bytes of the samples."""
        self.after = 0
        """The compressed bytes of the samples."""

    @property
    def ratio(self) -> float | None:
        """Compressed to uncompressed bytes of the samples; None without a sample."""
        return self.after / self.before if self.before else None

    def merge(self, later: Sampled) -> None:
        """Add later samples."""
        self.bytes += later.bytes
        self.before += later.before
        self.after += later.after


class Production:
    """The batches that one producer wrote to one partition."""

    __slots__ = (
        *("_codecs", "_epoch", "_epoch_exchange", "_epoch_ns", "_has_epoch"),
        *("acks", "ahead", "batches", "bytes", "counted", "counts"),
        *("error_names", "errors", "linger", "packed", "plain", "records", "requests", "sent"),
        *("sizes", "skew", "span", "transactional"),
    )

    def __init__(self) -> None:
        self.requests = 0
        self.batches = 0
        self.records = 0
        self.bytes = 0
        self.sizes = Histogram()
        self.counts = Histogram()
        self._codecs = 0
        """A bit for each codec."""
        self.plain = Sampled()
        """Uncompressed batches, with samples compressed by zlib."""
        self.packed = Sampled()
        """Compressed batches, with samples unpacked."""
        self.acks: set[int] = set()
        self.transactional = 0
        self.linger = Histogram()
        self.skew = Histogram()
        self.ahead = 0
        self.errors = Grades()
        self.error_names: set[str] = set()
        self.span = Span()
        self._has_epoch = False
        self._epoch_ns = self._epoch_exchange = self._epoch = 0
        """The time and the exchange of the last producer epoch, and the epoch."""
        self.sent: array[int] = array("q")
        self.counted = False

    @property
    def codecs(self) -> list[str]:
        """The names of the codecs, sorted."""
        return sorted([codec_name(codec) for codec in range(_CODEC_BITS + 1) if self._codecs >> codec & 1])

    @property
    def epoch(self) -> int | None:
        """The last producer epoch; None without one."""
        return self._epoch if self._has_epoch else None

    def merge(self, later: Production) -> None:
        """Add later batches."""
        self.requests += later.requests
        self.batches += later.batches
        self.records += later.records
        self.bytes += later.bytes
        self.sizes.merge(later.sizes)
        self.counts.merge(later.counts)
        self._codecs |= later._codecs
        self.plain.merge(later.plain)
        self.packed.merge(later.packed)
        self.acks |= later.acks
        self.transactional += later.transactional
        self.linger.merge(later.linger)
        self.skew.merge(later.skew)
        self.ahead += later.ahead
        self.errors.merge(later.errors)
        self.error_names |= later.error_names
        self.span.merge(later.span)
        if later._has_epoch:
            self._see_epoch(later._epoch_ns, later._epoch_exchange, later._epoch)
        self.sent.extend(later.sent)
        self.counted = self.counted or later.counted

    def count(self, exchange: Exchange, batch: Header, code: int, ns: int, is_first: bool) -> None:
        """Count a batch.

        :param is_first: whether it is the first counted batch of its request.
        """
        self.counted = True
        self.requests += is_first
        self.span.add(ns, exchange.number)
        self.batches += 1
        records = batch.records
        if records is not None:
            self.records += records
            self.counts.add_one(records)
        self.bytes += batch.size
        self.sizes.add_one(batch.size)
        self._codecs |= 1 << (batch.attributes & _CODEC_BITS)
        self.transactional += batch.is_transactional
        self._see_epoch(ns, exchange.number, batch.producer_epoch)
        if code:
            self.errors.add(exchange.class_of(code))
            self.error_names.add(error_name(code))
        if not batch.is_log_append_time:
            self._count_times(batch.base_timestamp, batch.max_timestamp, ns)

    def _see_epoch(self, ns: int, exchange: int, epoch: int) -> None:
        """Take in an epoch: the one at the latest time is the last."""
        if self._has_epoch and (
            ns < self._epoch_ns
            or (
                ns == self._epoch_ns
                and (
                    exchange < self._epoch_exchange
                    or (exchange == self._epoch_exchange and epoch < self._epoch)
                )
            )
        ):
            return
        self._has_epoch = True
        self._epoch_ns, self._epoch_exchange, self._epoch = ns, exchange, epoch

    def _count_times(self, first_ms: int, last_ms: int, ns: int) -> None:
        """Count the producer's timestamps of a batch that was sent at a time."""
        if ns < 0 or first_ms > _MOST_MS:  # the differences may not fit into C numbers
            self._count_absurd_times(first_ms, last_ms, ns)
            return
        if first_ms > 0:
            self.linger.add_one(ns - first_ms * _MILLISECOND)
        if last_ms > 0:
            ahead_ms = last_ms - ns // _MILLISECOND
            self.skew.add_one(ahead_ms)
            self.ahead += ahead_ms > _AHEAD_MS

    def _count_absurd_times(self, first_ms: int, last_ms: int, ns: int) -> None:
        """The same for numbers of any length."""
        if first_ms > 0:
            self.linger.add(fit(ns - first_ms * MILLISECOND))
        if last_ms > 0:
            ahead_ms = last_ms - ns // MILLISECOND
            self.skew.add(fit(ahead_ms))
            self.ahead += ahead_ms > AHEAD_MS


class FetchedCodecs:
    """The codecs with which the batches of a partition were fetched."""

    __slots__ = ("runs",)

    def __init__(self) -> None:
        self.runs: array[int] = array("q")

    def add(self, first: int, last: int, codec: int) -> bool:
        """Add a batch; return whether it needed a run of its own."""
        runs = self.runs
        if len(runs) and runs[-1] == codec and runs[-2] + 1 == first:
            runs[-2] = last
            return False
        runs.extend((first, last, codec))
        return True

    def merge(self, later: FetchedCodecs) -> None:
        """Add later fetches."""
        for first, last, codec in later:
            self.add(first, last, codec)

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """First offset, last offset, and magic with codec of each run."""
        numbers = iter(self.runs)
        return zip(*[numbers] * _RUN, strict=True)


class KeptBatches:
    """The batches that may be sent again, and the codecs of fetched batches: how many are kept."""

    __slots__ = (
        "_most",
        "_most_of_one",
        "_most_partitions",
        "count",
        "fetched",
        "left_out",
        "limits",
        "room",
    )

    def __init__(self, room: Room) -> None:
        self.room = room
        self.limits = room.limits
        self.fetched: dict[FetchedKey, FetchedCodecs] = {}
        self.count = 0
        """The number of batches and runs that are kept."""
        self.left_out = 0
        """The number of those without room."""
        self._most = self.limits.timeline_events
        self._most_of_one = self.limits.timeline_key_events * WIDTH
        self._most_partitions = self.limits.rows

    def has_room(self, size: int, count: int) -> bool:
        """Take room for further batches of a producer and a partition. Return whether there was room.

        :param size: how many numbers are kept of its batches so far.
        """
        is_beyond = size + (count - 1) * _WIDTH >= self._most_of_one or self.count + count > self._most
        if self.room.refuses(is_beyond) or not self.room.takes(count * _WIDTH * 9):
            self.left_out += count
            return False
        self.count += count
        return True

    def codecs_of(self, key: FetchedKey) -> FetchedCodecs | None:
        """The codecs of a partition; None if there is no room for a further partition."""
        found = self.fetched.get(key)
        if found is None:
            if self.room.refuses(len(self.fetched) >= self._most_partitions):
                return None
            if not self.room.takes(_RUNS_BYTES):
                return None
            found = self.fetched[key] = FetchedCodecs()
        return found

    def add_run(self, found: FetchedCodecs, first: int, last: int, way: int) -> None:
        """Add a fetched batch, or a run of them."""
        if self.room.refuses(self.count >= self._most):
            self.left_out += 1
        elif found.add(first, last, way):
            self.count += 1

    def merge(self, later: KeptBatches) -> None:
        """Add what was fetched later."""
        for key, theirs in later.fetched.items():
            found = self.codecs_of(key)
            if found is None:
                self.left_out += 1
                continue
            for first, last, way in theirs:
                self.add_run(found, first, last, way)
        self.left_out += later.left_out


def take_in(
    exchanges: list[Exchange],
    counts: bool,
    clusters: Clusters,
    labels: Labels,
    rows: Rows[ProducerKey, Production],
    kept: KeptBatches,
    see_no_more: Callable[[int], None],
) -> None:
    """Take in exchanges.

    :param counts: whether they count; otherwise their batches are only kept.
    :param see_no_more: called with a connection that lacks messages.
    """
    for exchange in exchanges:
        api = exchange._api()
        if exchange.request is None:
            see_no_more(exchange.connection)
        elif api == "Produce":
            _take_produced(exchange, counts, clusters.at(exchange), labels, rows, kept)
        if api == "Fetch" and exchange.response is not None and not follows_log(exchange):
            _take_fetched(exchange, clusters.at(exchange), labels, kept)


def _take_produced(
    exchange: Exchange,
    counts: bool,
    broker: str,
    labels: Labels,
    rows: Rows[ProducerKey, Production],
    kept: KeptBatches,
) -> None:
    """Take in a Produce."""
    request = exchange.request
    assert request is not None
    seen = request.survey()
    acks = request.body().get("acks") if seen is None else seen.acks
    answers = None if exchange._error() is None else _answers(exchange)
    client, client_id, ns = address(exchange._client_address()), exchange._client_id(), exchange._begun()
    where = _checksum(broker)
    begun: set[Production] = set()
    """The rows that already count the request."""
    for found in record_sets(exchange, kept.limits):
        place = found.place
        if place.message is not request:
            continue
        topic = labels.topic(place.topic, place.topic_id)
        partition = -1 if place.partition is None else place.partition
        code = 0
        if answers is not None:
            code = answers.get((place.topic, place.partition), 0) or answers.get(
                (place.topic_id, place.partition), 0
            )
        for batch in found.headers:
            row = rows.row((topic, broker, partition, batch.producer_id, client_id, client))
            if row is None:
                continue
            if kept.has_room(len(row.sent), 1):
                keep(row, exchange, found, batch, code, ns, acks, where)
            if counts:
                is_first = row not in begun
                if is_first:
                    begun.add(row)
                    if isinstance(acks, int):
                        row.acks.add(acks)
                row.count(exchange, batch, code if is_first else 0, ns, is_first)
                sample(row, place.data, batch, kept.limits)


def _answers(exchange: Exchange) -> dict[tuple[str | None, Any], int]:
    """The error codes of an answer, by name or id of the topic and by partition."""
    found: dict[tuple[str | None, Any], int] = {}
    assert exchange.response is not None
    for topic in exchange.response.body().get("responses") or ():
        topic_id = topic.get("topicId", ZERO_UUID)
        for part in topic.get("partitionResponses") or ():
            code = part.get("errorCode") or 0
            found[topic.get("name") or topic_id, part.get("index")] = code
    return found


def _take_fetched(exchange: Exchange, broker: str, labels: Labels, kept: KeptBatches) -> None:
    """Take in the codecs of fetched record sets."""
    for each in record_sets(exchange, kept.limits):
        batches = each.headers
        if not batches:  # as mostly: nothing new was written
            continue
        place = each.place
        partition = -1 if place.partition is None else place.partition
        key = labels.topic(place.topic, place.topic_id), broker, partition
        found: FetchedCodecs | None = None
        for batch in batches:
            if batch.is_control:
                continue
            if found is None:
                found = kept.codecs_of(key)
                if found is None:
                    kept.left_out += 1
                    break
            first = batch.base_offset if batch.magic >= 2 else batch.last_offset
            kept.add_run(found, first, batch.last_offset, way_of(batch))


def keep(
    row: Production,
    exchange: Exchange,
    found: SharedSet,
    batch: Header,
    code: int,
    ns: int,
    acks: Any,
    broker: int,
) -> None:
    """Keep a batch to find whether it is sent again: the values of a
    :class:`~kdissect.analysis.resends.SentBatch`.

    :param broker: the checksum of the broker's address.
    """
    response = exchange.response
    if response is not None:
        state = REFUSED if code else GOOD
    elif acks == 0:
        state = ACKS_0
    else:
        state = UNANSWERED if exchange.missing in ("connection closed", "capture ended") else UNKNOWN
    offset = None
    if not code and not batch.position:  # the answer has only the offset of the first batch
        offset = found.assigned_offset(exchange)
    kept = (
        ns,
        exchange.number,
        exchange.connection,
        batch.producer_epoch,
        batch.base_sequence,
        batch.records or 0,
        batch.size,
        batch.crc,
        way_of(batch),
        batch.base_timestamp,
        batch.max_timestamp,
        first_record(found.place.data, batch),
        state,
        code,
        -1 if offset is None else offset,
        0 if response is None else response.frame.last_ns,
        broker,
    )
    try:
        row.sent.frombytes(KEPT.pack(*kept))  # in half the time of extending it by the numbers
    except error:  # a number of more than 64 bits
        row.sent.extend(map(fit, kept))


def way_of(batch: Header) -> int:
    """Magic and codec of a batch, as one number."""
    return batch.magic * 8 + (batch.attributes & 7)


@lru_cache(maxsize=4_096)
def _checksum(broker: str) -> int:
    return crc32(broker.encode())


def first_record(data: bytes, batch: Header) -> int:
    """The checksum of the bytes of the first record; -1 if they are unknown."""
    if batch.magic < 2 or batch.attributes & CODEC_BITS or batch.producer_id >= 0 or not batch.records:
        return -1
    start, shift, size = batch.position + HEADER_BYTES, 0, 0
    end = batch.position + batch.size
    at = start
    while at < min(start + 5, end):
        part = data[at] & 0x7F
        size |= part << shift
        shift += 7
        if data[at] < 0x80:
            body = (size >> 1) ^ -(size & 1)
            return crc32(data[start : at + 1 + body]) if 0 <= body <= end - at - 1 else -1
        at += 1
    return -1


def sample(row: Production, data: bytes, batch: Header, limits: Limits) -> None:
    """Measure the compression of one batch of many, or the compression that is possible."""
    found = row.packed if batch.is_compressed else row.plain
    found.bytes += batch.size
    if batch.magic < 2 or batch.crc * _SAMPLED_BYTES >= batch.size << 32:
        return
    start, end = batch.position + HEADER_BYTES, batch.position + batch.size
    if not batch.is_compressed:
        part = data[start : min(end, start + LOOKED_AT_BYTES)]
        found.before += len(part)
        found.after += len(compress(part, 1))
    elif batch.size <= MOST_UNPACKED_BYTES:
        packed = data[start:end]
        unpacked = decompress(batch.attributes & CODEC_BITS, packed, batch.magic, limits)
        if unpacked.fault is None:
            found.before += len(unpacked.data)
            found.after += len(packed)


def fit(value: int) -> int:
    """The nearest number of 64 bits."""
    return value if _LEAST <= value <= _MOST else _LEAST if value < 0 else _MOST
