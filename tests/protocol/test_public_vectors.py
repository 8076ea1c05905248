"""Messages that Kafka's own classes wrote for another project, with the values they were made from."""

from __future__ import annotations

import json
from typing import Any

from kdissect.protocol.codec import Schema, schema
from tests.shared import requires_shared, shared

EARLIER_BUILD = {("StreamsGroupDescribeResponse", 1, "synthesized_populated_v1")}
"""Made by a build before 4.4.0, whose version 1 did not have assignorName yet."""


def schema_of(message: str, version: int) -> Schema:
    for kind in ("request", "response"):
        api = message.removesuffix(kind.capitalize())
        if api != message:
            return schema(api, version, kind)
    return schema(message, version, "data")


def with_unknown(row: dict[str, Any]) -> dict[str, Any]:
    unknown = row.get("unknown_tagged_fields", ())
    tagged = [{"tag": each["tag"], "data": bytes.fromhex(each["data_hex"])} for each in unknown]
    return {"_unknownTaggedFields": tagged} if tagged else {}


@requires_shared
def test_values_and_bytes_agree_both_ways() -> None:
    rows = [
        row
        for file in shared("testdata/vectors/messages").glob("*/*.json")
        for row in json.loads(file.read_text(encoding="utf-8"))["vectors"]
    ]
    assert len(rows) == 694
    wrong = []
    for row in rows:
        key = (row["message"], row["version"], row["name"])
        if key in EARLIER_BUILD:
            continue
        about, data = schema_of(row["message"], row["version"]), bytes.fromhex(row["hex"])
        # They print tagged fields at their defaults, too, and records themselves: compared as values.
        values = about.from_json(row["json_value"]) | with_unknown(row)
        if about.encode(values) != data or about.to_json(values) != about.to_json(about.decode(data)):
            wrong.append(key)
    assert not wrong
