from __future__ import annotations

from typing import Any

import pytest

from kdissect.client.cluster import Partition, Topic
from kdissect.client.errors import AskingError
from kdissect.client.fetch import (
    Manner,
    Position,
    Wanted,
    aborted_batches,
    list_offsets_body,
    request_body,
)
from kdissect.protocol import apis
from kdissect.protocol.encode import encode
from kdissect.protocol.schema import ZERO_UUID, message_struct
from kdissect.record.records import Record
from kdissect.record.sets import read_record_set
from kdissect.record.write import write_batch
from tests.client.broker import TOPIC_ID

TOPIC = Topic("orders", TOPIC_ID, (Partition(0, 1, 0),), 0)


@pytest.mark.parametrize("version", apis.versions(apis.FETCH))
def test_every_version_can_be_said(version: int) -> None:
    struct = message_struct(apis.FETCH, version, "request")
    body = request_body(version, TOPIC, [Position(0, 5, None)], Manner())
    encode(struct, body)
    if "isolationLevel" in struct.by_name:
        encode(struct, request_body(version, TOPIC, [], Manner(read_committed=True)))
    else:
        with pytest.raises(AskingError, match="isolation level"):
            request_body(version, TOPIC, [], Manner(read_committed=True))


def test_versions_that_name_topics_by_id_need_the_id() -> None:
    with pytest.raises(AskingError, match="by id"):
        request_body(13, TOPIC._replace(topic_id=ZERO_UUID), [], Manner())


@pytest.mark.parametrize("version", apis.versions(apis.LIST_OFFSETS))
def test_every_version_of_list_offsets_can_be_said(version: int) -> None:
    struct = message_struct(apis.LIST_OFFSETS, version, "request")
    encode(struct, list_offsets_body(version, "orders", {0: -1}, committed=version >= 2))


def row(offset: int, **more: Any) -> dict[str, Any]:
    return {"partition": 0, "offset": offset, "batch_offset": offset, "control": None} | more


def test_only_records_that_were_asked_for_count() -> None:
    wanted = Wanted({0: (5, 8)}, {(0, 6)})
    assert [each for each in range(10) if wanted.has(row(each))] == [5, 7]
    assert not wanted.has(row(5, control={"type": "COMMIT"}))
    assert not wanted.has(row(5, partition=1))
    assert Wanted({0: (5, None)}).has(row(1 << 40))


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
