"""The rule of Spark's optimizer: which columns and rows are made, what plans say, and that results stay the
same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.functions import expr

import kdissect.spark
from kdissect.spark import scans
from kdissect.spark.scans import RULE
from tests.amount import only_long, some
from tests.spark.same import CAPTURES, spark_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BASIC, ERRORS, LOSS = (CAPTURES / f"{name}.pcapng" for name in ("basic-kafka43", "errors", "loss"))
_EXCLUDED = "spark.sql.optimizer.excludedRules"


@pytest.fixture
def excluded(spark: SparkSession) -> Iterator[SparkSession]:
    """A session where the rule is turned off."""
    spark.conf.set(_EXCLUDED, RULE)
    yield spark
    spark.conf.unset(_EXCLUDED)


def captured(spark: SparkSession, *paths: Path, **options: Any) -> DataFrame:
    """What a notebook writes."""
    kdissect.spark.register(spark)
    return spark.read.format("kdissect").options(**options).load(list(map(str, paths)))


def plan(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def scanned(frame: DataFrame) -> list[list[str]]:
    """The columns of each scan of captures."""
    found = re.findall(r"BatchScan kdissect[^\n]*\[([^\]]*)\] \(Python\)", plan(frame))
    return [re.findall(r"(\w+)#", columns) for columns in found]


def pushed(frame: DataFrame) -> list[str]:
    """The filters of each scan of captures."""
    return re.findall(r"BatchScan kdissect[^\n]*, PushedFilters: \[([^\n]*)\]\[", plan(frame))


def made(frame: DataFrame) -> int:
    """How many rows the scan of a query makes."""
    planned = frame._jdf.queryExecution().executedPlan()
    planned.executeCollect()
    leaf = planned.collectLeaves().apply(0)
    return int(leaf.metrics().apply("numOutputRows").value())


def test_a_scan_reads_what_the_query_needs(spark: SparkSession) -> None:
    for frame in (captured(spark, BASIC), kdissect.spark.exchanges(spark, BASIC)):
        assert scanned(frame.select("latency_ns")) == [["number", "latency_ns"]]
        assert scanned(frame.where("api = 'Fetch'").select("latency_ns")) == [["number", "api", "latency_ns"]]
        assert scanned(frame.groupBy("api").count()) == [["number", "api"]]
        assert scanned(frame.groupBy().count()) == [["number"]]
        both = frame.alias("a").join(frame.alias("b"), "number").select("a.api", "b.client_id")
        assert sorted(scanned(both)) == [["number", "api"], ["number", "client_id"]]
        assert len(scanned(frame)[0]) > 20


def test_bodies_are_not_made_to_count(spark: SparkSession) -> None:
    frame = captured(spark, BASIC)
    columns = scanned(frame.where("latency_ns > 0").groupBy("api").count())
    assert columns == [["number", "api", "latency_ns"]]
    assert frame.count() == len(frame.collect())


@only_long
@pytest.mark.parametrize("name", ["exchanges", "records"])
def test_rows_are_the_same(spark: SparkSession, name: str) -> None:
    frame = captured(spark, BASIC, ERRORS, table=name, tasks=2)
    frame.createOrReplaceTempView("scanned")
    last, middle = frame.columns[-1], frame.columns[len(frame.columns) // 2]
    queries = (
        f"select `{last}`, `{middle}` from scanned",
        f"select `{middle}` from scanned where `{last}` is not null",
        "select count(*) from scanned",
        f"select distinct `{middle}` from scanned",
        f"select count(`{last}`) from scanned where `{middle}` in (select `{middle}` from scanned)",
        f"select `{last}` from scanned union all select `{last}` from scanned",
    )
    found = [spark_rows(spark.sql(query)) for query in queries]
    spark.conf.set(_EXCLUDED, RULE)
    try:
        assert len(scanned(spark.sql(queries[2]))[0]) > 2
        assert found == [spark_rows(spark.sql(query)) for query in queries]
    finally:
        spark.conf.unset(_EXCLUDED)
        spark.catalog.dropTempView("scanned")


def test_a_table_of_the_catalog_has_its_options_still(spark: SparkSession) -> None:
    kdissect.spark.register(spark)
    spark.sql(f"CREATE TABLE scanned USING kdissect OPTIONS (path '{ERRORS}', stats 'errors')")
    try:
        expected = kdissect.spark.stats(spark, ERRORS, "errors").select("last_ns")
        found = spark.table("scanned").select("last_ns")
        assert spark_rows(found) == spark_rows(expected) != []
        assert f"kdissect (errors of file:{ERRORS})" in plan(found)
        other = spark.sql(f"SELECT last_ns FROM scanned WITH (path '{BASIC}')")
        assert f"kdissect (errors of {BASIC})" in plan(other)
        assert spark_rows(other) == spark_rows(kdissect.spark.stats(spark, BASIC, "errors").select("last_ns"))
    finally:
        spark.sql("DROP TABLE scanned")


def test_a_plan_says_what_is_read(spark: SparkSession, tmp_path: Path) -> None:
    both = captured(spark, BASIC, ERRORS, table="records")
    assert f"BatchScan kdissect (records of {BASIC}, {ERRORS})[" in plan(both)
    assert f"BatchScan kdissect (srt of {BASIC})[" in plan(captured(spark, BASIC, stats="srt").select("api"))
    long = tmp_path / ("x" * 200)
    long.symlink_to(BASIC)
    assert f"of {tmp_path}" in plan(captured(spark, long))
    assert "x…)[" in plan(captured(spark, long))


def test_who_turns_the_rule_off_has_all_columns(excluded: SparkSession) -> None:
    frame = captured(excluded, BASIC).select("api")
    assert len(scanned(frame)[0]) > 20
    assert "BatchScan kdissect[" in plan(frame)


def test_a_session_has_the_rule_once(spark: SparkSession) -> None:
    other = spark.newSession()
    for session in (spark, other, other):
        kdissect.spark.register(session)
        rules = session._jsparkSession.experimental().extraOptimizations()
        assert [rules.apply(at).ruleName() for at in range(rules.size())].count(RULE) == 1
    assert scanned(captured(other, BASIC).select("api")) == [["number", "api"]]


def test_a_view_of_another_session_is_read(spark: SparkSession) -> None:
    """The other session does not know the source that :func:`kdissect.spark.exchanges` made."""
    kdissect.spark.exchanges(spark, [ERRORS], limits="connections=977").createGlobalTempView("scanned")
    other = spark.newSession()
    kdissect.spark.register(other)
    try:
        for query in ("select api from global_temp.scanned", "select * from global_temp.scanned"):
            assert spark_rows(other.sql(query)) == spark_rows(spark.sql(query)) != []
    finally:
        spark.catalog.dropGlobalTempView("scanned")


def test_without_the_rule_rows_are_read_as_before(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark may have other classes one day."""
    monkeypatch.setattr(scans, "_COMPILED", {})
    tried = []

    def wrong() -> str:
        tried.append(1)
        return "public class Wrong extends NoSuchClass {}"

    monkeypatch.setattr(scans, "_source", wrong)
    other = spark.newSession()
    frame = captured(other, BASIC).select("api")
    kdissect.spark.register(other)
    assert len(tried) == 1
    assert len(scanned(frame)[0]) > 20
    assert frame.count() == captured(spark, BASIC).count()


def test_each_query_looks_for_files_whatever_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Spark itself keeps the files that the first query with all columns found."""

    def counts(frame: DataFrame) -> set[int]:
        return {frame.count(), len(frame.select("*").collect()), len(frame.where("api > ''").collect())}

    (tmp_path / "one.pcapng").symlink_to(ERRORS)
    frame, other = captured(spark, tmp_path), kdissect.spark.exchanges(spark, tmp_path)
    (before,) = counts(frame)
    assert len(other.select("*").collect()) == before
    (tmp_path / "two.pcapng").symlink_to(BASIC)
    (after,) = counts(frame)
    assert before < after == other.count()
    (tmp_path / "two.pcapng").unlink()
    assert (frame.count(), len(other.select("*").collect())) == (before, before)


SHAPES = (
    "select faults.kind, request from scanned where size(faults) = 0",
    "select a.api, b.latency_ns from scanned a join scanned b using (number) where a.request_size > 0",
    "select api, latency_ns from scanned order by number limit 7",
    "select api, row_number() over (partition by connection order by number) from scanned",
    "select (select max(latency_ns) from scanned), (select count(api) from scanned)",
    "with c as (select api, client_id from scanned) select x.api, y.client_id from c x, c y",
    "select api from scanned s where exists (select 1 from scanned t where t.number = s.number + 1)",
    "select 1 from scanned where latency_ns > (select avg(latency_ns) from scanned)",
    "select api, explode(topics) from scanned",
    "select api from scanned except select client_id from scanned",
    "select broker, count(*) over () from scanned group by broker, client_id",
    "select broker as client, client as broker from scanned where client > broker",
)


def test_no_column_or_row_is_lost_in_any_query(spark: SparkSession) -> None:
    """Also in a session where Spark offers its own filters to sources in Python."""
    shapes = some(SHAPES, 4)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        captured(spark, BASIC, ERRORS).createOrReplaceTempView("scanned")
        found = [spark_rows(spark.sql(query)) for query in shapes]
        spark.conf.set(_EXCLUDED, RULE)
        spark.table("scanned").cache()
        assert all(found)
        for query, rows in zip(shapes, found, strict=True):
            assert spark_rows(spark.sql(query)) == rows, query
        spark.conf.unset(_EXCLUDED)
        # What is cached is no scan of captures any more.
        for query, rows in some(list(zip(shapes, found, strict=True)), 1):
            assert spark_rows(spark.sql(query)) == rows, query
    finally:
        spark.conf.unset(_EXCLUDED)
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
        spark.catalog.uncacheTable("scanned")
        spark.catalog.dropTempView("scanned")


def test_a_schema_of_the_user_names_the_columns(spark: SparkSession) -> None:
    reader = spark.read.schema("latency_ns bigint, api string, broker string").format("kdissect")
    frame = reader.load(str(BASIC))
    assert scanned(frame.select("broker")) == [["latency_ns", "broker"]]
    expected = kdissect.spark.exchanges(spark, BASIC).select("broker")
    assert spark_rows(frame.select("broker")) == spark_rows(expected) != []


CONDITIONS = {
    "exchanges": (
        *("api = 'Fetch'", "'Fetch' = api", "api <> 'Fetch'", "api = 'fetch'", "true", "false", "api = null"),
        *("error is null", "error is not null", "not (error is null)", "error <=> null"),
        *(
            "not (error <=> 'NONE')",
            "coalesce(error, 'x') = 'x'",
            "not (error <> 'UNKNOWN_TOPIC_OR_PARTITION')",
        ),
        *("error in ('UNKNOWN_TOPIC_OR_PARTITION', null)", "error not in ('INVALID_TOPIC_EXCEPTION', null)"),
        *("cast(api_key as string) = '1'", "api_key = 1", "api_key = 1.0", "api_key > 32768", "number = '7'"),
        *("cast(number as int) < 10", "cast(number as tinyint) < 10", "latency_ns / 2 > 1000000"),
        "api = 'Fetch' or latency_ns > 1000000",
        "(api = 'Fetch' or error is null) and not (broker > '2' or latency_ns < 0)",
        "(api = 'Produce' and error is null) or (api = 'Fetch' and request like '%topic%')",
        "not (api = 'Fetch' and latency_ns > 1000000)",
        *("api in ('Fetch', 'Produce')", "api_key not in (1, 2, 3)"),
        "api_key in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)",
        "api_key not in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, null)",
        *("client_id like 'ad%'", "client_id like '%r'", "api like '%etada%'", "api like 'F_tch'"),
        *(
            "not (api like 'F%')",
            "api rlike '^F'",
            "lower(api) = 'fetch'",
            "api collate utf8_lcase = 'fetch'",
        ),
        "timestamp_micros(request_time_ns div 1000) > timestamp '2020-01-01'",
        "request_time_ns between 0 and (select avg(request_time_ns) from scanned)",
        *("get(faults, 0).kind is not null", "size(topics) > 0", "array_contains(topics, 'orders')"),
        *("request like '%topic%'", "response is null", "client < broker", "response_size > request_size"),
        *("rand() >= 0 and api = 'Fetch'", "capture_point is null", "length(client_id) > 5 and api > 'F'"),
        "number in (select number + 1 from scanned where api = 'Fetch')",
    ),
    "records": (
        "topic = 'orders'",
        "`offset` > 1",
        "key is null",
        "transactional",
        "not transactional",
        "codec like 'g%'",
    ),
    "connections": ("client > broker", "connection > 0", "bytes_to_broker > 1000 or opened", "not opened"),
    "faults": ("layer = 'tcp'", "kind is null", "packet > 65", "exchange is null"),
    "packets": ("payload_size > 100", "source is null", "flags & 2 = 2", "packet < 20 and link_type = 1"),
}


OWN_WAYS = (
    "(api = 'Fetch' or error is null) and not (broker > '2' or latency_ns < 0)",
    "api_key not in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, null)",
    *("client_id like 'ad%'", "request like '%topic%'", "rand() >= 0 and api = 'Fetch'", "size(topics) > 0"),
)
"""Conditions that the rule takes in a way of their own, or leaves to Spark for a reason of their own."""


@pytest.mark.parametrize("name", CONDITIONS)
def test_filters_leave_the_same_rows(spark: SparkSession, name: str) -> None:
    """Each part of the union has its own filters. Those without the rule ask a copy of all rows."""
    conditions = some(CONDITIONS[name], 12, *OWN_WAYS)  # test_pushed.py has all results of each filter
    captured(spark, LOSS, ERRORS, table=name).createOrReplaceTempView("scanned")
    columns = spark.table("scanned").columns
    query = " union all ".join(
        f"select {number} as which, `{columns[0]}`, `{columns[-1]}` from scanned where {condition}"
        for number, condition in enumerate(conditions)
    )
    try:
        frame = spark.sql(query)
        found = spark_rows(frame)
        assert found
        assert len(pushed(frame)) >= len(conditions) // 2
        spark.conf.set(_EXCLUDED, RULE)
        spark.table("scanned").cache()
        assert spark_rows(spark.sql(query)) == found
    finally:
        spark.conf.unset(_EXCLUDED)
        spark.catalog.uncacheTable("scanned")
        spark.catalog.dropTempView("scanned")


def test_a_scan_makes_the_rows_that_pass(spark: SparkSession) -> None:
    """And its plan tells the filters."""
    frame, other = captured(spark, BASIC), kdissect.spark.exchanges(spark, BASIC)
    every, fetches = frame.count(), frame.where("api = 'Fetch'")
    assert pushed(fetches) == pushed(other.where("api = 'Fetch'")) == ["IsNotNull(api), EqualTo(api,Fetch)"]
    assert 0 < made(fetches) == made(other.where("api = 'Fetch'")) == fetches.count() < every
    partly = frame.where("api = 'Fetch' and request like '%topic%' and client < broker")
    assert pushed(partly) == ["IsNotNull(api), IsNotNull(client), IsNotNull(broker), EqualTo(api,Fetch)"]
    assert partly.count() <= made(partly) == fetches.count()
    assert pushed(frame) == pushed(frame.where("request like '%topic%'")) == []
    assert made(frame) == every


FEWER: list[tuple[dict[str, str], str]] = [
    ({"table": "records"}, "`offset` = 1"),
    ({"table": "records", "places": "true"}, "time_ns is null"),
    ({"table": "records", "payload": "head:1"}, "`offset` = 1"),
    ({"table": "packets"}, "payload_size > 100"),
    ({"table": "faults"}, "packet > 65"),
    ({"table": "connections"}, "connection = 1"),
    ({"stats": "errors"}, "error = 'UNKNOWN_TOPIC_OR_PARTITION'"),
]
"""Tables whose rows are made in different ways, and conditions."""


@pytest.mark.parametrize(("options", "condition"), some(FEWER, 4, FEWER[1], FEWER[3], FEWER[6]))
def test_every_table_makes_fewer_rows(spark: SparkSession, options: dict[str, str], condition: str) -> None:
    frame = captured(spark, LOSS, ERRORS, **options)
    fewer = frame.where(condition)
    assert made(fewer) == fewer.count() < frame.count()


def test_each_query_of_a_frame_has_its_own_filters(spark: SparkSession) -> None:
    frame = captured(spark, BASIC)
    every = frame.toArrow().to_pylist()
    fetches = [row["number"] for row in every if row["api"] == "Fetch"]
    produces = [row["number"] for row in every if row["api"] == "Produce"]

    def numbers(asked: DataFrame) -> list[int]:
        return [row.number for row in asked.select("number").collect()]

    one, other = frame.where("api = 'Fetch'"), frame.where("api = 'Produce'")
    assert (numbers(one), numbers(other)) == (fetches, produces)
    assert numbers(frame) == [row["number"] for row in every]
    assert numbers(one.union(other)) == fetches + produces
    both = (
        one.alias("a")
        .join(other.alias("b"), expr("a.connection < b.connection + 9"))
        .select("a.number", "b.number")
    )
    assert both.count() == sum(
        a["connection"] < b["connection"] + 9
        for a in every
        for b in every
        if (a["api"], b["api"]) == ("Fetch", "Produce")
    )
    one.cache()
    try:
        assert (numbers(one), numbers(other), frame.count()) == (fetches, produces, len(every))
    finally:
        one.unpersist()


def test_points_that_a_filter_leaves_out_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    for name, capture in (("one", BASIC), ("two", ERRORS)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.pcapng").symlink_to(capture)
    for options in ({}, {"stats": "errors"}):
        frame = captured(spark, tmp_path / "one", tmp_path / "two", capture_point="(one|two)", **options)
        assert frame.rdd.getNumPartitions() == 2
        one = frame.where("capture_point = 'two'")
        assert one.rdd.getNumPartitions() == 1
        rest = frame.where("not (capture_point <=> 'two')")
        assert one.count() + rest.count() == frame.count()
        assert frame.where("capture_point = 'three'").count() == 0


def test_a_stream_is_left_alone(spark: SparkSession, tmp_path: Path) -> None:
    kdissect.spark.register(spark)
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / BASIC.name).write_bytes(BASIC.read_bytes())
    reader = spark.readStream.format("kdissect").option("state", str(tmp_path / "state"))
    rows = reader.load(str(tmp_path / "spool")).where("api = 'Produce' and error is null")
    writer = rows.writeStream.format("memory").queryName("live").trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    expected = kdissect.spark.exchanges(spark, BASIC).where("api = 'Produce' and error is null")
    assert spark_rows(spark.table("live")) == spark_rows(expected) != []
