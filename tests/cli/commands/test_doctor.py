"""What ``kdissect doctor`` says of Spark and of the environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kdissect
from kdissect.cli import main
from kdissect.cli.config import SECRET_VARIABLES
from tests.cli.run import ask_no_tshark


@pytest.fixture(autouse=True)
def _no_tshark(monkeypatch: pytest.MonkeyPatch) -> None:
    ask_no_tshark(monkeypatch)


def told(what: str, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    main(["doctor", "-T", "ndjson"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert any(row["what"] == "pyspark" for row in rows)
    (row,) = (row for row in rows if row["what"] == what)
    return dict(row)


def test_the_folder_of_the_package_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(kdissect.__file__).parent
    assert told("kdissect", capsys)["details"] == f"{kdissect.__version__}, {folder}"


def test_a_java_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "java"
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    row = told("java", capsys)
    assert row["state"] == "ok"
    assert str(program) in row["details"]


def test_without_java_it_is_told_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("kdissect.spark.launch.bundled_java", lambda: None)
    row = told("java", capsys)
    assert row["state"] == "absent"
    assert all(words in row["details"] for words in (str(tmp_path), "openjdk-17", "extra spark-local"))


@pytest.mark.parametrize("form", ["text", "ndjson"])
def test_of_variables_that_are_no_known_settings_only_the_name_is_told(
    form: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = (*SECRET_VARIABLES, "KDISSECT_PASWORD", "KDISSECT_SASL_TOKEN")
    for at, name in enumerate(hidden):
        monkeypatch.setenv(name, f"hunter{at}-secret")
    monkeypatch.setenv("KDISSECT_TIME", "d")
    monkeypatch.setenv("KDISSECT_LIMITS_FRAME_BYTES", "4711")
    main(["doctor", "-T", form])
    said = capsys.readouterr()
    assert "secret" not in (said.out + said.err).replace(" secrets", "")
    assert all(name in said.out for name in hidden)
    assert "KDISSECT_TIME=d" in said.out
    assert "KDISSECT_LIMITS_FRAME_BYTES=4711" in said.out
