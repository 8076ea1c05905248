"""Names that would rewrite the screen, turn writing around, end a line or begin a formula, in every output of
the command line."""

from __future__ import annotations

import csv
import io
import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from kdissect.analysis.catalogue import STATISTICS
from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.cli.run import run
from tests.kafka import Talk, request, response
from tests.present.captures import port, write_capture

Capsys = pytest.CaptureFixture[bytes]

HOSTILE = "=[red]x[/red]\x1b[2J\x1b]0;t\x07\x9b\u202ea\u2066\u200b\u3164\n\r\t\U000e0041\"',;|[/"
SHOWN = r"=[red]x[/red]\x1b[2J\x1b]0;t\x07\x9b\u202ea\u2066\u200b\u3164\n\r\t\U000e0041" + "\"',;|[/"
VISIBLE = "=[red]x[/red]\u3164"
"""Unicode calls all of it printable: a client of that name may be told of in a fault."""


def base64(data: bytes) -> str:
    return b64encode(data).decode()


def talks() -> list[Talk]:
    """Conversations in which every name is hostile."""
    name = HOSTILE
    login = Talk(port(50_001))
    token = base64(f"\0{name}\0pw".encode())
    done: dict[str, Any] = {"errorCode": 58, "errorMessage": name, "sessionLifetimeMs": 0, "authBytes": ""}
    login.ask(request("ApiVersions", 3, 1, name, clientSoftwareName=name, clientSoftwareVersion=name))
    login.answer(response("ApiVersions", 3, 1, errorCode=0, apiKeys=[], throttleTimeMs=0))
    login.ask(request("SaslHandshake", 1, 2, name, mechanism="PLAIN"))
    login.answer(response("SaslHandshake", 1, 2, errorCode=0, mechanisms=[name]))
    login.ask(request("SaslAuthenticate", 2, 3, name, authBytes=token))
    login.answer(response("SaslAuthenticate", 2, 3, **done))
    strange = Talk(port(50_002)).ask(request("SaslHandshake", 1, 1, name, mechanism=name)).close()
    data = name.encode()
    records = write_batch([Record(0, 1, data, data, ((name, data),))])
    produced = Talk(port(50_003))
    topic = {"name": name, "partitionData": [{"index": 0, "records": base64(records)}]}
    produced.ask(
        request("Produce", 9, 1, name, transactionalId=name, acks=-1, timeoutMs=1, topicData=[topic])
    )
    partition = {
        "index": 0, "errorCode": 1, "baseOffset": 0, "logAppendTimeMs": -1, "logStartOffset": 0,
        "recordErrors": [{"batchIndex": 0, "batchIndexErrorMessage": name}], "errorMessage": name,
    }  # fmt: skip
    produced.answer(
        response(
            "Produce", 9, 1, responses=[{"name": name, "partitionResponses": [partition]}], throttleTimeMs=0
        )
    )
    member = {"sessionTimeoutMs": 1, "memberId": name, "protocolType": name, "rebalanceTimeoutMs": 1}
    produced.ask(
        request(
            "JoinGroup", 5, 2, name, groupId=name, groupInstanceId=name, **member,
            protocols=[{"name": name, "metadata": base64(data)}],
        )
    )  # fmt: skip
    produced.answer(
        response(
            "JoinGroup", 5, 2, throttleTimeMs=0, errorCode=0, generationId=1, protocolName=name, leader=name,
            memberId=name, members=[{"memberId": name, "groupInstanceId": name, "metadata": base64(data)}],
        )
    )  # fmt: skip
    broken = request("Metadata", 1, 3, VISIBLE, topics=[])[:-4] + b"\x7f\xff\xff\xff"
    alone = Talk(port(50_004)).ask(broken).close()
    return [login.close(), strange, produced.close(), alone]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_capture(tmp_path_factory.mktemp("hostile") / "hostile.pcapng", *talks())


def assert_plain(out: bytes) -> str:
    """Nothing in it is anything but to be seen; gives the text."""
    text = out.decode()
    assert [each for each in text if not each.isprintable() and each not in "\n"] == []
    assert "\u3164" not in text
    return text


READ = [
    ("text",), ("text", "-x"), ("text", "-e", "client_id"), ("tree",), ("tree", "-x", "--embedded"),
    ("tree", "--records", "--bytes", "text"), ("records",), ("connections",), ("faults",),
    ("ndjson", "--records", "--embedded", "--bytes", "text"), ("records", "--bytes", "text"),
]  # fmt: skip


@pytest.mark.parametrize("arguments", READ, ids=" ".join)
def test_read_shows_them_as_they_are(arguments: tuple[str, ...], capture: Path, capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, "read", capture, "-T", *arguments)
    assert (ran.code, ran.err) == (0, "")
    text = assert_plain(ran.out)
    assert "=[red]x[/red]" in text
    if arguments[0] in ("text", "tree"):
        assert SHOWN in text or SHOWN[:40] in text


@pytest.mark.parametrize(
    "form", ["csv", "tsv", "records.csv", "records.tsv", "connections.csv", "faults.tsv"]
)
def test_tables_have_one_row_a_line_and_no_formula(form: str, capture: Path, capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, "read", capture, "-T", form, "--bytes", "text")
    assert (ran.code, ran.err) == (0, "")
    is_csv = form.endswith("csv")
    text = ran.out.decode()
    assert_plain(ran.out if is_csv else ran.out.replace(b"\t", b" "))
    rows = [line.split("\t") for line in text.splitlines()]
    if is_csv:
        rows = list(csv.reader(io.StringIO(text, newline="")))
    assert len(rows) == text.count("\n") > 1
    assert {len(row) for row in rows} == {len(rows[0])}
    assert not [cell for row in rows for cell in row if re.match(r"[=+@]|-\D", cell)]


def test_colours_are_the_only_escape_codes(capture: Path, capsysbinary: Capsys) -> None:
    ran = run(capsysbinary, "read", capture, "--color", "always")
    assert b"\x1b[1m" in ran.out
    assert_plain(re.sub(rb"\x1b\[\d+m", b"", ran.out))


def test_names_come_back_from_json(capture: Path, capsysbinary: Capsys) -> None:
    rows = [json.loads(line) for line in run(capsysbinary, "read", capture, "-T", "connections").lines]
    assert rows[0]["client_id"] == HOSTILE
    assert rows[0]["software"] == f"{HOSTILE} {HOSTILE}"
    assert rows[0]["sasl"]["principal"] == HOSTILE
    assert rows[1]["sasl"]["mechanism"] == HOSTILE
    records = run(capsysbinary, "read", capture, "-T", "records", "--bytes", "text").lines
    assert [json.loads(line)["topic"] for line in records] == [HOSTILE]


@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_show_them_as_they_are(name: str, capture: Path, capsysbinary: Capsys) -> None:
    assert_plain(run(capsysbinary, "stats", capture, "-z", name).out)
    assert_plain(run(capsysbinary, "stats", capture, "-z", name, "-T", "ndjson").out)
    assert_plain(run(capsysbinary, "stats", capture, "-z", name, "-T", "csv").out)


@pytest.mark.parametrize("form", ["text", "ndjson", "csv"])
@pytest.mark.parametrize(
    "about",
    [
        (),
        ("--topic", HOSTILE),
        ("--group", HOSTILE),
        ("--client", HOSTILE),
        ("--transactional-id", HOSTILE),
        ("--exchange", "5"),
    ],
    ids=lambda about: " ".join(about[:1]) or "findings",
)
def test_findings_and_stories_show_them_as_they_are(
    about: tuple[str, ...], form: str, capture: Path, capsysbinary: Capsys
) -> None:
    if "--exchange" in about and form != "text":
        pytest.skip("it prints text only")
    ran = run(capsysbinary, "explain", capture, "--all", "-T", form, *about)
    assert ran.code == 0
    text = assert_plain(ran.out)
    assert_plain(ran.err.encode())
    if about:
        assert "[red]x[" in text


def test_what_is_not_there_shows_them_as_they_are(capture: Path, capsysbinary: Capsys) -> None:
    for option in ("--topic", "--group", "--client", "--transactional-id"):
        ran = run(capsysbinary, "explain", capture, option, "nothing")
        assert (ran.code, ran.err.count("\n")) == (2, 1)
        assert_plain(ran.err.encode())


@pytest.mark.parametrize("form", ["text", "records", "records.csv", "batches", "batches.csv"])
def test_a_log_shows_them_as_they_are(form: str, tmp_path: Path, capsysbinary: Capsys) -> None:
    folder = tmp_path / f"{HOSTILE.replace('/', '')}-0"
    folder.mkdir()
    data = HOSTILE.encode()
    batch = write_batch([Record(0, 1, data, data, ((HOSTILE, data),))])
    (folder / "00000000000000000000.log").write_bytes(batch + b"more")
    bytes_form = ("--bytes", "text") if form.startswith("records") else ()
    ran = run(capsysbinary, "log", folder, "-T", form, *bytes_form)
    assert ran.code == 3  # the segment ends inside a batch
    assert "[red]x[" in assert_plain(ran.out)
    assert_plain(ran.err.encode())
    assert ran.err.count("\n") == 1
