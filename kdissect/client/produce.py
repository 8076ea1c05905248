"""Records → Produce requests: the version, the format, the partition and the outcome.

Record formats by version (``ProduceRequest.validateRecords``): versions 0 and 1 accept magic 0, version 2
accepts magic 0 and 1. From version 3 on, a partition has one batch of magic 2; zstd is allowed from 7 on.
From 13 on, topics are named by id. A record without a partition goes to the partition that Kafka's own
clients choose for its key (murmur2). Without a key, it goes to the first partition.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from kdissect.client.cluster import Cluster, TopicMetadata
from kdissect.client.errors import AskingError
from kdissect.client.ready import Ready
from kdissect.client.versions import request_struct
from kdissect.exchange import Exchange
from kdissect.protocol import apis
from kdissect.protocol.apis import PRODUCE
from kdissect.protocol.errors import error_name
from kdissect.record.compression import CODECS
from kdissect.record.records import Headers, Record
from kdissect.record.write import write_batch, write_message_set
from kdissect.wording import plural

_ZSTD, _ZSTD_FROM = CODECS.index("zstd"), 7


class Draft(NamedTuple):
    """A record to be sent."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None
    """Milliseconds since the epoch; None for now."""
    partition: int | None = None
    """The partition; None to choose it by the key."""


class ProduceOptions(NamedTuple):
    """How records are sent."""

    acks: int = -1
    codec: int = 0
    magic: int | None = None
    """The record format; None for the newest that the version accepts."""
    api_version: int | None = None
    timeout_ms: int = 30_000


class PartitionOutcome(NamedTuple):
    """The outcome for the records of one partition in one request."""

    topic: str
    partition: int
    records: int
    base_offset: int | None
    """The offset of the first record; None if the broker does not give it (acks=0)."""


class RequestOutcome(NamedTuple):
    """The outcome for the records of one request."""

    written: list[PartitionOutcome]
    refusal: str | None
    """The reason for the first refused partition, and how many other partitions were refused, too."""


def magics_of(version: int) -> range:
    """The record formats that a version of Produce accepts."""
    if version < 2:
        return range(1)
    return range(2) if version == 2 else range(2, 3)


def bounds(manner: ProduceOptions) -> tuple[int, int | None]:
    """The lowest and the highest version of Produce for these options.

    :raises AskingError: the options contradict each other.
    """
    lowest, highest = 0, None
    if manner.magic is not None:
        fitting = [each for each in apis.versions(PRODUCE) if manner.magic in magics_of(each)]
        lowest, highest = fitting[0], fitting[-1]
    if manner.codec == _ZSTD:
        lowest = max(lowest, _ZSTD_FROM)
        if highest is not None and highest < lowest:
            raise AskingError(f"--codec zstd needs magic 2, not {manner.magic}")
    return lowest, highest


def check(manner: ProduceOptions, version: int) -> int:
    """The magic for a version.

    :raises AskingError: there is no such version, or it does not support the options.
    """
    request_struct(PRODUCE, version)
    taken = magics_of(version)
    magic = taken[-1] if manner.magic is None else manner.magic
    if magic not in taken:
        takes = " and ".join(map(str, taken))
        raise AskingError(f"Produce v{version} needs records of magic {takes}, not {magic}")
    if manner.codec == _ZSTD and version < _ZSTD_FROM:
        raise AskingError(f"Produce v{version} does not allow zstd: v{_ZSTD_FROM} and newer do")
    return magic


def record_set(drafts: Sequence[Draft], magic: int, codec: int, now_ms: int) -> bytes:
    """The bytes of one batch or message set, with offsets from 0.

    :raises AskingError: the format cannot store a part of a record.
    """
    records = [
        Record(
            offset,
            now_ms if draft.timestamp is None else draft.timestamp,
            draft.key,
            draft.value,
            draft.headers,
        )
        for offset, draft in enumerate(drafts)
    ]
    try:
        if magic == 2:
            return write_batch(records, codec)
        if magic == 0:
            records = [record._replace(timestamp=-1) for record in records]
        return write_message_set(records, magic, codec)
    except ValueError as error:
        raise AskingError(str(error)) from None


def request_body(
    version: int, topic: TopicMetadata, sets: Iterable[tuple[int, bytes]], acks: int, timeout_ms: int
) -> dict[str, Any]:
    """The body of a Produce request: record sets by partition.

    :raises AskingError: the version names topics by id, and the broker sent no id.
    """
    struct = request_struct(PRODUCE, version)
    of_topic = struct.by_name["topicData"].struct
    assert of_topic is not None
    if "topicId" in of_topic.by_name and not topic.has_id:
        raise AskingError(
            f"Produce v{version} needs the topic id of {topic.name}, and the broker does not send it"
        )
    named = {"topicId": topic.topic_id} if "topicId" in of_topic.by_name else {"name": topic.name}
    partitions = [{"index": index, "records": data} for index, data in sets]
    return {
        "acks": acks,
        "timeoutMs": timeout_ms,
        "topicData": [{**named, "partitionData": partitions}],
    }


async def produce(
    cluster: Cluster, topic: TopicMetadata, drafts: Sequence[Draft], manner: ProduceOptions, now_ms: int
) -> AsyncIterator[tuple[Exchange, dict[int, int]]]:
    """Send records, one request to each leader. Give each answer, for :func:`outcome`, with the number of
    records for each partition.

    :raises OtherSideError: a broker does not answer.
    :raises AskingError: the version cannot express the request.
    """
    count = len(topic.partitions)
    by_partition: dict[int, list[Draft]] = {}
    for draft in drafts:
        by_partition.setdefault(partition_of(draft, count), []).append(draft)
    leaders: dict[int, tuple[Ready, list[int]]] = {}
    for index in sorted(by_partition):
        ready = await cluster.leader(topic, index)
        leaders.setdefault(id(ready.connection), (ready, []))[1].append(index)
    low, high = bounds(manner)
    for ready, indexes in leaders.values():
        version = cluster.pick(ready, PRODUCE, low, high, forced=manner.api_version)
        magic = check(manner, version)
        sets = [(at, record_set(by_partition[at], magic, manner.codec, now_ms)) for at in indexes]
        body = request_body(version, topic, sets, manner.acks, manner.timeout_ms)
        yield await ready.request(PRODUCE, version, body), {at: len(by_partition[at]) for at in indexes}


def outcome(exchange: Exchange, topic: str, counts: dict[int, int]) -> RequestOutcome:
    """The outcome in a Produce response, by partition. A partition that the response lacks counts as
    refused."""
    if exchange.response is None:
        return RequestOutcome(
            [PartitionOutcome(topic, index, count, None) for index, count in counts.items()], None
        )
    said = {
        part["index"]: part
        for each in exchange.response.body()["responses"]
        for part in each["partitionResponses"]
    }
    written, refusals = [], []
    for index, count in counts.items():
        part = said.get(index)
        if part is None:
            refusals.append(f"{exchange.broker}: its answer does not mention {topic}-{index}")
        elif part["errorCode"]:
            why = part.get("errorMessage")
            refusals.append(
                f"{exchange.broker}: {topic}-{index}: {error_name(part['errorCode'])}"
                f"{': ' + why if why else ''}: nothing was written there"
            )
        else:
            written.append(PartitionOutcome(topic, index, count, part["baseOffset"]))
    more = len(refusals) - 1
    others = f"; {plural(more, 'more partition')} refused the records too" if more > 0 else ""
    return RequestOutcome(written, refusals[0] + others if refusals else None)


def batches(drafts: Iterable[Draft], most: int, most_bytes: int) -> Iterator[list[Draft]]:
    """Records in groups, one for each request, with limits for their number and (roughly) their bytes."""
    group: list[Draft] = []
    size = 0
    for draft in drafts:
        group.append(draft)
        size += len(draft.key or b"") + len(draft.value or b"")
        size += sum(len(name) + len(value or b"") for name, value in draft.headers)
        if len(group) >= most or size >= most_bytes:
            yield group
            group, size = [], 0
    if group:
        yield group


def partition_of(draft: Draft, count: int) -> int:
    """The partition of a record (``BuiltInPartitioner.partitionForKey``)."""
    if draft.partition is not None:
        return draft.partition
    return (murmur2(draft.key) & 0x7FFFFFFF) % count if draft.key is not None and count else 0


def murmur2(data: bytes) -> int:
    """MurmurHash2 in 32 bits with Kafka's seed (``Utils.murmur2``), unsigned."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    length = len(data)
    h = 0x9747B28C ^ length
    whole = length & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if whole < length:
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


def summed(written: Iterable[PartitionOutcome]) -> list[PartitionOutcome]:
    """The outcomes of several requests as one for each partition: the first offset, and the number of
    records."""
    ordered = sorted(written, key=lambda each: (each.topic, each.partition))
    out = []
    for (topic, partition), group in groupby(ordered, key=lambda each: (each.topic, each.partition)):
        parts = list(group)
        first = None if parts[0].base_offset is None else min(each.base_offset or 0 for each in parts)
        out.append(PartitionOutcome(topic, partition, sum(each.records for each in parts), first))
    return out
