"""What is kept of each night's run."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.spark.runs import Runs, RunsError


def test_only_one_run_adds_at_a_time(tmp_path: Path) -> None:
    second = Runs(str(tmp_path)).held()
    refused = pytest.raises(RunsError, match="another run adds to these tables")
    with Runs(str(tmp_path)).held(), refused, second:
        pass
    with Runs(str(tmp_path)).held():
        pass


def test_files_of_others_are_no_runs(tmp_path: Path) -> None:
    runs = Runs(str(tmp_path))
    runs.end({"run": 2})
    runs.end({"run": 10})
    (tmp_path / "run-old.json").write_text("{}")
    assert runs.last() == 10
    assert [row["run"] for row in runs.rows()] == [2, 10]


def test_a_damaged_record_is_one_line(tmp_path: Path) -> None:
    runs = Runs(str(tmp_path))
    runs.end({"run": 1})
    (tmp_path / "run-1.json").write_text('{"form": 1')
    with pytest.raises(RunsError, match=r"run-1\.json is damaged, or of another version"):
        runs.rows()
