"""The ten questions of ``kdissect help spark``, each checked against ``kdissect stats``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import kdissect.spark
from kdissect.cli import main
from tests.spark.answers import check, questions
from tests.spark.same import CAPTURES
from tests.spark.test_stats import events_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CAPTURE = CAPTURES / "transactions-kafka39.pcapng"


def test_there_are_ten() -> None:
    assert len(questions()) == 10


def test_answers_are_those_of_stats(spark: SparkSession, stored: Path, tmp_path: Path) -> None:
    more = [str(CAPTURE), "--out", str(tmp_path), "--master", "local[2]", "-q"]
    tables = ("exchanges", "records", "connections")
    assert main(["spark", "batch", *(word for name in tables for word in ("--table", name)), *more]) == 0
    (tmp_path / "stats").symlink_to(stored / "stats")
    made = kdissect.spark.views(spark, tmp_path)
    assert {*tables, "stats_findings", "stats_lag"} <= set(made)
    try:
        answers = {
            question: [row.asDict() for row in spark.sql(query).collect()]
            for question, query in questions().items()
        }
    finally:
        for name in made:
            spark.catalog.dropTempView(name)
    events = [events_of(CAPTURE)]
    check(answers, events, events)


def test_views_of_nothing_are_none(spark: SparkSession, tmp_path: Path) -> None:
    assert kdissect.spark.views(spark, tmp_path) == []
    with pytest.raises(FileNotFoundError):
        kdissect.spark.views(spark, tmp_path / "none")
