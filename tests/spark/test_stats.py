"""Spark gives the rows of ``kdissect stats`` and ``kdissect explain``, however many tasks share the work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kdissect.spark
from kdissect.analysis.catalogue import STATISTICS, statistic
from kdissect.analysis.fold import Statistic
from kdissect.analysis.fold_set import Together
from kdissect.capture.files import read_packets
from kdissect.capture.points import find_points
from kdissect.cli import main
from kdissect.cli.spark_sessions import RunSummary
from kdissect.dissect import Event
from kdissect.insight.judge import Judge
from kdissect.limits import DEFAULTS, Limits
from kdissect.points.dissector import dissector_of
from kdissect.present.arrow import RowBatches
from kdissect.present.columns import Table
from kdissect.present.findings import FINDINGS
from kdissect.present.statistics import STATISTICS as TABLES
from kdissect.spark.folds import CountedPoints, found
from kdissect.spark.progress import done
from kdissect.spark.questions import AskedStatistics
from kdissect.spark.settings import TableSettings
from kdissect.spark.tables import types, with_point
from tests.analysis.folds import told_apart
from tests.dissecting import dissect
from tests.points.places import BASIC, MS, brokers_of, elsewhere, packets_of, written
from tests.spark.cuts import cut, pcap
from tests.spark.same import CAPTURES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = tuple(map(told_apart, STATISTICS.values()))
"""Every statistic, as it tells most apart."""
ERRORS = CAPTURES / "errors.pcapng"
TRANSACTIONS = CAPTURES / "transactions-kafka39.pcapng"
SHOWN = 'api in {"InitProducerId", "EndTxn", "AddPartitionsToTxn"}'
CASES = (TRANSACTIONS.name, "consumer-group-kip848.pcapng")


def on_spark(
    spark: SparkSession, paths: Sequence[Path], texts: Sequence[str], **options: Any
) -> CountedPoints:
    """What a job finds."""
    asked = AskedStatistics(tuple(texts), options.get("limits", DEFAULTS))
    return found(spark, TableSettings.of(options), list(map(str, paths)), asked)


def on_one_machine(
    events: Iterable[Event], texts: Iterable[str], limits: Limits = DEFAULTS
) -> list[Statistic]:
    """The same statistics without Spark."""
    made = [statistic(text, limits)[1] for text in texts]
    together = Together(made)
    for event in events:
        together.feed(event)
    return made


def events_of(*paths: Path) -> list[Event]:
    return list(dissect(read_packets(paths)))


def rows_of(table: Table, sources: Iterable[Any]) -> list[dict[str, Any]]:
    """Rows, as Arrow has them."""
    rows = RowBatches(table)
    batches: list[pa.RecordBatch | None] = [rows.add(source) for source in sources]
    batches.append(rows.take())
    return [row for batch in batches if batch is not None for row in batch.to_pylist()]


def of(table: pa.Table, point: str) -> list[dict[str, Any]]:
    """The rows of a capture point, without its name."""
    rows: list[dict[str, Any]] = table.to_pylist()
    return [row for row in rows if row.pop(table.column_names[0]) == point]


@pytest.mark.parametrize("tasks", [1, 7])
def test_every_statistic_is_that_of_one_machine(spark: SparkSession, tasks: int) -> None:
    paths = [CAPTURES / name for name in CASES]
    made = on_spark(spark, paths, ALL, tasks=tasks, capture_point=r"[^/]+$")
    for name in CASES:
        alone = on_one_machine(events_of(CAPTURES / name), ALL)
        for text, fold, table in zip(ALL, alone, made.tables, strict=True):
            rows = rows_of(TABLES[fold.name], fold.result())
            expected = [{key: row[key] for key in row if key != "capture_point"} for row in rows]
            assert of(table, name) == expected, (name, text)
    assert made.left_out == (0,) * len(ALL)
    assert made.damage == []
    empty = {text for text, table in zip(ALL, made.tables, strict=True) if not len(table)}
    assert len(empty) < len(ALL) / 5  # for the others there is something to compare


def test_each_byte_is_read_once_for_all_tasks(spark: SparkSession, tmp_path: Path) -> None:
    made = on_spark(spark, [BASIC], ["srt", "topics"], tasks=3, progress=str(tmp_path))
    assert done(str(tmp_path)).read == made.read == BASIC.stat().st_size


def test_files_of_several_points_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    packets = elsewhere(packets_of(BASIC), brokers_of(BASIC), away_ns=5 * MS, ahead_ns=40 * MS)
    paths = [written(tmp_path / "far.pcapng", packets), str(BASIC)]
    asked = ["connections", "srt", "groups"]
    points = find_points(paths)
    dissector = dissector_of(points)
    events = [event for item in read_packets(paths, points=points) for event in dissector.feed(item)]
    events += dissector.close()
    made = on_spark(spark, list(map(Path, paths)), asked, tasks=3)
    for fold, table in zip(on_one_machine(events, asked), made.tables, strict=True):
        assert table.to_pylist() == rows_of(TABLES[fold.name], fold.result())
    assert set(made.tables[0]["capture_point"].to_pylist()) == {"far", "basic-kafka43"}


def test_limits_hold_and_are_told(spark: SparkSession) -> None:
    with pytest.warns(UserWarning, match="errors: there are more rows than the limit"):
        frame = kdissect.spark.stats(spark, ERRORS, "errors", tasks=3, limits={"rows": 1})
    assert frame.count() == 1


def test_a_frame_has_the_columns_that_the_statistic_declares(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "empty.pcap").write_bytes(pcap(()))
    frames = kdissect.spark.statistics(spark, [tmp_path], ["srt,client_id", "groups"], capture_point="empty")
    for text, frame in frames.items():
        table = with_point(TABLES[text.partition(",")[0]], True)
        assert frame.columns == [column.name for column in table.columns]
        assert [kind for _, kind in frame.dtypes] == types(table)
        assert frame.isEmpty()


def test_findings_are_those_of_explain(spark: SparkSession) -> None:
    judge = Judge()
    for event in events_of(TRANSACTIONS):
        judge.feed(event)
    frame = kdissect.spark.findings(spark, TRANSACTIONS, tasks=7)
    assert frame.dtypes == list(zip(frame.columns, types(FINDINGS), strict=True))
    rows = [row.asDict() for row in frame.collect()]
    assert rows == rows_of(FINDINGS, judge.judged().findings)
    assert len(rows) >= 3
    most = kdissect.spark.findings(spark, TRANSACTIONS, ignored=[rows[0]["finding"]]).count()
    assert most < len(rows)
    both = kdissect.spark.statistics(spark, TRANSACTIONS, ["findings", "groups"])
    assert list(both) == ["findings", "groups"]
    assert both["findings"].toArrow() == frame.toArrow()
    assert "group" in both["groups"].columns


@pytest.mark.usefixtures("spark")
def test_the_command_prints_what_one_machine_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """With a filter: a connection counts if it has an exchange that is shown, wherever that was."""

    def lines(*command: str) -> list[str]:
        assert main([*command, str(TRANSACTIONS), "-T", "ndjson", "-q", "-Y", SHOWN]) == 0
        return capsys.readouterr().out.splitlines()

    tables = ("-z", "connections", "-z", "srt,client_id")
    alone = lines("stats", *tables)
    assert [json.loads(line)["table"] for line in alone].count("connections") == 5  # of 19
    findings = ['{"table":"findings",' + line.removeprefix("{") for line in lines("explain", "--all")]
    assert re.search(r'"measure":\d+,', findings[0]), "a whole number"
    found = lines("spark", "stats", "-z", "findings", *tables, "--tasks", "7", "--master", "local[2]")
    assert found[: len(alone)] == alone
    assert found[len(alone) :] == findings


@pytest.mark.usefixtures("spark")
def test_its_text_is_that_of_one_machine_with_times_in_utc(capsys: pytest.CaptureFixture[str]) -> None:
    def text(*command: str) -> str:
        assert main([*command, "-z", "errors,group", "-z", "srt", str(ERRORS), "-q"]) == 0
        return capsys.readouterr().out

    assert text("spark", "stats", "--master", "local[2]") == text("stats", "-t", "u")


@pytest.mark.usefixtures("spark")
def test_tables_are_written_and_damage_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    pieces = cut(ERRORS, tmp_path / "in", 20)
    pieces[9].write_bytes(b"not a capture")
    command = ["spark", "stats", str(tmp_path / "in"), "-z", "connections", "-z", "errors,group"]
    command += ["--out", str(tmp_path / "out"), "--master", "local[2]"]
    assert main(command) == 3
    line, last = capfd.readouterr().err.splitlines()
    assert pieces[9].name in line
    assert re.search(r"out: 2 tables, \d+ rows; .* bytes .* in \d+\.\d s; 1 fault of files$", last)
    others = [each for each in pieces if each != pieces[9]]
    for fold in on_one_machine(events_of(*others), ["connections", "errors,group"]):
        table = pq.read_table(tmp_path / "out" / "stats" / fold.name)
        own = table.select([name for name in table.column_names if not name.endswith("_ts")])
        assert own.to_pylist() == rows_of(TABLES[fold.name], fold.result())
        assert len(table)
    assert main(command) == 2
    assert "is there already: --overwrite replaces it" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("-z srtt", "srt"),
        ("-z srt,nothing", "srt,nothing: rows can be grouped by"),
        ("", "-z TABLE, --findings or --all"),
        ("-z srt -z errors -T csv", "prints only one table"),
        ("-z findings,broker", "kdissect explain prints findings, without a grouping"),
        ("--all -z findings", "--all has every table"),
        ("-z srt -T csv --out out", "give one of them"),
        ("-z srt -z srt,broker --out out", "srt is given twice"),
        ("-z srt -Y nothing==1", "nothing"),
        ("-z srt --capture-point (", "is not a regular expression"),
        ("-z srt --scratch /nowhere", "--scratch /nowhere: there is no such folder"),
    ],
)
def test_what_cannot_be_done_is_said_before_spark_starts(
    arguments: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["spark", "stats", str(ERRORS), *arguments.split()]) == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("kdissect: ")]
    assert words in line


def test_a_closing_line_tells_all_faults_that_were_counted() -> None:
    done = RunSummary(2, 7, 2_000, 1_000, 0)
    read = "2,000 bytes of captures were read"
    assert done.line(1.24) == f"2 tables, 7 rows; {read}, 2.00 times their size, in 1.2 s; no faults of files"
    assert done._replace(faults=3).line(1).endswith("; 3 faults, none of files")
    less = done._replace(faults=3, damage=1, rows=None, size=0)
    assert less.line(1) == f"2 tables; {read}, in 1.0 s; 3 faults, 1 of files"


@pytest.mark.usefixtures("spark")
def test_options_of_rows_are_none_of_statistics(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="payload: is an option of tables"):
        kdissect.spark.stats(spark, ERRORS, "srt", payload="none")
    with pytest.raises(LookupError, match="groups"):
        kdissect.spark.stats(spark, ERRORS, "group")
    with pytest.raises(LookupError, match=r"^group: there is no such table"):
        kdissect.spark.statistics(spark, ERRORS, "group")


@pytest.mark.usefixtures("spark")
def test_rules_that_are_none_are_refused(spark: SparkSession) -> None:
    for given, words in (
        ({"thresholds": {"rebalance-lon": {"stopped_s": 1}}}, "did you mean rebalance-long"),
        ({"thresholds": {"rebalance-long": {"stoped_s": 1}}}, "did you mean stopped_s"),
        ({"thresholds": {"rebalance-long": {"stopped_s": 0}}}, "a number above 0"),
        ({"ignored": ["rebalance-*", "far-awya"]}, "did you mean far-away"),
        ({"ignored": "far-awya"}, "did you mean far-away"),
    ):
        with pytest.raises(ValueError, match=words):
            kdissect.spark.findings(spark, ERRORS, **given)
