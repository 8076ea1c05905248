"""Spark gives the rows of ``kdissect read``: every table, however many tasks share the work."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

import kdissect.spark
from tests.amount import some
from tests.spark.same import CAPTURES, TABLES, read_rows, spark_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STRATEGIES = ("replicas", "buckets", "shuffle")
CASES = ("basic-kafka43.pcapng", "consumer-group-kip848.pcapng", "loss.pcapng")


@pytest.mark.parametrize(
    ("strategy", "name", "tasks"),
    some(
        product(STRATEGIES, CASES, (1, 2, 7)),
        5,
        *zip(STRATEGIES, CASES, (1, 2, 7), strict=True),
        *(("replicas", "loss.pcapng", 7), ("buckets", "loss.pcapng", 7)),
    ),
)
def test_exchanges_are_those_of_read(spark: SparkSession, name: str, tasks: int, strategy: str) -> None:
    path = CAPTURES / name
    frame = kdissect.spark.table(spark, "exchanges", path, strategy=strategy, tasks=tasks, split_bytes=20_000)
    assert spark_rows(frame) == read_rows("exchanges", [path])


@pytest.mark.parametrize(
    ("table", "strategy"),
    some(product(TABLES, STRATEGIES), 7, *product(TABLES, ["buckets"]), *product(TABLES[1:2], STRATEGIES)),
)
def test_the_other_tables_are_those_of_read(spark: SparkSession, table: str, strategy: str) -> None:
    path = CAPTURES / "loss.pcapng"
    frame = kdissect.spark.table(spark, table, path, strategy=strategy, tasks=2, split_bytes=20_000)
    assert spark_rows(frame) == read_rows(table, [path])
