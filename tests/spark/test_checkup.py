"""What ``kdissect doctor spark --cluster`` finds on workers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import kdissect
from kdissect.cli import main
from kdissect.spark.checkup import judge
from kdissect.spark.probe import facts
from tests.spark.same import CAPTURES

ERRORS = str(CAPTURES / "errors.pcapng")


def answer(**changed: Any) -> dict[str, Any]:
    """Of a worker that has all."""
    usual = {"host": "a", "python": sys.version.split()[0], "program": "python3"}
    return {**usual, "kdissect": kdissect.__version__, "why": None, "seen": {}, "wrote": {}, **changed}


@pytest.mark.usefixtures("spark")
def test_a_small_job_tells_what_workers_have(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdissect.spark.checkup.WAIT_SECONDS", 1e6)  # however slow this machine is
    paths = ("--path", ERRORS, "--path", str(tmp_path), "--path", "/nowhere.pcap")
    assert main(["doctor", "spark", "--cluster", "local[2]", *paths, "-T", "ndjson"]) == 3
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    states = {row["what"]: row["state"] for row in found}
    assert [states[name] for name in ("spark", "workers", ERRORS, str(tmp_path))] == ["ok"] * 4
    assert states["/nowhere.pcap"] == "missing"
    assert any(f"kdissect {kdissect.__version__}" in row["details"] for row in found)
    assert list(tmp_path.iterdir()) == []


def test_a_worker_without_kdissect_and_one_with_another_are_told(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no capture")
    seen = facts([str(text)])["seen"]
    lacks = answer(host="b", kdissect=None, why="ModuleNotFoundError: No module named 'lz4'", seen=seen)
    other = answer(host="c", kdissect="0.0.1", seen={str(text): None})
    older = answer(host="d", python="3.1.4", seen={str(text): None})
    told = {what: (state, details) for what, state, details in judge([lacks, other, older], [str(text)])}
    assert told["b"][0] == "missing"
    assert "No module named 'lz4'" in told["b"][1]
    assert told["c"][0] == told["d"][0] == "differs"
    assert "0.0.1" in told["c"][1]
    assert told[str(text)][0] == "missing"
    assert told[str(text)][1].startswith("b: ")


def test_a_folder_that_is_not_shared_is_told() -> None:
    each = answer(seen={"/out": None}, wrote={"/out": "/out/_kdissect-elsewhere"})
    assert [row[:2] for row in judge([each], ["/out"])][-1] == ("/out", "apart")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--cluster", "local[1]"), "needs kdissect doctor spark"),
        (("spark", "--path", "x"), "--path needs --cluster"),
        (("spark", "--cluster", "spark://127.0.0.1:1"), "127.0.0.1:1 does not answer"),
    ],
)
def test_what_cannot_be_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    pytest.importorskip("pyspark")
    assert main(["doctor", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
