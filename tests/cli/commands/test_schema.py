"""``kdissect schema``: names in any case, and imports that cannot be."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.cli.run import run, spawn
from tests.protocol.test_importing import HEARTBEAT, SAUCE, secret_sauce, vendors_jar

Capsys = pytest.CaptureFixture[bytes]


@pytest.mark.parametrize(
    ("name", "first"),
    [("offsetcommitkey", "OffsetCommitKey "), ("fetchrequest", "FetchRequest "), ("FETCH", "FetchRequest ")],
)
def test_a_name_is_found_in_any_case(name: str, first: str, capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, "schema", "show", name)
    assert ran.code == 0
    assert ran.lines[0].startswith(first)


def jar(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("common/message/FetchRequest.json", "{}" * 1_000)
    return path


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Things that cannot be imported, by the name of the test."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "4.0.0").mkdir()
    (tmp_path / "4.0.0" / "A.json").write_text("{")
    (tmp_path / "unnamed").mkdir()
    (tmp_path / "unnamed" / "A.json").write_text("{}")
    jar(tmp_path / "unnamed.jar")
    whole = jar(tmp_path / "kafka-clients-4.0.0.jar").read_bytes()
    (tmp_path / "half.jar").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.jar").write_text("this is no jar")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("nowhere", "No such file"),
        ("empty", "there are no definitions"),
        ("4.0.0", "A.json: not JSON"),
        ("unnamed", "--release"),
        ("unnamed.jar", "--release"),
        ("half.jar", "a jar whose end is missing"),
        ("text.jar", "neither a folder nor a jar"),
    ],
)
def test_what_cannot_be_imported_is_one_line_that_says_why(
    name: str, part: str, sources: Path, capsysbinary: Capsys
) -> None:
    ran = run(capsysbinary, "schema", "import", sources / name, "--to", sources / "to")
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, b"", 1)
    assert str(sources / name) in ran.err
    assert part in ran.err
    assert not (sources / "to").exists()


def test_a_vendors_requests_are_read_once_they_were_imported(tmp_path: Path) -> None:
    source = vendors_jar(tmp_path / "kafka-clients-7.9.0-ce.jar", *SAUCE, HEARTBEAT)
    home = str(tmp_path / "home")
    ran = spawn("schema", "import", source, "--vendor", "Confluent", KDISSECT_DATA_HOME=home)
    assert (ran.code, ran.lines[0][:45]) == (0, "Confluent 7.9.0: 2 message classes read, 1 fi")
    assert ran.err == "kdissect: left out, because Kafka has them too: 1 message class\n"
    shown = spawn("schema", "show", "SecretSauce", KDISSECT_DATA_HOME=home)
    assert shown.lines[0] == "SecretSauceRequest version 1, flexible, as of confluent-7.9.0"
    heartbeat = spawn("schema", "show", "Heartbeat", KDISSECT_DATA_HOME=home)
    assert heartbeat.lines[0].endswith("as of Kafka 4.4.0")


def test_apis_with_one_half_missing_are_told_in_one_line(tmp_path: Path) -> None:
    halves = [secret_sauce("request", key) | {"name": f"Sauce{key}Request"} for key in range(10_001, 10_013)]
    source = vendors_jar(tmp_path / "kafka-clients-7.9.0.jar", *halves)
    ran = spawn("schema", "import", source, "--to", tmp_path / "to")
    assert (ran.code, ran.err.count("\n")) == (0, 1)
    assert ran.err.startswith("kdissect: left out, because the request or the response is missing: Sauce1")
    assert ran.err.endswith(", Sauce10010 and 2 more\n")


@pytest.mark.parametrize("name", ["", "../x", "a b", "x" * 41, "ä"])
def test_a_vendors_name_becomes_no_path(name: str, tmp_path: Path, capsysbinary: Capsys) -> None:
    source = vendors_jar(tmp_path / "a-1.0.jar", *SAUCE)
    ran = run(capsysbinary, "schema", "import", source, "--to", tmp_path / "to", "--vendor", name)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert not (tmp_path / "to").exists()
