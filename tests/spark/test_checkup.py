"""What ``kdissect doctor spark --cluster`` finds on workers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import kdissect
from kdissect.cli import main
from kdissect.spark.checkup import failure, judge, nobody
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


STOPPED = "IllegalStateException: Cannot call methods on a stopped SparkContext."
NO_PYTHON = '10.0.0.7: IOException: Cannot run program "/opt/python": error=2, No such file or directory'


@pytest.mark.parametrize(
    ("words", "ends", "told"),
    [
        (
            STOPPED,
            None,
            "executors end before they take a task: look for the reason on a worker, in the file",
        ),
        (STOPPED, "Command exited with code 1", "a task (Command exited with code 1): look for the reason"),
        (None, "Command exited with code 1", "in the file work/app-1/0/stderr of its Spark"),
        (NO_PYTHON, None, "No such file or directory; name the Python of the workers with --conf spark.pys"),
        ("No module named 'pyarrow'", None, "the Python of the workers lacks a package: No module named"),
        ("SparkException: full.", None, "SparkException: full; kdissect doctor spark says how"),
    ],
)
def test_a_job_that_failed_tells_what_to_do(words: str | None, ends: str | None, told: str) -> None:
    assert told in failure(words, ends, "app-1")
    assert "stopped SparkContext" not in failure(words, ends, "app-1")


def test_without_a_worker_the_settings_are_told_that_may_be_wrong() -> None:
    conf = {"spark.executor.memory": "6g", "spark.executor.cores": "8", "spark.driver.host": "10.0.0.1"}
    for each in ("6g of free memory (spark.executor.memory)", "8 free cores (spark.executor.cores)"):
        assert each in nobody(conf)
    host = {"spark.driver.host": "10.0.0.1"}
    assert "1g of free memory (spark.executor.memory) and 1 free core (spark.executor.cores)" in nobody(host)
    assert "this machine as 10.0.0.1 (spark.driver.host)" in nobody(conf)


def test_nothing_is_told_of_settings_and_files_that_nobody_knows() -> None:
    """A server of Spark Connect has the settings. Only standalone clusters have this folder."""
    assert "The server of Spark Connect has these settings" in nobody({})
    assert "None" not in nobody({})
    assert "look for the reason on a worker, in stderr of an executor. Often" in failure(STOPPED, None, None)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--cluster", "local[1]"), "needs kdissect doctor spark"),
        (("spark", "--path", "x"), "--path needs --cluster"),
        (("spark", "--cluster", "spark://127.0.0.1:1"), "127.0.0.1:1 does not answer"),
        (
            ("spark", "--cluster", "local[1]", "--conf", "spark.archives=/nowhere.tar.gz#environment"),
            "spark.archives=/nowhere.tar.gz#environment: there is no such archive; kdissect spark pack",
        ),
        (
            ("spark", "--cluster", "local[1]", "--conf", f"spark.archives={ERRORS}"),
            "the file is no archive of tar or zip; kdissect spark pack",
        ),
    ],
)
def test_what_cannot_be_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    pytest.importorskip("pyspark")
    assert main(["doctor", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
