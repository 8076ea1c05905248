"""What crosses the wire in clear, by connections of real clients."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from kdissect.analysis.fold import Row
from kdissect.client.filling import values_of
from kdissect.protocol.apis import api_key
from kdissect.protocol.json_form import to_json
from kdissect.protocol.schema import message_struct
from tests.analysis.connected import over
from tests.analysis.folds import fold, made, rows_of, rows_of_parts


@pytest.mark.parametrize(
    ("case", "mechanism", "credentials"),
    [
        ("sasl-plain-reauth", "PLAIN", "clear"),
        ("sasl-oauthbearer-39", "OAUTHBEARER", "token-clear"),
        ("sasl-scram-256", "SCRAM-SHA-256", "hashed"),
        ("java43-basic", None, "none"),
    ],
)
def test_credentials_by_mechanism(case: str, mechanism: str | None, credentials: str) -> None:
    rows = [row for row in rows_of("exposure", case) if row["mechanism"] == mechanism]
    assert rows
    assert {row["credentials"] for row in rows} == {credentials}
    assert all(row["tls"] is None for row in rows)


@pytest.mark.parametrize(
    ("mechanism", "first", "told"),
    [
        ("SCRAM-SHA-256", b"n,,n=id,r=abc,tokenauth=true", True),
        ("SCRAM-SHA-512", b"n,,n=tokenauth=3Dtrue,r=abc", False),
        ("SCRAM-SHA-512", b"n,,n=ann,r=abc", False),
        ("PLAIN", b"\0ann\0,tokenauth=true,", None),
    ],
)
def test_a_login_by_delegation_token(mechanism: str, first: bytes, told: bool | None) -> None:
    offered = {"errorCode": 0, "mechanisms": [mechanism]}
    done = {"errorCode": 0, "errorMessage": None, "authBytes": "", "sessionLifetimeMs": 0}
    steps = [
        made("SaslHandshake", 1, {"mechanism": mechanism}, offered),
        made("SaslAuthenticate", 2, {"authBytes": b64encode(first).decode()}, done),
        made("SaslAuthenticate", 2, {"authBytes": b64encode(b"c=biws,r=abc,p=xyz").decode()}, done),
    ]
    for (row,) in rows_of_parts("exposure", steps):
        assert row["by_token"] is told


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ({"offered": {"versions": ["TLS 1.3"]}}, ["broker: internal_error"]),
        ({"version": "TLS 1.2"}, ["broker: internal_error"]),
        ({}, []),
    ],
)
def test_without_a_handshake_nobody_knows_what_an_alert_answers(
    seen: dict[str, Any], told: list[str]
) -> None:
    alert = {"from": "broker", "level": "fatal", "name": "internal_error", "packet": 9}
    closing = {"from": "client", "level": "warning", "name": "close_notify", "packet": 10}
    tls = {"version": None, "offered": {}, "alerts": [alert, closing], "certificates": [], **seen}
    connection = over()._replace(protocol="tls", tls=tls)
    (row,) = fold("exposure", [connection]).result()
    assert row["alerts"] == told


def test_where_the_begin_is_missing_nobody_knows() -> None:
    assert None in {row["credentials"] for row in rows_of("exposure", "midstream")}


def test_records_and_their_topics() -> None:
    rows = rows_of("exposure", "java43-basic")
    written = [row for row in rows if row["record_bytes"]]
    assert {row["data"] for row in written} == {"clear"}
    assert all("java43-basic" in row["topics"] for row in written)
    assert {row["data"] for row in rows if not row["record_bytes"]} == {None}


def test_other_secrets_are_named_by_their_request_only() -> None:
    asked = {"resources": [{"resourceType": 4, "resourceName": "1", "configs": []}], "validateOnly": False}
    secret = {"name": "ssl.key.password", "configOperation": 0, "value": "hunter2"}
    asked["resources"][0]["configs"] = [secret]  # type: ignore[index]
    answered = {"throttleTimeMs": 0, "responses": []}
    (row,) = fold("exposure", [made("IncrementalAlterConfigs", 0, asked, answered)]).result()
    assert row["secrets"] == ["IncrementalAlterConfigs"]
    assert "hunter2" not in repr(row)
    for name in ("retention.ms", "delegation.token.max.lifetime.ms"):
        secret["name"] = name
        (row,) = fold("exposure", [made("IncrementalAlterConfigs", 0, asked, answered)]).result()
        assert row["secrets"] == []


@pytest.mark.parametrize(
    ("name", "value", "sensitive", "is_told"),
    [
        ("my.reporter.password", "hunter2", False, True),
        ("my.reporter.password", None, False, False),
        ("my.reporter.password", "", False, False),
        ("ssl.key.password", None, True, False),
        ("password.encoder.key.length", "128", False, False),
        ("delegation.token.expiry.time.ms", "86400000", False, False),
        ("my.reporter.url", "http://x", False, False),
    ],
)
def test_settings_that_say_they_are_secrets_and_are_told(
    name: str, value: str | None, sensitive: bool, is_told: bool
) -> None:
    config: dict[str, Any] = {
        "name": name,
        "value": value,
        "readOnly": False,
        "configSource": 4,
        "isSensitive": sensitive,
    }
    config |= {"synonyms": []}
    result = {
        "errorCode": 0,
        "errorMessage": None,
        "resourceType": 4,
        "resourceName": "1",
        "configs": [config],
    }
    asked: dict[str, Any] = {"resources": [], "includeSynonyms": False}
    (row,) = fold(
        "exposure", [made("DescribeConfigs", 1, asked, {"throttleTimeMs": 0, "results": [result]})]
    ).result()
    assert row["readable"] == ([name] if is_told else [])
    assert len(row["readable_exchanges"]) == is_told
    assert "hunter2" not in repr(row)


@pytest.mark.parametrize(
    ("api", "version", "asked", "answered", "carries"),
    [
        ("RenewDelegationToken", 2, {"hmac": "a2V5"}, {}, True),
        ("ExpireDelegationToken", 2, {"hmac": "a2V5"}, {}, True),
        ("CreateDelegationToken", 2, {}, {"hmac": "a2V5"}, True),
        ("CreateDelegationToken", 2, {}, {"errorCode": 64}, False),
        ("PushTelemetry", 0, {"metrics": "a2V5"}, {}, False),
        ("SaslAuthenticate", 2, {"authBytes": "AGEAYg=="}, {}, False),
        ("AlterUserScramCredentials", 0, {"upsertions": [], "deletions": []}, {}, False),
    ],
)
def test_the_definitions_say_what_is_a_secret(
    api: str, version: int, asked: dict[str, Any], answered: dict[str, Any], carries: bool
) -> None:
    assert _exposed(api, version, asked, answered)["secrets"] == ([api] if carries else [])


@pytest.mark.parametrize(
    ("name", "carries"), [("sink.password", True), ("retention.ms", False), ("sink.url", False)]
)
def test_settings_of_topics_to_be_made(name: str, carries: bool) -> None:
    topic = {"name": "t", "configs": [{"name": name, "value": "hunter2"}]}
    row = _exposed("CreateTopics", 7, {"topics": [topic]}, {})
    assert row["secrets"] == (["CreateTopics"] if carries else [])
    assert "hunter2" not in repr(row)


def _exposed(api: str, version: int, asked: dict[str, Any], answered: dict[str, Any]) -> Row:
    """The row of an exchange whose other fields have their defaults."""
    request, response = (
        to_json(struct, values_of(struct, told))
        for kind, told in (("request", asked), ("response", answered))
        for struct in (message_struct(api_key(api), version, kind),)
    )
    (row,) = fold("exposure", [made(api, version, request, response)]).result()
    return row
