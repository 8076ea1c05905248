"""Tables of Delta and Iceberg whose files other programs rewrote: views have all rows, each once."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

from kdissect.spark.stored import StoredTables, stored
from kdissect.spark.target_files import TargetError
from kdissect.spark.targets import target_of
from tests.spark.test_evolving import AFTER, BEFORE, BOTH, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rows_of(spark: SparkSession, path: Path) -> list[dict[str, Any]]:
    """The rows of a view, in the order of their numbers."""
    found: pa.Table = stored(spark, str(path), None).toArrow()
    return sorted(found.to_pylist(), key=lambda row: row["number"])


def test_a_compacted_delta_table_is_read_with_the_files_behind_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Compaction writes its file above the folders of runs."""
    deltalake = pytest.importorskip("deltalake")
    place, path = target_of(f"delta:{tmp_path}"), tmp_path / "exchanges"
    write(place, tmp_path, BEFORE, 1)
    write(place, tmp_path, BEFORE.set_column(0, "number", pa.array([0], pa.int64())), 2)
    deltalake.DeltaTable(str(path)).optimize.compact()
    write(place, tmp_path, AFTER, 3)
    zeroth: Any = {**BOTH[0], "number": 0}
    assert rows_of(spark, path) == [zeroth, *BOTH]


def test_partitions_of_a_compacted_delta_table_are_those_of_its_log(
    spark: SparkSession, tmp_path: Path
) -> None:
    deltalake = pytest.importorskip("deltalake")
    place, path = target_of(f"delta:{tmp_path}"), tmp_path / "exchanges"
    expected = []
    for run in (1, 2, 3):
        place.write(
            spark.sql(f"select {run} as number, 'a:1' as broker"), "exchanges", ("broker",), run, False
        )
        expected.append({"number": run, "broker": "a:1"})
        if run == 2:
            deltalake.DeltaTable(str(path)).optimize.compact()
    assert len(deltalake.DeltaTable(str(path)).file_uris()) == 2
    assert rows_of(spark, path) == expected


def test_partitions_that_only_the_log_tells_are_refused(tmp_path: Path) -> None:
    """Some programs write into folders with random names."""
    deltalake = pytest.importorskip("deltalake")
    path, nothing = tmp_path / "exchanges", cast(Any, None)  # it is refused before Spark reads anything
    deltalake.write_deltalake(str(path), pa.table({"number": [1], "broker": ["a"]}), partition_by=["broker"])
    (path / "broker=a").rename(path / "Xy")
    log = path / "_delta_log" / "00000000000000000000.json"
    log.write_text(log.read_text().replace("broker=a/", "Xy/"))
    with pytest.raises(TargetError, match=r"/Xy/part-.* are not in the names of its folders"):
        stored(nothing, str(path), None)


def test_rows_that_only_delta_knows_as_deleted_are_not_shown(spark: SparkSession, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    path = tmp_path / "exchanges"
    deltalake.write_deltalake(str(path), pa.table({"number": [1, 2]}))
    log = path / "_delta_log" / "00000000000000000000.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            feature = ["deletionVectors"]
            action["protocol"] = {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": feature,
                "writerFeatures": feature,
            }
    _write_log(log, actions)
    assert rows_of(spark, path) == [{"number": 1}, {"number": 2}]
    for action in actions:
        if "add" in action:
            action["add"]["deletionVector"] = _first_row_deleted()
    _write_log(log, actions)
    with pytest.raises(
        TargetError, match=r"deleted rows that are still in its files.*; REORG TABLE"
    ) as raised:
        stored(spark, str(path), None)
    assert "\n" not in str(raised.value)


def _write_log(log: Path, actions: list[dict[str, Any]]) -> None:
    log.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def _first_row_deleted() -> dict[str, Any]:
    """A deletion vector in a log: a bitmap of one row, in base 85."""
    bitmap = struct.pack("<IIHHIH", 12346, 1, 0, 0, 16, 0)
    data = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    data += bytes(-len(data) % 4)
    text = ""
    for at in range(0, len(data), 4):
        number = int.from_bytes(data[at : at + 4], "big")
        text += "".join(_DIGITS[number // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": 1}


@pytest.fixture
def namespace(catalog: Callable[[], Any]) -> str:
    catalog()
    return f"stored_{uuid.uuid4().hex}"


def test_an_iceberg_table_that_was_rewritten_is_read_with_its_columns(
    spark: SparkSession, tmp_path: Path, catalog: Callable[[], Any], namespace: str
) -> None:
    """Iceberg has no small integers, so a rewritten file has others than ours."""
    place, tables = target_of(f"iceberg:lake.{namespace}"), StoredTables(f"iceberg:lake.{namespace}")
    small = pa.array([7], pa.int16())
    write(place, tmp_path, BEFORE.set_column(2, "size", small), 1)
    table = catalog().load_table(f"{namespace}.exchanges")
    table.overwrite(table.scan().to_arrow())
    write(place, tmp_path, AFTER.set_column(1, "size", pa.array([8], pa.int16())), 2)

    found: pa.Table = tables.frame(spark, "exchanges").toArrow()
    assert sorted(found.to_pylist(), key=lambda row: row["number"]) == BOTH


def test_rows_that_only_iceberg_knows_as_deleted_are_not_shown(
    tmp_path: Path, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyiceberg itself writes no such files."""
    from pyiceberg.table import DataScan

    place: Any = target_of(f"iceberg:lake.{namespace}")
    write(place, tmp_path, BEFORE, 1)
    tasks = [SimpleNamespace(file=SimpleNamespace(file_path="x"), delete_files={"y"})]
    monkeypatch.setattr(DataScan, "plan_files", lambda _: tasks)
    with pytest.raises(TargetError, match=r"deleted rows that are still in its files.*rewrite_data_files"):
        place.stored("exchanges")
