"""``kdissect spark report``: what the tables of many captures say together."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kdissect.analysis.histogram import Histogram
from kdissect.cli import main
from kdissect.limits import DEFAULTS
from kdissect.spark.report import SECTIONS, ReportViews
from kdissect.spark.stored_folds import counted_rows
from tests.amount import only_long
from tests.shared import requires_shared, shared
from tests.spark.same import CAPTURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Path:
    """Tables of three captures, each its own."""
    out = tmp_path_factory.mktemp("tables")
    inputs = [CAPTURES / name for name in ("broker-0.9.pcap", "basic-kafka43.pcapng", "errors.pcapng")]
    make(out, "exchanges", "connections", "faults", *map(str, inputs), "--capture-point", r"[^/]+$")
    return out


def make(out: Path, *words: str) -> None:
    """Make tables, whose names are among the words, in one pass."""
    tables = {"exchanges", "connections", "faults"}
    more = [word for each in words for word in (("--table", each) if each in tables else (each,))]
    assert main(["spark", "batch", "--out", str(out), *more, "--master", "local[2]", "-q"]) in (0, 3)


def sections(tables: Path, *names: str) -> list[dict[str, Any]]:
    """The rows of a report."""
    chosen = [word for name in names for word in ("--section", name)]
    command = ["spark", "report", str(tables), *chosen, "-T", "ndjson", "-q", "--top", "1000"]
    with redirect_stdout(io.StringIO()) as out:
        assert main([*command, "--master", "local[2]"]) == 0
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.fixture(scope="module")
def rows(tables: Path) -> list[dict[str, Any]]:
    """Those of every section, made once."""
    return sections(tables)


def test_every_section_has_rows(rows: list[dict[str, Any]]) -> None:
    assert {row["section"] for row in rows} == set(SECTIONS)


def test_sums_are_those_of_the_exchanges(
    tables: Path, spark: SparkSession, rows: list[dict[str, Any]]
) -> None:
    exchanges = spark.read.parquet(str(tables / "exchanges")).collect()
    counted = {name: [row for row in rows if row["section"] == name] for name in SECTIONS}
    assert sum(row["exchanges"] for row in counted["hours"]) == len(exchanges)
    assert sum(row["exchanges"] for row in counted["errors"]) == sum(
        row.error is not None for row in exchanges
    )
    assert sum(row["exchanges"] for row in counted["latency"]) == sum(
        row.latency_ns is not None for row in exchanges
    )
    assert {version for row in counted["versions"] for version in row["versions"]} == {
        row.api_version for row in exchanges if row.api_version is not None
    }


def test_figures_are_those_of_the_statistic_of_one_machine(
    tables: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "errors.pcapng"
    frames = (spark.read.parquet(str(tables / each)) for each in ("exchanges", "connections"))
    made = ReportViews(spark, *(frame.where(f"capture_point = '{name}'") for frame in frames))
    times = ("p50_ns", "p95_ns", "p99_ns", "max_ns")
    for section, by, columns in (
        ("latency", "broker", ("api", "broker", *times)),
        ("hours", "hour", ("api", "exchanges", "errors", "fatal", "routine", "unanswered", *times)),
        (
            "errors",
            "error,client_id,principal,groups,transactional_ids,topics",
            ("error_class", "api", "error", "client_id", "principal", "exchanges", "first_ns", "last_ns"),
        ),
    ):
        rows = [tuple(row[each] for each in columns) for row in made.section(section, 1000).collect()]
        assert main(["stats", str(CAPTURES / name), "-z", f"traffic,{by}", "-T", "ndjson"]) == 0
        told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        told = [row for row in told if section != "latency" or row["answered"]]
        expected = [tuple(row[each] for each in columns) for row in told]
        assert sorted(rows, key=str) == sorted(expected, key=str)
        assert rows


def test_medians_of_capture_points_are_of_one_rank_as_all_others(
    tables: Path, spark: SparkSession, rows: list[dict[str, Any]]
) -> None:
    latencies: dict[str, list[int]] = {}
    for row in spark.read.parquet(str(tables / "exchanges")).collect():
        if row.latency_ns is not None:
            latencies.setdefault(row.capture_point, []).append(row.latency_ns)
    assert any(len(each) % 2 == 0 for each in latencies.values()), "or the ranks do not differ"
    assert {row["capture_point"]: row["p50_ns"] for row in rows if row["section"] == "points"} == {
        point: histogram_of(each).percentiles(50)[0] for point, each in latencies.items()
    }


def histogram_of(values: list[int]) -> Histogram:
    made = Histogram()
    made.add_each(values)
    return made


def test_topics_groups_and_versions_count_what_the_rows_have(
    tables: Path, spark: SparkSession, rows: list[dict[str, Any]]
) -> None:
    exchanges = spark.read.parquet(str(tables / "exchanges")).collect()
    counted = {name: [row for row in rows if row["section"] == name] for name in SECTIONS}
    assert sum(row["exchanges"] for row in counted["topics"]) == sum(len(row.topics) for row in exchanges)
    assert sum(row["produce_bytes"] for row in counted["topics"]) == sum(
        row.request_size * len(row.topics) for row in exchanges if row.api == "Produce"
    )
    members: dict[str, set[str]] = {}
    for row in exchanges:
        body = json.loads(row.request)["body"] or {} if row.request else {}
        if "groupId" in body:
            members.setdefault(body["groupId"], set()).update(filter(None, [body.get("memberId")]))
    assert {row["group"]: row["members"] for row in counted["groups"]} == {
        group: len(ids) for group, ids in members.items()
    }
    assert any(members.values())
    assert sum(row["exchanges"] for row in counted["versions"]) == sum(
        row.api_version is not None for row in exchanges
    )
    assert {"apache-kafka-java 4.3.1", "unknown"} <= {row["software"] for row in counted["versions"]}


def test_what_is_left_out_for_want_of_room_is_told(tables: Path, spark: SparkSession) -> None:
    from pyspark.sql.functions import lit

    exchanges = spark.read.parquet(str(tables / "exchanges"))
    exchanges = exchanges.withColumn("software", lit(None).cast("string"))
    counted = counted_rows(exchanges, ["traffic", "traffic,topic"], DEFAULTS._replace(rows=1))
    assert [len(table) for table in counted.tables] == [1, 1]
    assert min(counted.left_out) > 0


def test_what_would_break_is_what_the_statistic_of_one_machine_says(
    tables: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    frames = (spark.read.parquet(str(tables / name)) for name in ("exchanges", "connections"))
    made = ReportViews(spark, *(frame.where("capture_point = 'broker-0.9.pcap'") for frame in frames))
    rows = [row.asDict() for row in made.section("kafka4", 1000).collect()]
    assert rows == removed_on_one_machine(CAPTURES / "broker-0.9.pcap", capsys)
    assert {row["verdict"] for row in rows} == {"breaks"}
    assert not any(row["client_id"] in ("1", "2") for row in rows)  # the brokers, which ask each other
    assert made.left_out == 0


def removed_on_one_machine(capture: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The rows of the statistic ``versions`` that a release does not have any more."""
    assert main(["stats", str(capture), "-z", "versions", "-T", "ndjson"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [row for row in rows if row["removed_in"] is not None]


@requires_shared
def test_a_client_whose_broker_is_old_does_not_break(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """kafka-clients 3.9.2 and librdkafka 2.16.0 take the newest that a broker 0.10.2 has."""
    (capture,) = shared("testdata/captures/lab/broker-0.10.2-new-clients").glob("capture.pcap*")
    make(tmp_path, "exchanges", "connections", str(capture))
    rows = sections(tmp_path, "kafka4")
    assert {(row["limited_by"], row["verdict"]) for row in rows} == {("broker", "upgrade-broker-first")}
    assert {"apache-kafka-java"} < {row["software"] for row in rows}
    assert rows == [{"section": "kafka4", **row} for row in removed_on_one_machine(capture, capsys)]


def test_it_prints_tables_and_tells_rows_that_are_cut_off(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ("--section", "errors", "--section", "versions", "--section", "kafka4")
    command = ["spark", "report", str(tables), *chosen, "--top", "9", "-q", "--master", "local[2]"]
    assert main(command) == 0
    captured = capsys.readouterr()
    assert "kafka4 has more rows; --top 9 cuts them off" in "".join(captured)
    assert captured.out.count("breaks") == 9
    title, heading, *rows = (printed := captured.out).splitlines()
    assert (title, heading.split()[:3]) == (
        "errors: severity, client, and what they are about",
        ["error_class", "api", "error"],
    )
    assert len(rows) > 1
    assert "--top" not in rows[0]
    assert re.search(r" \d{4}-\d\d-\d\dT\d\d:.* \d{4}-\d\d-\d\dT\d\d:", rows[0]), "when it was first and last"
    assert re.search(r"apache-kafka-java 4\.3\.1 +ApiVersions +4 ", printed), "versions are numbers"


@only_long
def test_rows_that_are_cut_off_are_told_beside_ndjson(
    tables: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["spark", "report", str(tables), "--section", "kafka4", "--top", "2", "-T", "ndjson", "-q"]
    assert main([*command, "--master", "local[2]"]) == 0
    printed = "".join(capsys.readouterr())
    assert "kafka4 has more rows; --top 2 cuts them off" in printed
    assert printed.count("breaks") == 2


def test_hosts_of_ipv6_are_told_apart(tables: Path, spark: SparkSession) -> None:
    exchanges, connections = (spark.read.parquet(str(tables / name)) for name in ("exchanges", "connections"))
    made = ReportViews(
        spark, exchanges.selectExpr("* except (client)", "'[fe80::1]:5' as client"), connections
    )
    assert {row.host for row in made.section("topics", 1000).collect()} == {"[fe80::1]"}


def test_tables_that_are_missing_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "report", str(tmp_path)]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "has no table exchanges" in line
    assert f"--out {tmp_path} --table exchanges makes it" in line


@pytest.mark.parametrize("command", ["report", "runs"])
def test_a_folder_that_is_none_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (tmp_path / "file").touch()
    for name, words in (("none", "there is no such folder"), ("file", "is a file; name the folder")):
        assert main(["spark", command, str(tmp_path / name)]) == 3
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"kdissect: {tmp_path / name}: {words}")


def test_runs_are_kept_on_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["spark", "runs", "s3://lake/kafka"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "name the folder of --runs, which is on this machine" in line
