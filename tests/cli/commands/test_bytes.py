from __future__ import annotations

import gzip
import io
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import ROOT, Ran, run, run_with
from tests.kafka import request

OFFICIAL = ROOT / "tests" / "data" / "official"

Capsys = pytest.CaptureFixture[bytes]


def vectors(name: str) -> list[dict[str, Any]]:
    with gzip.open(OFFICIAL / name, "rb") as file:
        return [json.loads(line) for line in file.read().split(b"\n") if line]


def asked(what: str, *questions: dict[str, Any], more: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    lines = b"".join(json.dumps(question).encode() + b"\n" for question in questions)
    ran = run_with(lines, "bytes", what, "--ndjson", *more)
    assert ran.err == ""
    return [json.loads(line) for line in ran.lines]


def test_every_official_message_decodes_and_encodes_back() -> None:
    rows = vectors("messages.ndjson.gz")
    questions = [
        {name: row[name] for name in ("id", "kind", "api_key", "version")} | {"hex": row["body_hex"]}
        for row in rows
    ]
    answers = asked("message", *questions, more=("--show-secrets",))
    assert [answer["id"] for answer in answers] == [row["id"] for row in rows]
    assert [each["consumed"] for each in answers] == [len(row["body_hex"]) // 2 for row in rows]
    back = [
        {**question, "body": answer["body"]}
        for question, answer, row in zip(questions, answers, rows, strict=True)
        if "SizeInBytes" not in json.dumps(answer["body"])
        and answer["body"] == row["json"]  # without unknown tags
        and not answer["faults"]
    ]
    assert len(back) > 2000
    wanted = {row["id"]: row["body_hex"] for row in rows}
    wrong = [
        each["id"]
        for each in asked("message", *back, more=("--encode",))
        if each.get("hex") != wanted[each["id"]]
    ]
    # Only an older release's layout of the same version reads so and is written as the newer one's.
    assert len(wrong) < 20, wrong


def test_record_sets_decode_as_kafkas_iterators_do_and_encode_back() -> None:
    rows = [row for row in vectors("recordsets.ndjson.gz") if not row.get("trailing_bytes")]
    answers = asked("records", *({"id": row["id"], "hex": row["hex"]} for row in rows))
    plain = [
        (row, answer)
        for row, answer in zip(rows, answers, strict=True)
        if not answer["faults"]
        and all(b["codec"] == "none" for b in answer["batches"])  # packing need not come out the same
    ]
    assert len(plain) == 60
    assert any("stored_timestamp" in record for _, answer in plain for record in answer["records"])
    back = asked("records", *(answer for _, answer in plain), more=("--encode",))
    assert [each["hex"] for each in back] == [row["hex"] for row, _ in plain]


def test_internal_records_decode_and_encode_back() -> None:
    rows = vectors("internal.ndjson.gz")
    questions = [
        {name: row[name] for name in ("id", "family", "key_hex", "value_hex")}
        | ({"name": row["name"]} if row["family"] in ("consumer-protocol", "streams", "connect") else {})
        for row in rows
    ]
    answers = asked("internal", *questions, more=("--show-secrets",))
    back = [
        {**answer, "family": row["family"]}
        for answer, row in zip(answers, rows, strict=True)
        if row["fill"] != "tagged" and not row.get("unknown_tags")
    ]
    written = {each["id"]: each for each in asked("internal", *back, more=("--encode",))}
    right = sum(
        (written[row["id"]].get("key_hex"), written[row["id"]].get("value_hex"))
        == (row["key_hex"], row["value_hex"])
        for row in rows
        if row["id"] in written
    )
    assert right > 0.9 * len(written)


def test_secrets_are_redacted_here_too() -> None:
    secret = {"id": 1, "kind": "request", "api_key": 36, "version": 0, "hex": "00000003616263"}
    (answer,) = asked("message", secret)
    assert answer["body"] == {"authBytes": "<redacted>"}


def test_bytes_left_and_bytes_missing_are_told() -> None:
    (longer, shorter, unknown) = asked(
        "message",
        {"id": 1, "kind": "request", "api_key": 18, "version": 0, "hex": "0102"},
        {"id": 2, "kind": "request", "api": "Heartbeat", "version": 0, "hex": "000167"},
        {"id": 3, "kind": "request", "api_key": 4711, "version": 0, "hex": "00"},
    )
    assert (longer["body"], longer["consumed"]) == ({"_remainder": "AQI="}, 0)
    assert [fault["kind"] for fault in longer["faults"]] == ["remainder"]
    assert (shorter["body"], shorter["consumed"]) == ({"groupId": "g"}, 3)
    assert [fault["kind"] for fault in shorter["faults"]] == ["truncated"]
    assert (unknown["body"], unknown["opaque"]) == (None, "unknown API key 4711")


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"[]",
        b'{"id":7}',
        b'{"id":7,"kind":"request","api_key":0,"version":"x","hex":""}',
        b'{"id":7,"kind":"request","api_key":0,"version":9,"hex":"zz"}',
        b'{"id":7,"kind":"data","name":"Nonsense","version":0,"hex":""}',
        b'{"id":7,"kind":"request","api_key":0,"version":9,"hex":5}',
    ],
)
def test_a_line_that_makes_no_sense_is_answered_and_costs_only_itself(line: bytes) -> None:
    good = b'{"id":8,"kind":"request","api_key":18,"version":0,"hex":""}'
    ran = run_with(line + b"\n\n" + good, "bytes", "message", "--ndjson")
    bad, right = map(json.loads, ran.lines)
    assert (ran.code, ran.err) == (3, "")
    assert bad["error"]
    assert (right["id"], right["body"]) == (8, {})


MESSAGE = {"kind": "request", "api_key": 12, "version": 0, "hex": "00"}
INTERNAL = {"family": "group", "key_hex": "0001", "value_hex": "0001"}
RECORD = {"offset": 0, "timestamp": 1, "key_hex": None, "value_hex": "00"}


@pytest.mark.parametrize(
    ("what", "more", "question", "error"),
    [
        ("message", (), MESSAGE | {"kind": []}, "kind: "),
        ("message", (), MESSAGE | {"api": 5}, "api: text"),
        ("message", (), MESSAGE | {"api_key": True}, "api_key: a whole number"),
        ("message", (), MESSAGE | {"version": 1.5}, "version: a whole number"),
        ("message", (), MESSAGE | {"hex": ["00"]}, "hex: hex digits"),
        ("message", (), MESSAGE | {"kind": "data", "name": {}}, "name: text"),
        ("message", ("--encode",), MESSAGE | {"body": 5}, "HeartbeatRequest: an object"),
        ("internal", (), INTERNAL | {"name": 5}, "name: text"),
        ("internal", (), INTERNAL | {"family": 5}, "family: text"),
        ("internal", (), INTERNAL | {"key_hex": 5}, "key_hex: hex digits"),
        (
            "internal",
            ("--encode",),
            {"family": "group", "name": "OffsetCommit", "version": True},
            "version: ",
        ),
        ("internal", ("--encode",), {"family": "group", "name": [], "version": 1}, "name: text"),
        ("records", (), {"hex": 5}, "hex: hex digits"),
        ("records", ("--encode",), {"records": {}}, "records: a list"),
        ("records", ("--encode",), {"records": [5]}, "records[0]: an object"),
        ("records", ("--encode",), {"records": [RECORD | {"offset": "0"}]}, "records[0].offset: a whole"),
        ("records", ("--encode",), {"records": [RECORD | {"offset": 1 << 63}]}, "records[0].offset: 92233"),
        ("records", ("--encode",), {"records": [RECORD | {"timestamp": True}]}, "records[0].timestamp: a"),
        ("records", ("--encode",), {"records": [RECORD | {"headers": ["ab"]}]}, "records[0].headers[0]: a"),
        ("records", ("--encode",), {"records": [RECORD | {"headers": [[5, ""]]}]}, "records[0].headers[0]: "),
        ("records", ("--encode",), {"records": [], "batches": [0]}, "batches[0]: an object"),
        (
            "records",
            ("--encode",),
            {"records": [], "batches": [{"count": True}]},
            "batches[0].count: a whole",
        ),
        (
            "records",
            ("--encode",),
            {"records": [RECORD], "batches": [{"count": 1, "producer_id": "1"}]},
            "batches[0].producer_id: a whole",
        ),
        (
            "records",
            ("--encode",),
            {"records": [RECORD], "batches": [{"count": 1, "is_control": 1}]},
            "batches[0].is_control: true or false",
        ),
        (
            "records",
            ("--encode",),
            {"records": [RECORD], "batches": [{"count": 1, "producer_epoch": 1 << 20}]},
            "batches[0]: a batch header cannot hold",
        ),
        (
            "records",
            ("--encode",),
            {"records": [RECORD], "batches": [{"count": -1}, {"count": 2}]},
            "batches[0].count: -1, and 1 record is left",
        ),
        (
            "records",
            ("--encode",),
            {"records": [RECORD], "batches": [{"count": 0}, {"count": 2}]},
            "batches[1].count: 2, and 1 record is left",
        ),
    ],
)
def test_a_field_of_a_wrong_type_is_named_and_costs_only_its_line(
    what: str,
    more: tuple[str, ...],
    question: dict[str, Any],
    error: str,
    capsysbinary: Capsys,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    feed(monkeypatch, question, {"id": 2} | question)
    ran = run(capsysbinary, "bytes", what, "--ndjson", *more)
    first, second = map(json.loads, ran.lines)
    assert first["error"] == second["error"]
    assert first["error"].startswith(error)
    assert (ran.code, second["id"]) == (3, 2)


def feed(monkeypatch: pytest.MonkeyPatch, *questions: dict[str, Any]) -> None:
    """Questions on stdin."""
    lines = b"".join(json.dumps(question).encode() + b"\n" for question in questions)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))


def test_raw_bytes_are_in_no_packet(capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    for what, question, more in (
        ("message", MESSAGE, ("--api", "Heartbeat", "--api-version", "0")),
        ("internal", INTERNAL, ("--family", "group", "--key", "0001")),
        ("records", {"hex": "00"}, ()),
    ):
        feed(monkeypatch, question)
        ran = run(capsysbinary, "bytes", what, "--ndjson")
        (answer,) = map(json.loads, ran.lines)
        assert [fault["packet"] for fault in answer["faults"]] == [None] * len(answer["faults"]) != []
        tree = run(capsysbinary, "bytes", what, "00", "--input", "hex", *more)
        assert (tree.code, b"packet" in tree.out) == (0, False)


def test_the_configured_limits_hold_for_raw_bytes() -> None:
    question = {"kind": "data", "name": "ConsumerProtocolSubscription", "version": 0}
    question["hex"] = "00000002" + "000161" * 2 + "ffffffff"
    found = {}
    for limit in ("1", "2"):
        line = json.dumps(question).encode()
        ran = run_with(line, "bytes", "message", "--ndjson", KDISSECT_LIMITS_ELEMENTS=limit)
        found[limit] = json.loads(ran.out)
    assert found["2"]["faults"] == []
    assert [fault["message"] for fault in found["1"]["faults"]] == [
        "ConsumerProtocolSubscription: announces 2 elements, but the limit is 1"
    ]
    assert found["1"]["consumed"] == 0


SCRAM_RECORD = {"name": "UserScramCredentialRecord", "version": 0, "family": "metadata"}
SCRAM = {"kind": "request", "api": "AlterUserScramCredentials", "version": 0}


@pytest.mark.parametrize(
    ("what", "question", "path"),
    [
        (
            "message",
            SCRAM | {"body": {"deletions": [], "upsertions": [{"salt": "<redacted>"}]}},
            "body.upsertions[0].salt",
        ),
        ("message", SCRAM | {"body": {"_remainder": "<redacted>"}}, "body._remainder"),
        ("internal", SCRAM_RECORD | {"body": {"salt": "<redacted>"}}, "body.salt"),
        ("records", {"records": [{"offset": 0, "value_hex": "<redacted>"}]}, "records[0].value_hex"),
    ],
)
def test_a_secret_that_was_left_out_is_not_encoded(
    what: str, question: dict[str, Any], path: str, capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(monkeypatch, question)
    (answer,) = map(json.loads, run(capsysbinary, "bytes", what, "--ndjson", "--encode").lines)
    assert answer["error"] == f"{path}: a secret is redacted here: decode with --show-secrets"


def test_a_text_that_only_reads_like_a_secret_left_out_is_encoded(
    capsysbinary: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"groupId": "<redacted>", "generationId": 1, "memberId": "m"}
    feed(monkeypatch, {"kind": "request", "api": "Heartbeat", "version": 0, "body": body})
    (answer,) = map(json.loads, run(capsysbinary, "bytes", "message", "--ndjson", "--encode").lines)
    assert bytes.fromhex(answer["hex"]).startswith(b"\0\x0a<redacted>")


BODY = "0001" + "67" + "00000001" + "0001" + "6d"
"""A Heartbeat 0: group g, generation 1, member m."""


@pytest.mark.parametrize("form", ["argument", "0x", "spaces", "base64", "file", "raw file", "stdin"])
def test_one_message_comes_in_many_ways(form: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    data, stdin, more = BODY, b"", []
    if form == "0x":
        data = "0x" + BODY
    elif form == "spaces":
        data = bytes.fromhex(BODY).hex(" ")
    elif form == "base64":
        data = b64encode(bytes.fromhex(BODY)).decode()
    elif form == "file":
        path.write_text(BODY + "\n")
        data = str(path)
    elif form == "raw file":
        path.write_bytes(bytes.fromhex(BODY))
        data, more = str(path), ["--input", "raw"]
    elif form == "stdin":
        data, stdin = "-", BODY.encode()
    which = ("--api", "Heartbeat", "--api-version", 0)
    ran = run_with(stdin, "bytes", "message", *which, *more, "-T", "ndjson", data)
    assert json.loads(ran.out)["body"] == {"groupId": "g", "generationId": 1, "memberId": "m"}


def tree(capsysbinary: Capsys, *arguments: object) -> Ran:
    ran = run(capsysbinary, "bytes", *arguments)
    assert (ran.code, ran.err) == (0, "")
    return ran


def test_one_message_prints_as_a_tree(capsysbinary: Capsys) -> None:
    ran = tree(capsysbinary, "message", "--api", "Heartbeat", "--api-version", 0, BODY)
    assert any("generationId: 1" in line and "[3:7]" in line for line in ran.lines)


def test_the_tree_of_a_field_that_cannot_be_read_says_so_and_hides_no_harmless_rest(
    capsysbinary: Capsys,
) -> None:
    ran = tree(capsysbinary, "message", "--api", "Metadata", "--api-version", 1, "0000000100")
    text = " ".join(ran.out.decode().split())
    assert "topics: (not decoded)" in text
    assert "_remainder: 00 00 00 01 00" in text
    assert "1 byte is left, and each takes at least 2 bytes" in text
    secret = tree(capsysbinary, "message", "--api", "CreateTopics", "--api-version", 1, "00000001000474")
    assert "_remainder: <redacted>" in secret.out.decode()
    null = tree(capsysbinary, "message", "--api", "Metadata", "--api-version", 1, "ffffffff")
    assert "(not decoded)" not in null.out.decode()


@pytest.mark.parametrize("sized", [False, True])
def test_a_whole_request_says_itself_what_it_is(sized: bool, capsysbinary: Capsys) -> None:
    data = request("Heartbeat", 0, 5, groupId="g", generationId=1, memberId="m")
    data = len(data).to_bytes(4, "big") + data if sized else data
    ran = tree(capsysbinary, "message", data.hex())
    assert any("requestApiKey: 12 (Heartbeat)" in line for line in ran.lines)
    found = json.loads(tree(capsysbinary, "message", "-T", "ndjson", data.hex()).out)
    assert (found["header"]["correlationId"], found["body"]["groupId"]) == (5, "g")


def test_records_and_internal_records_print_as_trees(capsysbinary: Capsys) -> None:
    batch = next(row for row in vectors("recordsets.ndjson.gz") if row["id"].startswith("m2-zstd"))
    assert any("recordsCount" in line for line in tree(capsysbinary, "records", batch["hex"]).lines)
    row = next(row for row in vectors("internal.ndjson.gz") if row["family"] == "group" and row["value_hex"])
    ran = tree(capsysbinary, "internal", "--family", "group", "--key", row["key_hex"], row["value_hex"])
    assert row["name"] in ran.out.decode()


def test_json_encodes_to_hex(tmp_path: Path, capsysbinary: Capsys) -> None:
    path = tmp_path / "body.json"
    path.write_text('{"groupId":"g","generationId":1,"memberId":"m"}')
    ran = run(capsysbinary, "bytes", "message", "--encode", "--api", "Heartbeat", "--api-version", 0, path)
    assert ran.lines == [BODY]


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["message", "--kind", "response", "00"], 2, "--api NAME"),
        (["message", "--api", "Heartbeat", "00"], 2, "--api-version"),
        (["message", "--api", "Heartbead", "--api-version", "0", "00"], 2, "Heartbead"),
        (["message", "--kind", "data", "00"], 2, "--name"),
        (["message", "00"], 2, "not a request header"),
        (["message", "xyz!"], 3, "neither hex nor base64 nor a file"),
        (["message", "/"], 3, "is a directory"),
        (["message", "--encode", "--api", "Heartbeat", "--api-version", "0", "{"], 3, "not JSON"),
        (["message", "--encode", "--api", "Heartbeat", "--api-version", "0", "{}"], 2, "groupId: missing"),
        (["internal", "00"], 2, "--family"),
        (["records", "--ndjson", "00"], 2, "stdin"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    arguments: list[str], code: int, part: str, capsysbinary: Capsys
) -> None:
    ran = run(capsysbinary, "bytes", *arguments)
    assert (ran.code, ran.out) == (code, b"")
    assert part in ran.err
    assert ran.err.count("\n") == 1
