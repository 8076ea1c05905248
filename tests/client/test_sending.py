from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run import run
from tests.client.broker import CLOSE, TestBroker
from tests.client.running import Capsys, client, rows
from tests.client.stored import THREE, produced, stored
from tests.kafka import framed, request


def test_send_asks_any_api_with_json_of_which_the_rest_has_its_defaults(
    capsysbinary: Capsys, broker: TestBroker
) -> None:
    broker.answers["DescribeConfigs"] = lambda *_: {"results": []}
    body = '{"resources": [{"resourceType": 2, "resourceName": "orders"}]}'
    options = ("--api", "DescribeConfigs", "--version", 3, "--json", body, "-T", "ndjson")
    (row,) = rows(client(capsysbinary, "send", broker, *options))
    assert row["request"]["body"] == {
        "resources": [{"resourceType": 2, "resourceName": "orders", "configurationKeys": []}],
        "includeSynonyms": False,
        "includeDocumentation": False,
    }
    assert row["response"]["body"] == {"throttleTimeMs": 0, "results": []}


def test_send_takes_a_body_or_a_whole_request_as_bytes(capsysbinary: Capsys, broker: TestBroker) -> None:
    options = ("--api", 3, "--version", 1, "--hex", "ffffffff", "-T", "ndjson")
    (row,) = rows(client(capsysbinary, "send", broker, *options))
    assert row["request"]["body"] == {"topics": None}
    whole = request("Metadata", 1, 4711, "me", topics=None)
    (row,) = rows(client(capsysbinary, "send", broker, "--hex", whole.hex(), "-T", "ndjson"))
    assert (row["correlation_id"], row["client_id"]) == (4711, "me")
    sized = framed(whole).hex()
    (row,) = rows(client(capsysbinary, "send", broker, "--hex", sized, "--as-is", "-T", "ndjson"))
    assert row["correlation_id"] == 4711


def test_bytes_that_are_no_request_are_sent_as_they_are_if_that_is_asked_for(
    capsysbinary: Capsys, broker: TestBroker
) -> None:
    ran = client(capsysbinary, "send", broker, "--hex", "00000002cafe", "--as-is")
    assert (ran.code, ran.err.count("\n")) == (6, 1)
    assert "it closed the connection: the bytes are not a request" in ran.err
    ran = client(capsysbinary, "send", broker, "--hex", "0000", "--as-is", "--timeout", 0.2)
    assert (ran.code, ran.err.count("\n")) == (6, 1)
    assert "no answer to these bytes, which are not a request, within 0.2 s" in ran.err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ((), "nothing to send"),
        (("--api", "Metdata"), "did you mean Metadata?"),
        (("--api", "Metadata", "--version", "1", "--json", "{"), "not JSON"),
        (
            ("--api", "Metadata", "--json", "body.json"),
            "--json body.json: this is neither a file nor a JSON object",
        ),
        (("--api", "Metadata", "--json", '{"topix": []}'), "topix"),
        (("--api", "Metadata", "--json", "[]"), "object is needed"),
        (("--api", "4711"), "kdissect does not know this API"),
        (("--hex", "cafe"), "these 2 bytes are not a request"),
        (("--hex", "12670001000000010000"), "(key 4711); --as-is sends them unchanged"),
        (("--hex", "0000000c0003000100000001ffffffffff00"[:32]), "they begin with a size; --as-is"),
        (("--hex", "00", "--version", "1"), "--version needs --api"),
        (("--api", "Metadata", "--version", "1", "--json", '{"topics": 5}'), "topics"),
        (("--api", "Metadata", "--version", "77"), "--hex sends bytes of any version"),
        (("--api", "Metadata", "--json", "{}", "--hex", "00"), "one of them"),
        (("--api", "Metadata", "-Y", "error"), "--capture"),
        (("--api", "Metadata", "--capture", "x"), "one source of requests"),
        (("--api", "CreateTopics", "--reading-only"), "--reading-only is for a replay"),
        (("--api", "Metadata", "--as-is", "--hex", "00"), "--as-is needs --hex without --api"),
        (("--api", "Metadata", "--as-is"), "--as-is needs --hex without --api"),
        (("--capture", "x", "--version", "1"), "sends requests unchanged"),
        (("--request-log", "x", "--as-is"), "sends requests unchanged"),
        (("--request-log", "nosuch.log"), "nosuch.log: cannot be read: No such file"),
    ],
)
def test_what_cannot_be_sent_is_told_before_anybody_is_asked(
    capsysbinary: Capsys, broker: TestBroker, options: tuple[str, ...], why: str
) -> None:
    ran = client(capsysbinary, "send", broker, *options)
    assert ran.code in (2, 3)
    assert why in ran.err
    assert ran.err.count("\n") == 1
    assert broker.asked == []


@pytest.mark.parametrize("body", ["{", "[]", '{"topics": 5}', '{"topix": []}', '"x"', "no.json"])
def test_json_that_is_none_is_as_wrong_as_one_of_another_shape(
    capsysbinary: Capsys, broker: TestBroker, body: str
) -> None:
    assert client(capsysbinary, "send", broker, "--api", "Metadata", "--json", body).code == 2


def test_an_answer_that_does_not_fit_its_schema_is_shown_and_told(
    capsysbinary: Capsys, broker: TestBroker
) -> None:
    broker.answers["ListGroups"] = lambda *_: framed(b"\0\0\0\1" + b"\x7f" * 20)
    ran = client(capsysbinary, "send", broker, "--api", "ListGroups", "--version", 1)
    assert (ran.code, ran.err.count("\n")) == (6, 1)
    assert "does not fit the schema" in ran.err
    assert any("_remainder" in line for line in ran.lines)


@pytest.mark.parametrize("form", ["tree", "ndjson", "text", "faults"])
def test_bytes_behind_the_last_field_are_shown_and_told_and_end_with_6(
    capsysbinary: Capsys, broker: TestBroker, form: str
) -> None:
    broker.answers["ListGroups"] = lambda *_: framed(b"\0\0\0\1" + b"\0" * 10 + b"\xca\xfe")
    ran = client(capsysbinary, "send", broker, "--api", "ListGroups", "--version", 1, "-T", form)
    assert ran.code == 6
    assert ran.err.count("\n") == 1
    assert "its response to ListGroups v1 has bytes after the last field: 2 bytes (ca fe)" in ran.err
    shown = {
        "tree": "_remainder: ca fe",
        "ndjson": '"_remainder":"yv4="',
        "text": "remainder",
        "faults": "remainder",
    }
    assert shown[form] in ran.out.decode()


def test_bytes_that_are_in_no_answer_are_told_and_end_with_6(
    capsysbinary: Capsys, broker: TestBroker
) -> None:
    of_metadata = broker.answers["Metadata"]
    broker.answers["Metadata"] = lambda version, body: (
        broker.framed("Metadata", version, of_metadata(version, body)) + b"\0\0"
    )
    ran = client(capsysbinary, "metadata", broker)
    assert ran.code == 6
    assert ran.err == f"kdissect: {broker.address}: it sent 2 bytes (00 00) that belong to no answer\n"
    assert ran.lines[0].startswith("Exchange 3: Metadata v12")


def test_an_answer_that_comes_twice_is_shown_once_and_told(capsysbinary: Capsys, broker: TestBroker) -> None:
    broker.answers["ListGroups"] = lambda *_: framed(b"\0\0\0\1" + b"\0" * 10) * 2
    ran = client(capsysbinary, "send", broker, "--api", "ListGroups", "--version", 1, "-T", "ndjson")
    assert (ran.code, len(ran.lines), ran.err.count("\n")) == (6, 1, 1)
    assert "it answered a request that is not waiting (correlation id 1)\n" in ran.err


def test_a_request_log_is_replayed_but_for_what_it_does_not_hold(
    capsysbinary: Capsys, broker: TestBroker, tmp_path: Path
) -> None:
    def line(api: str, version: int, **body: Any) -> str:
        key = {"Metadata": 3, "CreateTopics": 19, "Produce": 0, "SaslHandshake": 17}[api]
        header = {"requestApiKey": key, "requestApiVersion": version, "correlationId": 9, "clientId": "app"}
        said = {
            "requestHeader": {**header, "requestApiKeyName": api.upper()},
            "request": body,
            "response": {},
        }
        return (
            f"[2026-05-01 12:00:00,000] DEBUG Completed request:{json.dumps(said)} (kafka.request.logger)\n"
        )

    log = tmp_path / "kafka-request.log"
    produce: dict[str, Any] = {"acks": -1, "timeoutMs": 1, "transactionalId": None, "topicData": []}
    part = {"index": 0, "recordsSizeInBytes": 68}
    log.write_text(
        line("Metadata", 1, topics=[])
        + "nothing\n"
        + line("SaslHandshake", 1, mechanism="PLAIN")
        + line("Produce", 3, **(produce | {"topicData": [{"name": "t", "partitionData": [part]}]}))
        + line("CreateTopics", 2, topics=[], timeoutMs=5, validateOnly=False)
    )
    ran = client(capsysbinary, "send", broker, "--request-log", log)
    assert ran.code == 2
    assert f"kdissect: {log}: line 4: Produce v3 cannot be sent again" in ran.err
    assert "1 of 2 requests may change data: CreateTopics v2 (1): --yes sends them" in ran.err
    assert broker.asked == []
    found = rows(client(capsysbinary, "send", broker, "--request-log", log, "--reading-only", "-T", "ndjson"))
    assert [(each["api"], each["client_id"]) for each in found] == [("Metadata", "app")]
    damaged = tmp_path / "damaged.log"
    damaged.write_text(line("Metadata", 1, topics=[]) + 12 * (line("Metadata", 1, topics=[])[:80] + "\n"))
    ran = client(capsysbinary, "send", broker, "--request-log", damaged, "-T", "ndjson")
    assert (ran.code, len(ran.lines), ran.err.count("\n")) == (3, 1, 11)
    assert f"kdissect: {damaged}: line 2: the request is not JSON\n" in ran.err
    assert "and 2 more such places" in ran.err
    other = tmp_path / "other.log"
    other.write_text("[2026-05-01 12:00:00,000] INFO started (kafka.server.KafkaServer)\n")
    ran = client(capsysbinary, "send", broker, "--request-log", other)
    assert (ran.code, ran.err) == (2, f"kdissect: {other}: there is no request to send again\n")
    broker.answers["CreateTopics"] = lambda *_: {"topics": []}
    found = rows(client(capsysbinary, "send", broker, "--request-log", log, "--yes", "-T", "ndjson"))
    assert [each["api"] for each in found] == ["Metadata", "CreateTopics"]


def test_what_w_wrote_can_be_read_and_replayed(
    capsysbinary: Capsys, broker: TestBroker, tmp_path: Path
) -> None:
    stored(broker, *THREE, end=5)
    capture = tmp_path / "said.pcapng"
    ran = client(capsysbinary, "fetch", broker, "orders", "--all", "-T", "ndjson", "-w", capture)
    assert ran.code == 0
    assert run(capsysbinary, "read", "-T", "ndjson", capture).out == ran.out
    broker.asked.clear()
    options = ("--capture", capture, "-Y", "api == Fetch", "-T", "ndjson")
    again = rows(client(capsysbinary, "send", broker, *options))
    theirs = [row for row in map(json.loads, ran.lines) if row["api"] == "Fetch"]
    assert [each["request"]["body"] for each in again] == [each["request"]["body"] for each in theirs]
    assert [each.api for each in broker.asked] == ["Fetch", "Fetch"]
    ran = client(capsysbinary, "send", broker, "--capture", capture, "-Y", "api == Heartbeat")
    assert (ran.code, ran.err) == (2, "kdissect: there is no request to send again\n")


def test_a_damaged_capture_is_replayed_as_far_as_it_goes_and_told(
    capsysbinary: Capsys, broker: TestBroker, tmp_path: Path
) -> None:
    capture = tmp_path / "said.pcapng"
    assert client(capsysbinary, "metadata", broker, "--api-version", 1, "-w", capture).code == 0
    capture.write_bytes(capture.read_bytes()[:-5])
    ran = client(capsysbinary, "send", broker, "--capture", capture, "-T", "ndjson")
    assert ran.code == 3
    assert f"{capture}: the file ends inside a block" in ran.err
    assert [json.loads(line)["api"] for line in ran.lines] == ["Metadata"]


def test_captured_requests_that_change_data_need_a_yes(
    capsysbinary: Capsys, broker: TestBroker, tmp_path: Path
) -> None:
    produced(broker)
    capture = tmp_path / "said.pcapng"
    assert client(capsysbinary, "produce", broker, "orders", "--value", "v", "-w", capture).code == 0
    broker.asked.clear()
    ran = client(capsysbinary, "send", broker, "--capture", capture)
    assert ran.code == 2
    assert "1 of 4 requests may change data: Produce v11 (1): --yes sends them" in ran.err
    assert broker.asked == []
    found = rows(client(capsysbinary, "send", broker, "--capture", capture, "--yes", "-T", "records"))
    assert [(each["value"], each["assigned_offset"]) for each in found] == [("v", 17)]


def test_a_replay_goes_on_after_a_request_that_gets_no_answer(
    capsysbinary: Capsys, broker: TestBroker, tmp_path: Path
) -> None:
    stored(broker, *THREE, end=5)
    capture = tmp_path / "said.pcapng"
    assert client(capsysbinary, "fetch", broker, "orders", "-w", capture).code == 0
    broker.answers["ListOffsets"] = lambda *_: CLOSE
    options = ("--capture", capture, "--reading-only", "-T", "ndjson")
    ran = client(capsysbinary, "send", broker, *options)
    assert ran.code == 6
    assert [json.loads(line)["api"] for line in ran.lines].count("Fetch") == 2
    assert "2 requests of" in ran.err
