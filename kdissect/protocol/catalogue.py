"""The schemas as a user meets them: ``kdissect.schema("Fetch", 17, "request")``, and their text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kdissect.model import DecodeError, Node
from kdissect.protocol import annotate, decode, encode, json_form
from kdissect.protocol.apis import api_key
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.schema import NO_UUID, Field, Struct, data_struct, message_struct


class Schema:
    """One message class in one version."""

    def __init__(self, struct: Struct) -> None:
        self.struct = struct

    @property
    def name(self) -> str:
        """Kafka's name of the class, such as ``FetchRequest``."""
        return self.struct.name

    @property
    def version(self) -> int:
        return self.struct.version

    @property
    def flexible(self) -> bool:
        """Whether the version has compact types and tagged fields (KIP-482)."""
        return self.struct.flexible

    @property
    def fields(self) -> tuple[Field, ...]:
        """In the order of Kafka's definition; ``field.struct`` has those of a structure."""
        return self.struct.fields

    def decode(self, data: bytes) -> dict[str, Any]:
        """The values under Kafka's JSON names.

        :raises DecodeError: the bytes do not have this form, or more of them are there.
        """
        cursor = Cursor(data)
        values = decode.decode(self.struct, cursor)
        self._refuse_rest(cursor)
        return values

    def annotate(self, data: bytes) -> Node:
        """The values with the bytes that each was read from.

        :raises DecodeError: as :meth:`decode`.
        """
        cursor = Cursor(data)
        node = annotate.annotate(self.struct, cursor)
        self._refuse_rest(cursor)
        return node

    def _refuse_rest(self, cursor: Cursor) -> None:
        if cursor.remaining():
            raise DecodeError(f"{cursor.remaining()} bytes are left", cursor.position, "remainder")

    def encode(self, value: dict[str, Any]) -> bytes:
        """The bytes of a value such as :meth:`decode` gives.

        :raises ValueError: the value breaks the schema; the message begins with the path to it.
        """
        return encode.encode(self.struct, value)

    def size_of(self, value: dict[str, Any]) -> int:
        """How many bytes :meth:`encode` gives."""
        return encode.size_of(self.struct, value)

    def validate(self, value: dict[str, Any]) -> None:
        """:raises ValueError: the value breaks the schema; the message begins with the path to it."""
        encode.validate(self.struct, value)

    def to_json(self, value: dict[str, Any]) -> dict[str, Any]:
        """As Kafka's request log prints it."""
        return json_form.to_json(self.struct, value)

    def from_json(self, obj: dict[str, Any]) -> dict[str, Any]:
        """The other way of :meth:`to_json`; records are needed themselves, as base64.

        :raises ValueError: as :meth:`encode`.
        """
        return json_form.from_json(self.struct, obj)

    def __str__(self) -> str:
        return "\n".join(describe(self.struct))

    def __repr__(self) -> str:
        return f"<Schema {self.name} version {self.version}>"


def schema(api: str | int, version: int, kind: str = "request") -> Schema:
    """The schema of a message by the API's name (old names too) or key; ``kind`` is ``request``,
    ``response`` or ``data`` for any other of Kafka's message classes by its name.

    :raises LookupError: the definitions do not have it.
    """
    if kind == "data":
        return Schema(data_struct(str(api), version))
    if kind not in ("request", "response"):
        raise LookupError(f"a message is a request, a response or data, not {kind!r}")
    return Schema(message_struct(api if isinstance(api, int) else api_key(api), version, kind))


def describe(struct: Struct) -> list[str]:
    """Lines: the class and its version, then each field with its type and what else is true of it."""
    rows = list(_rows(struct, 1, set()))
    name_width = max((len(row[0]) for row in rows), default=0)
    type_width = max((len(row[1]) for row in rows), default=0)
    flexible = ", flexible" if struct.flexible else ""
    head = f"{struct.name} version {struct.version}{flexible} (Kafka {struct.release})"
    return [
        head,
        *(f"{name:{name_width}}  {kind:{type_width}}  {rest}".rstrip() for name, kind, rest in rows),
    ]


def _rows(struct: Struct, depth: int, shown: set[str]) -> Iterator[tuple[str, str, str]]:
    """A structure that is used again is spelled out where it is used first."""
    for field in struct.fields:
        yield "    " * depth + field.name, field.type, ", ".join(_facts(field))
        if field.struct is not None and field.struct.name not in shown:
            shown.add(field.struct.name)
            yield from _rows(field.struct, depth + 1, shown)


def _facts(field: Field) -> Iterator[str]:
    if field.nullable:
        yield "nullable"
    if field.tag is not None:
        yield f"tag {field.tag}"
    if field.default is None:
        if field.nullable and field.type != "records":
            yield "default null"
    elif field.struct is None and field.default not in (0, "", [], b"", NO_UUID):
        yield f"default {json_form.dumps(field.default)}"
    if field.key:
        yield "key"
    if field.entity:
        yield f"is {field.entity}"
