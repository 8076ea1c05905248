"""All that ``kdissect report`` tells, on Spark: tables, findings, the page; statistics as a data source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import kdissect.spark
from kdissect.cli import main
from tests.amount import LONG
from tests.spark.same import CAPTURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOME_TABLES = ("findings", "transactions", "delivery", "latency_broker", "lag_1s")
TRANSACTIONS = CAPTURES / "transactions-kafka39.pcapng"
ERRORS = CAPTURES / "errors.pcapng"


def spark_main(*arguments: object) -> int:
    return main(["spark", *map(str, arguments), "--master", "local[2]", "-q"])


def without_time_stamps(line: str) -> dict[str, object]:
    return {name: value for name, value in json.loads(line).items() if not name.endswith("_ts")}


def test_the_tables_are_those_of_the_report_of_one_machine(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(TRANSACTIONS), "-T", "ndjson", "-q"]) == 0
    alone = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    tables = () if LONG else [word for name in SOME_TABLES for word in ("-z", name)]  # the page has all
    assert spark_main("report", stored, "-T", "ndjson", "--top", 100_000, *tables) == 0
    found = [without_time_stamps(line) for line in capsys.readouterr().out.splitlines()]
    told = {row["table"] for row in found}
    assert set(SOME_TABLES) <= told
    for row in alone:
        row["table"] = row["table"].replace(",", "_")
    for name in told:  # findings come first in one, tables in the other's order
        mine, theirs = ([row for row in rows if row["table"] == name] for rows in (found, alone))
        assert [{key: row.get(key) for key in mine[0]} for row in theirs] == mine
    assert told == {row["table"] for row in alone} or tables


def test_the_page_is_that_of_one_machine(stored: Path, tmp_path: Path) -> None:
    pages = [tmp_path / "alone.html", tmp_path / "spark.html"]
    assert main(["report", str(TRANSACTIONS), "-q", "-o", str(pages[0])]) == 0
    assert spark_main("report", stored, "-T", "html", "-o", pages[1]) == 0
    assert pages[0].read_text() == pages[1].read_text()
    assert pages[1].stat().st_mode & 0o777 == 0o600


def test_a_table_is_printed_for_people(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert spark_main("report", stored, "-z", "findings", "-z", "transactions") == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "findings"
    assert out[1].split() == ["severity", "finding", "subject", "count", "message"]
    assert "transactions" in out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("-z", "finding"), 2, "findings"),
        (("-z", "share"), 3, "kdissect spark stats … -z share makes it"),
        (("-T", "html"), 3, "--all --out"),
        (("-T", "html", "-z", "findings"), 2, "one page"),
        (("-o", "x"), 2, "-o needs -T html"),
    ],
)
def test_what_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, words: str
) -> None:
    assert spark_main("report", tmp_path, *arguments) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_statistics_are_tables_of_sql(spark: SparkSession) -> None:
    kdissect.spark.register(spark)
    options = f"options (stats 'transactions', path '{TRANSACTIONS}')"
    spark.sql(f"create temporary view made using kdissect {options}")
    rows = [row.asDict() for row in spark.sql("select * from made").collect()]
    spark.catalog.dropTempView("made")
    usual = kdissect.spark.stats(spark, TRANSACTIONS, "transactions")
    assert rows == [row.asDict() for row in usual.collect()]
    assert rows
    reader = spark.read.format("kdissect").option("stats", "findings").option("columns", "finding,count")
    found = reader.option("capture_point", "trans").load(str(TRANSACTIONS))
    assert found.columns == ["finding", "count"]
    assert found.toArrow() == (
        kdissect.spark.findings(spark, TRANSACTIONS).select("finding", "count").toArrow()
    )


def test_a_wrong_option_or_path_is_one_line(spark: SparkSession) -> None:
    kdissect.spark.register(spark)
    for options, path, words in (
        ({"tabel": "records"}, ERRORS, "there is no option 'tabel'; did you mean table"),
        ({"stats": "rebalanc"}, ERRORS, "rebalances"),
        ({"columns": "apo"}, ERRORS, "did you mean api"),
        ({}, "/nowhere/*.pcap", "no file has such a name"),
        ({}, "/nowhere.pcap", "/nowhere.pcap: cannot be read: No such file"),
    ):
        with pytest.raises(Exception, match="no") as caught:
            spark.read.format("kdissect").options(**options).load(str(path)).count()
        assert words in str(caught.value)
        assert "Traceback" not in str(caught.value)
    stream = spark.readStream.format("kdissect").load(str(ERRORS)).writeStream.format("noop")
    query = stream.trigger(availableNow=True).start()
    with pytest.raises(Exception, match="state: is missing") as streamed:
        query.awaitTermination()
    assert "Traceback" not in str(streamed.value)
    with pytest.raises(LookupError, match="did you mean api"):
        kdissect.spark.table(spark, ERRORS, "exchanges", columns="apo")
    with pytest.raises(kdissect.CaptureError, match="no file has such a name"):
        kdissect.spark.table(spark, "/nowhere/*.pcap", "exchanges")
    with pytest.raises(kdissect.CaptureError, match=r"nowhere\.pcap: cannot be read: No such file"):
        kdissect.spark.table(spark, "/nowhere.pcap", "exchanges")
    with pytest.raises(ValueError, match=r"kdissect\.spark\.stats"):
        kdissect.spark.table(spark, ERRORS, "exchanges", stats="srt")


@pytest.mark.parametrize("pushdown", [True, False])
def test_only_the_columns_that_are_asked_for_are_made(spark: SparkSession, pushdown: bool) -> None:
    frame = kdissect.spark.table(spark, ERRORS, "exchanges", columns="number,api", pushdown=pushdown, tasks=2)
    assert frame.columns == ["number", "api"]
    whole = kdissect.spark.table(spark, ERRORS, "exchanges").select("number", "api")
    assert sorted(frame.collect()) == sorted(whole.collect())
