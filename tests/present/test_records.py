from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from kdissect import Exchange, read
from kdissect.present.options import Options
from kdissect.present.records import record_rows
from kdissect.record.records import Record
from kdissect.record.write import write_batch, write_message_set
from tests.kafka import Talk, request, response
from tests.present.captures import write_capture


def produced(path: Path, data: bytes, version: int = 2, base_offset: int = 100) -> Exchange:
    """An exchange that produced a record set, whose first record got the ``base_offset``."""
    partition: dict[str, Any] = {"index": 0, "records": b64encode(data).decode()}
    asked: dict[str, Any] = {
        "acks": 1,
        "timeoutMs": 1,
        "topicData": [{"name": "t", "partitionData": [partition]}],
    }
    answered = {"index": 0, "errorCode": 0, "baseOffset": base_offset, "logAppendTimeMs": -1}
    told: dict[str, Any] = {
        "responses": [{"name": "t", "partitionResponses": [answered]}],
        "throttleTimeMs": 0,
    }
    talk = Talk().ask(request("Produce", version, 1, **asked)).answer(response("Produce", version, 1, **told))
    (exchange,) = read(write_capture(path, talk.close()))
    return exchange


def offsets(exchange: Exchange) -> list[tuple[int, int | None]]:
    return [(row["offset"], row["assigned_offset"]) for row in record_rows(exchange)]


def records(count: int, first: int = 0) -> list[Record]:
    return [Record(first + at, 1_000 + at, None, b"v") for at in range(count)]


def test_assigned_offsets_run_through_all_batches(tmp_path: Path) -> None:
    data = write_batch(records(2)) + write_batch(records(3), 1)
    assert offsets(produced(tmp_path / "x", data)) == [(0, 100), (1, 101), (0, 102), (1, 103), (2, 104)]


def test_assigned_offsets_of_old_messages(tmp_path: Path) -> None:
    data = write_message_set(records(2), 1) + write_message_set(records(2), 1, 1)
    assert offsets(produced(tmp_path / "x", data)) == [(0, 100), (1, 101), (0, 102), (1, 103)]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("sent", [(0, 0, 0), (0, 1, 2), (7, 9, 30)])
def test_a_broker_numbers_compressed_old_messages_whatever_their_offsets(
    magic: int, sent: tuple[int, ...], tmp_path: Path
) -> None:
    inner = [Record(offset, 1_000, None, b"v") for offset in sent]
    exchange = produced(tmp_path / "x", write_message_set(inner, magic, 1) + write_message_set(inner, magic))
    assert [offset for _, offset in offsets(exchange)] == [100, 101, 102, 103, 104, 105]


def test_an_assigned_offset_keeps_to_64_bits(tmp_path: Path) -> None:
    data = write_batch(records(2), last_offset=1)
    exchange = produced(tmp_path / "x", data, base_offset=(1 << 63) - 1)
    assert offsets(exchange) == [(0, (1 << 63) - 1), (1, -(1 << 63))]


def test_assigned_offsets_of_many_partitions_are_looked_up_in_one_table(tmp_path: Path) -> None:
    data = b64encode(write_batch(records(1))).decode()
    count = 1_000
    asked: dict[str, Any] = {
        "acks": 1,
        "timeoutMs": 1,
        "topicData": [
            {"name": name, "partitionData": [{"index": at, "records": data} for at in range(count)]}
            for name in "ab"
        ],
    }
    answers = [
        {
            "name": name,
            "partitionResponses": [
                {"index": at, "errorCode": 0, "baseOffset": base + at, "logAppendTimeMs": -1}
                for at in reversed(range(count))
            ],
        }
        for name, base in (("b", 5_000), ("a", -1))
    ]
    told: dict[str, Any] = {"responses": answers, "throttleTimeMs": 0}
    talk = Talk().ask(request("Produce", 2, 1, **asked)).answer(response("Produce", 2, 1, **told))
    (exchange,) = read(write_capture(tmp_path / "x", talk.close()))
    assert exchange.response is not None
    reads = 0

    class Partition(dict[str, Any]):
        def get(self, *given: Any) -> Any:
            nonlocal reads
            reads += 1
            return super().get(*given)

    for topic in exchange.response.body()["responses"]:
        topic["partitionResponses"] = [Partition(each) for each in topic["partitionResponses"]]
    # -1 is no offset, and the base of topic a's first partition.
    wanted = [None, *range(count - 1), *range(5_000, 5_000 + count)]
    assert [row["assigned_offset"] for row in record_rows(exchange)] == wanted
    assert reads <= 3 * 2 * count


def test_what_is_absent_is_null(tmp_path: Path) -> None:
    (row,) = record_rows(produced(tmp_path / "x", write_message_set([Record(0, -1, None, None)], 0)))
    absent = ("timestamp", "key", "value", "key_size", "value_size", "producer_id", "producer_epoch")
    assert {row[name] for name in (*absent, "sequence", "partition_leader_epoch", "control", "api")} == {None}
    assert row["timestamp_type"] == "NoTimestampType"
    assert row["transactional"] is False


def test_values_of_a_record_of_todays_form(tmp_path: Path) -> None:
    batch = write_batch(
        [Record(0, 5, b"k", b"\xff", (("h", None),))], 4, producer_id=7, producer_epoch=1, base_sequence=9
    )
    (row,) = record_rows(produced(tmp_path / "x", batch))
    assert (row["key"], row["value"], row["headers"]) == (b"k", b"\xff", (("h", None),))
    assert (row["producer_id"], row["producer_epoch"], row["sequence"], row["codec"]) == (7, 1, 9, "zstd")
    assert (row["direction"], row["topic"], row["partition"], row["crc_valid"]) == ("produce", "t", 0, True)


def damaged(data: bytes) -> bytes:
    """With another value in its last record."""
    return data[:-2] + bytes([data[-2] ^ 1]) + data[-1:]


@pytest.mark.parametrize("options", [Options(), Options(records=True)])
def test_what_is_wrong_with_records_is_a_fault_of_the_exchange(tmp_path: Path, options: Options) -> None:
    exchange = produced(tmp_path / "x", damaged(write_batch(records(2))))
    (found,) = exchange.faults
    assert (found.layer, found.kind, found.exchange, found.connection) == ("records", "bad-crc", 1, 0)
    assert found.packet == 4
    assert not all(row["crc_valid"] for row in record_rows(exchange))
