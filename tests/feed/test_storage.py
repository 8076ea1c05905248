"""Columns that grow, and connections that are over."""

from __future__ import annotations

import pickle
import struct

from hypothesis import given
from hypothesis import strategies as st

from kdissect.feed.storage import TOGETHER, GrowingColumns, PackedConnections
from kdissect.session.conversation import Connection

FIELDS = tuple((f"f{at}", "i4") for at in range(22))


def packed(values: range) -> bytes:
    return b"".join(struct.pack("<22i", *range(value, value + 22)) for value in values)


@given(st.lists(st.integers(0, 3_000), max_size=6))
def test_every_row_stays_what_it_is(sizes: list[int]) -> None:
    columns, end = GrowingColumns(FIELDS), 0
    for size in sizes:
        columns.append(packed(range(end, end + size)))
        end += size
        assert len(columns) == end
        for at in (0, 9, 21):
            assert columns[f"f{at}"][:end].tolist() == list(range(at, end + at))


def test_a_view_stays_when_its_column_has_moved() -> None:
    columns = GrowingColumns(FIELDS)
    columns.append(packed(range(1_000)))
    before = columns["f3"][:1_000]
    columns.append(packed(range(1_000, 30_000)))
    assert before.tolist() == list(range(3, 1_003))


def test_few_columns_move_at_once() -> None:
    columns, moved = GrowingColumns(FIELDS), []
    columns.append(packed(range(20_000)))
    for start in range(20_000, 60_000, 200):
        places = [columns[name] for name, _ in FIELDS]
        columns.append(packed(range(start, start + 200)))
        moved.append(sum(columns[name] is not place for (name, _), place in zip(FIELDS, places, strict=True)))
    assert sum(moved) > len(FIELDS)
    assert max(moved) <= 4


def test_no_more_than_an_eighth_is_in_reserve() -> None:
    columns = GrowingColumns(FIELDS)
    columns.append(packed(range(50_000)))
    assert all(50_000 <= len(columns[name]) <= 50_000 * 1.13 for name, _ in FIELDS)


def connection(number: int) -> Connection:
    ends = f"10.0.0.{number % 250}:{40_000 + number}", "10.0.0.1:9092"
    sasl = {"mechanism": "PLAIN", "user": None} if number % 3 else None
    return Connection(number, *ends, 5, 6, "fin", 1, 2, 3, 4, 5, 6, 7, 8, "kafka", None, "librdkafka", sasl)


@given(st.lists(st.integers(1, 500), unique=True, max_size=3 * TOGETHER))
def test_each_is_found_by_its_number(numbers: list[int]) -> None:
    found = PackedConnections()
    for number in numbers:
        found.add(connection(number))
    assert list(found) == numbers
    assert len(found) == len(numbers)
    assert found == {number: connection(number) for number in numbers}
    assert [number for number in range(-3, 510) if number in found] == sorted(numbers)
    assert found.get(501) is found.get(-1) is None


@given(st.integers(0, 3 * TOGETHER), st.data())
def test_rows_are_handed_on_packed_in_the_order_that_was_asked_for(count: int, data: st.DataObject) -> None:
    found = PackedConnections()
    for number in range(count):
        found.add(connection(number))
    places = data.draw(st.lists(st.integers(0, count - 1), unique=True) if count else st.just([]))
    sent = pickle.loads(pickle.dumps(tuple(found.packed(places))))
    assert [row for piece in sent for row in piece.rows()] == [connection(place) for place in places]


def test_they_take_a_tenth_of_what_they_would() -> None:
    found = PackedConnections()
    for number in range(100 * TOGETHER):
        found.add(connection(number))
    assert sum(map(len, found._packed)) < 50 * len(found)


def test_rows_of_other_capture_points_stand_beside_the_one_that_counts() -> None:
    found = PackedConnections()
    for number, is_copy in ((0, False), (0, True), (1, True), (1, False), (2, False)):
        found.add(connection(number)._replace(is_copy=is_copy, packets=number))
    assert list(found) == [0, 1, 2]
    assert len(found) == 3
    assert not any(each.is_copy for each in found.values())
    assert [[found.row(place).is_copy for place in found.places(number)] for number in (0, 1, 2, 3)] == [
        [False, True],
        [False, True],
        [False],
        [],
    ]
    assert found.rows == 5


def test_what_they_carried_is_that_of_those_that_count() -> None:
    found = PackedConnections()
    for number in range(3 * TOGETHER):
        kafka = connection(number)._replace(bytes_to_broker=number, is_copy=number % 3 == 0)
        found.add(kafka if number % 2 else kafka._replace(protocol="tls"))
    for number in range(0, 90, 2):  # some of them have a row that counts now
        found.add(connection(number)._replace(retransmitted=1_000))
        found.add(connection(number)._replace(retransmitted=5_000, is_copy=True))
    carried, counting = found.carried, list(found.values())
    kafka_rows = [each for each in counting if each.protocol == "kafka"]
    assert carried.kafka == len(kafka_rows)
    assert carried.skipped_bytes == sum(each.skipped_bytes for each in kafka_rows)
    assert carried.gap_bytes == sum(each.gap_bytes for each in counting)
    assert carried.retransmitted == sum(each.retransmitted for each in counting)
    for protocol in ("kafka", "tls"):
        rows = [each for each in counting if each.protocol == protocol]
        assert carried.bytes[protocol] == sum(each.bytes_to_broker + each.bytes_from_broker for each in rows)
