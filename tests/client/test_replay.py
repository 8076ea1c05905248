from __future__ import annotations

import json
from typing import Any

import pytest

from kdissect.client.changing import EXCEPTIONS, changes
from kdissect.client.conformance import default_body
from kdissect.client.filling import values_of
from kdissect.client.replay import from_exchange, from_log, from_log_line
from kdissect.exchange import Exchange
from kdissect.message import bare_frame, parse_request
from kdissect.present.body import message_object
from kdissect.protocol import apis
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import decode
from kdissect.protocol.definition import ALWAYS
from kdissect.protocol.encode import encode
from kdissect.protocol.json_form import dumps, to_json
from kdissect.protocol.schema import message_struct
from kdissect.protocol.traits import api_traits
from tests.kafka import request

EVERY = [(key, version) for key in apis.api_keys() for version in apis.versions(key)]


@pytest.mark.parametrize("prefix", ["", "[2026-05-01 12:00:00,000] DEBUG Completed request:"])
def test_a_line_of_a_request_log_is_the_request_that_was_sent(prefix: str) -> None:
    for key, version in EVERY:
        name = apis.api_name(key)
        if name in ("SaslHandshake", "SaslAuthenticate"):
            continue
        struct = message_struct(key, version, "request")
        body = to_json(struct, {}) | to_json(struct, _whole(key, version))
        if "SizeInBytes" in dumps(body):
            continue
        message = request(name, version, 0, "app", **body)
        said = message_object(parse_request(bare_frame(message)))
        line = prefix + dumps({"requestHeader": said["header"], "request": body, "response": {}})
        found = from_log_line(line, 1)
        assert found is not None
        assert found.message == message, found.name


def _whole(key: int, version: int) -> dict[str, Any]:
    return values_of(message_struct(key, version, "request"), {})


def test_what_is_no_request_is_passed_over_and_what_cannot_be_sent_is_told() -> None:
    header = {"requestApiKey": 3, "requestApiVersion": 1, "correlationId": 1, "clientId": None}
    lines = [
        "",
        "INFO starting",
        '{"a": 1}',
        json.dumps({"requestHeader": header, "request": {"topics": [{"nam": 1}]}}),
        json.dumps({"requestHeader": header | {"requestApiVersion": 99}, "request": {}}),
        json.dumps({"requestHeader": {}, "request": {}}),
        '{"requestHeader": {',
        "{" * 100_000,
        json.dumps({"requestHeader": header, "request": {"topics": None}}),
    ]
    found = list(from_log(iter(lines)))
    assert [str(each)[:7] for each in found[:-1]] == ["line 4:", "line 5:", "line 6:", "line 7:", "line 8:"]
    assert getattr(found[-1], "name") == "Metadata v1"  # noqa: B009


def test_a_captured_request_is_taken_byte_by_byte() -> None:
    message = request("Metadata", 1, 7, "app", topics=None)
    frame = bare_frame(message)
    exchange = Exchange(0, b"\0" * 6, b"\0" * 6, parse_request(frame))
    found = from_exchange(exchange)
    assert found is not None
    assert found.message == message
    cut = parse_request(frame._replace(size=len(message) + 1))
    assert from_exchange(Exchange(0, b"\0" * 6, b"\0" * 6, cut)) is None


def test_what_is_not_known_to_read_is_taken_to_change() -> None:
    assert changes(4711, {})
    assert changes(apis.METADATA, None)
    assert changes(apis.PRODUCE, {})
    assert not changes(apis.FETCH, {"replicaId": -1})
    assert changes(apis.FETCH, {"replicaId": 1})
    state = {"replicaId": 1, "replicaEpoch": 5}
    assert changes(apis.FETCH, {"replicaState": state})
    assert not changes(apis.FETCH, {"replicaState": state | {"replicaId": -1}})
    snapshot = apis.api_key("FetchSnapshot")
    assert (changes(snapshot, {"replicaId": 1}), changes(snapshot, {"replicaId": -1})) == (True, False)


@pytest.mark.parametrize("version", apis.versions(apis.FETCH))
def test_a_followers_fetch_is_known_in_every_version(version: int) -> None:
    struct = message_struct(apis.FETCH, version, "request")
    for replica, may_change in ((2, True), (-1, False)):
        body = {"replicaState": {"replicaId": replica}} if version >= 15 else {"replicaId": replica}
        assert (
            changes(apis.FETCH, decode(struct, Cursor(encode(struct, values_of(struct, body))))) is may_change
        )


def test_reading_the_state_of_a_share_group_writes_its_leader_epoch() -> None:
    key = apis.api_key("ReadShareGroupState")
    assert changes(key, {"groupId": "g", "topics": [{"topicId": "AAAAAAAAAAAAAAAAAAAAAA", "partitions": []}]})
    assert not changes(key, {"groupId": "g", "topics": []})


def test_asking_for_a_topic_may_make_it() -> None:
    some: dict[str, Any] = {"topics": [{"name": "t"}]}
    assert changes(apis.METADATA, some)
    assert changes(apis.METADATA, some | {"allowAutoTopicCreation": True})
    assert not changes(apis.METADATA, some | {"allowAutoTopicCreation": False})
    assert not changes(apis.METADATA, {"topics": None, "allowAutoTopicCreation": True})


def test_asking_for_a_coordinator_may_make_its_topic() -> None:
    key = apis.api_key("FindCoordinator")
    assert changes(key, {"key": ""})
    assert changes(key, {"coordinatorKeys": ["g"]})
    assert not changes(key, {"coordinatorKeys": []})


def test_what_no_definition_says_to_read_only_changes_something() -> None:
    assert changes(apis.api_key("ListOffsets"), None)
    assert not changes(apis.api_key("ListOffsets"), {})
    assert changes(apis.PRODUCE, {})
    assert changes(4711, {})


def test_every_exception_of_the_definitions_is_known() -> None:
    told = {api_traits(key).reads for key in apis.api_keys()}
    assert told == {*EXCEPTIONS, ALWAYS, None}


def test_every_version_of_every_api_can_be_asked_with_defaults() -> None:
    for key, version in EVERY:
        struct = message_struct(key, version, "request")
        for body in (default_body(key, version), {}):
            said = decode(struct, Cursor(encode(struct, body)))
            assert said == values_of(struct, to_json(struct, said)), (key, version)
            assert {name: said[name] for name, value in body.items() if not isinstance(value, list)} == {
                name: value for name, value in body.items() if not isinstance(value, list)
            }


def test_what_is_left_out_of_json_has_its_default_at_every_depth() -> None:
    struct = message_struct(apis.api_key("CreateTopics"), 5, "request")
    values = values_of(struct, {"topics": [{"name": "t", "assignments": [{"partitionIndex": 1}]}]})
    (topic,) = values["topics"]
    assert topic["assignments"] == [{"partitionIndex": 1, "brokerIds": []}]
    assert (topic["numPartitions"], values["validateOnly"]) == (0, False)
    with pytest.raises(ValueError, match=r"topics\[0\].name"):
        encode(struct, values_of(struct, {"topics": [{"name": 5}]}))
    with pytest.raises(ValueError, match="object is needed"):
        values_of(struct, [])
