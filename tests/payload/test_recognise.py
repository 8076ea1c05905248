"""What keys and values are that no schema describes."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from typing import Any
from uuid import UUID

import cbor2
import fastavro
import lz4.frame
import msgpack
import pytest
import zstandard

from kdissect.limits import DEFAULTS
from kdissect.payload import recognise as module
from kdissect.payload.recognise import Found, recognise, unpack
from kdissect.record.compression import compress

EVENT = {"specversion": "1.0", "id": "1", "source": "/a", "type": "b", "data": {"x": 1}}
CHANGE = {"before": None, "after": {"id": 1}, "source": {"db": "shop"}, "op": "c"}
TIME = 1_763_800_000_000


def found(data: bytes, side: str = "value", topic: str = "orders", headers: Any = ()) -> Found:
    return recognise(data, side, topic, headers, DEFAULTS)


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def avro_file(codec: str) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema("string"), ["a", "b"], codec=codec, sync_marker=bytes(16))
    return out.getvalue()


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
    assert found(data) == Found(format, value, confidence)


@pytest.mark.parametrize(
    ("data", "format", "value"),
    [
        ((5).to_bytes(8, "big"), "int64", 5),
        ((-5).to_bytes(4, "big", signed=True), "int32", -5),
        (UUID(int=0x12345678123442349234123456789ABC).bytes, "uuid", "12345678-1234-4234-9234-123456789abc"),
    ],
)
def test_keys_may_be_numbers(data: bytes, format: str, value: Any) -> None:
    assert found(data, "key") == Found(format, value, "likely")
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


PACKED = {
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "lz4": lz4.frame.compress,
    "snappy": lambda data: compress(2, data),
}


@pytest.mark.parametrize("codec", PACKED)
def test_packed_values_are_unpacked_once(codec: str) -> None:
    data = PACKED[codec](as_json(EVENT))
    assert found(data) == Found("json", EVENT, "certain", "cloudevents", codec)
    assert found(gzip.compress(data)).value is None


@pytest.mark.parametrize("codec", PACKED)
def test_what_unpacks_to_very_much_stays_as_it_is(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_UNPACKED", 1_000)
    data = PACKED[codec](bytes(2_000))
    assert unpack(codec, data, DEFAULTS) is None
    assert found(data).compression is None


def test_zlib_is_bounded_too() -> None:
    assert unpack("zlib", zlib.compress(b"abc"), DEFAULTS) == b"abc"
    assert unpack("zlib", zlib.compress(b"abc")[:-4], DEFAULTS) is None


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
