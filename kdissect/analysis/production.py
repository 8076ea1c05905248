"""The batches that one producer wrote to one partition: their counts, and samples of their compression. The
batches are also kept to find those that were sent again."""

from __future__ import annotations

from array import array
from functools import lru_cache
from struct import error, pack
from typing import Any
from zlib import compress, crc32

from kdissect.analysis.counters import Grades, Span
from kdissect.analysis.fetched_codecs import way_of
from kdissect.analysis.fold import MILLISECOND
from kdissect.analysis.headers import HEADER_BYTES, Header
from kdissect.analysis.histogram import Histogram
from kdissect.analysis.resends import ACKS_0, GOOD, REFUSED, UNANSWERED, UNKNOWN, WIDTH
from kdissect.exchange import Exchange, RecordSetPlace
from kdissect.limits import Limits
from kdissect.protocol.errors import error_name
from kdissect.record.batch import CODEC_BITS
from kdissect.record.compression import decompress

AHEAD_MS = 5_000
"""A record is dated in the future if its time is this much later than the packet's."""
_FORM = f"{WIDTH}q"
"""The kept form of a batch."""
SAMPLED_BYTES = 256 << 10
"""About one batch per this many bytes is sampled. Its checksum decides, so the choice is always the same."""
_SAMPLED_BYTES = SAMPLED_BYTES
LOOKED_AT_BYTES = 16 << 10
"""The most bytes of an uncompressed batch that are tried."""
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
MOST_UNPACKED_BYTES = 1 << 20
"""Compressed batches that are larger than this are not unpacked."""


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
        *("acks", "ahead", "batches", "bytes", "codecs", "counted", "counts", "epoch"),
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
        self.codecs: set[str] = set()
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
        self.epoch: tuple[int, int, int] | None = None
        """The time and the exchange of the last producer epoch, and the epoch."""
        self.sent: array[int] = array("q")
        self.counted = False

    def merge(self, later: Production) -> None:
        """Add later batches."""
        self.requests += later.requests
        self.batches += later.batches
        self.records += later.records
        self.bytes += later.bytes
        self.sizes.merge(later.sizes)
        self.counts.merge(later.counts)
        self.codecs |= later.codecs
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
        if later.epoch is not None and (self.epoch is None or later.epoch >= self.epoch):
            self.epoch = later.epoch
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
        self.records += batch.records or 0
        self.bytes += batch.size
        self.sizes.add(batch.size)
        if batch.records is not None:
            self.counts.add(batch.records)
        self.codecs.add(batch.codec)
        self.transactional += batch.is_transactional
        epoch = (ns, exchange.number, batch.producer_epoch)
        if self.epoch is None or epoch >= self.epoch:
            self.epoch = epoch
        if code:
            self.errors.add(exchange.class_of(code))
            self.error_names.add(error_name(code))
        if batch.base_timestamp > 0 and not batch.is_log_append_time:
            self.linger.add(fit(ns - batch.base_timestamp * MILLISECOND))
        if batch.max_timestamp > 0 and not batch.is_log_append_time:
            ahead_ms = batch.max_timestamp - ns // MILLISECOND
            self.skew.add(fit(ahead_ms))
            self.ahead += ahead_ms > AHEAD_MS


def keep(
    row: Production,
    exchange: Exchange,
    place: RecordSetPlace,
    batch: Header,
    code: int,
    ns: int,
    acks: Any,
) -> None:
    """Keep a batch to find whether it is sent again: the values of a
    :class:`~kdissect.analysis.resends.SentBatch`."""
    response = exchange.response
    if response is not None:
        state = REFUSED if code else GOOD
    elif acks == 0:
        state = ACKS_0
    else:
        state = UNANSWERED if exchange.missing in ("connection closed", "capture ended") else UNKNOWN
    offset = None
    if not code and not batch.position:  # the answer has only the offset of the first batch
        offset = exchange.assigned_base_offset(place)
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
        first_record(place.data, batch),
        state,
        code,
        -1 if offset is None else offset,
        0 if response is None else response.frame.last_ns,
        _checksum(exchange.broker),
    )
    try:
        row.sent.frombytes(pack(_FORM, *kept))  # in half the time of extending it by the numbers
    except error:  # a number of more than 64 bits
        row.sent.extend(map(fit, kept))


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
