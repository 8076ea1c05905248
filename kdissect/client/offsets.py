"""The first and last offsets of a partition, and the offset of a time: ListOffsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kdissect.client.errors import OtherSideError
from kdissect.client.ready import Ready
from kdissect.exchange import Exchange
from kdissect.protocol.apis import LIST_OFFSETS
from kdissect.protocol.errors import error_name

LATEST, EARLIEST = -1, -2
"""Timestamps of ListOffsets that mean an end."""


class FetchStart(NamedTuple):
    """The start of reading: an offset, or the first record that is not older than a time."""

    offset: int | None = None
    timestamp: int | None = EARLIEST
    """Milliseconds since the epoch, or :data:`EARLIEST` or :data:`LATEST`."""


def list_offsets_body(version: int, topic: str, asked: Mapping[int, int], committed: bool) -> dict[str, Any]:
    """The body of a ListOffsets request: timestamps by partition."""
    partitions: list[dict[str, Any]] = [
        {"partitionIndex": index, "timestamp": timestamp} for index, timestamp in asked.items()
    ]
    if version == 0:
        partitions = [{**each, "maxNumOffsets": 1} for each in partitions]
    body: dict[str, Any] = {"replicaId": -1, "topics": [{"name": topic, "partitions": partitions}]}
    if version >= 2:
        body["isolationLevel"] = int(committed)
    return body


def offsets_of(exchange: Exchange) -> dict[int, int | None]:
    """The offsets in a ListOffsets response, by partition; None if every record is older than the time.

    :raises OtherSideError: the broker refuses to give an offset.
    """
    assert exchange.response is not None
    found: dict[int, int | None] = {}
    for topic in exchange.response.body()["topics"]:
        for each in topic["partitions"]:
            if each["errorCode"]:
                raise OtherSideError(
                    f"{exchange.broker}: {topic['name']}-{each['partitionIndex']}: "
                    f"{error_name(each['errorCode'])}"
                )
            old = each.get("oldStyleOffsets")
            offset = (old[0] if old else -1) if old is not None else each["offset"]
            found[each["partitionIndex"]] = None if offset < 0 else offset
    return found


async def list_offsets(
    ready: Ready, topic: str, asked: Mapping[int, int], committed: bool
) -> dict[int, int | None]:
    """Ask a leader for offsets, by timestamp and partition."""
    if not asked:
        return {}
    version = ready.versions.pick(LIST_OFFSETS)
    body = list_offsets_body(version, topic, asked, committed)
    return offsets_of(await ready.request(LIST_OFFSETS, version, body))
