"""The bytes of a key or value, and the record's headers → the id of its schema.

* Confluent: 0 and the id as int32. Or a header ``__value_schema_id``: 0 and the id, or 1 and a GUID.
* Apicurio: 0 and the id as int64. Or a header ``apicurio.value.globalId`` or ``….contentId``.
* AWS Glue: 3, the compression (0 none, 5 zlib) and a UUID.
* Azure: four zeros and 32 hex digits. Or a header ``content-type``, ``avro/binary+ID``.
* Avro's single objects: C3 01 and the schema's fingerprint.

The sources are the registries' serializers: ``PrefixSchemaIdSerializer`` and ``HeaderSchemaIdSerializer``
(Confluent), ``Legacy8ByteIdHandler`` and ``KafkaSerdeHeaders`` (Apicurio), AWS's
``GlueSchemaRegistryKafkaSerializer``, Azure's ``KafkaAvroSerializer``, and the Avro specification. Apicurio's
newer default is Confluent's form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

Headers = Sequence[tuple[str, bytes | None]]

_HEX32 = re.compile(rb"[0-9a-fA-F]{32}")
_AZURE = re.compile(r"[\w.-]+/[\w.-]+\+([0-9a-fA-F]{32})")
_APICURIO = ("globalId", "contentId")
_HEADER_PREFIXES = ("__", "apicurio.", "content-type", "ce_specversion")


REGISTRIES = {
    "confluent": "the framing of Confluent's schema registry",
    "apicurio": "the framing of Apicurio's registry",
    "glue": "the framing of AWS Glue's schema registry",
    "azure": "the framing of Azure's schema registry",
    "avro": "a single object of Avro",
}
"""The names of framings, for messages."""


class Framing(NamedTuple):
    """The data that a schema registry's serializer adds to a value."""

    registry: str
    """``confluent``, ``apicurio``, ``glue``, ``azure``, or ``avro`` for a single object."""
    schema: str
    """The schema's id: a number, a GUID or a fingerprint."""
    size: int
    """The bytes of the framing before the value; 0 if a header has the id."""
    compression: str | None = None
    """``zlib`` if the value after the framing is compressed."""
    indexes: bytes = b""
    """The indexes of a Protobuf message from Confluent's header, in the form that they have before a
    value."""

    def __str__(self) -> str:
        return f"schema {self.schema}"


def framing_of(data: bytes, headers: Headers = (), side: str = "value") -> Framing | None:
    """The framing of a key or value; None if it has none.

    Ids begin with 1, and a value must be longer than its framing. Other bytes that begin in the same way by
    chance cannot be distinguished.

    :param side: ``key`` or ``value``.
    """
    if headers:
        found = _of_headers(headers, side)
        if found is not None:
            return found
    if len(data) <= 5:
        return None
    first = data[0]
    if first == 0:
        number = int.from_bytes(data[1:5], "big", signed=True)
        if 0 <= number < 256:  # at least four zeros
            found = of_zeros(data)
            if found is not None:
                return found
        if number > 0:
            return Framing("confluent", str(number), 5)
    elif first == 3:
        if len(data) > 18 and data[1] in (0, 5) and data[8] >> 4 in range(1, 9) and data[10] >> 6 == 2:
            return Framing("glue", str(UUID(bytes=data[2:18])), 18, "zlib" if data[1] else None)
    elif first == 0xC3 and data[1] == 1 and len(data) >= 10:
        return Framing("avro", data[9:1:-1].hex(), 10)
    return None


def may_describe(headers: Headers) -> bool:
    """Whether headers may describe a key or value; most records have no such headers."""
    return any(name.startswith(_HEADER_PREFIXES) for name, _ in headers)


def of_zeros(data: bytes) -> Framing | None:
    """Azure's or Apicurio's framing. Azure's begins with four zeros, Apicurio's with five, unless there are
    very many schemas."""
    if len(data) > 36 and _HEX32.match(data, 4):
        return Framing("azure", data[4:36].decode().lower(), 36)
    number = int.from_bytes(data[1:9], "big", signed=True) if not data[4] else 0
    return Framing("apicurio", str(number), 9) if number > 0 and len(data) > 9 else None


def _of_headers(headers: Headers, side: str) -> Framing | None:
    for name, said in reversed(headers):
        if said is None:
            continue
        if name == f"__{side}_schema_id":
            if len(said) >= 17 and said[0] == 1:
                return Framing("confluent", str(UUID(bytes=said[1:17])), 0, indexes=bytes(said[17:]))
            if len(said) == 5 and said[0] == 0:
                return Framing("confluent", str(int.from_bytes(said[1:], "big")), 0)
        elif name.startswith("apicurio."):
            if len(said) in (4, 8) and name in {f"apicurio.{side}.{each}" for each in _APICURIO}:
                return Framing("apicurio", str(int.from_bytes(said, "big", signed=True)), 0)
        elif name == "content-type" and side == "value":
            found = _AZURE.fullmatch(said.decode("ascii", "replace"))
            if found is not None:
                return Framing("azure", found[1].lower(), 0)
    return None
