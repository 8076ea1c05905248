"""Where serializers of registries write a schema's id."""

from __future__ import annotations

from uuid import UUID

import pytest

from kdissect.payload.framing import Framing, framing_of

GUID = UUID("12345678-1234-4234-9234-123456789abc")
HEX = b"0123456789abcdef0123456789ABCDEF"


@pytest.mark.parametrize(
    ("data", "headers", "found"),
    [
        (b"\0\0\0\0\x07x", (), Framing("confluent", "7", 5)),
        (b"\0\0\0\0\x07", (), None),
        (b"\0\xff\0\0\x07x", (), None),
        (b"\0\0\0\0\0x", (), None),
        (b"\0" + (300).to_bytes(8, "big") + b"x", (), Framing("apicurio", "300", 9)),
        (b"\0\0\0\0" + HEX + b"x", (), Framing("azure", HEX.decode().lower(), 36)),
        (b"\x03\0" + GUID.bytes + b"x", (), Framing("glue", str(GUID), 18)),
        (b"\x03\x05" + GUID.bytes + b"x", (), Framing("glue", str(GUID), 18, "zlib")),
        (b"\x03\x01" + GUID.bytes + b"x", (), None),
        (b"\x03\0" + bytes(17), (), None),
        (b"\xc3\x01\x01\x02\x03\x04\x05\x06\x07\x08", (), Framing("avro", "0807060504030201", 10)),
        (b"x", (("__value_schema_id", b"\x01" + GUID.bytes),), Framing("confluent", str(GUID), 0)),
        (b"x", (("__value_schema_id", b"\0\0\0\0\x09"),), Framing("confluent", "9", 0)),
        (b"x", (("__key_schema_id", b"\0\0\0\0\x09"),), None),
        (
            b"x",
            (("__value_schema_id", b"\x01" + GUID.bytes + b"\x02\x04"),),
            Framing("confluent", str(GUID), 0, indexes=b"\x02\x04"),
        ),
        (b"x", (("apicurio.value.globalId", bytes(7) + b"\x05"),), Framing("apicurio", "5", 0)),
        (b"x", (("apicurio.value.contentId", bytes(3) + b"\x05"),), Framing("apicurio", "5", 0)),
        (b"x", (("apicurio.value.encoding", b"JSON"),), None),
        (b"x", (("content-type", b"avro/binary+" + HEX),), Framing("azure", HEX.decode().lower(), 0)),
        (b"x", (("content-type", b"application/json"),), None),
        (b"x", (("__value_schema_id", None),), None),
    ],
)
def test_the_framing_of_a_value(
    data: bytes, headers: tuple[tuple[str, bytes | None], ...], found: Framing | None
) -> None:
    assert framing_of(data, headers) == found


def test_of_headers_the_last_counts() -> None:
    headers = (("__key_schema_id", b"\0\0\0\0\x01"), ("__key_schema_id", b"\0\0\0\0\x02"))
    assert framing_of(b"", headers, "key") == Framing("confluent", "2", 0)
