"""Rules on batches, compression and skew."""

from __future__ import annotations

from typing import Any

import pytest

from kdissect.analysis.cluster import ClusterTopics
from kdissect.analysis.connections import Connections
from kdissect.analysis.fold import SECOND, Row, Statistic
from kdissect.analysis.producers import Producers
from kdissect.analysis.topics import Topics
from kdissect.insight.catalogue import RULES
from kdissect.insight.finding import INFO, NOTICE, WARNING
from tests.insight.made import WHOLE, row, said
from tests.insight.rules.test_produce import judged, producer

SEVERITIES = {
    "tiny-batches": WARNING,
    "mixed-codecs": INFO,
    "broker-recompresses": WARNING,
    "down-converted": WARNING,
    "up-converted": NOTICE,
    "hot-partition": WARNING,
    "hot-broker": NOTICE,
}


@pytest.mark.parametrize(("id", "severity"), SEVERITIES.items())
def test_severities_are_the_catalogue_s(id: str, severity: str) -> None:
    assert (RULES[id].severity, RULES[id].category) == (severity, "batching")
    page = RULES[id].page
    assert page.what
    assert page.why
    assert page.do


def tiny(batches: int = 500, lasted_s: float = 10, records: int = 1, size: int = 200) -> Row:
    return producer(
        batches=batches,
        last_ns=int((1 + lasted_s) * SECOND),
        records_p50=records,
        bytes_p50=size,
        bytes=batches * size,
    )


def test_tiny_batches_are_many_fast_and_small() -> None:
    (found,) = judged("tiny-batches", tiny())
    assert (found.subject.client_id, found.subject.topic, found.count) == ("till", "sales", 500)
    assert "500 batches, 50 a second. Half of them have at most 1 record and 200 bytes." in found.message
    assert judged("tiny-batches", tiny(records=2, size=1024))
    assert not judged("tiny-batches", tiny(batches=499))
    assert not judged("tiny-batches", tiny(records=3))
    assert not judged("tiny-batches", tiny(size=1025))
    assert not judged("tiny-batches", tiny(lasted_s=20))  # 24.95 a second, between the first and the last


def test_time_in_which_the_clock_of_the_capture_stood_still_makes_no_rate_lower() -> None:
    """The clock was set 10 s forward."""
    halted = WHOLE._replace(halts=((5 * SECOND, 15 * SECOND),))
    given = Producers, tiny(lasted_s=25)
    assert not said("tiny-batches", given)
    (found,) = said("tiny-batches", given, context=halted)
    assert "500 batches, 33 a second." in found.message


def test_partitions_are_added_up() -> None:
    small, large = tiny(batches=300), producer(batches=300, records_p50=9, bytes_p50=900, last_ns=11 * SECOND)
    assert judged("tiny-batches", small, tiny(batches=300) | {"partition": 1})
    assert not judged("tiny-batches", small | {"batches": 299}, large)


def test_codecs_of_a_topic() -> None:
    plain = producer(codecs=["none"], batches=90)
    packed = producer(codecs=["lz4"], batches=10, client_id="web")
    (found,) = judged("mixed-codecs", plain, packed)
    assert (
        found.message
        == "Producers of sales compress in different ways: lz4 by web and no compression by till."
    )
    assert not judged("mixed-codecs", plain, packed | {"batches": 9})
    assert not judged("mixed-codecs", plain, packed | {"client_id": "till"})


def test_what_the_broker_packs_again() -> None:
    changed = producer(codecs=["lz4"], codecs_fetched=["gzip"], recompressed=7)
    (found,) = judged("broker-recompresses", changed)
    assert found.subject.topic == "sales"
    assert "produced with lz4 and read with gzip (7 batches)" in found.message
    assert not judged("broker-recompresses", producer(codecs=["lz4"], codecs_fetched=["lz4"]))


def test_formats_that_are_converted() -> None:
    down, up = (
        producer(magic=2, magic_fetched=0, converted=3),
        producer(magic=1, magic_fetched=2, converted=3),
    )
    assert judged("down-converted", down)
    assert not judged("down-converted", up)
    assert judged("up-converted", up)
    assert not judged("up-converted", down)
    assert not judged("up-converted", producer(magic=2, magic_fetched=2))


def spread(*records: int, **more: Any) -> list[Row]:
    return [
        row(
            Topics,
            topic=more.get("topic", "sales"),
            partition=at,
            direction="produce",
            records=each,
            bytes=10 * each,
            first_ns=1,
            last_ns=2,
        )
        for at, each in enumerate(records)
    ]


def test_a_partition_is_hot_at_three_times_its_part_and_30_percent() -> None:
    rows = spread(750, 100, 75, 75)
    (found,) = said("hot-partition", {Topics: rows})
    assert (found.subject.topic, found.subject.partition, found.measure) == ("sales", 0, 75)
    assert found.message == (
        "sales-0 gets 75 % of the records of sales. An even share of its 4 partitions would be 25 %."
    )
    assert not said("hot-partition", {Topics: spread(749, 101, 75, 75)})
    assert not said("hot-partition", {Topics: spread(749, 100, 75, 75)})  # not 1,000 records
    assert not said("hot-partition", {Topics: spread(900, 50, 50)})  # not 4 partitions
    assert said("hot-partition", {Topics: spread(300, *[70] * 10)})
    assert not said("hot-partition", {Topics: spread(299, *[70] * 9, 71)})


def test_partitions_that_got_nothing_count_where_the_cluster_tells_them() -> None:
    rows: dict[type[Statistic], list[Row]] = {Topics: spread(1000)}
    assert not said("hot-partition", rows)
    rows[ClusterTopics] = [row(ClusterTopics, topic="sales", partitions=6)]
    assert said("hot-partition", rows)


def test_kafka_s_own_topics_are_not_judged() -> None:
    assert not said("hot-partition", {Topics: spread(9000, 1, 1, 1, topic="__consumer_offsets")})


def carried(broker: str, size: int) -> Row:
    return row(Connections, broker=broker, protocol="kafka", request_bytes=size, response_bytes=0)


def test_a_broker_is_hot_at_twice_its_part_of_100_mib() -> None:
    mib = 1 << 20
    rows = [carried("a", 70 * mib), carried("b", 15 * mib), carried("c", 15 * mib)]
    (found,) = said("hot-broker", {Connections: rows})
    assert (found.subject.broker, found.measure) == ("a", 70)
    assert not said("hot-broker", {Connections: [*rows[:2], carried("c", 15 * mib - 1)]})
    assert not said("hot-broker", {Connections: [carried("a", 99 * mib), carried("b", 9 * mib)]})
