"""Fetch requests → records: from where, up to where, and which of them count.

Every request stands alone, without a fetch session (KIP-227). A broker gives whole batches, even if they
begin before the requested offset. With read_committed it names the aborted transactions, and the client must
skip their records. :class:`RequestedRecords` decides for each record whether it was requested.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kdissect.client.cluster import Cluster, TopicMetadata
from kdissect.client.errors import AskingError, OtherSideError
from kdissect.client.offsets import LATEST, FetchStart, list_offsets
from kdissect.client.ready import Ready
from kdissect.client.versions import request_struct
from kdissect.exchange import Exchange
from kdissect.limits import Limits
from kdissect.protocol.apis import FETCH
from kdissect.protocol.errors import error_name
from kdissect.protocol.schema import Struct
from kdissect.record.batch import Batch
from kdissect.record.sets import read_record_set

_OUT_OF_RANGE = 1
_LAST_OFFSET = (1 << 63) - 1

MOST_TOLD = 4
"""The most partitions whose end a message gives."""

PATIENCE = 20
"""The number of answers in a row without progress after which the end that the broker gave counts as
wrong."""


class FetchOptions(NamedTuple):
    """How records are fetched."""

    start: FetchStart = FetchStart()
    follow: bool = False
    read_committed: bool = False
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 50 << 20
    partition_max_bytes: int = 1 << 20
    api_version: int | None = None


@dataclass(slots=True)
class FetchPosition:
    """How far one partition was read."""

    index: int
    next: int
    """The next offset to ask for."""
    end: int | None
    """Where reading ends; None if it does not end."""
    begin: int = 0
    """Where reading began."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read."""
        return self.end is not None and self.begin >= self.end

    @property
    def is_done(self) -> bool:
        return self.end is not None and self.next >= self.end


@dataclass(slots=True)
class RequestedRecords:
    """The requested records of one answer."""

    spans: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    """By partition: the first offset, and the one after the last."""
    aborted: set[tuple[int, int]] = field(default_factory=set)
    """Partition and base offset of batches of aborted transactions."""
    has_batches: bool = False
    """Whether the answer has any batches."""
    refusal: str | None = None
    """The reason for the first partition that the broker refused."""

    def has(self, row: Mapping[str, Any]) -> bool:
        """Whether a record, a row of the table ``records``, was requested. Control records never are."""
        first, end = self.spans.get(row["partition"], (0, 0))
        offset = row["offset"]
        if row["control"] is not None or offset < first or (end is not None and offset >= end):
            return False
        return (row["partition"], row["batch_offset"]) not in self.aborted


def check(manner: FetchOptions, version: int) -> Struct:
    """The schema of the request in a version.

    :raises AskingError: there is no such version, or it cannot express the request.
    """
    struct = request_struct(FETCH, version)
    if manner.read_committed and "isolationLevel" not in struct.by_name:
        raise AskingError(f"Fetch v{version} has no isolation level: v4 and newer have one")
    return struct


def request_body(
    version: int, topic: TopicMetadata, positions: list[FetchPosition], manner: FetchOptions
) -> dict[str, Any]:
    """The body of a Fetch request.

    :raises AskingError: the version cannot express the request.
    """
    struct = check(manner, version)
    of_topic = struct.by_name["topics"].struct
    assert of_topic is not None
    by_id = "topicId" in of_topic.by_name
    if by_id and not topic.has_id:
        raise AskingError(
            f"Fetch v{version} needs the topic id of {topic.name}, and the broker does not send it"
        )
    body: dict[str, Any] = {
        "replicaId": -1,
        "maxWaitMs": manner.max_wait_ms,
        "minBytes": manner.min_bytes,
        "maxBytes": manner.max_bytes,
        "isolationLevel": int(manner.read_committed),
        "topics": [
            {
                **({"topicId": topic.topic_id} if by_id else {"topic": topic.name}),
                "partitions": [
                    {
                        "partition": each.index,
                        "fetchOffset": each.next,
                        "partitionMaxBytes": manner.partition_max_bytes,
                    }
                    for each in positions
                ],
            }
        ],
    }
    return {name: value for name, value in body.items() if name in struct.by_name}


def take(
    exchange: Exchange, topic: str, positions: Mapping[int, FetchPosition], limits: Limits
) -> RequestedRecords:
    """The requested records of a Fetch response. It moves the positions on."""
    assert exchange.response is not None
    body = exchange.response.body()
    wanted = RequestedRecords()
    if body.get("errorCode"):
        wanted.refusal = f"{exchange.broker}: Fetch: {error_name(body['errorCode'])}"
    asked = [each for each in body["responses"] if each.get("topic", topic) == topic]
    for part in (each for found in asked for each in found["partitions"]):
        position = positions.get(part["partitionIndex"])
        if position is None:
            continue
        if part["errorCode"]:
            hint = (
                f": offset {position.next} is not there (--from earliest, --from latest)"
                if part["errorCode"] == _OUT_OF_RANGE
                else ""
            )
            where = f"{exchange.broker}: {topic}-{position.index}"
            wanted.refusal = wanted.refusal or f"{where}: {error_name(part['errorCode'])}{hint}"
            continue
        data = part["records"] or b""
        found = [each for each in read_record_set(data, limits).batches if not each.partial]
        if data and not found:
            where = f"{exchange.broker}: {topic}-{position.index}"
            wanted.refusal = f"{where}: no whole batch fits in {len(data):,} bytes: --max-bytes N"
        wanted.has_batches = wanted.has_batches or bool(found)
        wanted.spans[position.index] = (position.next, position.end)
        wanted.aborted |= {
            (position.index, offset)
            for offset in aborted_batches(found, part.get("abortedTransactions") or ())
        }
        for batch in found:
            position.next = max(position.next, batch.last_offset + 1)
        if position.next > _LAST_OFFSET:
            where = f"{exchange.broker}: {topic}-{position.index}"
            wanted.refusal = f"{where}: a batch ends at {position.next - 1}, the largest possible offset"
    return wanted


def aborted_batches(batches: list[Batch], aborted: Any) -> set[int]:
    """Base offsets of the batches of aborted transactions (``ConsumerRecords`` of Kafka's fetcher). A
    producer's aborted transaction extends from its first offset to the producer's ABORT marker.

    :param aborted: ``producerId`` and ``firstOffset`` of each.
    """
    begins = sorted((each["firstOffset"], each["producerId"]) for each in aborted)
    running: set[int] = set()
    found: set[int] = set()
    for batch in batches:
        while begins and begins[0][0] <= batch.last_offset:
            running.add(begins.pop(0)[1])
        if batch.is_control:
            if _is_abort(batch):
                running.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in running and batch.base_offset is not None:
            found.add(batch.base_offset)
    return found


def _is_abort(batch: Batch) -> bool:
    """Whether a control batch is an ABORT. The key of its record has a version and a type; type 0 is
    ABORT."""
    return any(record.key is not None and record.key[2:4] == b"\0\0" for record in batch.records())


Leaders = list[tuple[Ready, dict[int, FetchPosition]]]
"""Each leader with the positions in the partitions that it leads."""


async def begin(cluster: Cluster, topic: TopicMetadata, indexes: list[int], manner: FetchOptions) -> Leaders:
    """Find the first and the last offsets to read.

    :raises OtherSideError: a broker fails or refuses.
    """
    leaders: dict[int, tuple[Ready, dict[int, FetchPosition]]] = {}
    for index in indexes:
        ready = await cluster.leader(topic, index)
        leaders.setdefault(id(ready.connection), (ready, {}))[1][index] = FetchPosition(index, 0, None)
    for ready, positions in leaders.values():
        await _begin(ready, topic, positions, manner)
    return list(leaders.values())


async def fetch(
    cluster: Cluster, topic: TopicMetadata, leaders: Leaders, manner: FetchOptions, limits: Limits
) -> AsyncIterator[tuple[Exchange, RequestedRecords]]:
    """Give each answer with its requested records. Reading stops where each partition ended at the start;
    with ``follow`` it never stops.

    :raises OtherSideError: a broker fails or refuses.
    :raises AskingError: the version cannot express the request.
    """
    idle = 0
    lowest = 4 if manner.read_committed else 0
    while True:
        before = [each.next for _, positions in leaders for each in positions.values()]
        left = came = False
        for ready, positions in leaders:
            asked = [each for each in positions.values() if not each.is_done]
            if not asked:
                continue
            left = True
            version = cluster.pick(ready, FETCH, lowest, forced=manner.api_version)
            exchange = await ready.request(FETCH, version, request_body(version, topic, asked, manner))
            wanted = take(exchange, topic.name, {each.index: each for each in asked}, limits)
            came = came or wanted.has_batches
            yield exchange, wanted
            if wanted.refusal is not None:
                raise OtherSideError(wanted.refusal)
        if not left:
            return
        after = [each.next for _, positions in leaders for each in positions.values()]
        # With ``follow`` it waits for records, but not for the same ones again and again.
        idle = idle + 1 if after == before and (came or not manner.follow) else 0
        if idle == PATIENCE and came:
            raise OtherSideError(
                f"{topic.name}: the batches in {PATIENCE} responses end before the requested offset"
            )
        if idle == PATIENCE:
            raise OtherSideError(
                f"{topic.name}: {PATIENCE} responses had no records, though the log has more: --max-bytes "
                "N allows larger batches, --follow waits without end"
            )


async def _begin(
    ready: Ready, topic: TopicMetadata, positions: dict[int, FetchPosition], manner: FetchOptions
) -> None:
    """Set the first and the last offset of the positions."""
    ends: dict[int, int | None] = {}
    if not manner.follow or manner.start.timestamp is not None:
        ends = await list_offsets(ready, topic.name, dict.fromkeys(positions, LATEST), manner.read_committed)
    begins: dict[int, int | None] = dict.fromkeys(positions, manner.start.offset)
    if manner.start.offset is None and manner.start.timestamp is not None:
        asked = dict.fromkeys(positions, manner.start.timestamp)
        begins = await list_offsets(ready, topic.name, asked, manner.read_committed)
    for index, position in positions.items():
        begin, end = begins.get(index), ends.get(index)
        # No record is as new as the requested time: reading begins at the end.
        position.begin = position.next = (end or 0) if begin is None else begin
        position.end = None if manner.follow else end


def why_nothing(topic: str, leaders: Leaders, offset: int | None, shown: int) -> str | None:
    """Why fewer records came than the user may expect; None if there is nothing to explain.

    :param offset: the first offset to read; None for a time or an end.
    :param shown: how many records or other rows were shown.
    """
    positions = sorted((each for _, of in leaders for each in of.values()), key=lambda each: each.index)
    empty = [each for each in positions if each.is_empty]
    if offset is not None:
        beyond = [each for each in empty if each.end != offset]
        if beyond:
            return f"{_ends(topic, beyond)}: nothing there from offset {offset:,} on"
    if shown:
        return None
    if len(empty) == len(positions):
        return f"nothing to read: {_ends(topic, empty)}"
    return f"{topic}: no record to show: only transaction markers and aborted records came"


def _ends(topic: str, positions: list[FetchPosition]) -> str:
    said = [f"{topic}-{each.index} ends at offset {each.end:,}" for each in positions[:MOST_TOLD]]
    more = len(positions) - MOST_TOLD
    return ", ".join(said) + (f", and {more} more" if more > 0 else "")
