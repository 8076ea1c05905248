"""Exchanges that several capture points saw → each exchange once, with the places and times at which it
was seen.

Two captures of one conversation have the same addresses of both ends and the same correlation ids. They also
have the same API, version and sizes, unless one of them lost a side. Their clocks differ, so the times only
show that copies are not far apart. A client may use one correlation id again and again. Then their order says
which copies belong together, if all capture points have the same number of them. If not, nothing shows it,
and they are not merged. They are not merged either if an address is translated between the points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdissect.spark.tables import POINT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SEEN_AT = "seen_at"
"""The column that merging adds."""
APART_NS = 60_000_000_000
"""The longest time between copies of one exchange. Over longer times correlation ids repeat."""

_SAME = ("client", "broker", "correlation_id")
_ALIKE = ("api_key", "api_version", "request_size", "response_size")
"""Columns in which copies agree, unless one has null."""
_OF_COPIES = ("number", "connection", "request_time_ns", "response_start_ns", "latency_ns")
"""The columns that are kept of every copy."""


def merged(exchanges: DataFrame, apart_ns: int = APART_NS) -> DataFrame:
    """Exchanges of several capture points → each once: the most complete copy.

    The column ``seen_at`` has all copies: ``capture_point``, ``number``, ``connection``, and the times there.
    The difference of their latencies is the time that the network between the points took.

    :raises ValueError: the exchanges do not name their capture point.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    if not has_points(exchanges):
        raise ValueError(f"these exchanges have no column {POINT}: make them with the option {POINT}")
    same, itself = [f.col(name) for name in _SAME], f.concat_ws(":", POINT, "number")
    in_time = Window.partitionBy(*same).orderBy("_time", POINT, "number")
    framed = exchanges.withColumn("_time", f.coalesce("request_time_ns", "response_time_ns"))
    begins = f.coalesce(f.col("_time") - f.lag("_time").over(in_time) > apart_ns, f.lit(True))
    framed = framed.withColumn("_group", f.sum(begins.cast("int")).over(in_time))

    at_point, of_group = (Window.partitionBy(*same, "_group", *more) for more in ((POINT,), ()))
    framed = framed.withColumn("_count", f.count("*").over(at_point))
    is_even = f.min("_count").over(of_group) == f.max("_count").over(of_group)
    place = f.row_number().over(at_point.orderBy("_time", "number")).cast("string")
    framed = framed.withColumn("_copy", f.when(is_even, place).otherwise(itself))

    copies = Window.partitionBy(*same, "_group", "_copy")
    framed = framed.withColumn("_copy", f.when(_are_alike(copies), f.col("_copy")).otherwise(itself))
    framed = framed.withColumn(
        SEEN_AT, f.sort_array(f.collect_list(f.struct(POINT, *_OF_COPIES)).over(copies))
    )
    best = copies.orderBy(f.col("missing").isNotNull(), f.size("faults"), POINT, "number")
    framed = framed.withColumn("_rank", f.row_number().over(best)).where("_rank = 1")
    return framed.drop("_time", "_group", "_count", "_copy", "_rank")


def has_points(exchanges: DataFrame) -> bool:
    """Whether exchanges name their capture point. The column is null if there is only one."""
    return POINT in exchanges.columns and bool(exchanges.where(f"{POINT} is not null").head(1))


def alone(exchanges: DataFrame) -> DataFrame:
    """Exchanges of one capture point in the form of :func:`merged`: each is its only copy."""
    from pyspark.sql import functions as f

    copy = f.struct(f.lit("").alias(POINT), *_OF_COPIES)
    return exchanges.withColumn(SEEN_AT, f.array(copy))


def of_exchanges(rows: DataFrame, exchanges: DataFrame) -> DataFrame:
    """The records or batches that belong to these exchanges."""
    kept = exchanges.selectExpr(POINT, "number as exchange")
    return rows.join(kept, [POINT, "exchange"], "left_semi").select(*rows.columns)


def _are_alike(copies: object) -> Column:
    from pyspark.sql import functions as f

    alike = f.lit(True)
    for name in _ALIKE:
        least, most = (each(name).over(copies) for each in (f.min, f.max))  # type: ignore[arg-type]
        alike &= f.coalesce(least == most, f.lit(True))
    return alike
