"""Tables of ``kdissect spark batch`` or ``stream`` → what many captures say together, in Spark SQL.

The views: ``exchanges`` and ``connections``; numbers count in each capture point, so they are joined by
both. What several capture points saw of one exchange counts once: see :mod:`kdissect.spark.copies`. What
Kafka 4 would refuse is judged by the statistic ``versions``: :mod:`kdissect.spark.readiness`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdissect.spark import quality
from kdissect.spark.copies import SEEN_AT, alone, has_points, merged
from kdissect.spark.readiness import readiness
from kdissect.spark.tables import POINT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CLIENT = "coalesce(c.software, 'unknown')"
_LATENCIES = ", ".join(
    [
        *(f"cast(percentile(latency_ns, 0.{part}) as bigint) as p{part}_ns" for part in ("50", "95", "99")),
        "max(latency_ns) as max_ns",
    ]
)

SECTIONS = {
    "topics": (
        "top clients by topic; bytes are those of all messages that name the topic",
        """
        select topic, client_id, regexp_replace(client, ':[0-9]+$', '') as host, count(*) as exchanges,
               count_if(api = 'Produce') as produce, count_if(api = 'Fetch') as fetch,
               sum(if(api = 'Produce', request_size, 0)) as produce_bytes,
               sum(if(api = 'Fetch', response_size, 0)) as fetch_bytes
        from (select *, explode(topic_names) as topic from exchanges)
        group by all
        order by produce_bytes + fetch_bytes desc, exchanges desc, topic, client_id, host
        """,
    ),
    "hours": (
        "errors and latency of each hour",
        f"""
        select date_format(timestamp_seconds(time_ns div 1000000000), 'yyyy-MM-dd HH:00') as hour, api,
               count(*) as exchanges, count_if(error_class <> 'routine') as errors,
               count_if(error_class = 'fatal') as fatal, count_if(error_class = 'routine') as routine,
               count_if(response_packet is null) as unanswered,
               {_LATENCIES}
        from exchanges group by 1, 2 order by 1, exchanges desc, 2
        """,
    ),
    "errors": (
        "errors: severity, client, and what they are about",
        """
        select error_class, api, error, client_id, principal, array_join(groups, ', ') as `group`,
               array_join(transactional_ids, ', ') as transactional_id,
               array_join(topic_names, ', ') as topic, count(*) as exchanges,
               min(time_ns) as first_ns, max(time_ns) as last_ns
        from exchanges where error is not null group by all
        order by array_position(array('fatal', 'retriable', 'routine'), error_class), exchanges desc,
                 api, error, client_id, `group`, transactional_id, topic
        """,
    ),
    "latency": (
        "latency",
        f"select api, broker, count(latency_ns) as exchanges, {_LATENCIES} "
        "from exchanges where latency_ns is not null group by all order by exchanges desc, api, broker",
    ),
    "points": (
        "capture points",
        f"""
        select copy.capture_point, count(*) as exchanges, count_if(size({SEEN_AT}) = 1) as only_here,
               cast(percentile(copy.latency_ns, 0.5) as bigint) as p50_ns,
               cast(percentile(if(size({SEEN_AT}) > 1, longest - copy.latency_ns, null), 0.5) as bigint)
                   as p50_to_here_ns
        from (select explode({SEEN_AT}) as copy, {SEEN_AT},
                     array_max(transform({SEEN_AT}, each -> each.latency_ns)) as longest from exchanges)
        group by all order by 1
        """,
    ),
    "groups": (
        "groups",
        """
        select `group`, count(distinct member) as members, count(distinct client_id) as clients,
               count_if(api = 'JoinGroup') as joins, count_if(api = 'SyncGroup') as syncs,
               count_if(api = 'OffsetCommit') as commits, count_if(api like '%Heartbeat') as heartbeats,
               count_if(error_class <> 'routine') as errors, count_if(error_class = 'fatal') as fatal,
               count_if(error_class = 'routine') as routine
        from (select *, get_json_object(request, '$.body.groupId') as `group`,
                     nullif(get_json_object(request, '$.body.memberId'), '') as member from exchanges)
        where `group` is not null group by all order by members desc, `group`
        """,
    ),
    "versions": (
        "protocol versions in use",
        f"""
        select {_CLIENT} as software, e.api,
               array_sort(collect_set(cast(e.api_version as bigint))) as versions, count(*) as exchanges,
               count(distinct e.client_id) as clients
        from exchanges e left join connections c using (connection, capture_point)
        where e.api_version is not null group by all order by software, exchanges desc, api
        """,
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
"""Name: what it is, and the query."""

_NEWER = {"error_class": "string", "principal": "string"}
_NEWER |= dict.fromkeys(("groups", "transactional_ids"), "array<string>")
"""Columns of exchanges that tables of older releases do not have, and their types."""


class ReportViews:
    """The views, and the sections of the report."""

    def __init__(
        self,
        spark: SparkSession,
        exchanges: DataFrame,
        connections: DataFrame,
        faults: DataFrame | None = None,
    ) -> None:
        """
        :param faults: without it there is no section on quality.
        """
        self._spark = spark
        connections = _with_point(connections)
        self._quality = None
        if faults is not None:
            self._quality = quality.quality(_with_point(exchanges), connections, _with_point(faults))
        self.left_out = 0
        """How often something was left out of the last section for want of room."""
        if SEEN_AT not in exchanges.columns:
            exchanges = merged(exchanges) if has_points(exchanges) else alone(exchanges)
        exchanges = _whole(exchanges)
        _named(_with_point(exchanges), names(exchanges)).createOrReplaceTempView("exchanges")
        connections.createOrReplaceTempView("connections")

    def section(self, name: str, most: int) -> DataFrame:
        """The rows of one of the :data:`SECTIONS`, so many at most.

        :raises LookupError: the table that it needs is not there.
        """
        self.left_out = 0
        if name == "kafka4":
            frame, self.left_out = readiness(self._spark)
            frame.createOrReplaceTempView("readiness")
        if name == quality.SECTION:
            if self._quality is None:
                raise LookupError(name)
            self._quality.createOrReplaceTempView(name)
        return self._spark.sql(SECTIONS[name][1]).limit(most)


def names(exchanges: DataFrame) -> DataFrame:
    """Topic ids and names that any capture tells, by Metadata responses: ``topic_id``, ``name``."""
    from pyspark.sql import functions as f

    form = "struct<body:struct<topics:array<struct<name:string,topicId:string>>>>"
    told = exchanges.where("api = 'Metadata'").select(f.from_json("response", form).alias("r"))
    each = told.select(f.explode("r.body.topics").alias("t"))
    both = each.where("t.topicId is not null and t.name is not null")
    return both.groupBy(f.col("t.topicId").alias("topic_id")).agg(f.min("t.name").alias("name"))


def _named(exchanges: DataFrame, known: DataFrame) -> DataFrame:
    """With ``topic_names``, in which ids that another capture names have their name; and ``time_ns``."""
    from pyspark.sql import functions as f

    every = known.agg(f.map_from_entries(f.collect_list(f.struct("topic_id", "name"))).alias("_names"))
    topics = f.transform("topics", lambda topic: f.coalesce(f.col("_names")[topic], topic))
    named = exchanges.crossJoin(f.broadcast(every)).withColumn("topic_names", topics).drop("_names")
    return named.withColumn("time_ns", f.coalesce("request_time_ns", "response_time_ns"))


def _whole(exchanges: DataFrame) -> DataFrame:
    """With the columns that tables of older releases do not have: of their errors the class is not known."""
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
