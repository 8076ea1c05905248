"""Tables whose columns differ from release to release. Nothing of it needs a session of Spark."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdissect.spark.target_files import Staged, TargetError
from kdissect.spark.targets import Target, target_of

BEFORE = pa.table({"number": pa.array([1], pa.int64()), "gone": ["x"], "size": pa.array([7], pa.int32())})
AFTER = pa.table({"number": pa.array([2], pa.int64()), "size": pa.array([8], pa.int32()), "added": ["y"]})
OTHER = pa.table({"number": pa.array([3], pa.int64()), "size": ["large"]})
BOTH: list[dict[str, Any]] = [
    {"number": 1, "gone": "x", "size": 7, "added": None},
    {"number": 2, "gone": None, "size": 8, "added": "y"},
]

Place = tuple[Target, Callable[[], list[dict[str, Any]]]]


@pytest.fixture(params=["delta", "iceberg"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place for tables, and how to read the one that is there."""
    if request.param == "delta":
        deltalake = pytest.importorskip("deltalake")
        folder = tmp_path / "delta"
        made = target_of(f"delta:{folder}")
        return made, lambda: deltalake.DeltaTable(str(folder / "exchanges")).to_pyarrow_table().to_pylist()
    catalog = request.getfixturevalue("catalog")
    namespace = f"evolving_{uuid.uuid4().hex}"
    made = target_of(f"iceberg:lake.{namespace}")
    return made, lambda: catalog().load_table(f"{namespace}.exchanges").scan().to_arrow().to_pylist()


def write(target: Target, folder: Path, table: pa.Table, run: int | None, overwrite: bool = False) -> None:
    """Write rows as tasks and the driver do."""
    made = folder / f"staged-{run}"
    made.mkdir()
    pq.write_table(table, made / "part-0.parquet")
    staged = Staged(str(made), (str(made / "part-0.parquet"),), table.schema)
    target.write(staged, "exchanges", (), run, overwrite)


def test_columns_of_two_releases_are_one_table_by_name(target: Place, tmp_path: Path) -> None:
    place, rows = target
    write(place, tmp_path, BEFORE, 1)
    write(place, tmp_path, AFTER, 2)
    assert sorted(rows(), key=lambda row: row["number"]) == BOTH


def test_a_column_of_another_type_is_refused_and_the_table_stays_readable(
    target: Place, tmp_path: Path
) -> None:
    place, rows = target
    write(place, tmp_path, BEFORE, 1)
    with pytest.raises(TargetError, match=r"exchanges: .*\bsize\b.*write to another") as refused:
        write(place, tmp_path, OTHER, 2)
    assert "\n" not in str(refused.value)
    assert rows() == BEFORE.to_pylist()


def test_a_delta_table_that_is_replaced_has_the_new_columns_only(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    place = target_of(f"delta:{tmp_path}")
    write(place, tmp_path, BEFORE, 1)
    write(place, tmp_path, OTHER, None, overwrite=True)
    table = deltalake.DeltaTable(str(tmp_path / "exchanges"))
    assert table.to_pyarrow_table().to_pylist() == OTHER.to_pylist()
