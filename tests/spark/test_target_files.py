"""What commits say of a file of Parquet, so that readers need not open it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from kdissect.spark.target_files import stats_of, written_files
from kdissect.spark.targets import Delta
from tests.spark.test_lake import ALL, batch, of
from tests.spark.test_lake import ERRORS as CAPTURE

MOMENTS = pa.timestamp("us", tz="UTC")


def told(path: Path, **columns: pa.Array) -> dict[str, Any]:
    """What is told of a file with two groups of rows at least."""
    table = pa.table(columns)
    pq.write_table(table, path, row_group_size=2)
    return stats_of(pq.read_metadata(path))


def test_the_smallest_and_the_largest_value_of_all_rows_are_told(tmp_path: Path) -> None:
    moments = [datetime(2027, 1, day, 2, 3, 4, 5, UTC) for day in (3, 1, 2)]
    found = told(
        tmp_path / "a.parquet",
        at=pa.array([*moments, None], MOMENTS),
        number=pa.array([5, None, None, -7], pa.int64()),
        name=pa.array(["b", "é", None, "a"]),
    )
    assert found["numRecords"] == 4
    assert found["minValues"] == {"at": "2027-01-01T02:03:04.000005Z", "number": -7, "name": "a"}
    assert found["maxValues"] == {"at": "2027-01-03T02:03:04.000005Z", "number": 5, "name": "é"}
    assert found["nullCount"] == {"at": 1, "number": 2, "name": 1}


def test_what_has_no_such_value_is_not_told(tmp_path: Path) -> None:
    found = told(
        tmp_path / "a.parquet",
        none=pa.nulls(3, pa.int64()),
        long=pa.array(["a", "d" * 1_000, "c"]),
        share=pa.array([1.0, float("nan"), 2.0]),
        several=pa.array([["a"], [], None]),
        is_so=pa.array([True, False, None]),
    )
    assert found["minValues"] == found["maxValues"] == {}
    assert found["nullCount"] == {"none": 3, "long": 0, "share": 0, "is_so": 1}


def test_of_a_file_without_statistics_only_rows_are_told(tmp_path: Path) -> None:
    pq.write_table(pa.table({"number": [1, 2]}), tmp_path / "a.parquet", write_statistics=False)
    (file,) = written_files(str(tmp_path))
    assert json.loads(file.stats) == {"numRecords": 2, "minValues": {}, "maxValues": {}, "nullCount": {}}


@pytest.mark.usefixtures("spark")
def test_readers_of_delta_pass_over_files_by_moments(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    assert batch(CAPTURE, "--to", f"delta:{tmp_path}", *of(ALL[:1]), "--partition-by", "api", "-q") == 0
    table = deltalake.DeltaTable(str(tmp_path / "exchanges"))
    rows = table.to_pyarrow_table()
    first = pc.min(rows["request_time_ts"]).as_py()
    captured = table.to_pyarrow_dataset()
    assert len(list(captured.get_fragments(pc.field("request_time_ts") < first))) == 0
    found = list(captured.get_fragments(pc.field("request_time_ts") <= first))
    assert 0 < len(found) < len(Delta(str(tmp_path)).stored("exchanges").files)
    assert captured.to_table(filter=pc.field("request_time_ns") >= 0).num_rows == rows.num_rows
