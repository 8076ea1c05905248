"""What a command says to a user who meant something else."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import CAPTURES, run, run_with

CAPTURE = CAPTURES / "basic-kafka43.pcapng"
HEARTBEAT = ("--api", "Heartbeat", "--api-version", "0")

Capsys = pytest.CaptureFixture[bytes]


@pytest.mark.parametrize(
    ("arguments", "code", "parts"),
    [
        (["nosuchcommand"], 2, ["no command or file nosuchcommand; there are read"]),
        (["raed"], 2, ["did you mean read?"]),
        (["nosuch.pcapng"], 3, ["No such file"]),
        (["read", "X", "-T", ""], 2, ["-T ''", "no such format"]),
        (["read", "X", "-e", "number", "-x"], 2, ["-x works with"]),
        (["log", "X", "-T", "exchanges"], 2, ["no such format"]),
        (["completion"], 2, ["Choose from: bash, zsh, fish (see"]),
        (["schema", "import", "X", "--release", "four"], 2, ["--release four: a Kafka release is needed"]),
        (["bytes", "message", *HEARTBEAT, "zz"], 3, ["neither hex nor base64 nor a file: zz"]),
        (["bytes", "message", "--api", "Metdata", "--api-version", "0", "00"], 2, ["did you mean Metadata?"]),
    ],
)
def test_one_line_says_what_was_meant(
    arguments: list[str], code: int, parts: list[str], capsysbinary: Capsys
) -> None:
    ran = run(capsysbinary, *(CAPTURE if word == "X" else word for word in arguments))
    assert (ran.code, ran.out, ran.err.count("\n")) == (code, b"", 1)
    assert all(part in ran.err for part in parts), ran.err
    assert "\\t" not in ran.err


def test_log_offers_no_trees(capsysbinary: Capsys) -> None:
    assert "tree" not in run(capsysbinary, "log", CAPTURES / "logs", "-T", "zzz").err


def test_decode_as_does_not_mind_case(capsysbinary: Capsys) -> None:
    assert run(capsysbinary, CAPTURE, "-d", "TCP.port==9092,Kafka").code == 0


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"id": "\xff"}', "this is not UTF-8, at byte 8"),
        (b"[" * 100_000, "it is nested too deeply"),
        (b'{"id": ' + b"9" * 5_000 + b"}", "a number in it has too many digits"),
        (b'{"id": }', "this is not JSON: expecting value, at line 1, column 8"),
    ],
)
def test_lines_that_are_no_json_are_answered_in_words(line: bytes, error: str) -> None:
    ran = run_with(b"\n" + line + b"\n", "bytes", "message", "--ndjson")
    assert (ran.code, ran.err) == (3, "")
    assert json.loads(ran.out) == {"id": None, "line": 2, "error": error}


def test_json_that_is_nested_too_deeply_is_no_defect_of_ours(tmp_path: Path, capsysbinary: Capsys) -> None:
    for depth in (3_000, 100_000):
        path = tmp_path / "deep.json"
        path.write_text('{"a":' * depth + "1" + "}" * depth)
        ran = run(capsysbinary, "bytes", "message", "--encode", *HEARTBEAT, path)
        assert ran.code in (2, 3)
        assert ran.err.count("\n") == 1
        assert "defect" not in ran.err
    assert "it is nested too deeply" in ran.err


def test_an_import_that_brings_nothing_new_says_so(tmp_path: Path, capsysbinary: Capsys) -> None:
    source, target = tmp_path / "9.9.9", tmp_path / "to"
    source.mkdir()
    for kind in ("request", "response"):
        made_up: dict[str, Any] = {"apiKey": 4711, "type": kind, "name": f"MadeUp{kind.title()}"}
        made_up |= {"validVersions": "0", "flexibleVersions": "none", "listeners": ["broker"]}
        made_up["fields"] = [{"name": "Word", "type": "string", "versions": "0+"}]
        (source / f"MadeUp{kind.title()}.json").write_text(json.dumps(made_up))
    first, second = (run(capsysbinary, "schema", "import", source, "--to", target).lines for _ in range(2))
    assert first == [f"Kafka 9.9.9: 2 message classes read, 1 file written to {target}"]
    assert second == ["Kafka 9.9.9: 2 message classes read, nothing new"]
    (source / "MadeUpRequest.json").write_text("{}")
    ran = run(capsysbinary, "schema", "import", source, "--to", target)
    assert ran.err == f"kdissect: {source}: MadeUpRequest.json: validVersions is missing\n"


def test_null_and_empty_differ_in_csv(capsysbinary: Capsys) -> None:
    columns = ("-e", "key,value,key_size,value_size")
    lines = run(capsysbinary, CAPTURE, "-T", "records.csv", *columns).lines
    rows = [json.loads(line) for line in run(capsysbinary, CAPTURE, "-T", "records", *columns).lines]
    assert any(row["key"] is None for row in rows)
    for line, row, cells in zip(lines[1:], rows, csv.reader(lines[1:]), strict=True):
        assert (cells[0] == "") == (row["key"] in (None, ""))
        assert line.startswith(",") == (row["key"] is None)


def test_columns_of_decoded_bytes_come_only_where_they_are_decoded(capsysbinary: Capsys) -> None:
    for command in (("read", CAPTURE), ("log", CAPTURES / "logs" / "t09-0")):
        plain = run(capsysbinary, *command, "-T", "records.csv", "-c", 1).lines[0]
        assert "Decoded" not in plain
        decoded = run(capsysbinary, *command, "-T", "records.csv", "-c", 1, "--embedded").lines[0]
        assert decoded == plain + ',"keyDecoded","valueDecoded"'
