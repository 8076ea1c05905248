"""What is kept of each night's run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kdissect.cli import main
from kdissect.spark.run_request import stored_request
from kdissect.spark.runs import FOLDER, RunPlan, Runs, RunsError
from kdissect.spark.settings import TableSettings
from tests.spark.same import CAPTURES


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


@pytest.mark.parametrize(
    "changed",
    [
        {"end": 3},
        {"end": {"/a": {"x": 1}}},
        {"digests": 7},
        {"digests": {"/a": 7}},
        {"asked": "exchanges"},
        {"asked": {}},
        {"asked": {"tables": [1], "by": [], "options": {}}},
        {"asked": {"tables": [], "by": [], "options": {"filter": 1}}},
    ],
    ids=str,
)
def test_a_damaged_plan_is_one_line(tmp_path: Path, changed: dict[str, Any]) -> None:
    runs = Runs(str(tmp_path))
    runs.begin(RunPlan(1, {}, {}, stored_request(("exchanges",), (), TableSettings())))
    assert runs.plan(1) is not None
    path = tmp_path / "plan-1.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    with pytest.raises(RunsError, match=r"plan-1\.json is damaged$"):
        runs.plan(1)


def test_a_run_whose_plan_is_gone_is_told(tmp_path: Path) -> None:
    """Without it, everything would be read again."""
    runs = Runs(str(tmp_path))
    assert runs.position(0) == {}
    runs.end({"run": 1})
    with pytest.raises(RunsError, match=r"plan-1\.json is gone"):
        runs.position(1)


@pytest.mark.parametrize(("name", "value"), [("rows", "many"), ("kdissect", 1), ("seconds", [])])
def test_a_figure_that_is_none_is_told(tmp_path: Path, name: str, value: Any) -> None:
    runs = Runs(str(tmp_path))
    runs.end({"run": 1, name: value})
    with pytest.raises(RunsError, match=rf"run-1\.json is damaged: {name} is "):
        runs.rows()


def test_other_tables_do_not_come_among_those_of_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "plan-1.json").touch()
    command = ["spark", "batch", str(CAPTURES / "errors.pcapng"), "--out", str(tmp_path), "--table", "faults"]
    assert main(command) == 2
    assert "--append made the tables there: give another place, or --append" in capsys.readouterr().err
