"""Definitions that mean harm, or are none."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.protocol.importing import read_json
from kdissect.protocol.vetting import vet
from tests.protocol.test_importing import HEARTBEAT
from tests.shared import requires_shared, shared

X = {"name": "X", "type": "int8", "versions": "0+"}


def nested(depth: int) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = [X]
    for at in range(depth):
        fields = [{"name": "F", "type": f"T{at}", "versions": "0+", "fields": fields}]
    return fields


def doubling(depth: int) -> dict[str, Any]:
    """Struct types of which each has two of the next."""
    structs = [
        {"name": f"S{at}", "fields": [X | {"name": name, "type": f"S{at + 1}"} for name in "AB"]}
        for at in range(depth)
    ]
    structs.append({"name": f"S{depth}", "fields": [X]})
    return {"commonStructs": structs, "fields": [X | {"type": "S0"}]}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"validVersions": "0-999999999"}, "validVersions: versions such as"),
        ({"validVersions": "0-99999"}, "no version above 32767"),
        ({"validVersions": "0+"}, "more than 256 versions"),
        ({"validVersions": "-5"}, "validVersions"),
        ({"validVersions": None}, "validVersions"),
        ({"flexibleVersions": 4}, "flexibleVersions"),
        ({"name": "Heart\x1bbeatRequest"}, r"'Heart\\x1bbeatRequest' is not a name"),
        ({"name": "HeartbeätRequest"}, "is not a name"),
        ({"name": "A" * 101}, "at most 100 characters"),
        ({"name": "Request"}, "is not the name of a request"),
        ({"type": "moon"}, "is not one of request, response"),
        ({"apiKey": 1e999}, "apiKey: a whole number"),
        ({"apiKey": True}, "apiKey: a whole number"),
        ({"apiKey": None}, "apiKey: a whole number"),
        ({"apiKey": 40_000}, "apiKey: a whole number"),
        ({"fields": {}}, "fields: a list"),
        ({"fields": ["x"]}, "an object with name"),
        ({"fields": [X | {"name": "a\nb"}]}, "is not a name"),
        ({"fields": [X | {"type": "[][]int8"}]}, "is not a type"),
        ({"fields": [X | {"type": 5}]}, "type: text"),
        ({"fields": [X | {"tag": -1}]}, "tag: a whole number"),
        ({"fields": [X | {"entityType": "a b"}]}, "entityType"),
        ({"fields": [X | {"default": "\x1b[31m"}]}, "invisible characters"),
        ({"fields": [X | {"default": "x" * 1_001}]}, "too long"),
        ({"fields": [X | {"default": []}]}, "neither text nor a number"),
        ({"fields": [X | {"nullableVersions": "x"}]}, "nullableVersions"),
        ({"fields": [X] * 2_001}, "more than 2,000 fields"),
        ({"fields": nested(40)}, "nested deeper than 32"),
        ({"fields": [X | {"type": "T", "fields": [X | {"type": "T"}]}]}, "T is nested deeper than 32"),
        (doubling(30), "more than 2,000 fields"),
        ({"commonStructs": [{"name": "S", "fields": "x"}]}, "fields: a list"),
    ],
)
def test_what_no_definition_can_say_is_refused(change: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        vet(HEARTBEAT | change)


def test_fields_are_counted_as_often_as_they_occur() -> None:
    assert vet(HEARTBEAT) == 6 * (1 + 5)
    assert vet(HEARTBEAT | {"validVersions": "3"} | doubling(3)) == 1 + 1 + 2 + 4 + 8 + 8
    assert vet(HEARTBEAT | {"validVersions": "none"}) == 0


@requires_shared
@pytest.mark.parametrize("release", ["3.9", "4.4.0"])
def test_all_of_kafka_passes_with_room_to_spare(release: str) -> None:
    texts = [
        path.read_text(encoding="utf-8") for path in shared(f"kafka-definitions/{release}").rglob("*.json")
    ]
    assert texts
    assert sum(vet(read_json(text)) for text in texts) < 20_000
