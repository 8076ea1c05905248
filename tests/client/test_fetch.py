from __future__ import annotations

from typing import Any

import pytest

from kdissect.client.cluster import Partition, TopicMetadata
from kdissect.client.errors import AskingError
from kdissect.client.fetch import (
    FetchOptions,
    FetchPosition,
    Leaders,
    RequestedRecords,
    aborted_batches,
    request_body,
    why_nothing,
)
from kdissect.client.offsets import list_offsets_body
from kdissect.protocol import apis
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import decode
from kdissect.protocol.encode import encode
from kdissect.protocol.schema import ZERO_UUID, Struct, message_struct
from kdissect.record.records import Record
from kdissect.record.sets import read_record_set
from kdissect.record.write import write_batch
from tests.client.broker import TOPIC_ID

TOPIC = TopicMetadata("orders", TOPIC_ID, (Partition(0, 1, 0),), 0)


def said(struct: Struct, body: dict[str, Any]) -> dict[str, Any]:
    """What a broker reads of a body."""
    return decode(struct, Cursor(encode(struct, body)))


@pytest.mark.parametrize("version", apis.versions(apis.FETCH))
def test_every_version_can_be_said(version: int) -> None:
    struct = message_struct(apis.FETCH, version, "request")
    body = request_body(version, TOPIC, [FetchPosition(0, 5, None)], FetchOptions())
    (topic,) = said(struct, body)["topics"]
    assert [(each["partition"], each["fetchOffset"]) for each in topic["partitions"]] == [(0, 5)]
    assert topic.get("topic", "orders") == "orders"
    assert topic.get("topicId", TOPIC_ID) == TOPIC_ID
    if "isolationLevel" in struct.by_name:
        committed = request_body(version, TOPIC, [], FetchOptions(read_committed=True))
        assert said(struct, committed)["isolationLevel"] == 1
    else:
        with pytest.raises(AskingError, match="isolation level"):
            request_body(version, TOPIC, [], FetchOptions(read_committed=True))


def test_versions_that_name_topics_by_id_need_the_id() -> None:
    with pytest.raises(AskingError, match="needs the topic id of orders"):
        request_body(13, TOPIC._replace(topic_id=ZERO_UUID), [], FetchOptions())


@pytest.mark.parametrize("version", apis.versions(apis.LIST_OFFSETS))
def test_every_version_of_list_offsets_can_be_said(version: int) -> None:
    struct = message_struct(apis.LIST_OFFSETS, version, "request")
    body = said(struct, list_offsets_body(version, "orders", {3: -1}, committed=version >= 2))
    (topic,) = body["topics"]
    assert [(each["partitionIndex"], each["timestamp"]) for each in topic["partitions"]] == [(3, -1)]
    assert body.get("isolationLevel", 1) == 1


def row(offset: int, **more: Any) -> dict[str, Any]:
    return {"partition": 0, "offset": offset, "batch_offset": offset, "control": None} | more


def test_only_records_that_were_asked_for_count() -> None:
    wanted = RequestedRecords({0: (5, 8)}, {(0, 6)})
    assert [each for each in range(10) if wanted.has(row(each))] == [5, 7]
    assert not wanted.has(row(5, control={"type": "COMMIT"}))
    assert not wanted.has(row(5, partition=1))
    assert RequestedRecords({0: (5, None)}).has(row(1 << 40))


def log(*parts: tuple[str, int]) -> bytes:
    """Batches of one record of a producer: ``t`` of a transaction, ``p`` plain, ``A`` and ``C`` markers."""
    data = b""
    for offset, (kind, producer) in enumerate(parts):
        key = {"A": bytes(4), "C": bytes((0, 0, 0, 1))}.get(kind)
        data += write_batch(
            [Record(offset, 1, key, b"v")],
            producer_id=producer,
            producer_epoch=0,
            base_sequence=0,
            transactional=kind != "p",
            control=kind in "AC",
        )
    return data


def test_aborted_transactions_end_at_the_abort_marker_of_their_producer() -> None:
    data = log(
        ("t", 1), ("t", 2), ("p", 1), ("C", 2), ("t", 1), ("A", 1), ("t", 1), ("C", 1), ("t", 2), ("A", 2)
    )
    batches = read_record_set(data).batches
    aborted = [{"producerId": 1, "firstOffset": 0}, {"producerId": 2, "firstOffset": 8}]
    assert aborted_batches(batches, aborted) == {0, 4, 8}
    assert aborted_batches(batches, []) == set()
    assert aborted_batches(batches[1:], aborted[:1]) == {4}  # it began before what was fetched


def ends(*spans: tuple[int, int]) -> Leaders:
    """Positions in partitions from 0 on, by where reading began and where it ends."""
    ready: Any = None
    return [(ready, {at: FetchPosition(at, begin, end, begin) for at, (begin, end) in enumerate(spans)})]


MARKERS = "only transaction markers and aborted records came"
FOUR_EMPTY = ", ".join(f"t-{at} ends at offset 0" for at in range(4))


@pytest.mark.parametrize(
    ("spans", "offset", "shown", "wanted"),
    [
        (((0, 5),), None, 3, None),
        (((9, 5),), 9, 0, "t-0 ends at offset 5: nothing there from offset 9 on"),
        (((5, 5),), 5, 0, "nothing to read: t-0 ends at offset 5"),
        (((0, 0), (0, 0)), None, 0, "nothing to read: t-0 ends at offset 0, t-1 ends at offset 0"),
        (((7, 5), (7, 8_000)), 7, 2, "t-0 ends at offset 5: nothing there from offset 7 on"),
        (((7, 7), (7, 8)), 7, 1, None),
        (((0, 2),), None, 0, f"t: no record to show: {MARKERS}"),
        (((0, 0),) * 6, None, 0, f"nothing to read: {FOUR_EMPTY}, and 2 more"),
    ],
)  # fmt: skip
def test_why_nothing_came_is_told_with_the_numbers(
    spans: tuple[tuple[int, int], ...], offset: int | None, shown: int, wanted: str | None
) -> None:
    assert why_nothing("t", ends(*spans), offset, shown) == wanted
