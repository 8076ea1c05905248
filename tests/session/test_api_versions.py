from __future__ import annotations

from typing import Any

import pytest

from kdissect.message import Request, Response, bare_frame, parse_request, parse_response
from kdissect.protocol.apis import API_VERSIONS
from kdissect.session import api_versions
from kdissect.session.api_versions import NOT_NAMED, named_software, shows_answers_first, software
from tests.kafka import request, response


def asked(version: int = 3, **values: Any) -> Request:
    return parse_request(bare_frame(request("ApiVersions", version, 1, **values)))


def answered(newest_produce: int) -> Response:
    offered = [{"apiKey": 0, "minVersion": 0, "maxVersion": newest_produce}]
    payload = response("ApiVersions", 0, 1, errorCode=0, apiKeys=offered)
    return parse_response(bare_frame(payload), API_VERSIONS, 0)


def test_software_is_name_and_version() -> None:
    one: Any = {"clientSoftwareName": "librdkafka", "clientSoftwareVersion": "2.16.1"}
    assert software(asked(**one)) == software(asked(**one)) == "librdkafka 2.16.1"
    assert software(asked(**one | {"clientSoftwareVersion": "2.16.2"})) == "librdkafka 2.16.2"
    assert software(asked(0)) is None


def test_software_that_was_told_before_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    told = asked(clientSoftwareName="franz-go", clientSoftwareVersion="1")
    assert software(told) == "franz-go 1"
    again = asked(clientSoftwareName="franz-go", clientSoftwareVersion="1")
    monkeypatch.setattr(api_versions, "_software", {api_versions._versioned_body(again): "remembered"})
    assert software(again) == "remembered"


def test_name_and_version_of_software_are_remembered_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    one: Any = {"clientSoftwareName": "sarama", "clientSoftwareVersion": "1.4"}
    assert named_software(asked(**one)) == named_software(asked(**one)) == ("sarama", "1.4")
    assert named_software(asked(0)) == NOT_NAMED
    again = asked(**one)
    monkeypatch.setattr(api_versions, "_named", {api_versions._versioned_body(again): ("known", None)})
    assert named_software(again) == ("known", None)


@pytest.mark.parametrize(("newest", "expected"), [(5, False), (6, True), (12, True)])
def test_what_a_broker_offers_shows_whether_it_answers_first(newest: int, expected: bool) -> None:
    assert shows_answers_first(answered(newest)) is expected
    assert shows_answers_first(answered(newest)) is expected


def test_what_is_remembered_is_bounded() -> None:
    for number in range(api_versions._MOST + 10):
        software(asked(clientSoftwareName="client", clientSoftwareVersion=str(number)))
        named_software(asked(clientSoftwareName="client", clientSoftwareVersion=str(number)))
    long = "v" * (api_versions.LONGEST + 1)
    assert len(api_versions._named) <= api_versions._MOST
    before = len(api_versions._software)
    assert software(asked(clientSoftwareName="client", clientSoftwareVersion=long)) == f"client {long}"
    assert len(api_versions._software) == before <= api_versions._MOST
