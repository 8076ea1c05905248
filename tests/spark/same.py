"""Rows of Spark, and rows that ``kdissect read`` gives for the same captures."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from kdissect.capture.files import read_packets
from kdissect.dissect import Event
from kdissect.limits import DEFAULTS, Limits
from kdissect.present.arrow import RowBatches
from kdissect.present.options import PLAIN
from kdissect.present.sources import sources_of
from kdissect.spark.tables import full_table
from tests.dissecting import dissect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
TABLES = ("exchanges", "records", "batches", "connections", "faults")


def read_rows(
    name: str,
    paths: Sequence[str | Path],
    ports: frozenset[int] = frozenset(),
    limits: Limits = DEFAULTS,
    without: Container[str] = (),
) -> list[str]:
    """The rows of a table without Spark, and without some columns."""
    return event_rows(dissect(read_packets(paths, limits), limits, ports), name, without)


def event_rows(events: Iterable[Event], name: str, without: Container[str] = ()) -> list[str]:
    """The rows of a table that events bring."""
    rows = RowBatches(full_table(name, False, False), PLAIN)
    batches = [rows.add(source) for event in events for source in sources_of(name, event, PLAIN)]
    batches.append(rows.take())
    found = (row for batch in batches if batch is not None for row in batch.to_pylist())
    return in_order({name: row[name] for name in row if name not in without} for row in found)


def spark_rows(frame: DataFrame) -> list[str]:
    """The rows of a DataFrame."""
    found: pa.Table = frame.toArrow()
    return in_order(found.to_pylist())


def written_rows(path: Path) -> list[str]:
    """The rows of Parquet, without the moments beside nanoseconds."""
    return in_order(without_moments(pq.read_table(path).to_pylist()))


def without_moments(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without the moments beside nanoseconds."""
    return [{name: row[name] for name in row if not name.endswith("_ts")} for row in rows]


def in_order(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))
