"""The first bytes of a message → which API and version it is, who sent it, and where its body begins.

A request says itself what it is; the form of a response's header is told by its request alone. Of an
API that is not known only what all headers share is read.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from kdissect.model import DecodeError
from kdissect.protocol import apis
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import read_tag_count
from kdissect.wording import plural


class RequestHeader(NamedTuple):
    """What a request says of itself."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    version: int
    """Of the header."""


class ResponseHeader(NamedTuple):
    """What a response says of itself."""

    correlation_id: int
    version: int
    """Of the header."""


new_tuple = tuple.__new__

_common = Struct(">hhi").unpack_from
"""What all request headers begin with: API key, version, correlation id."""


@lru_cache(maxsize=4096)
def _versions(api_key: int, api_version: int) -> tuple[int, int]:
    """Header versions of the request and of the response."""
    if api_key not in apis.api_keys():
        return 1, 0
    request = apis.request_header_version(api_key, api_version)
    return request, apis.response_header_version(api_key, api_version)


def read_request_header(cursor: Cursor) -> RequestHeader:
    """Read a request header; the cursor then stands where the body begins.

    :raises DecodeError: the bytes do not hold one.
    """
    api_key, api_version, correlation_id = _common(cursor.data, cursor.take(8))
    version, _ = _versions(api_key, api_version)
    client_id: str | None = None
    if version >= 1:
        length = cursor.read_int16()
        if length >= 0:
            client_id = cursor.read_text(length)
        elif length != -1:
            raise DecodeError(
                f"a client id of {plural(length, 'byte')}", cursor.position - 2, "negative-length"
            )
    if version >= 2:
        before = cursor.position
        try:
            _pass_tags(cursor)
        except DecodeError:
            if api_version in apis.versions(api_key):
                raise
            # Of a version that is not known, neither is the header's: what all headers share stands.
            version, cursor.position = 1, before
    return new_tuple(RequestHeader, (api_key, api_version, correlation_id, client_id, version))


def read_response_header(cursor: Cursor, api_key: int | None, api_version: int | None) -> ResponseHeader:
    """Read a response header; the cursor then stands where the body begins.

    :param api_key: of the request; None where it is not known, and then only the correlation id is read.
    :raises DecodeError: the bytes do not hold one.
    """
    correlation_id = cursor.read_int32()
    version = 0
    if api_key is not None and api_version is not None:
        _, version = _versions(api_key, api_version)
        if version >= 1:
            _pass_tags(cursor)
    return ResponseHeader(correlation_id, version)


def _pass_tags(cursor: Cursor) -> None:
    for _ in range(read_tag_count(cursor)):
        cursor.read_unsigned_varint()
        cursor.take(cursor.read_unsigned_varint())
