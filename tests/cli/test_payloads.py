"""``--decode-as``, ``--schemas``, ``--registry``: keys and values of records as values."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from kdissect.cli.commands import read
from kdissect.cli.completing import a_filter
from tests.cli.run import CAPTURES, run
from tests.payload.made import produced, record
from tests.registry.server import Server, say, serving
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


SECRET = "hunter2-and-more"
ORDER = {"schema": json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]})}


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return produced(tmp_path / "made.pcapng", {"orders": [record(b"k", b"\0\0\0\0\7\6")] * 3})


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))
    with serving() as server:
        server.answers["/schemas/ids/7"] = ORDER
        yield server


def test_a_registry_is_asked_when_that_is_said(
    capture: Path, registry: Server, capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'[registry]\nurl = "{registry.url}"\nuser = "me"\npassword = "{SECRET}"\n')
    monkeypatch.setenv("KDISSECT_CONFIG", str(config))
    for form in ("records", "records.csv", "ndjson"):
        ran = run(capsysbinary, "read", capture, "-T", form, "--decode-as", "*=auto")
        assert (ran.code, registry.asked) == (0, [])
    found = rows(capsysbinary, "read", capture, "-T", "records", "--registry", registry.url)
    assert [row["valueDecoded"] for row in found] == [{"id": 3}] * 3
    assert registry.asked == ["/schemas/ids/7"]
    assert registry.headers[0]["Authorization"].startswith("Basic ")


def test_statistics_and_findings_ask_it_too(capture: Path, registry: Server, capsysbinary: Capsys) -> None:
    asking = ("--registry", registry.url)
    (row,) = rows(
        capsysbinary,
        "stats",
        capture,
        "-z",
        "payloads",
        "-T",
        "ndjson",
        *asking,
        "-e",
        "schema_name,schemas,part",
    )[1:]
    assert row == {"part": "value", "schema_name": "Order", "schemas": "registry"}
    bad = produced(capture.parent / "bad.pcapng", {"orders": [record(None, b"\0\0\0\0\x09\6")]})
    ran = run(capsysbinary, "explain", bad, "--deep", "--all", *asking)
    assert "names schema 9, which is not in the schema registry" in ran.out.decode()


def test_a_registry_that_fails_is_one_line_and_shows_no_password(
    capture: Path, registry: Server, capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDISSECT_REGISTRY_USER", "me")
    monkeypatch.setenv("KDISSECT_REGISTRY_PASSWORD", SECRET)
    registry.answers.clear()
    registry.otherwise = say(401, b"{}")
    for command in (
        ["read", "-T", "records"],
        ["read", "-T", "records.csv"],
        ["stats", "-z", "payloads"],
        ["explain", "--deep"],
    ):
        ran = run(capsysbinary, *command, capture, "--registry", registry.url)
        assert ran.code == 0
        (line,) = [line for line in ran.err.splitlines() if "--registry" in line]
        assert "refuses these credentials (401)" in line
        assert SECRET not in ran.err + ran.out.decode()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--registry", f"http://me:{SECRET}@registry"), "the URL must not contain user and password"),
        (("--registry-ca", "x.pem"), "--registry-ca needs --registry URL"),
        (("--registry", "https://registry", "--registry-ca", "/no/x.pem"), "/no/x.pem: cannot be read"),
    ],
)
def test_a_registry_that_cannot_be_asked_so(
    options: tuple[str, ...], said: str, capture: Path, capsysbinary: Capsys
) -> None:
    ran = run(capsysbinary, "read", capture, "-T", "records", *options)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, b"", 1)
    assert said in ran.err
    assert SECRET not in ran.err


def test_what_decodes_belongs_to_commands_that_decode(capture: Path, capsysbinary: Capsys) -> None:
    for command, said in (
        (["stats", "-z", "srt"], "need -z payloads here"),
        (["explain"], "need --deep here"),
        (
            ["spark", "batch", "--out", str(capture.parent / "out")],
            "Spark tasks do not ask a registry; give --schemas with a folder that all tasks can read",
        ),
    ):
        ran = run(capsysbinary, *command, capture, "--registry", "https://registry")
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert said in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'user = "me"\npassword = "{SECRET}"', "registry: url is needed"),
        (f'url = "https://me:{SECRET}@registry"', "url: the URL must not contain user"),
        (f'url = "https://registry"\npasswort = "{SECRET}"', "there is no key 'passwort' of registry"),
        ('url = "https://registry"\ntimeout_s = 0', "timeout_s: a number of seconds above 0"),
        ("url = 5", "url: a text is needed"),
    ],
)
def test_a_wrong_configuration_of_registries(
    text: str, said: str, capture: Path, capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = capture.parent / "config.toml"
    config.write_text(f"[registry]\n{text}\n")
    monkeypatch.setenv("KDISSECT_CONFIG", str(config))
    ran = run(capsysbinary, "read", capture)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert said in ran.err
    assert SECRET not in ran.err


def test_records_inside_messages_and_trees_are_decoded(
    capture: Path, tmp_path: Path, capsysbinary: Capsys
) -> None:
    rule = ("--decode-as", f"orders=avro:{tmp_path / 'order.avsc'}")
    (tmp_path / "order.avsc").write_text(ORDER["schema"])
    (row,) = rows(capsysbinary, "read", capture, "-T", "ndjson", "--records", *rule)
    (part,) = row["request"]["body"]["topicData"][0]["partitionData"]
    found = part["records"][0]["records"]
    assert [each["valueDecoded"] for each in found] == [{"id": 3}] * 3
    assert found[0]["valueFormat"]["name"] == "Order"
    tree = run(capsysbinary, "read", capture, "-V", *rule).out.decode()
    assert len(re.findall(r"\n +id: 3 +int +\[\d+:\d+\]\n", tree)) == 3
    plain = run(capsysbinary, "read", capture, "-V").out.decode()
    assert "id: 3" not in plain


def test_what_is_hidden_is_not_drawn_either(tmp_path: Path, capsysbinary: Capsys) -> None:
    value = json.dumps({"password": SECRET}).encode()
    capture = produced(tmp_path / "c.pcapng", {"orders": [record(b"\0", value)]})
    headers = (("authorization", SECRET.encode()),)
    capture = produced(tmp_path / "d.pcapng", {"orders": [record(b"k", b"\0\0\0\0\7\6", headers)]})
    for path in (capture, tmp_path / "c.pcapng"):
        for form in (["-V"], ["-T", "ndjson", "--records"], ["-T", "records"]):
            plain = run(capsysbinary, "read", path, *form).out.decode()
            decoded = run(capsysbinary, "read", path, *form, "--decode-as", "*=auto").out.decode()
            assert (SECRET in decoded) is (SECRET in plain)


def test_what_the_configuration_remembers_costs_nothing_where_nothing_is_decoded(
    capture: Path, tmp_path: Path, capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text(f'schemas = ["{tmp_path / "gone"}"]\n[decode_as]\n"*" = "auto"\n')
    monkeypatch.setenv("KDISSECT_CONFIG", str(config))
    for form in ("text", "ndjson", "faults", "connections"):
        assert run(capsysbinary, "read", capture, "-T", form).code == 0
    for options in (["-T", "records"], ["-T", "ndjson", "--records"], ["-Y", "record.value.id == 3"]):
        assert run(capsysbinary, "read", capture, *options).code == 2


def test_names_inside_values_are_completed_from_schemas_and_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "order.avsc").write_text(ORDER["schema"])
    config = tmp_path / "config.toml"
    config.write_text(f'[decode_as]\n"*" = "avro:{tmp_path / "order.avsc"}"\n')
    given = {"payload_rules": (f"orders=avro:{tmp_path / 'order.avsc'}",)}
    for params, has_config in (
        (given, False),
        ({"schemas": (str(tmp_path),)}, False),
        ({}, True),
        ({}, False),
    ):
        monkeypatch.setenv("KDISSECT_CONFIG", str(config if has_config else tmp_path / "none.toml"))
        context = click.Context(read.command)
        context.params = params
        found = [each.value for each in a_filter(context, read.command.params[0], "record.value.")]
        assert ("record.value.id" in found) is bool(params or has_config), params
