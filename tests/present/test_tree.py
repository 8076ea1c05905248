from __future__ import annotations

import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from kdissect import Exchange, read
from kdissect.embedded.internal import encode_internal
from kdissect.limits import DEFAULTS
from kdissect.message import Message
from kdissect.present.body import side_object
from kdissect.present.hexdump import hexdump
from kdissect.present.options import PLAIN, Options
from kdissect.present.raw import decode_message
from kdissect.present.raw_trees import message_tree_of, records_tree
from kdissect.present.tree import exchange_tree, message_tree
from kdissect.record.write import write_batch
from tests.cli.commands.test_bytes import vectors
from tests.cli.run import CAPTURES
from tests.kafka import Talk, request, response
from tests.present.captures import write_capture

CASES = sorted(CAPTURES.glob("*.pcap*"))

SHOWN = Options(show_secrets=True)
_RANGE = re.compile(r"\[(\d+):(\d+)\]$")
_DUMP = re.compile(r"^ *([0-9a-f]{8})  ((?:[0-9a-f]{2} ){1,16}) *\|")


def messages(path: Path) -> list[Message]:
    return [message for exchange in read(path) for message in exchange.messages]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
@pytest.mark.parametrize("embedded", [False, True])
def test_the_bytes_below_the_values_are_the_message(path: Path, embedded: bool) -> None:
    for message in messages(path)[:60]:
        lines = list(message_tree(message, SHOWN._replace(embedded=embedded), dump=True))
        if any("unpacked: " in line for line in lines):
            continue  # ranges there count in other bytes
        dumped = {}
        for line in lines:
            if found := _DUMP.match(line):
                data = bytes.fromhex(found[2])
                dumped.update({int(found[1], 16) + at: byte for at, byte in enumerate(data)})
        assert bytes(dumped[at] for at in sorted(dumped)) == message.frame.payload
        assert sorted(dumped) == list(range(len(message.frame.payload)))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_ranges_never_leave_what_they_count_in(path: Path) -> None:
    for exchange in list(read(path))[:60]:
        for line in exchange_tree(exchange, SHOWN):
            if found := _RANGE.search(line):
                assert int(found[1]) <= int(found[2])


def test_records_show_what_was_unpacked() -> None:
    exchanges = [each for each in read(CAPTURES / "basic-kafka43.pcapng") if each.api == "Produce"]
    text = ["\n".join(exchange_tree(each)) for each in exchanges]
    assert any("unpacked: " in tree for tree in text)
    assert any('key: "key-' in tree for tree in text)


def test_error_codes_and_apis_have_their_names() -> None:
    failed: Exchange = next(each for each in read(CAPTURES / "errors.pcapng") if each.error)
    text = "\n".join(exchange_tree(failed))
    assert f"({failed.error})" in text
    assert f"requestApiKey: {failed.api_key} ({failed.api})" in text


def test_hex_dumps() -> None:
    assert list(hexdump(bytes(range(0x41, 0x53)), 0x10, "  ")) == [
        "  00000010  41 42 43 44 45 46 47 48 49 4a 4b 4c 4d 4e 4f 50  |ABCDEFGHIJKLMNOP|",
        "  00000020  51 52                                            |QR|",
    ]
    assert list(hexdump(b"\x00secret", masked=True)) == [
        "00000000  ** ** ** ** ** ** **                             |*******|"
    ]


def body_lines(api: str, version: int, data: str, dump: bool = False, options: Options = PLAIN) -> list[str]:
    """The lines below ``body``: name and value."""
    asked = {"kind": "request", "api": api, "version": version}
    lines = list(message_tree_of(asked, bytes.fromhex(data), options, dump))
    return [re.sub(r" {2,}.*", "", line.strip()) for line in lines[1:]]


@pytest.mark.parametrize("dump", [False, True])
@pytest.mark.parametrize(
    ("version", "data", "shown"),
    [
        (1, "ffffffff", "topics: null"),
        (9, "00 01 00 00 00", "topics: null"),
        (1, "00000000", "topics"),
        (9, "01 01 00 00 00", "topics"),
    ],
)
def test_a_null_array_is_null_and_an_empty_one_is_counted(
    version: int, data: str, shown: str, dump: bool
) -> None:
    lines = body_lines("Metadata", version, data, dump)
    assert lines[1] == shown
    assert ("(count): 0" in lines or "(count): 1" in lines) == (shown == "topics")
    answer = decode_message({"kind": "request", "api": "Metadata", "version": version, "hex": data})
    assert (answer["body"]["topics"] is None) == ("null" in shown)


def test_every_null_of_the_official_messages_is_shown_as_null() -> None:
    rows = [row for row in vectors("messages.ndjson.gz") if "null" in json.dumps(row["json"])]
    assert len(rows) == 300
    for row in rows:
        asked = {"kind": row["kind"], "api_key": row["api_key"], "version": row["version"]}
        lines = list(message_tree_of(asked, bytes.fromhex(row["body_hex"]), SHOWN))
        shown = sum(re.sub(r" {2,}.*", "", line.strip()).endswith(": null") for line in lines)
        assert shown >= nulls(row["json"]), row["id"]
        assert not any(": []  " in line and "[]Record " not in line for line in lines), row["id"]


def nulls(value: Any) -> int:
    """Nulls in a message's JSON. Of tagged fields, which may be null by being absent, not all are."""
    if isinstance(value, dict):
        return sum(map(nulls, value.values()))
    return sum(map(nulls, value)) if isinstance(value, list) else value is None


def test_what_has_no_bytes_is_empty_and_not_null() -> None:
    asked = {"kind": "request", "api": "ApiVersions", "version": 0}
    (_, body) = message_tree_of(asked, b"", SHOWN)
    assert body.split()[:2] == ["body:", "(empty)"]
    empty = write_batch([], base_offset=3, last_offset=5)
    (line,) = (line for line in records_tree({}, empty) if line.strip().startswith("records:"))
    assert line.split()[:2] == ["records:", "[]"]


def test_faults_of_what_is_embedded_are_shown_where_it_is_asked_for() -> None:
    member = "0001 67 00002710 0000 0008 636f6e73756d6572 00000001 0001 72"
    asked = f"{member} 00000003 0000 00"
    assert not any("fault" in line for line in body_lines("JoinGroup", 0, asked))
    lines = body_lines("JoinGroup", 0, asked, options=Options(embedded=True))
    assert [line for line in lines if line.startswith("fault: embedded")]


@pytest.mark.parametrize("elements", [1, 2])
def test_the_limits_of_the_user_hold_for_what_is_embedded(elements: int, tmp_path: Path) -> None:
    subscription = {"topics": ["orders", "clicks"], "userData": None}
    _, blob = encode_internal("consumer-protocol", "ConsumerProtocolSubscription", 0, None, subscription)
    body: dict[str, Any] = {"groupId": "g", "sessionTimeoutMs": 1, "memberId": "", "protocolType": "consumer"}
    body["protocols"] = [{"name": "range", "metadata": b64encode(blob or b"").decode()}]
    talk = Talk().ask(request("JoinGroup", 0, 1, **body)).close()
    (exchange,) = read(write_capture(tmp_path / "join.pcapng", talk))
    options = Options(embedded=True, limits=DEFAULTS._replace(elements=elements))
    decoded = side_object(exchange, "request", options)
    assert decoded is not None
    assert ("topics" in decoded["body"]["protocols"][0]["metadataDecoded"]) == (elements == 2)
    lines = [line.split() for line in exchange_tree(exchange, options)]
    assert (["[1]:", '"clicks"'] in [line[:2] for line in lines]) == (elements == 2)


def test_what_a_request_waited_behind_another_is_told_beside_its_latency() -> None:
    exchanges = {each.number: each for each in read(CAPTURES / "basic-kafka43.pcapng")}
    assert ", 26.4 ms (22.7 ms of it behind #1)" in next(exchange_tree(exchanges[3]))
    assert "behind" not in next(exchange_tree(exchanges[1]))
    exchanges[3].behind_correlation_id = None  # a token's
    assert "22.7 ms of it behind an earlier one" in next(exchange_tree(exchanges[3]))


def test_topic_ids_are_named_where_a_name_was_told_in_time() -> None:
    named = unnamed = 0
    for exchange in read(CAPTURES / "basic-kafka43.pcapng"):
        for line in exchange_tree(exchange):
            name, _, value = line.strip().partition(": ")
            if name == "topicId":
                topic = exchange.topic_names.get(value.split()[0])
                named, unnamed = named + (topic is not None), unnamed + (topic is None)
                assert (f"({topic})" in value) is (topic is not None)
    assert named > 30
    assert unnamed  # no topic at all: the id is 0


def test_names_of_topics_come_from_the_wire_and_are_shown_as_such(tmp_path: Path) -> None:
    talk = Talk()
    topics = [{"errorCode": 0, "name": "evil\x1b[2J", "topicId": "BeOOKrAPQcq7yf6O-jONWg"}]
    topics[0] |= {"isInternal": False, "partitions": [], "topicAuthorizedOperations": 0}
    talk.ask(request("ApiVersions", 0, 1))
    asked: dict[str, Any] = {"topics": None, "allowAutoTopicCreation": False}
    talk.ask(request("Metadata", 12, 2, **asked, includeTopicAuthorizedOperations=False))
    answered = {"throttleTimeMs": 0, "brokers": [], "clusterId": None, "controllerId": 1, "topics": topics}
    talk.answer(response("Metadata", 12, 2, **answered))
    found = read(write_capture(tmp_path / "c.pcapng", talk.close()))
    text = "\n".join(line for exchange in found for line in exchange_tree(exchange))
    assert "topicId: BeOOKrAPQcq7yf6O-jONWg (evil\\x1b[2J)" in text
    assert "\x1b" not in text
