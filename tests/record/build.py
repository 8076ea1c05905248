"""Record sets for tests, broken ones too: nothing is checked, every number is as given."""

from __future__ import annotations

import struct
import zlib

import crc32c

from kdissect.record.compression import compress
from kdissect.record.records import Record
from kdissect.record.write import write_record

RECORDS = (
    Record(100, 1_700_000_000_000, b"k1", b"value-one", (("trace-id", b"abc"), ("absent", None), ("", b""))),
    Record(101, 1_700_000_000_500, None, b"", (("näme", b"\xff"),)),
    Record(104, 1_699_999_999_000, b"", None),
    Record(300, 1_700_000_100_000, b"k" * 70, b"v" * 9_000),
)
PLAIN_RECORDS = tuple(record._replace(headers=()) for record in RECORDS)


def batch(
    body: bytes,
    *,
    count: int,
    attributes: int = 0,
    base_offset: int = 100,
    last_delta: int = 0,
    max_timestamp: int = 0,
    length: int | None = None,
) -> bytes:
    """A batch of magic 2 around ``body``, packed already if it is; with a right checksum."""
    checked = struct.pack(">hiqqqhii", attributes, last_delta, 0, max_timestamp, -1, -1, -1, count) + body
    size = 9 + len(checked) if length is None else length
    return struct.pack(">qiibI", base_offset, size, -1, 2, crc32c.crc32c(checked)) + checked


def packed_batch(codec: int, body: bytes, count: int) -> bytes:
    return batch(compress(codec, body), count=count, attributes=codec)


def bodies(records: tuple[Record, ...] = RECORDS) -> bytes:
    base = records[0]
    return b"".join(
        write_record(record, record.offset - base.offset, record.timestamp - base.timestamp)
        for record in records
    )


def message(
    magic: int,
    attributes: int,
    offset: int,
    value: bytes | None,
    key: bytes | None = None,
    timestamp: int = 7,
    crc: int | None = None,
) -> bytes:
    body = bytes([magic, attributes]) + (struct.pack(">q", timestamp) if magic == 1 else b"")
    for data in (key, value):
        body += struct.pack(">i", -1 if data is None else len(data)) + (data or b"")
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body) if crc is None else crc) + body


def wrapper(
    magic: int, codec: int, offset: int, inner: bytes, log_append: bool = False, timestamp: int = 7
) -> bytes:
    attributes = codec | (8 if log_append else 0)
    return message(magic, attributes, offset, compress(codec, inner, magic), timestamp=timestamp)
