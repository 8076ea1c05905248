"""What keys and values are that no schema describes."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable
from typing import Any
from uuid import UUID

import cbor2
import fastavro
import lz4.frame
import msgpack
import pytest
import zstandard

from kdissect.model import DecodeError
from kdissect.payload.cbor import decode_cbor
from kdissect.payload.msgpack import decode_msgpack
from kdissect.payload.packed import Unpacker
from kdissect.payload.recognise import RecognisedBytes, recognise
from kdissect.record.compression import compress

EVENT = {"specversion": "1.0", "id": "1", "source": "/a", "type": "b", "data": {"x": 1}}
CHANGE = {"before": None, "after": {"id": 1}, "source": {"db": "shop"}, "op": "c"}
TIME = 1_763_800_000_000


def found(data: bytes, side: str = "value", topic: str = "orders", headers: Any = ()) -> RecognisedBytes:
    return recognise(data, side, topic, headers, Unpacker())


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def avro_file(codec: str) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema("string"), ["a", "b"], codec=codec, sync_marker=bytes(16))
    return out.getvalue()


def avro_block(schema: str, count: int, block: bytes) -> bytes:
    """An Avro file of one packed block that says that it has so many values."""
    stream = zlib.compressobj(wbits=-15)
    packed = stream.compress(block) + stream.flush()

    def long(number: int) -> bytes:
        left, out = number << 1, b""
        while left > 127:
            left, out = left >> 7, out + bytes((left & 127 | 128,))
        return out + bytes((left,))

    meta = (
        b"Obj\x01"
        + long(2)
        + b"".join(
            long(len(each)) + each for each in (b"avro.schema", schema.encode(), b"avro.codec", b"deflate")
        )
    )
    return meta + b"\0" + bytes(16) + long(count) + long(len(packed)) + packed + bytes(16)


@pytest.mark.parametrize(
    ("data", "format", "value", "confidence"),
    [
        (b"", "empty", "", "certain"),
        (b'{"a": 1}', "json", {"a": 1}, "certain"),
        (b"[1]", "json", [1], "certain"),
        (b'"k"', "json", "k", "likely"),
        (b"{a}", "text", "{a}", "certain"),
        (b"42", "text", "42", "certain"),
        ("grün".encode(), "text", "grün", "certain"),
        (b"<a><b/></a>", "xml", "<a><b/></a>", "likely"),
        (b"< 5", "text", "< 5", "certain"),
        (b"12345678-1234-4234-9234-123456789abc", "uuid", "12345678-1234-4234-9234-123456789abc", "certain"),
        (cbor2.dumps({"a": [1.5, None]}), "cbor", {"a": [1.5, None]}, "likely"),
        (b"\xd9\xd9\xf7" + cbor2.dumps(5), "cbor", 5, "certain"),
        (msgpack.packb({"abc": list(range(20))}), "msgpack", {"abc": list(range(20))}, "likely"),
        (b"\xac\xed\x00\x05t\0\x01a", "java", None, "certain"),
        (avro_file("null"), "avro-file", ["a", "b"], "certain"),
        (avro_file("deflate"), "avro-file", ["a", "b"], "certain"),
        (b"Obj\x01zzz", "avro-file", None, "likely"),
        (b"\xff\xfe\xfd", "binary", None, "certain"),
        (
            bytes.fromhex("0805 1206 6f7264657231 1801"),
            "protobuf",
            [
                {"field": 1, "wire": "varint", "value": 5},
                {"field": 2, "wire": "len", "value": "order1"},
                {"field": 3, "wire": "varint", "value": 1},
            ],
            "likely",
        ),
    ],
)
def test_a_value_is_recognised(data: bytes, format: str, value: Any, confidence: str) -> None:
    assert found(data) == RecognisedBytes(format, value, confidence)


@pytest.mark.parametrize(
    ("data", "format", "value"),
    [
        ((5).to_bytes(8, "big"), "int64", 5),
        ((-5).to_bytes(4, "big", signed=True), "int32", -5),
        (UUID(int=0x12345678123442349234123456789ABC).bytes, "uuid", "12345678-1234-4234-9234-123456789abc"),
    ],
)
def test_keys_may_be_numbers(data: bytes, format: str, value: Any) -> None:
    assert found(data, "key") == RecognisedBytes(format, value, "likely")
    assert found(data, "value").format not in ("int32", "int64", "uuid")


def test_a_number_of_any_bits_is_not_guessed() -> None:
    assert found(b"\x9c\x12\x88\x01\xfe\xff\x01\x02", "key").value is None


def test_keys_of_streams_have_times() -> None:
    window = b"k1" + TIME.to_bytes(8, "big") + (3).to_bytes(4, "big")
    session = b"k1" + (TIME + 5).to_bytes(8, "big") + TIME.to_bytes(8, "big")
    topic = "app-store-changelog"
    assert found(window, "key", topic).value == {"key": "k1", "start": TIME, "sequence": 3}
    assert found(session, "key", topic).value == {"key": "k1", "start": TIME, "end": TIME + 5}
    assert found(window, "key", "orders").format == "binary"


@pytest.mark.parametrize(
    ("value", "headers", "envelope", "inside"),
    [
        ({"schema": {"type": "struct"}, "payload": {"a": 1}}, (), "connect", {"a": 1}),
        ({"schema": None, "payload": None}, (), "connect", None),
        ({"schema": {"type": "struct"}, "payload": CHANGE}, (), "connect, debezium", CHANGE),
        (CHANGE, (), "debezium", CHANGE),
        (EVENT, (), "cloudevents", EVENT),
        ({"a": 1}, (("ce_specversion", b"1.0"),), "cloudevents", {"a": 1}),
        ({"resourceSpans": []}, (), "otlp", {"resourceSpans": []}),
        ({"schema": 5, "payload": 6}, (), None, {"schema": 5, "payload": 6}),
    ],
)
def test_envelopes_are_told(value: Any, headers: Any, envelope: str | None, inside: Any) -> None:
    seen = found(as_json(value), headers=headers)
    assert (seen.envelope, seen.value) == (envelope, inside)


def message(*fields: tuple[int, bytes]) -> bytes:
    """A message of Protobuf whose fields are bytes."""
    return b"".join(bytes((number << 3 | 2, len(data))) + data for number, data in fields)


def telemetry(attribute: bytes, scope: int = 2) -> bytes:
    """``ResourceSpans`` with a span, as a collector writes it to Kafka."""
    resource = message((1, message((1, attribute), (2, message((1, b"shop"))))))
    span = message((1, bytes(range(16))), (2, bytes(range(8))), (5, b"GET /"))
    return message((1, message((1, resource), (scope, message((2, span))))))


def test_telemetry_in_protobuf_is_told() -> None:
    seen = found(telemetry(b"service.name"))
    assert (seen.format, seen.envelope, seen.confidence) == ("protobuf", "otlp", "likely")
    assert seen.value[0]["field"] == 1
    assert found(telemetry(b"telemetry.sdk.language") * 2).envelope == "otlp"
    for other in (
        telemetry(b"colour"),
        telemetry(b"service.name", 3),
        message((1, b"service.name"), (2, b"x")),
    ):
        assert found(other).envelope is None


PACKED = {
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "lz4": lz4.frame.compress,
    "snappy": lambda data: compress(2, data),
}


@pytest.mark.parametrize("codec", PACKED)
def test_packed_values_are_unpacked_once(codec: str) -> None:
    data = PACKED[codec](as_json(EVENT))
    assert found(data) == RecognisedBytes("json", EVENT, "certain", "cloudevents", codec)
    assert found(gzip.compress(data)).value is None


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b'{"a":' * 200 + b"1" + b"}" * 200,
        b"[" + b"9" * 10_000 + b"]",
        b"\x81" * 100_000,
        b"\x9f" * 100_000,
        b"\xdd\xff\xff\xff\xff",
        b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x0b" * 100_000,
        b"\x0a\x7f" * 1_000,
    ],
)
def test_hostile_bytes_have_no_value_and_take_no_time(data: bytes) -> None:
    seen = found(data)
    assert seen.value is None or seen.format == "text"


@pytest.mark.parametrize("decode", [decode_cbor, decode_msgpack])
def test_maps_that_are_keys_of_each_other_do_not_grow_without_end(decode: Callable[[bytes], Any]) -> None:
    # A map of one entry is A1 in CBOR, 81 in MessagePack; the text of a key doubles with each.
    one, text = (b"\xa1", b"\x60") if decode is decode_cbor else (b"\x81", b"\xa0")
    assert decode(one * 3 + text + b"\x01" * 3) == {'{"{\\"\\": 1}": 1}': 1}
    with pytest.raises(DecodeError, match="keys of each other"):
        decode(one * 24 + text + b"\x01" * 24)


def test_keys_that_are_no_text_stay_keys() -> None:
    keys = {b"": 1, b"abc": 2, (1, 2.5): 3, 7: 4, None: 5, True: 6}
    decoded = decode_cbor(cbor2.dumps(keys))
    assert decoded == {
        '{"base64": ""}': 1, '{"base64": "YWJj"}': 2, "[1, 2.5]": 3, "7": 4, "null": 5, "true": 6
    }  # fmt: skip
    assert decode_cbor(cbor2.dumps(dict.fromkeys(range(5000), 0))) == dict.fromkeys(map(str, range(5_000)), 0)


def test_a_small_avro_file_has_no_end_of_values() -> None:
    assert found(avro_block('"null"', 100, bytes(10))) == RecognisedBytes("avro-file", [None] * 100)
    assert found(avro_block('"null"', 30_000_000, bytes(2 << 20))).value is None
    nulls = '{"type": "array", "items": "null"}'
    many = b"\x80\xad\xe2\x04\0"  # an array of 5,000,000, and its end
    assert found(avro_block(nulls, 1, many + bytes(2 << 20))).value is None


@pytest.mark.parametrize("lists", [0, 20, 40, 60])
def test_an_avro_file_whose_schema_is_nested_too_deep_is_told(lists: int) -> None:
    for deep in range(600, 1_000, 20):
        schema = "[" * lists + '{"x":' + "[" * deep + "]" * deep + "}" + "]" * lists
        assert found(avro_block(schema, 0, b"")) == RecognisedBytes("avro-file", None, "likely")


@pytest.mark.parametrize(
    ("data", "pairs"),
    [
        (b"\xa2\x01\x61a\x61\x31\x61b", [(1, "a"), ("1", "b")]),
        (b"\xa2\xf5\x01\x64true\x02", [(True, 1), ("true", 2)]),
        (b"\xa2\x61a\x01\x61a\x02", [("a", 1), ("a", 2)]),
    ],
)
def test_keys_with_the_same_text_are_both_shown(data: bytes, pairs: list[tuple[Any, Any]]) -> None:
    assert decode_cbor(data) == [{"key": key, "value": value} for key, value in pairs]
    assert decode_msgpack(b"\x82\x01\x02\xa1\x31\x03") == [{"key": 1, "value": 2}, {"key": "1", "value": 3}]
