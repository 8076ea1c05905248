"""What clients and brokers are known to write otherwise is named, and no fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kdissect.message import Request, Response, bare_frame, parse_request, parse_response
from kdissect.present.body import message_object
from kdissect.present.tree import message_tree
from kdissect.protocol import apis
from tests.cli.run import run
from tests.kafka import Talk, request, response
from tests.lab import dissected_case
from tests.present.captures import write_capture
from tests.session.runs import metadata, metadata_answer

KEYS: dict[str, Any] = {"errorCode": 0, "apiKeys": [{"apiKey": 3, "minVersion": 0, "maxVersion": 1}]}
OLD_REQUEST = request("ApiVersions", 0) + bytes(4)
SHORT_RESPONSE = response("ApiVersions", 0, **KEYS)


def asked(payload: bytes) -> Request:
    return parse_request(bare_frame(payload))


def answered(payload: bytes, version: int) -> Response:
    return parse_response(bare_frame(payload), apis.API_VERSIONS, version)


def leaves(payload: bytes, message: Request | Response) -> bytes:
    """The bytes that the leaves of its tree cover."""
    out, left = b"", [message.annotate()]
    while left:
        node = left.pop(0)
        out += payload[node.start : node.end] if not node.children else b""
        left[:0] = node.children
    return out


def test_the_empty_array_of_old_librdkafka_is_named() -> None:
    message = asked(OLD_REQUEST)
    body = message.decoded()
    assert body.quirk is not None
    assert "librdkafka" in body.quirk
    assert (message.faults, body.remainder, body.is_exact) == ((), bytes(4), False)
    assert message_object(message)["quirk"] == body.quirk
    assert "known quirk: an empty array" in next(iter(message_tree(message)))
    assert leaves(OLD_REQUEST, message) == OLD_REQUEST


def test_the_survey_tells_the_empty_array_of_old_librdkafka() -> None:
    seen = asked(OLD_REQUEST).survey()
    assert seen is not None
    assert seen.has_tail
    plain = asked(request("ApiVersions", 0)).survey()
    assert plain is not None
    assert not plain.has_tail


@pytest.mark.parametrize("rest", [b"\0\0\0\1", bytes(3), bytes(5), bytes(8)])
def test_other_bytes_that_are_left_are_a_fault(rest: bytes) -> None:
    message = asked(request("ApiVersions", 0) + rest)
    assert message.survey() is None
    assert message.decoded().quirk is None
    assert [each.kind for each in message.faults] == ["remainder"]


def test_an_empty_array_behind_another_request_is_a_fault() -> None:
    message = asked(request("ApiVersions", 1) + bytes(4))
    assert [each.kind for each in message.faults] == ["remainder"]


@pytest.mark.parametrize("version", [1, 2])
def test_a_missing_throttle_time_is_named(version: int) -> None:
    message = answered(SHORT_RESPONSE, version)
    assert message.faults == ()
    assert message.body() == KEYS
    assert message.decoded().quirk is not None
    assert leaves(SHORT_RESPONSE, message) == SHORT_RESPONSE


def test_what_is_right_has_no_quirk() -> None:
    for version in (0, 1, 2):
        body = KEYS if not version else KEYS | {"throttleTimeMs": 0}
        assert answered(response("ApiVersions", version, **body), version).decoded().quirk is None
    downgraded = response("ApiVersions", 0, errorCode=35, apiKeys=[])
    assert [answered(downgraded, version).decoded().quirk for version in (1, 2, 3)] == [None] * 3
    assert asked(request("ApiVersions", 0)).decoded().quirk is None


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_throttle_time_that_is_cut_is_a_fault(cut: int) -> None:
    message = answered(SHORT_RESPONSE + bytes(4 - cut), 1)
    assert message.decoded().quirk is None
    assert [each.kind for each in message.faults] == ["truncated"]


@pytest.mark.parametrize("case", ["librdkafka-api-0.10", "broker-1.1"])
def test_a_healthy_capture_of_old_clients_has_no_fault_of_a_message(case: str) -> None:
    found = dissected_case(case)
    assert [f for e in found.exchanges for f in e.faults if f.kind == "remainder"] == []
    assert any(e.request and e.request.decoded().quirk for e in found.exchanges)


def test_strict_passes(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    talk = Talk().ask(OLD_REQUEST).answer(SHORT_RESPONSE).ask(request("ApiVersions", 1, 2))
    talk.answer(response("ApiVersions", 0, 2, **KEYS)).ask(metadata(3)).answer(metadata_answer(3)).close()
    for form in ("text", "ndjson", "tree"):
        ran = run(capsysbinary, "read", write_capture(tmp_path / "c", talk), "--strict", "-T", form)
        assert (ran.code, len(ran.out) > 0) == (0, True)
        assert b"fault" not in ran.out or form == "ndjson"
