"""The JSON text of bytes is that of their values."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.model import DecodeError
from kdissect.names import METADATA_TOPIC
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import decode
from kdissect.protocol.encode import encode
from kdissect.protocol.json_form import dumps, to_json
from kdissect.protocol.json_text import JsonText
from kdissect.protocol.json_walk import Walk, way_of
from kdissect.protocol.schema import Struct, message_struct
from tests.protocol.official import Vector, vectors

VECTORS = vectors()


class Sizes:
    """Writes how large record sets are, once more."""

    def write(self, out: JsonText, data: bytes, name: bytes) -> None:
        out.put(name)
        out.number(len(data))


def walked(struct: Struct, data: bytes, records: Sizes | None = None) -> str | None:
    """The text; None where the walk leaves it to the values."""
    way, out = way_of(struct), JsonText()
    if way is None:
        return None
    walk = Walk(Cursor(b""), out, None)
    walk.begin(data, records)
    try:
        walk.write(way)
    except DecodeError:
        return None
    return out.take().decode("ascii") if walk.cursor.position == walk.cursor.end else None


def decoded(struct: Struct, data: bytes) -> str | None:
    """The text of the values; None where anything is wrong with the bytes."""
    cursor = Cursor(data)
    try:
        values = decode(struct, cursor)
    except DecodeError:
        return None
    if cursor.notes or cursor.position != cursor.end:
        return None
    return dumps(to_json(struct, values))


def test_of_every_official_message_the_text_is_that_of_its_values() -> None:
    count = 0
    for each in VECTORS:
        text = walked(each.struct, each.data)
        if text is not None:
            count += 1
            assert text == decoded(each.struct, each.data), each.id
    assert count > 0.8 * len(VECTORS)


def test_of_a_damaged_message_the_text_is_that_of_its_values_or_none() -> None:
    dice = random.Random(5)
    count = 0
    for _ in range(20_000):
        vector: Vector = dice.choice(VECTORS)
        data = bytearray(vector.data)
        for _ in range(dice.randrange(1, 4)):
            if data:
                data[dice.randrange(len(data))] = dice.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
        text = walked(vector.struct, bytes(data))
        if text is not None:
            count += 1
            assert text == decoded(vector.struct, bytes(data)), vector.id
    assert count > 2_000


@given(st.sampled_from(VECTORS), st.binary(max_size=60))
def test_any_bytes(vector: Vector, data: bytes) -> None:
    text = walked(vector.struct, data)
    assert text is None or text == decoded(vector.struct, data)


@pytest.mark.parametrize("count", [2**31 - 1, 100_000])
def test_no_array_is_longer_than_its_bytes(count: int) -> None:
    assert walked(message_struct(3, 0, "request"), count.to_bytes(4, "big") + b"\0\1a") is None


def produce(topic: str) -> bytes:
    partition = {"index": 1, "records": b"12345"}
    topics = [{"name": topic, "partitionData": [partition]}]
    body = {"transactionalId": None, "acks": 1, "timeoutMs": 2, "topicData": topics}
    return encode(message_struct(0, 7, "request"), body)


def test_record_sets_are_written_by_whom_they_concern() -> None:
    struct = message_struct(0, 7, "request")
    text = walked(struct, produce("t"), Sizes())
    assert text is not None
    assert '"index":1,"recordsSizeInBytes":5,"records":5}' in text
    assert walked(struct, produce("t")) == text.replace(',"records":5', "")


def test_records_that_may_hold_secrets_are_left_to_what_hides_them() -> None:
    struct = message_struct(0, 7, "request")
    assert walked(struct, produce(METADATA_TOPIC), Sizes()) is None
    assert walked(struct, produce(METADATA_TOPIC)) is not None
