"""What the broker of the tests has in its partition, and what it says to what is produced."""

from __future__ import annotations

from typing import Any

from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.client.broker import TestBroker


def stored(broker: TestBroker, *sets: bytes, end: int, aborted: list[dict[str, int]] | None = None) -> None:
    """Let it have these batches in partition 0, the records of which end before ``end``."""

    def offsets(version: int, body: dict[str, Any]) -> dict[str, Any]:
        asked = body["topics"][0]["partitions"][0]["timestamp"]
        offset = {-2: 0, -1: end}.get(asked, 3)
        part: dict[str, Any] = {"partitionIndex": 0, "errorCode": 0}
        part |= {"oldStyleOffsets": [offset]} if version == 0 else {"offset": offset, "timestamp": -1}
        return {"topics": [{"name": "orders", "partitions": [part]}]}

    def fetch(version: int, body: dict[str, Any]) -> dict[str, Any]:
        asked = body["topics"][0]
        at = asked["partitions"][0]["fetchOffset"]
        left = [data for data in sets if int.from_bytes(data[:8], "big") + data[26] >= at]
        part: dict[str, Any] = {"partitionIndex": 0, "highWatermark": end, "records": b"".join(left[:2])}
        if version >= 4:
            running = aborted if at <= 3 else None
            part["abortedTransactions"] = running if body.get("isolationLevel") else None
        named = {name: asked[name] for name in ("topic", "topicId") if name in asked}
        return {"responses": [{**named, "partitions": [part]}]}

    broker.answers |= {"ListOffsets": offsets, "Fetch": fetch}


def batch(offset: int, *values: str, **more: Any) -> bytes:
    return write_batch(
        [Record(offset + at, 100, None, value.encode()) for at, value in enumerate(values)], **more
    )


THREE = (batch(0, "a", "b"), batch(2, "c", "d"), batch(4, "e"))


def produced(broker: TestBroker, offset: int = 17) -> None:
    """Let it take what is produced."""

    def answer(version: int, body: dict[str, Any]) -> dict[str, Any]:
        return {
            "responses": [
                {
                    **{name: each[name] for name in ("name", "topicId") if name in each},
                    "partitionResponses": [
                        {"index": part["index"], "errorCode": 0, "baseOffset": offset}
                        for part in each["partitionData"]
                    ],
                }
                for each in body["topicData"]
            ]
        }

    broker.answers["Produce"] = answer
