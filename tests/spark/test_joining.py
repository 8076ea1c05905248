"""Small files of tasks become fewer ones with the same rows, in the same order."""

from __future__ import annotations

import os
import resource
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdissect.spark import joining
from kdissect.spark.joining import groups_of, joined, write_together
from kdissect.spark.sinks import FileSink, TaskFile
from tests.spark.same import CAPTURES
from tests.spark.test_lake import batch, of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def put(folder: Path, table: str, task: int, rows: list[int]) -> TaskFile:
    path = folder / table / f"part-{task}.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"number": rows}), path)
    return TaskFile(table, str(path), len(rows), path.stat().st_size)


def numbers(file: TaskFile) -> list[int]:
    found: list[int] = pq.ParquetFile(file.path).read()["number"].to_pylist()
    return found


def columns(path: str) -> list[Any]:
    """What a file says of the columns of its only row group."""
    metadata = pq.read_metadata(path)
    assert metadata.num_row_groups == 1
    return [metadata.row_group(0).column(at) for at in range(metadata.num_columns)]


def test_files_are_together_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "ENOUGH_BYTES", 100)
    assert groups_of([]) == []
    files = [TaskFile("a", str(at), 1, size) for at, size in enumerate((40, 60, 1, 100, 99, 1, 200, 3))]
    groups = groups_of(files)
    assert [[each.size for each in group] for group in groups] == [[40, 60], [1], [100], [99, 1], [200], [3]]
    assert [each for group in groups for each in group] == files


def test_the_files_of_each_table_become_one(spark: SparkSession, tmp_path: Path) -> None:
    files = [
        put(tmp_path, "a", 0, [1, 2]),
        put(tmp_path, "b", 0, [10]),
        put(tmp_path, "own", 0, [20]),
        put(tmp_path, "a", 1, []),
        put(tmp_path, "own", 1, [21]),
        put(tmp_path, "a", 2, [3]),
    ]
    found = joined(spark, files, ("a", "b"), str(tmp_path))
    rows = {name: [numbers(file) for file in found if file.table == name] for name in ("a", "b", "own")}
    assert rows == {"a": [[1, 2, 3]], "b": [[10]], "own": [[20], [21]]}
    (one,) = (file for file in found if file.table == "a")
    assert Path(one.path).parent == tmp_path / "a"
    assert (one.rows, one.size) == (3, Path(one.path).stat().st_size)


def test_rows_are_written_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "_GROUP_ROWS", 3)
    files = [put(tmp_path, "a", task, [2 * task, 2 * task + 1]) for task in range(5)]
    target = tmp_path / "all.parquet"
    assert write_together([file.path for file in files], str(target)) == target.stat().st_size
    whole = pq.ParquetFile(target)
    assert [whole.metadata.row_group(at).num_rows for at in range(whole.num_row_groups)] == [4, 4, 2]
    assert whole.read()["number"].to_pylist() == list(range(10))


def test_more_files_become_one_than_a_process_may_open(tmp_path: Path) -> None:
    files = [put(tmp_path, "a", task, [task]) for task in range(60)]
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    paths = [file.path for file in files]
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 30, usual[1]))
    try:
        write_together(paths, str(tmp_path / "all.parquet"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    assert pq.ParquetFile(tmp_path / "all.parquet").read()["number"].to_pylist() == list(range(60))


def test_each_row_group_is_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [put(tmp_path, "a", task, [task]) for task in range(20)]
    measured: list[int] = []

    class Measured:
        """A table that tells when its bytes are counted."""

        def __init__(self, table: pa.Table) -> None:
            self.table = table
            self.num_rows = table.num_rows

        @property
        def nbytes(self) -> int:
            measured.append(self.num_rows)
            return int(self.table.nbytes)

    def concatenated(tables: list[Measured]) -> pa.Table:
        return pa.concat_tables(each.table for each in tables)

    same = joining._as
    monkeypatch.setattr(joining, "_as", lambda table, schema: Measured(same(table, schema)))
    monkeypatch.setattr(joining, "pa", SimpleNamespace(**vars(pa) | {"concat_tables": concatenated}))
    write_together([file.path for file in files], str(tmp_path / "all.parquet"))
    assert len(measured) == len(files)


def test_joined_files_are_written_as_those_of_tasks(tmp_path: Path) -> None:
    schema = pa.schema([("time_ns", pa.int64()), ("api", pa.string()), ("value", pa.binary())])
    batch_of_two = pa.record_batch([[1, 2], ["a", "b"], [b"x", b"y"]], schema=schema)
    sinks = [FileSink(str(tmp_path), "a", task, schema, ["time_ns"], is_first=True) for task in range(2)]
    written = []
    for sink in sinks:
        sink.write(batch_of_two)
        written.append(sink.close())
    paths = [file.path for file in written if file is not None]
    write_together(paths, str(tmp_path / "all.parquet"))
    told = [
        [(each.path_in_schema, each.compression, each.is_stats_set) for each in columns(path)]
        for path in (*paths, str(tmp_path / "all.parquet"))
    ]
    names = ("time_ns", "time_ts", "api", "value")
    assert told == [[(name, "ZSTD", name != "value") for name in names]] * 3


@pytest.mark.usefixtures("spark")
def test_a_table_of_many_capture_points_is_one_file(tmp_path: Path) -> None:
    names = ("basic-kafka43.pcapng", "errors.pcapng", "loss.pcapng")
    paths = [CAPTURES / name for name in names]
    tables = of(("exchanges", "faults"))
    command = (*paths, "--capture-point", r"(\w+)[\w-]*\.pcapng", *tables, "-q")
    assert batch(*command, "--out", tmp_path / "once") in (0, 3)
    assert batch(*command, "--to", f"parquet:{tmp_path}/runs", "--append") in (0, 3)
    for name in ("exchanges", "faults"):
        (once,) = (tmp_path / "once" / name).glob("*.parquet")
        assert once.stat().st_mode & 0o077 == 0
        assert len(list((tmp_path / "runs" / name).glob("run=*/*.parquet"))) == 1
    (once,) = (tmp_path / "once" / "exchanges").glob("*.parquet")
    points = pq.ParquetFile(once).read()["capture_point"].to_pylist()
    assert [point for point, _ in groupby(points)] == list(dict.fromkeys(points))
    assert len(set(points)) == 3
