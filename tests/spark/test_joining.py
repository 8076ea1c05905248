"""Small files of tasks become fewer ones with the same rows, in the same order."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdissect.spark import joining
from kdissect.spark.joining import groups_of, joined, write_together
from kdissect.spark.sinks import TaskFile
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
