"""Writes record sets: records in, the bytes of Kafka's ``MemoryRecordsBuilder`` out.

A record set is the concatenation of the results of these functions.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kdissect.lazy import Later
from kdissect.record.batch import (
    BATCH_HEADER,
    CODEC_BITS,
    CONTROL,
    CRC_START,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
)
from kdissect.record.compression import compress
from kdissect.record.messages import LOG_OVERHEAD
from kdissect.record.records import Record

if TYPE_CHECKING:
    import crc32c
else:
    crc32c = Later("crc32c", "_crc32c")


def write_varint(value: int) -> bytes:
    """Zigzag, at most 64 bits (``ByteUtils.writeVarint``, ``writeVarlong``)."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_batch(
    records: Sequence[Record],
    codec: int = 0,
    *,
    base_offset: int | None = None,
    last_offset: int | None = None,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    log_append_time: bool = False,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    partition_leader_epoch: int = -1,
    transactional: bool = False,
    control: bool = False,
    delete_horizon_ms: int | None = None,
) -> bytes:
    """One batch of magic 2.

    Offsets and timestamps are those of the records; their sequence numbers follow from ``base_sequence``. By
    default, ``base_offset`` and ``base_timestamp`` are the first record's (0 and -1 without records),
    ``last_offset`` is the last record's and ``max_timestamp`` the largest. With ``log_append_time``,
    ``max_timestamp`` is the time of the append. A delete horizon replaces the base timestamp.

    :raises ValueError: a number does not fit its field.
    """
    if base_offset is None:
        base_offset = records[0].offset if records else 0
    if last_offset is None:
        last_offset = records[-1].offset if records else base_offset
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
    elif base_timestamp is None:
        base_timestamp = records[0].timestamp if records else -1
    if max_timestamp is None:
        max_timestamp = max((record.timestamp for record in records), default=-1)
    attributes = (
        _codec_bits(codec)
        | (LOG_APPEND_TIME if log_append_time else 0)
        | (TRANSACTIONAL if transactional else 0)
        | (CONTROL if control else 0)
        | (DELETE_HORIZON if delete_horizon_ms is not None else 0)
    )
    body = b"".join(
        write_record(record, record.offset - base_offset, record.timestamp - base_timestamp)
        for record in records
    )
    if records:
        body = compress(codec, body)
    fields = [
        base_offset,
        BATCH_HEADER.size - LOG_OVERHEAD + len(body),
        partition_leader_epoch,
        2,
        0,
        attributes,
        last_offset - base_offset,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    ]
    fields[4] = crc32c.crc32c(_pack(fields)[CRC_START:] + body)
    return _pack(fields) + body


def _pack(fields: list[int]) -> bytes:
    try:
        return BATCH_HEADER.pack(*fields)
    except struct.error as reason:
        raise ValueError(f"a batch header cannot hold {fields}: {reason}") from reason


def write_record(record: Record, offset_delta: int, timestamp_delta: int) -> bytes:
    """One record of magic 2, with its length.

    :raises ValueError: a delta does not fit its varint.
    """
    _within(offset_delta, 32, "offset delta")
    _within(timestamp_delta, 64, "timestamp delta")
    parts = [b"\0", write_varint(timestamp_delta), write_varint(offset_delta)]
    parts += (_sized(record.key), _sized(record.value), write_varint(len(record.headers)))
    for name, value in record.headers:
        parts += (_sized(name.encode("utf-8", "surrogateescape")), _sized(value))
    body = b"".join(parts)
    return write_varint(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    return b"\1" if data is None else write_varint(len(data)) + data


def write_message_set(
    records: Sequence[Record], magic: int, codec: int = 0, *, append_timestamp: int | None = None
) -> bytes:
    """Messages of magic 0 or 1, or with a codec one wrapper around them, as a broker stores it. Inner offsets
    are absolute in magic 0 and relative in magic 1. The wrapper's offset is that of the last record.

    :param append_timestamp: LogAppendTime: the timestamp of all of them (magic 1).
    :raises ValueError: the format cannot store a value.
    """
    if magic not in (0, 1):
        raise ValueError(f"message sets have magic 0 or 1, not {magic}")
    if append_timestamp is not None and magic == 0:
        raise ValueError("messages of magic 0 have no timestamps")
    kind = LOG_APPEND_TIME if append_timestamp is not None else 0
    base = records[0].offset if records and codec and magic == 1 else 0
    timestamps = [record.timestamp if append_timestamp is None else append_timestamp for record in records]
    messages = b"".join(
        write_message(record._replace(offset=record.offset - base, timestamp=timestamp), magic, kind)
        for record, timestamp in zip(records, timestamps, strict=True)
    )
    if not codec or not records:
        return messages
    if codec == 4:
        raise ValueError("messages of magic 0 and 1 cannot have zstd")
    wrapper = Record(records[-1].offset, max(timestamps), None, compress(codec, messages, magic))
    return write_message(wrapper, magic, kind | _codec_bits(codec))


def write_message(record: Record, magic: int, attributes: int = 0) -> bytes:
    """One message of magic 0 or 1, with its attributes as given.

    :raises ValueError: the format cannot store a value.
    """
    if record.headers:
        raise ValueError(f"messages of magic {magic} have no headers")
    body = bytes([magic, attributes])
    if magic == 1:
        body += _within(record.timestamp, 64, "timestamp").to_bytes(8, "big", signed=True)
    for data in (record.key, record.value):
        body += b"\xff\xff\xff\xff" if data is None else len(data).to_bytes(4, "big") + data
    offset = _within(record.offset, 64, "offset").to_bytes(8, "big", signed=True)
    return offset + (4 + len(body)).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body


def _codec_bits(codec: int) -> int:
    if not 0 <= codec <= CODEC_BITS:
        raise ValueError(f"a codec id of {codec}")
    return codec


def _within(value: int, bits: int, what: str) -> int:
    if not -1 << bits - 1 <= value < 1 << bits - 1:
        raise ValueError(f"{what} {value} does not fit {bits} bits")
    return value
