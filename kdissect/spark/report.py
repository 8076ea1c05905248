"""Tables of ``kdissect spark batch`` or ``stream`` → a report on many captures together.

Sections read statistics of rows: those of :mod:`kdissect.spark.stored_folds`, and ``versions`` for requests
that Kafka 4 would refuse (:mod:`kdissect.spark.readiness`). SQL orders and names their rows. Only the section
on quality is counted by Spark, because no fold knows the time of a fault (:mod:`kdissect.spark.quality`).

The other views: ``exchanges`` and ``connections``; numbers count in each capture point, so they are joined by
both. An exchange that several capture points saw counts once: see :mod:`kdissect.spark.copies`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from kdissect.limits import DEFAULTS
from kdissect.spark import quality
from kdissect.spark.copies import SEEN_AT, alone, has_points, merged
from kdissect.spark.frames import frame_of
from kdissect.spark.readiness import readiness
from kdissect.spark.tables import POINT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kdissect.spark.folds import CountedPoints

_HOUR = (  # in UTC, whatever the session's time zone is
    "concat(date_add(date '1970-01-01', cast(hour div 86400000000000 as int)), ' ', "
    "lpad(cast(pmod(hour, 86400000000000) div 3600000000000 as string), 2, '0'), ':00')"
)
_TIMES = "p50_ns, p95_ns, p99_ns, max_ns"

SECTIONS = {
    "topics": (
        "top clients by topic; bytes are those of all messages that name the topic",
        """
        select topic, client_id, client as host, sum(exchanges) as exchanges,
               sum(if(api = 'Produce', exchanges, 0)) as produce,
               sum(if(api = 'Fetch', exchanges, 0)) as fetch,
               sum(if(api = 'Produce', request_bytes, 0)) as produce_bytes,
               sum(if(api = 'Fetch', response_bytes, 0)) as fetch_bytes
        from counted_topics group by all
        order by produce_bytes + fetch_bytes desc, exchanges desc, topic, client_id, host
        """,
    ),
    "hours": (
        "errors and latency of each hour",
        f"""
        select {_HOUR} as hour, api, exchanges, errors, fatal, routine, unanswered, {_TIMES}
        from counted_hours order by 1, exchanges desc, 2
        """,
    ),
    "errors": (
        "errors: severity, client, and what they are about",
        """
        select error_class, api, error, client_id, principal, groups as `group`,
               transactional_ids as transactional_id, topics as topic, exchanges, first_ns, last_ns
        from counted_errors
        order by array_position(array('fatal', 'retriable', 'routine'), error_class), exchanges desc,
                 api, error, client_id, `group`, transactional_id, topic
        """,
    ),
    "latency": (
        "latency",
        f"select api, broker, answered as exchanges, {_TIMES} from counted_latency "
        "where answered > 0 order by exchanges desc, api, broker",
    ),
    "points": (
        "capture points",
        "select * from counted_points order by capture_point",
    ),
    "groups": (
        "groups",
        "select * from counted_groups order by members desc, `group`",
    ),
    "versions": (
        "protocol versions in use",
        "select * from counted_versions order by software, exchanges desc, api",
    ),
    "kafka4": (
        "versions that Kafka 4 removed: which side limits them, and what would break",
        "select * from readiness",
    ),
    quality.SECTION: (
        "faults and losses of each capture point and hour",
        f"select * from {quality.SECTION}",
    ),
}
"""The meaning and the query of each section, by name."""

_COUNTED = {
    "topics": "traffic,topic,client_id,client",
    "hours": "traffic,hour",
    "errors": "traffic,error,client_id,principal,groups,transactional_ids,topics",
    "latency": "traffic,broker",
    "points": "points",
    "groups": "groups",
    "versions": "versions",
}
"""The statistic of rows that a section reads (:mod:`kdissect.spark.stored_folds`)."""

_NEWER = {"error_class": "string", "principal": "string"}
_NEWER |= dict.fromkeys(("groups", "transactional_ids"), "array<string>")
"""Columns of exchanges that tables of older releases lack, and their types."""


class ReportViews:
    """The views, and the sections of the report."""

    def __init__(
        self,
        spark: SparkSession,
        exchanges: DataFrame,
        connections: DataFrame,
        faults: DataFrame | None = None,
        *,
        wanted: Collection[str] = tuple(SECTIONS),
    ) -> None:
        """
        :param faults: the faults; without them there is no section on quality.
        :param wanted: the sections that will be requested, so that their statistics are counted together.
        """
        self._spark = spark
        connections = _with_point(connections)
        self._quality = None
        if faults is not None:
            self._quality = quality.quality(_with_point(exchanges), connections, _with_point(faults))
        self.left_out = 0
        """How often something was left out of the last section because there was no room."""
        if SEEN_AT not in exchanges.columns:
            exchanges = merged(exchanges) if has_points(exchanges) else alone(exchanges)
        self._asked = {name: text for name, text in _COUNTED.items() if name in wanted}
        self._counted: CountedPoints | None = None
        self._exchanges = _with_point(_whole(exchanges))
        self._exchanges.createOrReplaceTempView("exchanges")
        connections.createOrReplaceTempView("connections")

    def section(self, name: str, most: int) -> DataFrame:
        """The rows of one of the :data:`SECTIONS`, at most ``most``.

        :raises LookupError: the table that it needs does not exist.
        """
        self.left_out = 0
        if name == "kafka4":
            frame, self.left_out = readiness(self._spark)
            frame.createOrReplaceTempView("readiness")
        if name in _COUNTED:
            self.left_out = self._count(name)
        if name == quality.SECTION:
            if self._quality is None:
                raise LookupError(name)
            self._quality.createOrReplaceTempView(name)
        return self._spark.sql(SECTIONS[name][1]).limit(most)

    def _count(self, name: str) -> int:
        """Make the view that a section reads; return how often something was left out."""
        if self._counted is None or name not in self._asked:
            self._asked = {**self._asked, name: _COUNTED[name]}
            rows = _with_software(self._exchanges, self._spark.table("connections"))
            # It needs pyarrow, and the help of the command does not.
            from kdissect.spark.stored_folds import counted_rows

            self._counted = counted_rows(rows, list(self._asked.values()), DEFAULTS)
        at = list(self._asked).index(name)
        frame_of(self._spark, self._counted.tables[at]).createOrReplaceTempView(f"counted_{name}")
        return self._counted.left_out[at]


def _with_software(exchanges: DataFrame, connections: DataFrame) -> DataFrame:
    """Exchanges with the column ``software`` of their connections."""
    known = connections.select(POINT, "connection", "software")
    return exchanges.join(known, [POINT, "connection"], "left")


def _whole(exchanges: DataFrame) -> DataFrame:
    """Exchanges with the columns that tables of older releases lack. The class of their errors is unknown."""
    from pyspark.sql import functions as f

    for name, kind in _NEWER.items():
        if name not in exchanges.columns:
            exchanges = exchanges.withColumn(name, f.lit(None).cast(kind))
    grave = f.when(f.col("error").isNotNull(), f.coalesce("error_class", f.lit("unknown")))
    return exchanges.withColumn("error_class", grave)


def _with_point(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    point = f.coalesce(POINT, f.lit("")) if POINT in frame.columns else f.lit("")
    return frame.withColumn(POINT, point)
