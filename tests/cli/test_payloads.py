"""``--decode-as`` and ``--schemas``: keys and values of records as values."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import CAPTURES, run
from tests.shared import requires_shared, shared

CAPTURE = CAPTURES / "basic-kafka43.pcapng"

Capsys = pytest.CaptureFixture[bytes]


def rows(capsysbinary: Capsys, *arguments: Any) -> list[dict[str, Any]]:
    ran = run(capsysbinary, *arguments)
    assert (ran.code, ran.err) == (0, "")
    return [json.loads(line) for line in ran.out.splitlines()]


@requires_shared
@pytest.mark.parametrize("form", ["records", "records.csv", "records.ndjson -e topic,keyDecoded"])
def test_every_record_of_the_incident_is_what_was_written(form: str, capsysbinary: Capsys) -> None:
    folder = shared("testdata/incidents/payloads")
    table, *columns = form.split()
    if columns:
        columns[1] = "topic,partition,offset,assigned_offset,direction,keyDecoded,valueDecoded"
    ran = run(
        capsysbinary,
        *("read", folder / "capture.pcapng", "--schemas", folder / "schemas", "-T", table, *columns),
    )
    assert (ran.code, ran.err) == (0, "")
    if table.endswith("csv"):
        found = list(csv.DictReader(io.StringIO(ran.out.decode())))
        for row in found:
            row["valueDecoded"] = json.loads(row["valueDecoded"])
            if row["keyDecoded"][0] in "{[0123456789":
                row["keyDecoded"] = json.loads(row["keyDecoded"])
            row["partition"], row["offset"] = int(row["partition"]), int(row["offset"])
            row["assigned_offset"] = int(row["assigned_offset"] or -1)
    else:
        found = [json.loads(line) for line in ran.out.splitlines()]
    truth = json.loads((folder / "truth.json").read_text())["facts"]["records"]
    wanted = {
        (each["topic"], each["partition"], each["offset"]): (each["key"], each["value"]) for each in truth
    }
    assert len(found) == 2 * len(truth)
    for row in found:
        offset = row["assigned_offset"] if row["direction"] == "produce" else row["offset"]
        key, value = row["keyDecoded"], row["valueDecoded"]
        assert (key, value) == wanted[row["topic"], row["partition"], offset]


def test_nothing_is_decoded_unless_it_is_asked_for(capsysbinary: Capsys) -> None:
    plain = rows(capsysbinary, "read", CAPTURE, "-T", "records")
    decoded = rows(capsysbinary, "read", CAPTURE, "-T", "records", "--decode-as", "*=auto")
    new = ("keyDecoded", "valueDecoded", "keyFormat", "valueFormat")
    assert not any(name in row for row in plain for name in new)
    assert [{k: v for k, v in row.items() if k not in new} for row in decoded] == plain
    assert any("valueDecoded" in row for row in decoded)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--decode-as", "orders"], "--decode-as orders: the form is TOPIC="),
        (["--decode-as", "orders=avro:/no/where"], "/no/where: cannot be read"),
        (["--schemas", "/no/where"], "--schemas /no/where: not there; a folder with ID.avsc"),
    ],
)
def test_one_line_says_what_is_wrong(arguments: list[str], message: str, capsysbinary: Capsys) -> None:
    for command in (["read", CAPTURE], ["log", CAPTURES / "logs"]):
        ran = run(capsysbinary, *command, "-T", "records", *arguments)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, b"", 1)
        assert message in ran.err


def test_a_broken_schema_costs_one_line(tmp_path: Path, capsysbinary: Capsys) -> None:
    (tmp_path / "100.avsc").write_text("{")
    ran = run(capsysbinary, "read", CAPTURE, "-T", "records", "--schemas", tmp_path)
    assert ran.code == 0  # nothing in this capture needs it
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "1.avsc").write_bytes(b"\xff")
    ran = run(capsysbinary, "read", CAPTURE, "-T", "records", "--schemas", bad)
    assert (ran.code, ran.err) == (0, f"kdissect: {bad}/1.avsc: cannot be read: it is not UTF-8\n")


def test_the_configuration_remembers(
    tmp_path: Path, capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[decode_as]\n"*" = "hex"\n')
    monkeypatch.setenv("KDISSECT_CONFIG", str(path))
    found = rows(capsysbinary, "read", CAPTURE, "-T", "records")
    assert all(row["valueFormat"]["format"] == "hex" for row in found if row["value"] is not None)
    last = rows(capsysbinary, "read", CAPTURE, "-T", "records", "--decode-as", "*=raw")
    assert not any("valueDecoded" in row for row in last)
