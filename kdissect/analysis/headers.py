"""A record set → the headers of its batches, without checking checksums.

The statistic that counts batches also checks them (:mod:`kdissect.record.sets`). The first 61 bytes of a
batch contain its producer, its times and its sequence. Nothing is unpacked for that. Messages of magic 0 and
1 have no such header. They are read as record sets are. Compressed ones are unpacked only if the caller asks
for it.
"""

from __future__ import annotations

from kdissect.limits import DEFAULTS, Limits
from kdissect.record.batch import (
    BATCH_HEADER,
    CODEC_BITS,
    CONTROL,
    LOG_APPEND_TIME,
    SMALLEST_BATCH,
    TRANSACTIONAL,
    codec_name,
)
from kdissect.record.messages import LOG_OVERHEAD, int32_at, int64_at
from kdissect.record.records import ROW, sum64
from kdissect.record.scan import read_records
from kdissect.record.sets import read_record_set

HEADER_BYTES = BATCH_HEADER.size
MOST_MS = (1 << 63) // 2_000_000
"""The largest timestamp. Larger ones do not fit in ns."""
APART_MS = 4
"""Records that lie closer together than this are not sampled."""
MOST_LOOKED_AT = 10_000
SAMPLE = 64
"""The number of timestamps that represent all records of a larger batch."""
_MAGIC_AT, _HEADER_BYTES, _SMALLEST_BATCH, _LOG_OVERHEAD = 16, HEADER_BYTES, SMALLEST_BATCH, LOG_OVERHEAD
_LOW = 0xFFFF_FFFF


class Header:  # noqa: PLW1641 - a value, but nobody's key
    """The header of a batch. It is never changed."""

    __slots__ = (
        *("attributes", "base_offset", "base_sequence", "base_timestamp", "crc", "is_whole", "last_offset"),
        *("magic", "max_timestamp", "position", "producer_epoch", "producer_id", "records", "size"),
    )

    def __init__(
        self,
        position: int,
        size: int,
        magic: int,
        crc: int,
        attributes: int,
        base_offset: int,
        last_offset: int,
        base_timestamp: int,
        max_timestamp: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        records: int | None,
        is_whole: bool = True,
    ) -> None:
        self.position = position
        """The position of its first byte in the set."""
        self.size = size
        """The size in bytes, with the header, as the header gives it."""
        self.magic = magic
        self.crc = crc
        self.attributes = attributes
        self.base_offset = base_offset
        """The base offset in the header: in a Produce request mostly 0. For a compressed message that is not
        unpacked, it is the offset of its last record."""
        self.last_offset = last_offset
        self.base_timestamp = base_timestamp
        """Ms since the epoch, -1 for none; in magic 0 and 1, the outer message's timestamp."""
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        """-1 for none, as in magic 0 and 1."""
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.records = records
        """The number of records in the header; None if only unpacking gives it."""
        self.is_whole = is_whole
        """Whether all its bytes are present."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Header) and self._parts() == other._parts()

    def __repr__(self) -> str:
        return f"Header{self._parts()}"

    def _parts(self) -> tuple[int | None, ...]:
        return (
            *(self.position, self.size, self.magic, self.crc, self.attributes, self.base_offset),
            *(self.last_offset, self.base_timestamp, self.max_timestamp, self.producer_id),
            *(self.producer_epoch, self.base_sequence, self.records, self.is_whole),
        )

    @property
    def codec(self) -> str:
        return codec_name(self.attributes)

    @property
    def is_compressed(self) -> bool:
        return bool(self.attributes & CODEC_BITS)

    @property
    def is_transactional(self) -> bool:
        return self.magic >= 2 and bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        return self.magic >= 2 and bool(self.attributes & CONTROL)

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker wrote the times, so that they are not the producer's."""
        return self.magic >= 1 and bool(self.attributes & LOG_APPEND_TIME)

    @property
    def length(self) -> int:
        """The number of offsets that it covers, at least one."""
        return max(self.records or self.last_offset - self.base_offset + 1, 1)

    @property
    def first_ms(self) -> int | None:
        """The timestamp of its first record; None without a timestamp."""
        return self.base_timestamp if 0 <= self.base_timestamp <= MOST_MS else None

    @property
    def last_ms(self) -> int | None:
        """The largest timestamp in it; None without a timestamp."""
        return self.max_timestamp if 0 <= self.max_timestamp <= MOST_MS else None

    @property
    def content_crc(self) -> int | None:
        """The checksum of the producer's data, which brokers do not change; None in magic 0 and 1."""
        return self.crc if self.magic >= 2 else None


def headers(data: bytes, limits: Limits = DEFAULTS) -> list[Header]:
    """The headers of the whole batches, in order, up to the first invalid one. Nothing is unpacked."""
    found: list[Header] = []
    _read_headers(data, 0, limits, False, found)
    return [each for each in found if each.is_whole]


def sets_of(data: bytes, limits: Limits = DEFAULTS) -> list[Header]:
    """The headers of the whole batches, and of the last one too if its end is cut off. Consecutive messages
    of magic 0 and 1 become one, and are unpacked because their offsets are inside."""
    found: list[Header] = []
    _read_headers(data, 0, limits, True, found)
    out: list[Header] = []
    run: list[Header] = []
    for each in found:
        if each.magic < 2:
            run.append(each)
            continue
        if run:
            out.append(_joined(run))
            run = []
        out.append(each)
    if run:
        out.append(_joined(run))
    return out


def _joined(run: list[Header]) -> Header:
    stamps = [each.max_timestamp for each in run if each.last_ms is not None]
    counts = [each.records for each in run]
    by_broker = [each for each in run if each.is_log_append_time]
    first = (by_broker or run)[0]
    return Header(
        run[0].position,
        sum([each.size for each in run]),
        first.magic,
        first.crc,
        first.attributes,
        run[0].base_offset,
        run[-1].last_offset,
        stamps[0] if stamps else -1,
        max(stamps, default=-1),
        first.producer_id,
        first.producer_epoch,
        first.base_sequence,
        None if None in counts else sum([count or 0 for count in counts]),
        first.is_whole,
    )


def stamps_of(batch: Header, data: bytes) -> list[int]:
    """Timestamps of records of a batch, in ms, each of which represents equally many records. Empty if they
    lie close together, or if only unpacking gives them.

    :param data: the set that contains the batch.
    """
    count, first, last = batch.records, batch.first_ms, batch.last_ms
    if count is None or not 2 < count <= MOST_LOOKED_AT or first is None or last is None:
        return []
    if batch.magic < 2 or batch.is_compressed or not batch.is_whole or batch.is_log_append_time:
        return []
    if last - first <= APART_MS:
        return []
    start = batch.position + HEADER_BYTES
    columns = read_records(data, start, len(data), 0, first, None, -1, count).columns
    stamps = sorted(columns.numbers()[1::ROW])
    if len(stamps) != count:
        return []
    if count <= SAMPLE:
        return stamps
    return [stamps[(2 * part + 1) * count // (2 * SAMPLE)] for part in range(SAMPLE)]


def _read_headers(data: bytes, position: int, limits: Limits, unpacks: bool, found: list[Header]) -> None:
    """Add the headers of a set from a position on. Only the last batch may be cut."""
    end, most, raw = len(data), len(found) + limits.elements, data
    while position + _HEADER_BYTES <= end and raw[position + _MAGIC_AT] == 2 and len(found) < most:
        length = int32_at(raw, position + 8)
        if length < _SMALLEST_BATCH:
            return
        size = length + _LOG_OVERHEAD
        # Set attribute by attribute: compiled, that takes a fifth of a call with all values.
        each = Header.__new__(Header)
        each.position, each.size, each.magic = position, size, 2
        each.crc = int32_at(raw, position + 17) & _LOW
        each.attributes = int32_at(raw, position + 21) >> 16
        each.base_offset = int64_at(raw, position)
        each.last_offset = sum64(each.base_offset, int32_at(raw, position + 23))
        each.base_timestamp = int64_at(raw, position + 27)
        each.max_timestamp = int64_at(raw, position + 35)
        each.producer_id = int64_at(raw, position + 43)
        each.producer_epoch = int32_at(raw, position + 51) >> 16
        each.base_sequence = int32_at(raw, position + 53)
        count = int32_at(raw, position + 57)
        each.records = count if count >= 0 else None
        each.is_whole = position + size <= end
        found.append(each)
        position += size
    if end - position > _MAGIC_AT and data[position + _MAGIC_AT] < 2:
        _read_messages(data, position, limits, unpacks, found)


def _read_messages(data: bytes, start: int, limits: Limits, unpacks: bool, found: list[Header]) -> None:
    """Add the messages of magic 0 and 1, and the batches after them."""
    for batch in read_record_set(data[start:], limits).batches:
        if batch.magic >= 2:
            _read_headers(data, start + batch.position, limits, unpacks, found)
            return
        if batch.partial:
            return
        is_wrapper = bool(batch.attributes & CODEC_BITS)
        base = batch.base_offset if unpacks else batch.header_offset
        if base is None:
            continue  # the position of its records is unknown
        found.append(
            Header(
                start + batch.position,
                batch.size,
                batch.magic,
                batch.crc,
                batch.attributes,
                base,
                batch.last_offset,
                batch.max_timestamp,
                batch.max_timestamp,
                -1,
                -1,
                -1,
                batch.count if unpacks else None if is_wrapper else 1,
            )
        )
