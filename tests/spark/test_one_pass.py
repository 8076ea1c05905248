"""One pass for all tables: tasks that die, shares of rows, faults that no table has, Spark's own writers."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from kdissect.spark.one_pass import wide_tables
from kdissect.spark.plan import plan
from kdissect.spark.settings import TableSettings
from kdissect.spark.sinks import FileSink
from kdissect.spark.table_set import BatchOptions, make_tables
from kdissect.spark.target_files import Staged
from kdissect.spark.targets import ParquetFolder
from kdissect.spark.wide_rows import table_in
from tests.spark.cuts import cut
from tests.spark.passes import begun, do, job_of, pass_over
from tests.spark.same import CAPTURES, TABLES, in_order, read_rows, spark_rows, written_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOSS = CAPTURES / "loss.pcapng"
BASIC = CAPTURES / "basic-kafka43.pcapng"


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_an_attempt_that_nobody_heard_of_doubles_nothing(tmp_path: Path) -> None:
    """A worker is killed, or told so late that its task was done again."""
    job = job_of([LOSS], TABLES)
    staged, out = tmp_path / "staged", tmp_path / "out"
    do(job, staged, 0)
    killed = files_in(staged)
    assert len(killed) == len(TABLES)
    killed[0].write_bytes(killed[0].read_bytes()[:99])
    outcome = do(job, staged, 0)
    assert len(files_in(staged)) == 2 * len(TABLES)
    for wanted in job.tables:
        files = tuple(file.path for file in outcome.written if file.table == wanted.key)
        whole = Staged(f"{staged}/{wanted.key}", files, wanted.schema)
        ParquetFolder(str(out)).write(whole, wanted.key, (), None, False)
        assert written_rows(out / wanted.key) == read_rows(wanted.key, [LOSS])
    assert not files_in(staged)


def test_a_task_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: FileSink) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(FileSink, "close", fails)
    with pytest.raises(OSError, match="no space"):
        next(begun(job_of([LOSS], TABLES), tmp_path, 0))
    assert files_in(tmp_path) == []


def test_a_run_whose_tasks_fail_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    asked = BatchOptions(("exchanges",), (), TableSettings(rsa_key=("/nowhere.pem",)))
    with pytest.raises(Exception, match="nowhere"):
        make_tables(
            spark, plan([str(LOSS)], asked.settings), asked, ParquetFolder(str(tmp_path / "out")), False
        )
    assert files_in(tmp_path) == []
    assert list((tmp_path / "out").iterdir()) == []


def test_a_table_without_rows_is_a_file_with_columns(tmp_path: Path) -> None:
    pass_over([CAPTURES / "errors.pcapng"], tmp_path, ("faults",), 2)
    assert pq.read_table(tmp_path / "faults").num_rows == len(
        read_rows("faults", [CAPTURES / "errors.pcapng"])
    )
    assert "time_ns" not in pq.read_table(tmp_path / "faults").column_names


@pytest.mark.parametrize("tasks", [1, 3])
def test_shares_of_packets_and_of_filtered_tables_add_up(tmp_path: Path, tasks: int) -> None:
    settings = TableSettings(filter="api == Produce")
    tables = (*TABLES, "packets")
    pass_over([BASIC], tmp_path / "alone", tables, 1, settings=settings)
    pass_over([BASIC], tmp_path / "shared", tables, tasks, settings=settings)
    for name in tables:
        rows = [in_order(pq.read_table(tmp_path / each / name).to_pylist()) for each in ("alone", "shared")]
        assert rows[0] == rows[1], name
    connections = pq.read_table(tmp_path / "shared" / "connections")["connection"].to_pylist()
    exchanges = pq.read_table(tmp_path / "shared" / "exchanges")
    assert set(exchanges["api"].to_pylist()) == {"Produce"}
    assert sorted(connections) == sorted(set(exchanges["connection"].to_pylist()))


def test_bytes_of_a_compressed_file_are_those_of_the_file(tmp_path: Path) -> None:
    packed = tmp_path / "a.pcap.gz"
    packed.write_bytes(gzip.compress(cut(BASIC, tmp_path, 1)[0].read_bytes()))
    (outcome,) = pass_over([packed], tmp_path / "out", ("connections",))
    assert outcome.read == packed.stat().st_size
    (outcome,) = pass_over(
        [packed], tmp_path / "out", ("connections",), settings=TableSettings(two_pass=True)
    )
    assert outcome.read == 2 * packed.stat().st_size


def test_faults_are_told_where_no_table_has_them(tmp_path: Path) -> None:
    broken = tmp_path / "cut.pcap"
    broken.write_bytes(cut(BASIC, tmp_path, 1)[0].read_bytes()[:-5])
    told = pass_over([broken], tmp_path / "out", ("connections",), 2, tallies=True)
    assert [fault.kind for each in told for fault in each.damage] == ["cut-short"]
    assert any(each.tally.faults for each in told)
    (clean,) = pass_over([BASIC], tmp_path / "out", ("connections",), tallies=True)
    assert (clean.damage, clean.tally.faults) == ([], 0)


def test_spark_s_own_writers_get_the_same_rows(spark: SparkSession) -> None:
    """Where driver and workers share no files."""
    wide, outcomes = wide_tables(spark, job_of([LOSS], TABLES, shares=2))
    try:
        for name in TABLES:
            assert spark_rows(table_in(wide, name)) == read_rows(name, [LOSS]), name
    finally:
        wide.unpersist()
    assert [each.read for each in outcomes] == 2 * [LOSS.stat().st_size]
