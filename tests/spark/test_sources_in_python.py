"""What Spark does not tell a source in Python, and what it keeps.

If a test fails with a new Spark, the source may do more by itself, and :mod:`kdissect.spark.scans` may be
needless. In Spark 4.3, Python alone has no other way:

- A plan shows of a source the name that its class was registered with. What its scan is called is always
  ``(Python)``. Spark shows nothing of an instance, its partitions or the metadata of columns.
- A table function in Python (UDTF) shows its arguments, and so its paths. But it is not told which of its
  columns a query needs, and without a table as argument it is a single task.
- ``mapInArrow`` is not told columns, and shows only the function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kdissect.spark
from kdissect.spark.scans import RULE
from tests.spark.same import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

BASIC, ERRORS = CAPTURES / "basic-kafka43.pcapng", CAPTURES / "errors.pcapng"
_PYTHON = "org.apache.spark.sql.execution.datasources.v2.python"


def _interfaces(spark: SparkSession, name: str) -> set[str]:
    loader = spark._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]
    found = spark._jvm.java.lang.Class.forName(f"{_PYTHON}.{name}", False, loader).getInterfaces()  # type: ignore[union-attr]
    return {each.getSimpleName() for each in found}


def test_no_columns_are_told(spark: SparkSession) -> None:
    """A source that is told them has ``SupportsPushDownRequiredColumns``."""
    assert _interfaces(spark, "PythonScanBuilder") == {"SupportsPushDownFilters"}


def _plan(spark: SparkSession, frame: DataFrame, mode: str) -> str:
    modes = spark._jvm.org.apache.spark.sql.execution.ExplainMode  # type: ignore[union-attr]
    return str(frame._jdf.queryExecution().explainString(modes.fromString(mode)))


def test_a_plan_tells_a_source_s_name_only(spark: SparkSession) -> None:
    """So the name says which captures are read, where kdissect itself chooses the name."""
    kdissect.spark.register(spark)
    spark.conf.set("spark.sql.optimizer.excludedRules", RULE)
    try:
        plain = spark.read.format("kdissect").load(str(BASIC)).where("api = 'Fetch'")
        titled = kdissect.spark.exchanges(spark, [BASIC, ERRORS]).where("api = 'Fetch'")
        for mode in ("simple", "extended", "formatted", "cost"):
            plan = _plan(spark, plain, mode)
            assert "kdissect" in plan
            assert BASIC.name not in plan, mode
            assert f"kdissect: exchanges of 2 files, 0.2 MiB: {BASIC}, {ERRORS}" in _plan(spark, titled, mode)
    finally:
        spark.conf.unset("spark.sql.optimizer.excludedRules")


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
        assert frame.count() == 1, "Spark does not keep filters any more: kdissect.spark.scans"
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
