"""What is found without decoding is what the values tell."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.model import DecodeError
from kdissect.protocol import apis
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import decode
from kdissect.protocol.layout import record_fields
from kdissect.protocol.schema import Struct, message_struct
from kdissect.protocol.select import pick, selection
from kdissect.protocol.survey import find_places, route
from kdissect.protocol.topics import partition_of
from tests.protocol.official import Vector, vectors


@cache
def messages() -> list[Vector]:
    return [each for each in vectors() if each.struct.name.endswith(("Request", "Response"))]


@cache
def with_places() -> list[Vector]:
    return [
        each for each in messages() if record_fields(each.struct) or each.struct.name == "ProduceResponse"
    ]


def decoded(struct: Struct, data: bytes) -> Any:
    """Record sets and base offsets of the values; None where anything is wrong."""
    cursor = Cursor(data)
    try:
        values = decode(struct, cursor)
    except DecodeError:
        return None
    if cursor.notes or cursor.position != cursor.end:
        return None
    wanted = selection(struct, lambda each: each.type == "records" or each.name == "baseOffset")
    return [(*partition_of(ancestors), name, value) for name, value, ancestors in pick(wanted, values)]


def found(struct: Struct, data: bytes) -> Any:
    """The same by the walk."""
    way = route(struct)
    places = find_places(way, Cursor(data)) if way is not None else None
    if places is None:
        return None
    return [(*rest, name, at if name == "baseOffset" else data[at : at + n]) for *rest, name, at, n in places]


def test_every_place_of_the_official_messages_is_found() -> None:
    count = 0
    for each in with_places():
        places = found(each.struct, each.data)
        if places is not None:
            count += len(places)
            assert places == decoded(each.struct, each.data), each.id
    assert count > 100


def test_of_a_damaged_message_no_place_is_found_that_its_values_do_not_tell() -> None:
    dice = random.Random(3)
    count = 0
    for _ in range(20_000):
        vector: Vector = dice.choice(with_places())
        data = bytearray(vector.data)
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(len(data))] = dice.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
        places = found(vector.struct, bytes(data))
        if places is not None:
            count += 1
            assert places == decoded(vector.struct, bytes(data)), vector.id
    assert count > 1_000


@given(st.deferred(lambda: st.sampled_from(messages())), st.binary(max_size=60))
def test_any_bytes(vector: Vector, data: bytes) -> None:
    places = found(vector.struct, data)
    assert places is None or places == decoded(vector.struct, data)


@pytest.mark.parametrize(("key", "kind"), [(0, "request"), (0, "response"), (1, "response")])
def test_an_api_with_records_has_a_simple_way_in_every_version(key: int, kind: str) -> None:
    ways = [route(message_struct(key, version, kind)) for version in apis.versions(key)]
    assert all(way is not None and way.places() for way in ways)


def test_what_a_struct_says_of_its_partition_does_not_hold_behind_it() -> None:
    # Produce 7: two topics with a partition each, then bytes of records
    first, second = "0001 61 00000001 00000005 00000001 01", "0001 62 00000001 00000006 00000001 02"
    body = f"ffff 0001 00000010 00000002 {first} {second}"
    places = found(message_struct(0, 7, "request"), bytes.fromhex(body))
    assert places == [("a", None, 5, "records", b"\1"), ("b", None, 6, "records", b"\2")]


def test_of_a_snapshot_whose_middle_is_fetched_nothing_is_found() -> None:
    assert found(message_struct(59, 0, "response"), bytes(7)) is None
