"""Tables of ``kdissect spark batch`` or ``stream`` → what many captures say together, in Spark SQL.

The views: ``exchanges``, ``connections`` and, where they are there, ``batches``; numbers count in each
capture point, so exchanges and connections are joined by both. What several capture points saw of one
exchange counts once: see :mod:`kdissect.spark.copies`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdissect.protocol import apis
from kdissect.spark.copies import SEEN_AT, alone, merged
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
        "top clients by topic; bytes are of all messages that name it",
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
               count(*) as exchanges, count(error) as errors, count_if(response_packet is null) as unanswered,
               {_LATENCIES}
        from exchanges group by 1, 2 order by 1, exchanges desc, 2
        """,
    ),
    "errors": (
        "errors",
        """
        select api, error, count(*) as exchanges, count(distinct client_id) as clients,
               min(time_ns) as first_ns, max(time_ns) as last_ns
        from exchanges where error is not null group by all order by exchanges desc, api, error
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
               count(error) as errors
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
        "what would break on Kafka 4",
        f"""
        select 'version' as what, concat(e.api, ' ', e.api_version) as name, {_CLIENT} as software,
               e.client_id, count(*) as count, 'removed in 4.0 (KIP-896)' as reason
        from exchanges e join gone using (api_key, api_version)
             left join connections c using (connection, capture_point)
        group by all
        union all
        select 'message format', concat('magic ', b.magic, ' in ', coalesce(b.topic, b.topic_id)),
               {_CLIENT}, c.client_id, count(*), 'not written since 4.0 (KIP-724)'
        from batches b left join connections c using (connection, capture_point)
        where b.magic < 2 and b.direction = 'produce' group by all
        order by what desc, count desc, name, software, client_id
        """,
    ),
}
"""Name: what it is, and the query."""

_BATCHES_DDL = (
    f"connection bigint, {POINT} string, magic smallint, topic string, topic_id string, direction string"
)


class Report:
    """The views, and the sections of the report."""

    def __init__(self, spark: SparkSession, exchanges: DataFrame, connections: DataFrame) -> None:
        self._spark = spark
        if SEEN_AT not in exchanges.columns:
            exchanges = merged(exchanges) if POINT in exchanges.columns else alone(exchanges)
        _named(_with_point(exchanges), names(exchanges)).createOrReplaceTempView("exchanges")
        _with_point(connections).createOrReplaceTempView("connections")
        spark.createDataFrame([], _BATCHES_DDL).createOrReplaceTempView("batches")
        spark.createDataFrame(gone_in_4(), "api_key smallint, api_version smallint").createOrReplaceTempView(
            "gone"
        )

    def batches(self, frame: DataFrame) -> None:
        """Take in the table of batches: only it tells message formats."""
        _with_point(frame).createOrReplaceTempView("batches")

    def section(self, name: str, most: int) -> DataFrame:
        """The rows of one of the :data:`SECTIONS`, so many at most."""
        return self._spark.sql(SECTIONS[name][1]).limit(most)


def gone_in_4() -> list[tuple[int, int]]:
    """APIs and versions that releases before 4.0 have and none since: 4.0 removed them (KIP-896), and APIs of
    brokers without KRaft with them. A vendor's release, which has a hyphen, says nothing of that."""
    return [
        (key, version)
        for key in apis.api_keys()
        for version in apis.versions(key)
        if (releases := apis.releases_with(key, version))
        and all("-" not in release and int(release.partition(".")[0]) < 4 for release in releases)
    ]


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


def _with_point(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return frame if POINT in frame.columns else frame.withColumn(POINT, f.lit(""))
