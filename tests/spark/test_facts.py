"""Buckets: parts of a capture that are dissected alone give what the whole gives, numbers and names too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

import pytest

from kdissect.dissect import LINGER_NS, Event
from kdissect.model import Endpoint, Secrets
from kdissect.spark.facts import (
    CONNECTION,
    EXCHANGE,
    NAME,
    Bucket,
    Fact,
    Facts,
    Thing,
    events_of,
    facts_of,
    things_of,
)
from kdissect.spark.ordering import Told
from kdissect.spark.progress import Note
from kdissect.spark.settings import Settings
from tests.amount import some
from tests.kafka import Talk
from tests.spark.cuts import packets_of, pcap
from tests.spark.same import CAPTURES, TABLES, event_rows, read_rows

ALL = sorted(path.name for path in CAPTURES.glob("*.pcap*"))
BROKER: Endpoint = bytes((10, 0, 0, 99, 0x23, 0x84))


def endpoint(host: int) -> Endpoint:
    return bytes((10, 0, 0, host, 0x90, 0x00))


def bucketed(paths: Sequence[str], settings: Settings, count: int) -> list[Event]:
    """The events of a capture by buckets."""
    return together(lambda bucket: things_of(paths, settings, bucket, Note(None, "")), settings, count)


def together(things: Callable[[Bucket], Iterable[Thing]], settings: Settings, count: int) -> list[Event]:
    """What :mod:`kdissect.spark.buckets` lets Spark do."""
    buckets = [Bucket(index, count) for index in range(count)]
    told = [(bucket, fact) for bucket in buckets for fact in facts_of(things(bucket), settings)]
    numbers: dict[int, list[tuple[Fact, int]]] = {index: [] for index in range(count)}
    for kind in (CONNECTION, EXCHANGE):
        ranked = sorted((fact[1:5], bucket.index, fact) for bucket, fact in told if fact.kind == kind)
        for number, (_, index, fact) in enumerate(ranked, 1):
            numbers[index].append((fact, number))
    taught = [fact for _, fact in told if fact.kind == NAME]
    names = sorted((fact.packet, fact.first, fact.topic_id or "", fact.name or "") for fact in taught)
    out: list[Event] = []
    for bucket in buckets:
        own = sorted((fact.packet, fact.kind, number) for fact, number in numbers[bucket.index])
        stream: Iterator[tuple[int, int, int]] = iter([(kind, packet, n) for packet, kind, n in own])
        out += events_of(things(bucket), settings, stream, names)
        assert next(stream, None) is None
    return out


@pytest.mark.parametrize(
    ("name", "count"),
    some(
        product(ALL, (1, 2, 7)),
        len(ALL) + 2,
        *product(["loss.pcapng"], (1, 2)),
        *product(ALL, [7]),
    ),
)
def test_buckets_give_what_the_whole_gives(name: str, count: int) -> None:
    path = CAPTURES / name
    events = bucketed([str(path)], Settings(), count)
    for table in ("exchanges", "connections", "faults"):
        assert event_rows(events, table) == read_rows(table, [path])


@pytest.mark.parametrize("name", TABLES)
def test_every_table_comes_of_buckets(name: str) -> None:
    path = CAPTURES / "loss.pcapng"
    assert event_rows(bucketed([str(path)], Settings(), 3), name) == read_rows(name, [path])


def test_a_clock_that_jumps_changes_nothing(tmp_path: Path) -> None:
    # Every tenth packet is an hour late or early: connections linger by the time of all packets.
    moved = []
    for path in sorted(CAPTURES.glob("*43*.pcapng")):
        for at, packet in enumerate(packets_of(path)):
            jump = (0, 0, 0, 0, 0, 61, 0, 0, 3600, -3600)[at % 10]
            moved.append(packet._replace(timestamp_ns=packet.timestamp_ns + jump * 1_000_000_000))
    file = tmp_path / "jumps.pcap"
    file.write_bytes(pcap(moved))
    events = bucketed([str(file)], Settings(), 5)
    for name in ("exchanges", "connections", "faults"):
        assert event_rows(events, name) == read_rows(name, [file])


def test_what_is_over_is_forgotten_by_the_time_of_others() -> None:
    # The first connection closes; another's packet is of two minutes later; then the clock goes back, and
    # what comes on the first one's addresses is a new connection, in whatever bucket the other is.
    closed = Talk(client=endpoint(1), broker=BROKER).ask(b"\0" * 20).close().segments
    late = Talk(client=endpoint(1), broker=BROKER).segments
    segments = [*closed, *Talk(client=endpoint(2), broker=BROKER).segments, *late]
    times = [
        *range(len(closed)),
        *[2 * LINGER_NS] * (len(segments) - len(closed) - len(late)),
        *[99] * len(late),
    ]
    numbered = [
        each._replace(packet=at, timestamp_ns=time)
        for at, (each, time) in enumerate(zip(segments, times, strict=True), 1)
    ]

    def things(bucket: Bucket) -> Iterator[Thing]:
        for each in numbered:
            own = bucket.has(each.source, each.destination)
            yield each.packet, each if own else each.timestamp_ns

    (rows,) = {
        tuple(event_rows(together(things, Settings(), count), "connections")) for count in (1, 2, 3, 4, 5)
    }
    assert len(rows) == 3


def test_a_capture_that_changed_meanwhile_is_told() -> None:
    numbering = Facts(iter([(CONNECTION, 4, 1)]))
    with pytest.raises(RuntimeError, match="changed while they were read"):
        numbering.connection(5)


def test_damage_is_the_first_bucket_s(tmp_path: Path) -> None:
    damaged = tmp_path / "cut.pcap"
    damaged.write_bytes(pcap(packets_of(CAPTURES / "errors.pcapng"))[:-5])
    events = bucketed([str(damaged)], Settings(), 4)
    assert event_rows(events, "faults") == read_rows("faults", [damaged])
    assert "cut-short" in str(event_rows(events, "faults"))


def test_keys_in_a_capture_are_left_to_replicas() -> None:
    def things(_: Bucket) -> Iterator[Thing]:
        yield 0, Secrets(0x544C534B, b"")

    (fact,) = facts_of(things(Bucket(0, 2)), Settings())
    assert not Told((), fact.packet, fact.first).is_within(Settings())
