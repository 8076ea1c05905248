"""Do these bytes begin a Kafka request? The judgement that everything that is not certain rests on.

Kafka has no magic number. But a request says a lot of itself: a size, one of about a hundred API keys
out of 65,536, a version that this API has, a client id whose length fits and whose bytes are text, and
a body that its schema must use up to the last byte. A body that fits to the last byte is proof; a
header that fits is evidence, and counts only where no more can be had.
"""

from __future__ import annotations

from enum import IntEnum

from kdissect.message import API_VERSIONS, Request, parse_request
from kdissect.model import DecodeError, Direction, Frame
from kdissect.protocol import apis

HEADER_BYTES = 14
"""Size, API key, version, correlation id and the length of the client id."""

LONGEST_CLIENT_ID = 32_767

FUTURE_API_VERSIONS = 16
"""A client newer than the definitions opens with a version of ApiVersions that they do not have."""


class Evidence(IntEnum):
    """How sure it is that a request begins at a position."""

    NONE = 0
    """It does not."""
    MORE = 1
    """Too few bytes to tell."""
    HEADER = 2
    """The header fits, with a client id that is text; the body is not all there."""
    LOOSE = 3
    """The header fits as above; the body is read to its end, and bytes are left (librdkafka's
    ApiVersions v0 ends with four), or its version is not known."""
    EXACT = 4
    """Header and body fit to the last byte."""


def examine_request(data: bytes, position: int, frame_limit: int) -> tuple[Evidence, int]:
    """Whether a request begins at ``position``, and where the frame that begins there would end."""
    left = len(data) - position
    if left < 4:
        return Evidence.MORE, 0
    size = int.from_bytes(data[position : position + 4], "big", signed=True)
    end = position + 4 + size
    if not 8 <= size <= frame_limit:
        return Evidence.NONE, end
    if left < 8:
        return Evidence.MORE, end
    key = int.from_bytes(data[position + 4 : position + 6], "big", signed=True)
    version = int.from_bytes(data[position + 6 : position + 8], "big", signed=True)
    if key not in apis.api_keys():
        return Evidence.NONE, end
    known = version in apis.versions(key)
    if not known and not (key == API_VERSIONS and 0 <= version < FUTURE_API_VERSIONS):
        return Evidence.NONE, end
    if left < min(HEADER_BYTES, size + 4):
        return Evidence.MORE, end
    if left >= size + 4:
        return _examine_whole(data[position + 4 : end]), end
    return _examine_header(data, position, size), end


def _examine_header(data: bytes, position: int, size: int) -> Evidence:
    length = int.from_bytes(data[position + 12 : position + 14], "big", signed=True)
    if length < -1 or 10 + length > size:
        return Evidence.NONE
    client_id = data[position + 14 : position + 14 + max(0, length)]
    if not _is_text(client_id):
        return Evidence.NONE
    if len(client_id) < length:
        return Evidence.MORE
    return Evidence.HEADER if client_id else Evidence.MORE


def _examine_whole(payload: bytes) -> Evidence:
    try:
        request = parse_request(bare_frame(payload))
    except DecodeError:
        return Evidence.NONE
    if not _is_text((request.client_id or "").encode("utf-8", "surrogateescape")):
        return Evidence.NONE
    body = request.decoded()
    if body.opaque is not None:
        return Evidence.LOOSE if request.client_id else Evidence.NONE
    if not body.faults and not body.remainder:
        return Evidence.EXACT
    only_left_over = all(f.kind == "remainder" for f in body.faults)
    return Evidence.LOOSE if only_left_over and request.client_id else Evidence.NONE


def body_fits(request: Request) -> bool:
    """Whether a request's body is used up by its schema to the last byte."""
    body = request.decoded()
    return body.opaque is None and not body.faults and not body.remainder


def bare_frame(payload: bytes) -> Frame:
    """A frame of which only the payload matters."""
    return Frame(Direction.TO_BROKER, 0, payload, len(payload), 0, 0, 0, 0, ())


def _is_text(data: bytes) -> bool:
    """UTF-8 without control characters; the end may be cut inside a character."""
    text = data.decode("utf-8", "ignore")
    return len(text.encode()) >= len(data) - 3 and text.isprintable()
