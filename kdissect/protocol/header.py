"""The first bytes of a message → its API and version, its sender, and the beginning of its body.

A request's header has its API and version. Only the request determines the form of a response's header. For
an unknown API, only the common part of all headers is read.
"""

from __future__ import annotations

from kdissect.model import DecodeError, Value
from kdissect.protocol import apis
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import read_tag_count
from kdissect.protocol.layout import Layout, layout
from kdissect.wording import plural


class RequestHeader(Value):
    """The fields of a request header."""

    __slots__ = ("api_key", "api_version", "correlation_id", "client_id", "version", "layout")  # noqa: RUF023

    def __init__(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        version: int,
        layout: Layout | None = None,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.version = version
        """The version of the header."""
        self.layout = layout
        """The definitions' layout of the request."""


class ResponseHeader(Value):
    """The fields of a response header."""

    __slots__ = ("correlation_id", "version")

    def __init__(self, correlation_id: int, version: int) -> None:
        self.correlation_id = correlation_id
        self.version = version
        """The version of the header."""


def read_request_header(cursor: Cursor) -> RequestHeader:
    """Read a request header; the cursor is then at the beginning of the body.

    :raises DecodeError: the bytes do not hold one.
    """
    cursor.position = cursor.take(8)  # read all of it or nothing
    api_key, api_version, correlation_id = cursor.read_int16(), cursor.read_int16(), cursor.read_int32()
    known = layout(api_key, api_version, "request")
    version = known.header_version
    client_id: str | None = None
    if version >= 1:
        length = cursor.read_int16()
        if length >= 0:
            client_id = cursor.read_text(length)
        elif length != -1:
            raise DecodeError(
                f"the client id announces {plural(length, 'byte')}", cursor.position - 2, "negative-length"
            )
    if version >= 2:
        before = cursor.position
        try:
            _pass_tags(cursor)
        except DecodeError:
            if api_version in apis.versions(api_key):
                raise
            # For an unknown version, the header's version is unknown too: keep only the common part of all
            # headers.
            version, cursor.position = 1, before
    # Set attribute by attribute: compiled, that is several times faster than one call with all values.
    head = RequestHeader.__new__(RequestHeader)
    head.api_key, head.api_version, head.correlation_id = api_key, api_version, correlation_id
    head.client_id, head.version, head.layout = client_id, version, known
    return head


def read_response_header(cursor: Cursor, known: Layout | None) -> ResponseHeader:
    """Read a response header; the cursor is then at the beginning of the body.

    :param known: the layout from the request; if None, only the correlation id is read.
    :raises DecodeError: the bytes do not hold one.
    """
    correlation_id = cursor.read_int32()
    version = 0
    if known is not None:
        version = known.header_version
        if version >= 1:
            _pass_tags(cursor)
    head = ResponseHeader.__new__(ResponseHeader)
    head.correlation_id, head.version = correlation_id, version
    return head


def read_correlation_id(payload: bytes) -> int:
    """Read the correlation id at the beginning of a response.

    :raises DecodeError: fewer than four bytes are there.
    """
    if len(payload) < 4:
        raise DecodeError("the correlation id is missing", 0, "truncated")
    raw = payload
    high = raw[0]
    if high > 0x7F:
        high -= 0x100
    return high * 0x100_0000 + (raw[1] << 16 | raw[2] << 8 | raw[3])


def _pass_tags(cursor: Cursor) -> None:
    for _ in range(read_tag_count(cursor)):
        cursor.read_unsigned_varint()
        cursor.take(cursor.read_unsigned_varint())
