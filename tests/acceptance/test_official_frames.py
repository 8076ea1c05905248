"""Messages made by Kafka's own classes, as TCP connections: what is in which packet is known exactly."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from kdissect.capture.files import read_packets
from kdissect.exchange import Exchange
from kdissect.protocol.json_form import to_json
from tests.lab import DATA, Dissected, dissected
from tests.protocol.official import rows

RELEASES = {"3.9.2": 667, "4.4.0": 644}
OFFICIAL = DATA / "official"


@cache
def capture(release: str) -> Dissected:
    return dissected(read_packets([OFFICIAL / f"frames-{release}.pcap.zst"]))


@cache
def bodies() -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in rows("messages.ndjson.gz")}


def with_unknown_tags(row: dict[str, Any]) -> dict[str, Any]:
    """Kafka's JSON, with the unknown tagged fields, which its converter drops, in kdissect's form."""
    whole: dict[str, Any] = json.loads(json.dumps(row["json"]))
    for tagged in row.get("unknown_tags") or ():
        at: Any = whole
        for step in tagged["path"]:
            at = at[step]
        at.setdefault("_unknownTaggedFields", []).append({"tag": tagged["tag"], "data": tagged["data"]})
    return whole


@pytest.mark.parametrize("release", RELEASES)
def test_every_exchange_is_found_in_its_packets(release: str) -> None:
    index = rows(f"frames-{release}.ndjson.gz")
    exchanges = capture(release).exchanges
    assert len(index) == len(exchanges) == RELEASES[release]
    for row, exchange in zip(index, exchanges, strict=True):
        assert as_in_the_index(exchange) == {name: row.get(name) for name in as_in_the_index(exchange)}


def as_in_the_index(exchange: Exchange) -> dict[str, Any]:
    assert exchange.request is not None
    return {
        "number": exchange.number,
        "api_key": exchange.api_key,
        "api": exchange.api,
        "version": exchange.api_version,
        "correlation_id": exchange.correlation_id,
        "client_id": exchange.client_id,
        "client_port": int(exchange.client.rsplit(":", 1)[1]),
        "missing": exchange.missing,
        "request_frames": list(exchange.request.frame.packets),
        "response_frames": list(exchange.response.frame.packets) if exchange.response is not None else [],
    }


@pytest.mark.parametrize("release", RELEASES)
def test_every_body_is_what_kafkas_converter_prints(release: str) -> None:
    compared = 0
    for row, exchange in zip(rows(f"frames-{release}.ndjson.gz"), capture(release).exchanges, strict=True):
        for side, message in (("request", exchange.request), ("response", exchange.response)):
            known = bodies().get(row[f"{side}_id"])
            if known is None or message is None:
                continue
            body = message.decoded()
            assert body.struct is not None
            assert to_json(body.struct, body.values) == with_unknown_tags(known), row[f"{side}_id"]
            compared += 1
    assert compared > 2 * RELEASES[release] * 0.95


@pytest.mark.parametrize("release", RELEASES)
def test_nothing_is_wrong_with_these_captures(release: str) -> None:
    found = capture(release)
    assert found.faults == []
    assert all(connection.protocol == "kafka" for connection in found.connections)
    assert [fault for exchange in found.exchanges for fault in exchange.faults] == []
