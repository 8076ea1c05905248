"""Many folders of a stream's table become few, with the same rows."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kdissect.spark import compaction
from kdissect.spark.compaction import compact, finish
from tests.amount import times


def put(table: Path, batch: int, rows: dict[str, list[int]] | None = None) -> None:
    folder = table / f"batch={batch}"
    folder.mkdir(parents=True)
    pq.write_table(pa.table(rows or {"number": [2 * batch, 2 * batch + 1]}), folder / "part-0.parquet")


def numbers(table: Path) -> list[int]:
    """In the order in which files are read by batch."""
    found = []
    for folder in sorted(table.glob("batch=*"), key=lambda path: int(path.name[6:])):
        for file in folder.glob("*.parquet"):
            found += pq.ParquetFile(file).read()["number"].to_pylist()
    return found


def batches(table: Path) -> list[int]:
    return sorted(int(path.name[6:]) for path in table.glob("batch=*"))


def test_thirty_two_become_one_and_thirty_two_of_those_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Except in the long form, eight stand for thirty-two."""
    assert compaction.TOGETHER == 32
    together = times(8, 32)
    monkeypatch.setattr(compaction, "TOGETHER", together)
    last = together**2
    for batch in range(last + 1):
        put(tmp_path, batch)
        compact(str(tmp_path), batch)
        assert len(batches(tmp_path)) <= 2 * together
    assert batches(tmp_path) == [last - 1, last]
    assert numbers(tmp_path) == list(range(2 * (last + 1)))
    assert [path.name for path in tmp_path.glob("_*")] == []


def test_the_latest_batch_and_those_that_were_drained_stay(tmp_path: Path) -> None:
    for batch in (-8, *range(33)):
        put(tmp_path, batch)
    compact(str(tmp_path), 32)
    assert batches(tmp_path) == [-8, 31, 32]


@pytest.mark.parametrize("dies_in", ["remove", "move_files"])
def test_what_a_process_that_died_had_begun_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_in: str
) -> None:
    for batch in range(33):
        put(tmp_path, batch)
    left = [20]
    whole = getattr(compaction, dies_in)

    def dying(*given: object) -> None:
        left[0] -= 1
        if left[0] < 0 or dies_in == "move_files":
            raise KeyboardInterrupt
        whole(*given)

    with monkeypatch.context() as patch:
        patch.setattr(compaction, dies_in, dying)
        with pytest.raises(KeyboardInterrupt):
            compact(str(tmp_path), 32)
    assert (tmp_path / "_compaction.json").exists()
    for _ in range(2):
        finish(str(tmp_path))
        assert numbers(tmp_path) == list(range(66))
        assert batches(tmp_path) == [31, 32]
        assert list(tmp_path.glob("_*")) == []


def test_one_that_died_before_its_note_begins_anew(tmp_path: Path) -> None:
    for batch in range(32):
        put(tmp_path, batch)
    (tmp_path / "_merged").mkdir()
    (tmp_path / "_merged" / "part-0.parquet").write_bytes(b"half of a file")
    compact(str(tmp_path), 32)
    assert (numbers(tmp_path), batches(tmp_path)) == (list(range(64)), [31])


def test_a_note_alone_removes_nothing(tmp_path: Path) -> None:
    put(tmp_path, 7)
    (tmp_path / "_compaction.json").write_text(json.dumps({"batches": [7], "to": 7}))
    finish(str(tmp_path))
    assert (batches(tmp_path), numbers(tmp_path)) == ([7], [14, 15])


def test_columns_of_later_releases_are_null_before(tmp_path: Path) -> None:
    put(tmp_path, 0)
    put(tmp_path, 1, {"number": [2], "more": [5]})
    compact(str(tmp_path), 32)
    rows = pq.ParquetFile(tmp_path / "batch=1" / "part-0.parquet").read().to_pylist()
    assert [(row["number"], row["more"]) for row in rows] == [(0, None), (1, None), (2, 5)]


def test_what_is_large_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "LARGE_BYTES", 10)
    for batch in range(32):
        put(tmp_path, batch)
    compact(str(tmp_path), 32)
    assert batches(tmp_path) == list(range(32))
