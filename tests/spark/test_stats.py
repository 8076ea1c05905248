"""Spark gives the rows of ``kdissect stats`` and ``kdissect explain``, however many tasks share the work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import kdissect.spark
from kdissect.analysis.catalogue import STATISTICS, statistic
from kdissect.analysis.fold import Statistic
from kdissect.analysis.together import Together
from kdissect.capture.files import read_packets
from kdissect.dissect import Event, dissect
from kdissect.insight.judge import Judge
from kdissect.limits import DEFAULTS, Limits
from kdissect.present.arrow import RowBatches
from kdissect.present.columns import Table
from kdissect.present.findings import FINDINGS
from kdissect.present.statistics import STATISTICS as TABLES
from kdissect.spark.folds import Found, found
from kdissect.spark.settings import Settings
from kdissect.spark.statistics import Asked
from tests.spark.same import CAPTURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = tuple(
    f"{name},100ms" if name in ("io", "timeline") else ",".join((name, *each.groupings))
    for name, each in STATISTICS.items()
)
"""Every statistic, as it tells most apart."""
CASES = ("transactions-kafka39.pcapng", "consumer-group-kip848.pcapng")


def on_spark(spark: SparkSession, paths: Sequence[Path], texts: Sequence[str], **options: Any) -> Found:
    """What a job finds."""
    asked = Asked(tuple(texts), options.get("limits", DEFAULTS))
    return found(spark, Settings.of(options), list(map(str, paths)), asked)


def on_one_machine(
    events: Iterable[Event], texts: Iterable[str], limits: Limits = DEFAULTS
) -> list[Statistic]:
    """The same statistics without Spark."""
    made = [statistic(text, limits)[1] for text in texts]
    together = Together(made)
    for event in events:
        together.feed(event)
    return made


def events_of(*paths: Path) -> list[Event]:
    return list(dissect(read_packets(paths)))


def rows_of(table: Table, sources: Iterable[Any]) -> list[dict[str, Any]]:
    """Rows, as Arrow has them."""
    rows = RowBatches(table)
    batches: list[pa.RecordBatch | None] = [rows.add(source) for source in sources]
    batches.append(rows.take())
    return [row for batch in batches if batch is not None for row in batch.to_pylist()]


def of(table: pa.Table, point: str) -> list[dict[str, Any]]:
    """The rows of a capture point, without its name."""
    rows: list[dict[str, Any]] = table.to_pylist()
    return [row for row in rows if row.pop(table.column_names[0]) == point]


@pytest.mark.parametrize("tasks", [1, 7])
def test_every_statistic_is_that_of_one_machine(spark: SparkSession, tasks: int) -> None:
    made = on_spark(spark, [CAPTURES / name for name in CASES], ALL, tasks=tasks, capture_point=r"[^/]+$")
    for name in CASES:
        alone = on_one_machine(events_of(CAPTURES / name), ALL)
        for text, fold, table in zip(ALL, alone, made.tables, strict=True):
            assert of(table, name) == rows_of(TABLES[fold.name], fold.result()), (name, text)
    assert made.left_out == (0,) * len(ALL)
    assert made.damage == []
    empty = {text for text, table in zip(ALL, made.tables, strict=True) if not len(table)}
    assert empty <= {"share", "quorum", "lag"}  # for most there is something to compare
