"""The inner request and response of an Envelope (KIP-590): a whole message, its header first.

Brokers use it to forward clients' requests to the controller. The response's bytes do not contain the API
that they answer; the request does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kdissect.embedded.decoded import Context, Embedded, Render, opaque, plain, read_struct
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import DecodeError, Fault, Node
from kdissect.protocol import apis
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import decode
from kdissect.protocol.schema import data_struct, era_structs, message_struct


class EmbeddedMessage(NamedTuple):
    """A message inside a message."""

    api_key: int
    api_version: int
    header: Embedded
    body: Embedded
    """All bytes after the header; its struct is None if the API or version is unknown."""

    @property
    def name(self) -> str:
        """Kafka's name of the message class."""
        return self.body.name

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults, header first."""
        return self.header.faults + self.body.faults

    def json(self, render: Render = plain) -> dict[str, Any]:
        """``{"header": …, "body": …}``; an unknown API or version is ``opaque``, as in other messages."""
        out: dict[str, Any] = {"header": self.header.json(render)}
        if self.body.struct is not None:
            out["body"] = self.body.json(render)
        else:
            out["body"] = None
            out["opaque"] = self.body.faults[0].message if self.body.faults else "no body"
        return out

    def draw(self, buffer: bytes | None = None, at: int = 0) -> list[Node]:
        """The nodes of header and body."""
        whole = self.header.data + self.body.data if buffer is None else buffer
        middle = at + len(self.header.data)
        end = middle + len(self.body.data)
        header = Node("header", "header", None, at, middle, self.header.draw(whole, at))
        return [header, Node("body", self.name, None, middle, end, self.body.draw(whole, middle))]


def inner_request(data: bytes, limits: Limits = DEFAULTS) -> EmbeddedMessage:
    """The bytes of ``requestData``."""
    cursor = Cursor(data)
    try:
        key, version = cursor.read_int16(), cursor.read_int16()
    except DecodeError as error:
        header = opaque("RequestHeader", None, data, (), error.kind, error.reason)
        return EmbeddedMessage(-1, -1, header, Embedded("", None, b"", {}))
    # All versions of the header begin with the fields of version 0. For an unknown API, only they are
    # certain.
    known = apis.is_api(key)
    header_version = apis.request_header_version(key, version) if known else 0
    return _message(data, key, version, "RequestHeader", header_version, "request", limits)


def inner_response(data: bytes, request: bytes, limits: Limits = DEFAULTS) -> EmbeddedMessage | None:
    """The bytes of ``responseData``; None if the request does not contain the API.

    :param request: the bytes of ``requestData``.
    """
    cursor = Cursor(request)
    try:
        key, version = cursor.read_int16(), cursor.read_int16()
    except DecodeError:
        return None
    if not apis.is_api(key):
        return None
    header_version = apis.response_header_version(key, version)
    return _message(data, key, version, "ResponseHeader", header_version, "response", limits)


def _message(
    data: bytes, key: int, version: int, header_name: str, header_version: int, kind: str, limits: Limits
) -> EmbeddedMessage:
    cursor = Cursor(data, limits=limits)
    values: dict[str, Any] = {}
    struct = data_struct(header_name, header_version)
    name = apis.api_name(key) + kind.capitalize()
    try:
        decode(struct, cursor, values)
    except DecodeError:
        header = read_struct(header_name, header_version, Cursor(data, limits=limits), (), (struct,))
        return EmbeddedMessage(key, version, header, Embedded(name, version, b"", {}))
    split = cursor.position
    head = Cursor(data[:split], limits=limits)
    header = read_struct(header_name, header_version, head, (), (struct,))
    body = data[split:]
    context = Context(enveloped=True, limits=limits)
    try:
        structs = (message_struct(key, version, kind), *era_structs(key, version, kind))
    except LookupError:
        reason = "unknown API" if not apis.is_api(key) else f"unknown version {version}"
        found = opaque(name, version, body, (), "unknown-version", reason)
    else:
        found = read_struct(name, version, Cursor(body, limits=limits), (), structs)
    return EmbeddedMessage(key, version, header, found._replace(context=context))
