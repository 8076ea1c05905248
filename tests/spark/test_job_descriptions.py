"""What Spark's UI says of our jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from kdissect.spark.event_files import KeptFile
from kdissect.spark.job import BatchUnit, Job, RowMaker, Unit
from kdissect.spark.job_descriptions import described
from kdissect.spark.settings import TableSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_jobs_have_a_description_and_those_after_them_have_none(spark: SparkSession) -> None:
    with described(spark, "count to ten"):
        spark.range(10).count()
    spark.range(11).count()
    jobs = cast(Any, spark.sparkContext)._jsc.sc().statusStore().jobsList(None)
    found = [jobs.apply(at).description() for at in range(jobs.size())]
    told = [each.get() if each.isDefined() else None for each in found]
    assert "kdissect: count to ten" in told
    assert told[0] != "kdissect: count to ten"  # the latest comes first


def test_a_job_says_what_its_tasks_do() -> None:
    def words(*units: Any) -> str:
        return Job(units, (), TableSettings()).words

    kept = KeptFile("", 0, 0)
    assert words(Unit("a", ()), Unit("b", ())) == "read and dissect 2 capture points"
    assert (
        words(RowMaker("a", (), kept), RowMaker("a", (), kept))
        == "make rows of what was dissected, in 2 tasks"
    )
    batch = BatchUnit("a", (), cast(Any, None), 7)
    assert words(batch) == "batch 7: dissect what is new of 1 capture point"
