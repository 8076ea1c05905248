"""One message class in one version, both ways: what ``kdissect.schema`` gives."""

from __future__ import annotations

from typing import Any

from kdissect.model import DecodeError
from kdissect.protocol import apis, encode
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import decode
from kdissect.protocol.json_form import from_json, to_json
from kdissect.protocol.schema import Field, Struct, data_struct, message_struct


class Schema:
    """The fields of a message without its header, and the way from bytes to values and back.

    Values are dicts under Kafka's JSON names: bool, int, float, str (a uuid in Kafka's text form), bytes,
    list, dict and None.
    """

    def __init__(self, struct: Struct) -> None:
        self.struct = struct

    def __repr__(self) -> str:
        return f"<schema of {self.struct.name} version {self.struct.version}>"

    @property
    def name(self) -> str:
        """Kafka's name of the class."""
        return self.struct.name

    @property
    def version(self) -> int:
        return self.struct.version

    @property
    def fields(self) -> tuple[Field, ...]:
        """In the order of the definition; those of a struct are in ``field.struct.fields``."""
        return self.struct.fields

    def decode(self, data: bytes) -> dict[str, Any]:
        """The values of a message.

        :raises ValueError: the bytes do not have its form, or some are left.
        """
        cursor = Cursor(data)
        try:
            values = decode(self.struct, cursor)
        except DecodeError as error:
            raise ValueError(
                f"{self.name} version {self.version}, byte {error.offset}: {error.reason}"
            ) from None
        if cursor.remaining():
            raise ValueError(f"{self.name} version {self.version}: {cursor.remaining()} bytes are left")
        return values

    def encode(self, values: dict[str, Any]) -> bytes:
        """The bytes of a message. A field that is not given has its default.

        :raises ValueError: the values break the schema; the text begins with the path.
        """
        return encode.encode(self.struct, values)

    def validate(self, values: dict[str, Any]) -> None:
        """:raises ValueError: the values break the schema; the text begins with the path."""
        encode.validate(self.struct, values)

    def size_of(self, values: dict[str, Any]) -> int:
        """How many bytes ``encode`` would give."""
        return encode.size_of(self.struct, values)

    def to_json(self, values: dict[str, Any]) -> dict[str, Any]:
        """Kafka's JSON form; nothing is redacted."""
        return to_json(self.struct, values)

    def from_json(self, obj: Any) -> dict[str, Any]:
        """Values from Kafka's JSON form."""
        return from_json(self.struct, obj)


def schema(api: str | int, version: int, kind: str = "request") -> Schema:
    """The schema of a message.

    :param api: an API's name (old names too) or key; with ``kind="data"`` the name of any other class.
    :param kind: ``request``, ``response`` or ``data``.
    :raises LookupError: there is no such API, class, version or kind.
    :raises TypeError: the version is no whole number.
    """
    if kind not in ("request", "response", "data"):
        raise LookupError(f"kind: {kind!r} is none of request, response and data")
    if not isinstance(version, int) or isinstance(version, bool):
        raise TypeError(f"version: a whole number is needed, not {version!r}")
    if kind == "data":
        return Schema(data_struct(str(api), version))
    key = api if isinstance(api, int) else apis.api_key(api)
    return Schema(message_struct(key, version, kind))
