"""What Spark does not tell a source in Python, and what it keeps: ``help spark`` says so.

If a test fails with a new Spark, the source may do more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kdissect.spark
from tests.spark.same import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

BASIC = CAPTURES / "basic-kafka43.pcapng"
_PYTHON = "org.apache.spark.sql.execution.datasources.v2.python"


def _interfaces(spark: SparkSession, name: str) -> set[str]:
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    found = spark._jvm.java.lang.Class.forName(f"{_PYTHON}.{name}", False, loader).getInterfaces()  # type: ignore[union-attr]
    return {each.getSimpleName() for each in found}


def test_no_columns_are_told(spark: SparkSession) -> None:
    """A source that is told them has ``SupportsPushDownRequiredColumns``."""
    assert _interfaces(spark, "PythonScanBuilder") == {"SupportsPushDownFilters"}


def test_a_plan_tells_no_files(spark: SparkSession) -> None:
    frame = kdissect.spark.exchanges(spark, BASIC).where("api = 'Fetch'")
    for mode in ("extended", "formatted", "cost"):
        plan = frame._jdf.queryExecution().explainString(
            spark._jvm.org.apache.spark.sql.execution.ExplainMode.fromString(mode)  # type: ignore[union-attr]
        )
        assert "kdissect" in plan
        assert BASIC.name not in plan, mode


def test_filters_are_kept_for_the_next_query(spark: SparkSession) -> None:
    from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, Filter, InputPartition

    class Reader(DataSourceReader):
        def __init__(self) -> None:
            self.wanted: list[Any] = []

        def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
            for each in filters:
                if isinstance(each, EqualTo):
                    self.wanted.append(each.value)
                yield each  # Spark filters, too

        def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
            return iter([(number,) for number in range(5) if not self.wanted or number in self.wanted])

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "takes-filters"

        def schema(self) -> str:
            return "number int"

        def reader(self, schema: Any) -> DataSourceReader:
            return Reader()

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        spark.dataSource.register(Source)
        frame = spark.read.format("takes-filters").load()
        assert frame.count() == 5
        assert frame.where("number = 1").count() == 1
        assert frame.count() == 1, "Spark does not keep filters any more: kdissect.spark.choice"
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
