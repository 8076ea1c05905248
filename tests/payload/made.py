"""Captures in which a client produces records that a test made."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.kafka import Talk, request, response
from tests.present.captures import write_capture

Headers = tuple[tuple[str, bytes | None], ...]


def record(key: bytes | None, value: bytes | None, headers: Headers = ()) -> Record:
    """A record; where it stands in its batch is filled in later."""
    return Record(0, 1_763_800_000_000, key, value, headers)


def produced(path: Path, topics: Mapping[str, Sequence[Record]], codec: int = 0) -> Path:
    """A capture: one Produce request for each topic, all to partition 0, from offset 0 on."""
    talk = Talk()
    for number, (topic, records) in enumerate(topics.items(), 1):
        batch = write_batch([each._replace(offset=at) for at, each in enumerate(records)], codec=codec)
        part = {"index": 0, "records": b64encode(batch).decode()}
        sent = [{"name": topic, "partitionData": [part]}]
        talk.ask(request("Produce", 7, number, transactionalId=None, acks=1, timeoutMs=1, topicData=sent))
        told = {"index": 0, "errorCode": 0, "baseOffset": 0, "logAppendTimeMs": -1, "logStartOffset": 0}
        answers = [{"name": topic, "partitionResponses": [told]}]
        talk.answer(response("Produce", 7, number, responses=answers, throttleTimeMs=0))
    return write_capture(path, talk)
