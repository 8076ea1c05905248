"""Kafka's own record sets, and what Kafka's iterators give for them."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kdissect.record.batch import Batch
from kdissect.record.records import Record

BATCH_COLUMNS = (
    "position",
    "size",
    "magic",
    "base_offset",
    "last_offset",
    "codec",
    "timestamp_type",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "is_transactional",
    "is_control",
    "delete_horizon_ms",
    "partition_leader_epoch",
    "crc",
    "crc_valid",
    "count",
)


class Vector(NamedTuple):
    id: str
    data: bytes
    batches: list[dict[str, Any]]
    records: list[dict[str, Any]]
    trailing_bytes: int


@cache
def vectors() -> tuple[Vector, ...]:
    path = Path(__file__).parents[1] / "data" / "official" / "recordsets.ndjson.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        rows = [json.loads(line) for line in lines]
    return tuple(
        Vector(
            row["id"],
            bytes.fromhex(row["hex"]),
            row["expected"]["batches"],
            row["expected"]["records"],
            row["expected"]["trailing_bytes"],
        )
        for row in rows
    )


def vector(identity: str) -> Vector:
    return next(each for each in vectors() if each.id == identity)


def batch_row(batch: Batch) -> dict[str, Any]:
    return {name: getattr(batch, name) for name in BATCH_COLUMNS}


def record_row(record: Record) -> dict[str, Any]:
    def hexed(data: bytes | None) -> str | None:
        return None if data is None else data.hex()

    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key_hex": hexed(record.key),
        "value_hex": hexed(record.value),
        "headers": [[name, hexed(value)] for name, value in record.headers],
    }
