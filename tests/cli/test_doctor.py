"""What ``kdissect doctor`` says of Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kdissect.cli import main


def java(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    main(["doctor", "-T", "ndjson"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert any(row["what"] == "pyspark" for row in rows)
    (row,) = (row for row in rows if row["what"] == "java")
    return dict(row)


def test_a_java_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "java"
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    row = java(capsys)
    assert row["state"] == "ok"
    assert str(program) in row["details"]


def test_without_java_it_is_told_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("kdissect.spark.launch.bundled_java", lambda: None)
    row = java(capsys)
    assert row["state"] == "absent"
    assert all(words in row["details"] for words in (str(tmp_path), "openjdk-17", "extra spark-local"))
