"""Produce requests for tests of what shows records."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from kdissect.record.records import Record
from kdissect.record.write import write_batch
from tests.kafka import request


def produced(
    records: Sequence[Record], codec: int = 0, *, topic: str = "t", correlation_id: int = 1, **given: Any
) -> bytes:
    """A Produce request with one batch for one partition.

    :param given: as for :func:`kdissect.record.write.write_batch`.
    """
    batch = b64encode(write_batch(records, codec, **given)).decode()
    topics = [{"name": topic, "partitionData": [{"index": 0, "records": batch}]}]
    return request("Produce", 3, correlation_id, transactionalId=None, acks=1, timeoutMs=1, topicData=topics)
