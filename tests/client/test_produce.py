from __future__ import annotations

from typing import Any

import pytest

from kdissect.client.cluster import Partition, TopicMetadata
from kdissect.client.errors import AskingError
from kdissect.client.produce import (
    Draft,
    PartitionOutcome,
    ProduceOptions,
    batches,
    bounds,
    check,
    murmur2,
    partition_of,
    record_set,
    request_body,
    summed,
)
from kdissect.protocol import apis
from kdissect.protocol.encode import encode
from kdissect.protocol.schema import ZERO_UUID, message_struct
from kdissect.record.compression import CODECS
from kdissect.record.sets import read_record_set
from tests.client.broker import TOPIC_ID

TOPIC = TopicMetadata("orders", TOPIC_ID, (Partition(0, 1, 0),), 0)
DRAFTS = [Draft(b"k", b"v", (("h", b"x"),)), Draft(None, None), Draft(b"", b"", timestamp=7)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(text: str, wanted: int) -> None:
    assert murmur2(text.encode()) == wanted & 0xFFFFFFFF


def test_records_go_where_their_key_says_unless_they_say_it_themselves() -> None:
    assert partition_of(Draft(b"21", b""), 3) == (-973932308 & 0x7FFFFFFF) % 3
    assert partition_of(Draft(b"21", b"", partition=9), 3) == 9
    assert partition_of(Draft(None, b""), 3) == 0


@pytest.mark.parametrize("codec", range(len(CODECS)))
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_every_format_and_codec_reads_back(magic: int, codec: int) -> None:
    drafts = DRAFTS if magic == 2 else [each._replace(headers=()) for each in DRAFTS]
    if magic < 2 and CODECS[codec] == "zstd":
        with pytest.raises(AskingError, match="zstd"):
            record_set(drafts, magic, codec, 1_000)
        return
    found = read_record_set(record_set(drafts, magic, codec, 1_000))
    assert not found.faults
    records = list(found.records())
    assert [(each.key, each.value) for each in records] == [(each.key, each.value) for each in drafts]
    assert [each.timestamp for each in records] == ([1_000, 1_000, 7] if magic else [-1, -1, -1])
    assert {each.magic for each in found.batches} == {magic}


def test_headers_need_the_newest_format() -> None:
    with pytest.raises(AskingError, match="no headers"):
        record_set(DRAFTS, 1, 0, 0)


@pytest.mark.parametrize("version", apis.versions(apis.PRODUCE))
def test_every_version_can_be_said(version: int) -> None:
    magic = check(ProduceOptions(), version)
    data = record_set([Draft(None, b"v")], magic, 0, 0)
    struct = message_struct(apis.PRODUCE, version, "request")
    encode(struct, request_body(version, TOPIC, [(0, data)], -1, 1))


def test_versions_that_name_topics_by_id_need_the_id() -> None:
    with pytest.raises(AskingError, match="needs the topic id of orders"):
        request_body(13, TOPIC._replace(topic_id=ZERO_UUID), [], -1, 1)


@pytest.mark.parametrize(
    ("manner", "wanted"),
    [
        (ProduceOptions(), (0, None)),
        (ProduceOptions(magic=0), (0, 2)),
        (ProduceOptions(magic=1), (2, 2)),
        (ProduceOptions(magic=2, codec=4), (7, apis.versions(apis.PRODUCE)[-1])),
    ],
)
def test_format_and_codec_choose_among_the_versions(manner: ProduceOptions, wanted: Any) -> None:
    assert bounds(manner) == wanted


@pytest.mark.parametrize(
    ("manner", "version"),
    [(ProduceOptions(magic=1), 3), (ProduceOptions(magic=2), 2), (ProduceOptions(codec=4), 6)],
)
def test_a_manner_that_the_version_does_not_take_is_refused(manner: ProduceOptions, version: int) -> None:
    with pytest.raises(AskingError):
        check(manner, version)


def test_zstd_in_an_old_format_is_refused_before_anybody_is_asked() -> None:
    with pytest.raises(AskingError, match="magic 2"):
        bounds(ProduceOptions(magic=1, codec=4))


def test_records_are_sent_in_groups_of_a_number_and_a_size() -> None:
    drafts = [Draft(None, b"12345")] * 5
    assert [len(each) for each in batches(drafts, 2, 1_000)] == [2, 2, 1]
    assert [len(each) for each in batches(drafts, 10, 10)] == [2, 2, 1]
    assert list(batches([], 10, 10)) == []
    headed = [Draft(None, None, (("name", b"x" * 10),))] * 3
    assert [len(each) for each in batches(headed, 10, 20)] == [2, 1]


def test_what_was_written_in_several_requests_is_told_together() -> None:
    parts = [PartitionOutcome("t", 0, 2, 5), PartitionOutcome("t", 1, 1, 0), PartitionOutcome("t", 0, 1, 7)]
    assert summed(parts) == [PartitionOutcome("t", 0, 3, 5), PartitionOutcome("t", 1, 1, 0)]
    assert summed([PartitionOutcome("t", 0, 2, None)]) == [PartitionOutcome("t", 0, 2, None)]
