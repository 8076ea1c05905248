"""Spark gives the rows of ``kdissect read``: every table, however many tasks share the work."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import kdissect.spark
from tests.amount import some
from tests.spark.passes import pass_over
from tests.spark.same import CAPTURES, TABLES, read_rows, spark_rows, written_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = ("basic-kafka43.pcapng", "consumer-group-kip848.pcapng", "loss.pcapng")
ALL = sorted(path.name for path in CAPTURES.glob("*.pcap*"))


@pytest.mark.parametrize(
    ("name", "tasks"), some(product(CASES, (1, 2, 7)), 3, *zip(CASES, (1, 2, 7), strict=True))
)
def test_exchanges_are_those_of_read(spark: SparkSession, name: str, tasks: int) -> None:
    path = CAPTURES / name
    frame = kdissect.spark.table(spark, path, "exchanges", tasks=tasks)
    assert spark_rows(frame) == read_rows("exchanges", [path])


@pytest.mark.parametrize("table", TABLES[1:])
def test_the_other_tables_are_those_of_read(spark: SparkSession, table: str) -> None:
    path = CAPTURES / "loss.pcapng"
    frame = kdissect.spark.table(spark, path, table, tasks=2)
    assert spark_rows(frame) == read_rows(table, [path])


@pytest.mark.parametrize(
    ("name", "tasks"), some(product(ALL, (1, 2, 7)), 6, *product(["loss.pcapng"], (1, 7)))
)
def test_several_tables_of_one_pass_are_those_of_read(tmp_path: Path, name: str, tasks: int) -> None:
    outcomes = pass_over([CAPTURES / name], tmp_path, TABLES, tasks)
    for table in TABLES:
        assert written_rows(tmp_path / table) == read_rows(table, [CAPTURES / name]), table
    assert sum(each.read for each in outcomes) == (CAPTURES / name).stat().st_size
