"""Rules on how consumers fetch, and on compression."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kdissect.analysis.fold import SECOND, Row
from kdissect.analysis.metadata_asked import MetadataAsked
from kdissect.analysis.pace import Pace
from kdissect.analysis.positions import Positions
from kdissect.analysis.producers import Producers
from kdissect.analysis.repeats import Repeats
from kdissect.analysis.tcp import Tcp
from kdissect.insight.catalogue import RULES
from kdissect.insight.finding import INFO, NOTICE, Finding
from tests.analysis.folds import fold, made
from tests.analysis.produced import batch, produce
from tests.insight.made import row, said
from tests.insight.rules.shipped import found_in

SEVERITIES = dict.fromkeys(
    ("uncompressed", "compression-ineffective", "small-fetches", "fetch-capped", "fetch-sessions-lost"),
    NOTICE,
)
SEVERITIES |= {"response-too-large": NOTICE, "metadata-all-topics": NOTICE, "bare-connects": INFO}
SEVERITIES |= {"idle-disconnect": INFO, "old-client": NOTICE, "ibp-too-old": NOTICE}
MIB = 1 << 20


@pytest.mark.parametrize(("id", "severity"), SEVERITIES.items())
def test_severities_are_the_catalogue_s(id: str, severity: str) -> None:
    assert RULES[id].severity == severity


@pytest.mark.parametrize("case", ["healthy-cluster-idle"])
def test_a_healthy_capture_has_none(case: str) -> None:
    assert not {each.id for each in found_in(case)} & SEVERITIES.keys()


def written(**values: Any) -> Row:
    made = {"topic": "sales", "client_id": "till", "client": "10.0.0.1", "batches": 9, "codecs": ["none"]}
    made |= {"uncompressed_bytes": 10 * MIB, "bytes": 10 * MIB, "compressible_to": 0.6}
    return row(Producers, **{**made, "first_ns": 0, "last_ns": 50 * SECOND, **values})


def loose(*rows: Row) -> list[Finding]:
    return said("uncompressed", {Producers: list(rows)})


def test_much_that_would_compress_is_told() -> None:
    (found,) = loose(written())
    assert (found.subject.topic, found.measure) == ("sales", 60)
    assert "10.0 MiB to sales uncompressed" in found.message
    assert not loose(written(compressible_to=0.61))
    assert not loose(written(compressible_to=None))
    assert not loose(written(uncompressed_bytes=10 * MIB - 1))
    assert loose(written(uncompressed_bytes=6_000_000, last_ns=60 * SECOND))  # 100 kB a second for a minute
    assert not loose(written(uncompressed_bytes=6_000_000, last_ns=59 * SECOND))
    assert not loose(written(topic="__consumer_offsets"))


def packed(**values: Any) -> list[Finding]:
    each = written(**{"codecs": ["gzip"], "uncompressed_bytes": 0, "ratio": 0.9, **values})
    return said("compression-ineffective", {Producers: [each]})


def test_compression_that_saves_nothing_is_told() -> None:
    (found,) = packed()
    assert "shrinks only to 90 %" in found.message
    assert not packed(ratio=0.89)
    assert not packed(bytes=10 * MIB - 1)


def test_samples_say_how_well_batches_compress() -> None:
    """Batches of 256 KiB are each looked into, so that the estimate is exact here."""
    noise = random.Random(1).randbytes(300_000).hex()
    rows = fold("producers", [produce(0, batch("a" * 300_000)), produce(1, batch(noise), topic="u")]).result()
    ratios = {each["topic"]: each["compressible_to"] for each in rows}
    assert ratios["t"] < 0.02
    assert 0.5 < ratios["u"] < 0.7  # hexadecimal digits of noise
    data = batch("a" * 300_000, codec=1)
    (row,) = fold("producers", [produce(0, data) for _ in range(3)]).result()
    assert (row["uncompressed_bytes"], row["compressible_to"]) == (0, None)


def pace(**values: Any) -> Row:
    made = {"api": "Fetch", "client": "10.0.0.1", "client_id": "reader", "broker": "b", "count": 1_500}
    made |= {"answered_bytes_p50": 1024, "least_bytes": 1, "first_ns": 0, "last_ns": 30 * SECOND}
    made |= dict.fromkeys(("large_count", "beyond_count"), 0)
    return row(Pace, **{**made, **values})


def small(**values: Any) -> bool:
    return bool(said("small-fetches", {Pace: [pace(**values)]}))


def test_many_fetches_for_few_bytes_are_told() -> None:
    assert small()
    assert not small(count=1_499)
    assert not small(last_ns=29 * SECOND)
    assert not small(answered_bytes_p50=1025)
    assert not small(least_bytes=1000)
    assert not small(api="ShareFetch")


def test_answers_beyond_what_was_asked_for_are_told() -> None:
    large = pace(large_count=1, large_bytes=100_000_001, large_exchanges=[4])
    (found,) = said("response-too-large", {Pace: [large]})
    assert (found.measure, found.exchanges) == (100_000_001, (4,))
    beyond = pace(beyond_count=2, beyond_bytes=900_000, beyond_limit_bytes=65_536, beyond_exchanges=[5, 6])
    (found,) = said("response-too-large", {Pace: [beyond]})
    assert "900,000 bytes of records, though it asked for 65,536" in found.message
    assert not said("response-too-large", {Pace: [pace()]})


def position(**values: Any) -> Row:
    made = {"replica_id": -1, "topic": "sales", "partition": 0, "client_id": "reader", "client": "10.0.0.1:5"}
    made |= {"connection": 3, "broker": "b", "answers": 50, "cut": 25, "full": 0, "max_bytes": 1 << 20}
    made |= {"max_lag": 9, "fetches": 60, "sessions": 1, "first_ns": 1, "last_ns": 2, "fetched_last_ns": 2}
    return row(Positions, **{**made, **values})


def test_a_consumer_that_cuts_its_own_answers_is_told() -> None:
    (found,) = said("fetch-capped", {Positions: [position()]})
    assert "50 % of the answers" in found.message
    assert "max.partition.fetch.bytes, 1,048,576" in found.message
    (whole,) = said("fetch-capped", {Positions: [position(cut=0, full=30)]})
    assert "fetch.max.bytes" in whole.message
    for values in ({"cut": 24}, {"answers": 49}, {"max_lag": 0}, {"replica_id": 2}):
        assert not said("fetch-capped", {Positions: [position(**values)]})


def test_sessions_that_brokers_forget_are_told() -> None:
    lost = {
        "api": "Fetch",
        "error": "FETCH_SESSION_ID_NOT_FOUND",
        "broker": "b",
        "connection": 1,
        "exchanges": [2],
    }
    lost |= {"first_ns": 1, "last_ns": 2}
    (found,) = said("fetch-sessions-lost", {Repeats: [row(Repeats, **lost, count=3)]})
    assert (found.count, found.subject.broker) == (3, "b")
    assert not said("fetch-sessions-lost", {Repeats: [row(Repeats, **lost, count=2)]})
    many = [position(partition=at, sessions=30) for at in range(50)]
    assert said("fetch-sessions-lost", {Positions: many})
    assert not said("fetch-sessions-lost", {Positions: many[:49]})
    assert not said("fetch-sessions-lost", {Positions: [{**each, "sessions": 29} for each in many]})


def test_a_client_that_throws_its_sessions_away_is_told_and_no_broker() -> None:
    """platformatic/kafka #315: each fetch asked for a new session."""
    many = [position(partition=at, sessions=60, session_id=7) for at in range(50)]
    for rows in (many, many[:1]):
        (found,) = said("fetch-sessions-lost", {Positions: rows})
        assert (found.subject.client_id, found.subject.broker, found.count) == ("reader", None, 60)
        assert "although the broker gave it one." in found.message
        assert "library" in found.cause
    assert not said("fetch-sessions-lost", {Positions: [position(sessions=29, session_id=7)]})
    assert not said("fetch-sessions-lost", {Positions: [position(sessions=9, fetches=9, session_id=7)]})
    assert said("fetch-sessions-lost", {Positions: [position(sessions=30, session_id=7)]})
    assert not said("fetch-sessions-lost", {Positions: [position(sessions=60)]})


def test_each_connection_is_told_once() -> None:
    """Who lost a session went on with it, so it is the broker that gives none since."""
    lost = {"api": "Fetch", "error": "FETCH_SESSION_ID_NOT_FOUND", "broker": "b", "connection": 3}
    many = [position(partition=at, sessions=60, session_id=7) for at in range(50)]

    def told(count: int, *others: Any) -> list[tuple[str | None, tuple[int, ...]]]:
        refused = [row(Repeats, **lost, count=count, first_ns=1, last_ns=2)]
        found = said("fetch-sessions-lost", {Positions: [*many, *others], Repeats: refused})
        return [(each.subject.broker, each.connections) for each in found]

    assert told(1) == told(2) == told(3) == [("b", (3,))]
    (found,) = said("fetch-sessions-lost", {Positions: many, Repeats: [row(Repeats, **lost, count=1)]})
    assert "keeps no fetch session" in found.message
    others = [{**each, "connection": 4, "session_id": None} for each in many]
    assert told(3, *others) == told(1, *others) == [("b", (3, 4))]
    assert sorted(told(3, *[{**each, "session_id": 8} for each in others]), key=str) == [
        ("b", (3,)),
        (None, (4,)),
    ]


def metadata(ms: int, topics: list[dict[str, Any]] | None) -> Any:
    answer = {"throttleTimeMs": 0, "brokers": [], "clusterId": "c", "controllerId": 1, "topics": []}
    answer["clusterAuthorizedOperations"] = 0
    asked = {"topics": topics, "allowAutoTopicCreation": True}
    asked |= {"includeClusterAuthorizedOperations": False, "includeTopicAuthorizedOperations": False}
    return made("Metadata", 8, asked, answer, (ms, ms + 1))


def test_who_asks_for_every_topic_is_told() -> None:
    asked = MetadataAsked()
    for at in range(1, 11):
        asked.feed(metadata(at, None))
    asked.feed(metadata(20, []))
    asked.feed(metadata(21, [{"name": "t"}]))
    (facts,) = asked.result()
    assert (facts["requests"], facts["all_topics"], facts["exchanges"]) == (12, 10, [1, 10])
    (found,) = said("metadata-all-topics", {MetadataAsked: [facts]})
    assert found.count == 10
    assert not said("metadata-all-topics", {MetadataAsked: [{**facts, "all_topics": 9}]})
    assert said("metadata-all-topics", {MetadataAsked: [{**facts, "all_topics": 1, "all_bytes_max": MIB}]})


def line(number: int, **values: Any) -> Row:
    made = {
        "client": f"10.0.0.9:{5000 + number}",
        "broker": "b:9092",
        "connection": number,
        "opening": "answered",
    }
    made |= {"bytes_to_broker": 0, "bytes_from_broker": 0, "end": "fin", "exchanges": 0}
    return row(Tcp, **{**made, "first_ns": number * SECOND, "last_ns": number * SECOND + 1, **values})


def test_connections_without_a_word_are_told() -> None:
    used = line(9, exchanges=5, bytes_to_broker=9)
    (found,) = said("bare-connects", {Tcp: [used, *map(line, range(5))]})
    assert (found.subject.client, found.count) == ("10.0.0.9", 5)
    assert not said("bare-connects", {Tcp: [used, *map(line, range(4))]})
    assert not said("bare-connects", {Tcp: [*map(line, range(5))]})  # nobody speaks Kafka there
    assert not said("bare-connects", {Tcp: [used, *(line(at, end="open") for at in range(5))]})


def idle(number: int, idle_s: float, at_s: float = 30) -> Row:
    made = {"closed_by": "broker", "closed_ns": int(at_s * SECOND), "idle_ns": int(idle_s * SECOND)}
    return line(number, **made, exchanges=1, last_exchange=number, first_ns=0, last_ns=int(at_s * SECOND))


def closed(*rows: Row) -> list[Finding]:
    return said("idle-disconnect", {Tcp: list(rows)})


def test_connections_that_brokers_close_for_silence_are_told() -> None:
    lasting = line(9, first_ns=0, last_ns=90 * SECOND)
    assert closed(idle(1, 600))
    assert closed(idle(1, 570))
    assert not closed(idle(1, 569), lasting)
    (found,) = closed(lasting, *(idle(at, 10 + at / 20, 30 + at) for at in range(5)))
    assert (found.count, found.subject.broker) == (5, "b:9092")
    assert "its limit for idle connections, or that of a proxy before it." in found.message
    (usual,) = closed(idle(1, 600))
    assert "its limit for idle connections. Clients" in usual.message
    assert not closed(lasting, *(idle(at, 10, 30 + at) for at in range(4)))
    assert not closed(lasting, *(idle(at, 10 + at, 30 + at) for at in range(5)))


def test_a_broker_that_stops_closes_them_for_another_reason() -> None:
    later = line(9, first_ns=40 * SECOND, last_ns=90 * SECOND)
    assert not closed(later, *(idle(at, 10) for at in range(5)))
