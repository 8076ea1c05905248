"""Faults and gaps of captures, by capture point and hour.

A fault has a packet and no time. It counts in the hour of the last message before it at its capture point.
Before the first message, it counts in the hour of the first message. A fault without a packet counts in the
hour in which its connection began. Bytes that a connection lost count in that hour too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdissect.spark.tables import POINT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SECTION = "quality"

NOT_CAPTURED = ("not captured", "gap", "skipped", "evicted", "capture ended")
"""Values of ``missing`` that mean that the capture, and not the broker, lacks something."""

LAYERS = ("file", "link", "tcp", "frame", "session", "message", "records", "tls")

_COUNTS = (
    *("exchanges", "not_captured", "faults", *(f"{layer}_faults" for layer in LAYERS)),
    *("gap_bytes", "skipped_bytes", "retransmitted"),
)


def quality(exchanges: DataFrame, connections: DataFrame, faults: DataFrame) -> DataFrame:
    """A row for each capture point and hour (as text, in UTC; null where it is not known).

    Its columns: ``exchanges``; of them ``not_captured``; ``faults``, and those of each layer; ``gap_bytes``,
    ``skipped_bytes`` and ``retransmitted`` bytes; the ``kinds`` of faults.

    :param exchanges: exchanges with the column of the capture point, which all three tables have; copies of
        several points are not merged.
    """
    from pyspark.sql import functions as f

    counted = exchanges.select(
        POINT,
        f.coalesce("request_time_ns", "response_time_ns").alias("ns"),
        f.lit(1).alias("exchanges"),
        f.coalesce(f.col("missing").isin(*NOT_CAPTURED), f.lit(False)).cast("int").alias("not_captured"),
    )
    lost = connections.select(
        POINT, f.col("start_ns").alias("ns"), "gap_bytes", "skipped_bytes", "retransmitted"
    )
    wrong = _timed(exchanges, connections, faults).select(
        *(POINT, "ns", "kind", f.lit(1).alias("faults")),
        *((f.col("layer") == layer).cast("int").alias(f"{layer}_faults") for layer in LAYERS),
    )
    rows = counted.unionByName(lost, allowMissingColumns=True).unionByName(wrong, allowMissingColumns=True)
    seconds = f.floor(f.col("ns") / f.lit(1_000_000_000))
    # In UTC, whatever the session's time zone is.
    day = f.date_add(f.lit("1970-01-01").cast("date"), f.floor(seconds / f.lit(86_400)).cast("int"))
    hour = f.lpad(f.floor(seconds % 86_400 / 3_600).cast("string"), 2, "0")
    rows = rows.withColumn("hour", f.concat(day.cast("string"), f.lit(" "), hour, f.lit(":00")))
    return (
        rows.groupBy(POINT, "hour")
        .agg(
            *(f.coalesce(f.sum(name), f.lit(0)).cast("bigint").alias(name) for name in _COUNTS),
            f.array_join(f.array_sort(f.collect_set("kind")), ", ").alias("kinds"),
        )
        .orderBy(POINT, f.col("hour").asc_nulls_last())
    )


def _timed(exchanges: DataFrame, connections: DataFrame, faults: DataFrame) -> DataFrame:
    """Faults with a time: capture point, layer, kind, ns."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    known = [
        exchanges.where(f.col(f"{side}_packet").isNotNull()).select(
            POINT, f.col(f"{side}_packet").alias("packet"), f.col(f"{side}_time_ns").alias("known_ns")
        )
        for side in ("request", "response")
    ]
    begun = connections.groupBy(POINT, "connection").agg(f.min("start_ns").alias("begun_ns"))
    own = faults.select(POINT, "connection", "packet", "layer", "kind").withColumn("is_fault", f.lit(True))
    own = own.join(begun, [POINT, "connection"], "left")
    both = own.unionByName(known[0].union(known[1]), allowMissingColumns=True)
    order = Window.partitionBy(POINT).orderBy(f.col("packet").asc_nulls_last(), f.col("known_ns").desc())
    before = f.last("known_ns", True).over(order.rowsBetween(Window.unboundedPreceding, 0))
    after = f.first("known_ns", True).over(order.rowsBetween(0, Window.unboundedFollowing))
    by_packet = f.when(f.col("packet").isNotNull(), f.coalesce(before, after))
    timed = both.withColumn("ns", f.coalesce(by_packet, "begun_ns"))
    return timed.where("is_fault").select(POINT, "layer", "kind", "ns")
