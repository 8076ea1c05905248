"""One message class in one version, for decoding and encoding: the result of ``kdissect.schema``."""

from __future__ import annotations

from typing import Any

from kdissect.model import DecodeError, Node
from kdissect.protocol import annotate, apis, decode, encode, json_form
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.describe import describe
from kdissect.protocol.schema import Field, Struct, data_struct, message_struct
from kdissect.wording import plural


class Schema:
    """The fields of a message without its header; converts bytes to values and back.

    Values are dicts under Kafka's JSON names: bool, int, float, str (a uuid in Kafka's text form), bytes,
    list, dict and None. ``str()`` of a schema is the list of its fields.
    """

    def __init__(self, struct: Struct) -> None:
        self.struct = struct

    def __repr__(self) -> str:
        return f"<schema of {self.struct.name} version {self.struct.version}>"

    def __str__(self) -> str:
        return "\n".join(describe(self.struct))

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
        """The fields in the order of the definition; fields of a struct are in ``field.struct.fields``."""
        return self.struct.fields

    def decode(self, data: bytes) -> dict[str, Any]:
        """The values of a message.

        :raises ValueError: the bytes do not match the schema, or bytes are left over.
        """
        cursor = Cursor(data)
        try:
            values = decode.decode(self.struct, cursor)
            _refuse_rest(cursor)
        except DecodeError as error:
            raise self._complaint(error) from None
        return values

    def annotate(self, data: bytes) -> Node:
        """The values as a tree, each with the bytes that it was read from.

        :raises ValueError: as :meth:`decode`.
        """
        cursor = Cursor(data)
        try:
            node = annotate.annotate(self.struct, cursor)
            _refuse_rest(cursor)
        except DecodeError as error:
            raise self._complaint(error) from None
        return node

    def encode(self, values: dict[str, Any]) -> bytes:
        """The bytes of a message. A missing field gets its default.

        :raises ValueError: the values break the schema; the text begins with the path.
        """
        return encode.encode(self.struct, values)

    def validate(self, values: dict[str, Any]) -> None:
        """:raises ValueError: the values break the schema; the text begins with the path."""
        encode.validate(self.struct, values)

    def size_of(self, values: dict[str, Any]) -> int:
        """The number of bytes that ``encode`` would return.

        :raises ValueError: as :meth:`encode`.
        """
        return encode.size_of(self.struct, values)

    def to_json(self, values: dict[str, Any]) -> dict[str, Any]:
        """Kafka's JSON form, as its request log prints it; nothing is redacted."""
        return json_form.to_json(self.struct, values)

    def from_json(self, obj: Any) -> dict[str, Any]:
        """Values from Kafka's JSON form. Record sets must be there as base64, not only their sizes.

        :raises ValueError: it does not fit the schema; the text begins with the path.
        """
        return json_form.from_json(self.struct, obj)

    def _complaint(self, error: DecodeError) -> ValueError:
        return ValueError(f"{self.name} version {self.version}, byte {error.offset}: {error.reason}")


def _refuse_rest(cursor: Cursor) -> None:
    if cursor.remaining():
        left = plural(cursor.remaining(), "byte is", "bytes are")
        raise DecodeError(f"{left} left after the last field", cursor.position, "remainder")


def schema(api: str | int, version: int, kind: str = "request") -> Schema:
    """The schema of a message.

    :param api: an API's name (old names too) or key; with ``kind="data"`` the name of any other class.
    :param kind: ``request``, ``response`` or ``data``.
    :raises LookupError: there is no such API, class, version or kind.
    :raises TypeError: the version is not a whole number.
    """
    if kind not in ("request", "response", "data"):
        raise LookupError(f"kind: {kind!r} is not one of request, response and data")
    if not isinstance(version, int) or isinstance(version, bool):
        raise TypeError(f"version: a whole number is needed, not {version!r}")
    if kind == "data":
        return Schema(data_struct(str(api), version))
    key = api if isinstance(api, int) else apis.api_key(api)
    return Schema(message_struct(key, version, kind))
