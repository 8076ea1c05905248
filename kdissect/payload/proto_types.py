"""The declarations of ``.proto`` files: messages, fields, enums. :mod:`kdissect.payload.proto_text` parses
them."""

from __future__ import annotations

from typing import NamedTuple

from kdissect.payload.avro import SchemaError

UNKNOWN = "_unknownFields"
"""The name, in values, of fields that the schema does not have."""
SCALARS = frozenset(
    (
        *("double", "float", "bool", "string", "bytes"),
        *("int32", "int64", "uint32", "uint64", "sint32", "sint64"),
        *("fixed32", "fixed64", "sfixed32", "sfixed64"),
    )
)
MAP_KEYS = sorted(SCALARS - {"double", "float", "bytes"})
"""The types that a map's keys may have."""


class ProtoField:
    """A field of a message."""

    __slots__ = (
        "enum",
        "has_presence",
        "is_map",
        "is_repeated",
        "kind",
        "message",
        "name",
        "number",
        "oneof",
    )

    def __init__(self, name: str, number: int, kind: str) -> None:
        self.name = name
        self.number = number
        self.kind = kind
        """One of :data:`SCALARS`, ``message``, ``group`` or ``enum``; a type's name until it is resolved."""
        self.message: ProtoMessage | None = None
        self.enum: ProtoEnum | None = None
        self.is_repeated = False
        self.is_map = False
        self.has_presence = False
        """Whether it can be absent; else it has its default."""
        self.oneof = ""
        """A key for the oneof around it. Under this key, the message's values keep the name of the oneof's
        latest field. No field has such a name."""


class ProtoMessage:
    """A message type."""

    __slots__ = ("_names", "by_number", "described", "fields", "is_entry", "name", "nested", "types")

    def __init__(self, name: str) -> None:
        self.name = name
        """The full name."""
        self.fields: list[ProtoField] = []
        self.by_number: dict[int, ProtoField] = {}
        self._names: set[str] = set()
        self.nested: list[ProtoMessage] = []
        """The messages inside it, in the order of the file."""
        self.described: list[ProtoMessage] = []
        """The same, including the entries of its maps, as in protoc's descriptors."""
        self.is_entry = False
        """Whether it is the entry of a map; registries write entries as messages (``option map_entry``)."""
        self.types: dict[str, ProtoMessage | ProtoEnum] | None = None
        """For ``google.protobuf.Any``: the types that it may hold, by full name."""

    def add(self, field: ProtoField) -> None:
        """Add a field.

        :raises SchemaError: its name or number is taken, or its name is reserved.
        """
        if field.name == UNKNOWN:
            raise SchemaError(f"message {self.name} has a field {UNKNOWN!r}, which stands for unknown fields")
        if field.number in self.by_number or field.name in self._names:
            raise SchemaError(f"message {self.name} has {field.name!r} or its number {field.number} twice")
        self._names.add(field.name)
        self.fields.append(field)
        self.by_number[field.number] = field

    def nest(self, message: ProtoMessage) -> None:
        """Add a message that is declared inside it."""
        self.nested.append(message)
        self.described.append(message)

    @property
    def has_entry_form(self) -> bool:
        """Whether it has the two fields of a map's entry."""
        key, value = self.by_number.get(1), self.by_number.get(2)
        if key is None or value is None or (key.name, value.name) != ("key", "value"):
            return False
        return (
            len(self.fields) == 2 and key.kind in MAP_KEYS and not key.is_repeated and not value.is_repeated
        )


class ProtoEnum:
    """An enum type."""

    __slots__ = ("by_number", "first", "is_closed", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.by_number: dict[int, str] = {}
        self.first = 0
        """The first declared number, which is the default."""
        self.is_closed = False
        """Whether an undeclared number is an unknown field (proto2)."""


class ProtoFile(NamedTuple):
    """One file with what it imports."""

    messages: list[ProtoMessage]
    """The messages at the top level, in the order of the file."""
    named: dict[str, ProtoMessage | ProtoEnum]
    """Types by full name, including imported ones."""
