"""Whether bytes are a Kafka request. Every uncertain decision is based on this judgement.

Kafka has no magic number. But a request has many recognisable parts. It has a size, one of about a hundred
API keys out of 65,536, and a version that this API has. It has a client id whose length fits and whose bytes
are text. Its schema must use the body up to the last byte. A body that fits to the last byte is proof. A
header that fits is evidence, and counts only if nothing better can be had.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple

from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Request, bare_frame, parse_request, parse_response
from kdissect.model import DecodeError
from kdissect.protocol import apis
from kdissect.protocol.layout import layout
from kdissect.protocol.survey import survey_at
from kdissect.record.sets import frame_defect

HEADER_BYTES = 14
"""Size, API key, version, correlation id and the length of the client id."""

LONGEST_CLIENT_ID = 32_767
"""The longest client id in bytes; its length is an int16."""

FUTURE_VERSIONS = 16
"""The largest distance of a newer client's or broker's version from the newest version of the definitions."""

MOST_VERSIONS = 64
"""The largest number of versions of an API without definitions; no API of Kafka has had half as many."""

DISTINCTIVE_RESPONSES = (
    *(apis.API_VERSIONS, apis.METADATA, apis.FETCH, apis.PRODUCE),
    *(apis.LIST_OFFSETS, apis.OFFSET_COMMIT, apis.OFFSET_FETCH),
)
"""APIs whose responses are frequent and contain names. (FindCoordinator and JoinGroup v0 fit requests of
ZooKeeper.)"""

FIRST_TRANSACTIONAL_PRODUCE = 3
"""The first version with a transactional id before the other fields (KIP-98)."""

LEAST_TOPIC_BYTES = 3
"""The fewest bytes of a topic of a Produce request, with a name or id and an array."""

SHORTEST_TEXT = 3
FEWEST_APIS = 10
"""The fewest APIs of a broker with ApiVersions; the oldest one has twenty."""


class Evidence(IntEnum):
    """The degree of certainty that a request begins at a position."""

    NONE = 0
    """No request begins there."""
    STRANGE = 1
    """The header fits, with a client id that is text, but the definitions lack its API or version. The frame
    is complete. Alone it proves nothing; the frames after it may."""
    BROKEN = 2
    """The header fits, with a client id that is text. The frame is complete, but its body does not fit its
    API. That is as much evidence for Kafka as against it."""
    MORE = 3
    """Too few bytes to decide."""
    HEADER = 4
    """The header fits, with a client id that is text; the body is incomplete."""
    LOOSE = 5
    """The header fits as above. The body is read to its end, and bytes are left, or it is read up to a limit,
    or its version is unknown."""
    EXACT = 6
    """Header and body fit to the last byte. So do they if only the tail of a known program follows, and the
    client id is text (:mod:`kdissect.protocol.quirks`)."""


_NONE, _STRANGE, _BROKEN, _MORE = Evidence.NONE, Evidence.STRANGE, Evidence.BROKEN, Evidence.MORE
_HEADER, _LOOSE, _EXACT = Evidence.HEADER, Evidence.LOOSE, Evidence.EXACT
"""Reading a member of an enumeration takes longer than examining a position."""

NO_HEAD, STRANGE_API, STRANGE_VERSION, KNOWN = 0, 1, 2, 3
"""What the definitions say of an API and a version: there is none such; a vendor may have the API; a newer
release may have the version; they have both."""
_NO_HEAD, _STRANGE_API, _STRANGE_VERSION, _KNOWN = NO_HEAD, STRANGE_API, STRANGE_VERSION, KNOWN
_MOST_KNOWN = 4_096
_standings: dict[int, int] = {}
"""That, by both numbers: heads are looked at by the thousand."""

_MOST_JUDGED = 256
_LONGEST_JUDGED = 1_024
_judged: tuple[Limits | None, dict[bytes, Evidence]] = (None, {})
"""Limits, and what whole ApiVersions requests are within them: of so many, up to so many bytes each. The next
connection of a client begins with the same bytes nearly always. No other request is kept: it may have a
secret. One value, so that no thread sees a mix of two."""


def examine_request(
    data: bytes | bytearray, position: int, limits: Limits = DEFAULTS
) -> tuple[Evidence, int]:
    """Whether a request begins at ``position``, and the end of the frame that would begin there."""
    left = len(data) - position
    if left < 4:
        return _MORE, 0
    raw = data
    size = _number(raw, position, 4)
    end = position + 4 + size
    if size < 8 or size > limits.frame_bytes:
        return _NONE, end
    if left < 8:
        return _MORE, end
    key, version = _number(raw, position + 4, 2), _number(raw, position + 6, 2)
    if key < 0 or version < 0:
        return _NONE, end
    standing = _standing(key, version)
    if standing == _NO_HEAD:
        return _NONE, end
    is_known = standing == _KNOWN
    if left < min(HEADER_BYTES, size + 4):
        return _MORE, end
    whole = _NONE
    if left >= size + 4 and (is_known or key == apis.API_VERSIONS):
        whole = _judge_whole(key, bytes(data[position + 4 : end]), limits)
        if whole is _EXACT:
            return whole, end  # as nearly all: the header need not be examined alone
    header = _examine_header(data, position, size)
    if not is_known and key != apis.API_VERSIONS:
        # A newer client opens with an unknown version of ApiVersions, which is examined further.
        if left < size + 4:
            return min(header, _MORE), end
        return (_STRANGE if header is _HEADER else _NONE), end
    if header is _HEADER and key == apis.PRODUCE and not _may_be_produce(data, position, size, version):
        header = _NONE
    if left < size + 4:
        return header, end
    if whole is _LOOSE and header is _NONE:
        whole = header
    is_broken = whole is _NONE and header is _HEADER
    return _BROKEN if is_broken else whole, end


def begins_ordinary_request(data: bytes, start: int, stop: int, limits: Limits = DEFAULTS) -> bool:
    """Whether the bytes of ``data`` from ``start`` to ``stop`` begin with an ordinary request that fits to
    its last byte. It has a client id in ASCII, and no tagged fields in its header. :func:`examine_request`
    examines the others. No preamble of a proxy begins like this."""
    raw, left = data, stop - start - 4
    if left < HEADER_BYTES - 4 or raw[start] or raw[start + 4] or raw[start + 6]:
        return False
    size = raw[start + 1] << 16 | raw[start + 2] << 8 | raw[start + 3]
    length = raw[start + 12] << 8 | raw[start + 13]
    name, end = start + HEADER_BYTES, start + 4 + size
    body = name + length
    if size > left or size > limits.frame_bytes or not 0 < length <= LONGEST_CLIENT_ID or body > end:
        return False
    key, version = raw[start + 5], raw[start + 7]
    known = layout(key, version, "request")
    if known.header_version == 2:
        if body >= end or raw[body]:
            return False
        body += 1
    elif known.header_version != 1:
        return False
    if known.way is None or not data[name : name + length].isascii():
        return False
    seen = survey_at(known.way, data, body, end, limits) if known.is_known else None
    return seen is not None and (not seen.has_tail or _is_plain(raw, name, name + length))


def number_at(data: bytes | bytearray, at: int, count: int) -> int:
    """The signed number of ``count`` bytes at ``at``."""
    value = data[at]
    if value > 0x7F:
        value -= 0x100
    for place in range(at + 1, at + count):
        following = data[place]
        value = value * 0x100 + following
    return value


def _number(raw: bytes | bytearray, at: int, count: int) -> int:
    """:func:`number_at` of bytes that are known to be there: compiled, nobody checks it."""
    value, place = raw[at], at + 1
    if value > 0x7F:
        value -= 0x100
    while place < at + count:
        following = raw[place]
        value = value * 0x100 + following
        place += 1
    return value


def _standing(key: int, version: int) -> int:
    """What the definitions say of an API and a version, which are not negative: :data:`KNOWN` and so on."""
    both = key * 0x10000 + version
    found = _standings.get(both)
    if found is None:
        if len(_standings) >= _MOST_KNOWN:
            _standings.clear()
        found = _standings[both] = _find_standing(key, version)
    return found


def _find_standing(key: int, version: int) -> int:
    is_api = apis.is_api(key)
    if is_api and version in apis.versions(key):
        return _KNOWN
    if not _may_be_newer(key, version):
        return _NO_HEAD
    return _STRANGE_VERSION if is_api else _STRANGE_API


def _may_be_newer(key: int, version: int) -> bool:
    """Whether an API and version without definitions may exist: newer ones, or a vendor's."""
    if apis.is_api(key):
        newest = apis.versions(key).stop - 1
        return newest < version <= newest + FUTURE_VERSIONS
    return key >= 0 and 0 <= version < MOST_VERSIONS


class RequestHead(NamedTuple):
    """The fields of a request's header, whatever follows it."""

    size: int
    """The size of the frame, without its size prefix."""
    is_api: bool
    """Whether the definitions have the API."""
    correlation_id: int
    client_id: bytes
    """Text, and not empty."""


def read_head(data: bytes | bytearray, position: int, limits: Limits = DEFAULTS) -> RequestHead | None:
    """The header of a request with a client id, if a complete one begins here. Its API and version are known,
    or may be a newer release's or a vendor's."""
    standing = look_at_head(data, position, limits)
    if standing == _NO_HEAD:
        return None
    start = position + HEADER_BYTES
    length = number_at(data, position + 12, 2)
    correlation_id = number_at(data, position + 8, 4)
    client_id = bytes(data[start : start + length])
    return RequestHead(number_at(data, position, 4), standing != _STRANGE_API, correlation_id, client_id)


def look_at_head(data: bytes | bytearray, position: int, limits: Limits) -> int:
    """What the definitions say of the request whose header :func:`read_head` reads; :data:`NO_HEAD` where it
    reads none."""
    if len(data) - position < HEADER_BYTES:
        return _NO_HEAD
    raw = data
    size = _number(raw, position, 4)
    if size < HEADER_BYTES - 4 or size > limits.frame_bytes:
        return _NO_HEAD
    key, version = _number(raw, position + 4, 2), _number(raw, position + 6, 2)
    # No API has a negative number, and no release a negative version.
    if key < 0 or version < 0:
        return _NO_HEAD
    standing = _standing(key, version)
    if standing != _NO_HEAD and _examine_header(data, position, size) is not _HEADER:
        return _NO_HEAD
    return standing


def defect_of(payload: bytes, limits: Limits = DEFAULTS) -> tuple[str, int]:
    """The defect of a frame that is :attr:`Evidence.BROKEN` or :attr:`Evidence.STRANGE`, with its API and
    client, and its offset."""
    key, version = (int.from_bytes(payload[at : at + 2], "big") for at in (0, 2))
    client_id = payload[10 : 10 + int.from_bytes(payload[8:10], "big")].decode("utf-8")
    try:
        first = parse_request(bare_frame(payload), limits).faults[0]
        reason, offset = first.message, first.offset or 0
    except DecodeError as error:
        reason, offset = error.reason, error.offset
    return f"{apis.api_name(key)} v{version} of the client {client_id!r}: {reason}", offset


def _examine_header(data: bytes | bytearray, position: int, size: int) -> Evidence:
    have = len(data) - position
    if have < HEADER_BYTES:
        length = int.from_bytes(data[position + 12 : position + 14], "big", signed=True)
    else:
        raw = data
        length = _number(raw, position + 12, 2)
        if 0 < length <= size - 10 and length <= have - HEADER_BYTES:
            start = position + HEADER_BYTES
            if _is_plain(raw, start, start + length):
                return _HEADER  # as nearly all are
    if length < -1 or 10 + length > size:
        return _NONE
    client_id = bytes(data[position + 14 : position + 14 + max(0, length)])
    is_cut = len(client_id) < length
    if not _is_text(client_id, is_cut):
        return _NONE
    if is_cut:
        return _MORE
    return _HEADER if client_id else _MORE


def _is_plain(raw: bytes | bytearray, at: int, stop: int) -> bool:
    """Whether bytes that are known to be there are printable ASCII."""
    while at < stop:
        if raw[at] < 0x20 or raw[at] > 0x7E:
            return False
        at += 1
    return True


def _may_be_produce(data: bytes | bytearray, position: int, size: int, version: int) -> bool:
    """Whether the captured bytes after a Produce request's header can belong to one. An early response with a
    topic's name looks like its header: the correlation id like key 0 and a version, the name like a client
    id."""
    at = (
        position
        + HEADER_BYTES
        + max(0, int.from_bytes(data[position + 12 : position + 14], "big", signed=True))
    )
    is_flexible = apis.flexible(apis.PRODUCE, version, "request")
    if is_flexible:
        at += 1  # no tagged fields in the header
    if version >= FIRST_TRANSACTIONAL_PRODUCE:
        if is_flexible:
            length, at = _compact_length(data, at)
        else:
            length = int.from_bytes(data[at : at + 2], "big", signed=True)
            at += 2
        at += max(0, length)
    fields = data[at : at + 10]
    if len(fields) < 10:
        return True
    acks, timeout = (
        int.from_bytes(fields[:2], "big", signed=True),
        int.from_bytes(fields[2:6], "big", signed=True),
    )
    topics = fields[6] - 1 if is_flexible else int.from_bytes(fields[6:10], "big", signed=True)
    return (
        acks in (-1, 0, 1) and timeout >= 0 and 0 < topics <= (position + size + 4 - at) // LEAST_TOPIC_BYTES
    )


def _compact_length(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """The length of a compact string, and the string's position. A length of three bytes is longer than any
    allowed string, and a cut one has no length."""
    first, second = (*data[at : at + 2], 0, 0)[:2]
    if first < 0x80:
        return first - 1, at + 1
    return (first & 0x7F | (second & 0x7F) << 7) - 1, at + 2


def _judge_whole(key: int, payload: bytes, limits: Limits) -> Evidence:
    """What a whole frame is, without its size; ``key`` is its API's."""
    global _judged  # noqa: PLW0603 - other limits replace it
    if key != apis.API_VERSIONS or len(payload) > _LONGEST_JUDGED:
        return _examine_whole(payload, limits)
    known = _judged
    if known[0] is not limits:
        known = _judged = limits, {}
    kept = known[1]
    found = kept.get(payload)
    if found is None:
        found = _examine_whole(payload, limits)
        if found is not _NONE:  # else it is perhaps no ApiVersions request, and its bytes are not kept
            if len(kept) >= _MOST_JUDGED:
                kept.clear()
            kept[payload] = found
    return found


def _examine_whole(payload: bytes, limits: Limits) -> Evidence:
    try:
        request = parse_request(bare_frame(payload), limits)
    except DecodeError:
        return _NONE
    seen = request.survey()
    client_id = (request.client_id or "").encode("utf-8", "surrogateescape")
    if seen is not None and seen.has_tail:
        return _EXACT if _is_name(client_id) else _NONE
    body = request.decoded() if seen is None else None
    if body is not None and body.opaque is not None:
        return _LOOSE if _is_name(client_id) else _NONE
    if body is None or body.is_exact:
        # A client id need not be printable (its author may be malicious), but it must be UTF-8.
        distinct = _is_utf8(client_id) if client_id else _is_distinct(request)
        return _EXACT if distinct else _NONE
    fits_so_far = all(f.kind in ("remainder", "too-many-elements") for f in body.faults)
    return _LOOSE if fits_so_far and _is_name(client_id) else _NONE


def _is_name(client_id: bytes) -> bool:
    """Whether a client id is text and not empty."""
    return bool(client_id) and _is_text(client_id)


def _is_distinct(request: Request) -> bool:
    """Whether a request without a client id differs from other protocols. Protocols with an int32 size and
    small numbers after it (ZooKeeper's) look like a Produce request, whose key is 0, except for records."""
    if request.api_key != apis.PRODUCE:
        return True
    topics = request.body().get("topicData") or ()
    sets = [partition["records"] for topic in topics for partition in topic["partitionData"]]
    return any(data and frame_defect(data, 0) is None for data in sets)


def is_distinctive_response(payload: bytes, limits: Limits = DEFAULTS) -> bool:
    """Whether a frame with an unknown request is surely a response. Then one of the frequent responses fits
    it to the last byte, and contains text. Sizes and ascending numbers alone are no proof, because other
    protocols have them too."""
    for api_key in DISTINCTIVE_RESPONSES:
        for version in apis.versions(api_key):
            try:
                response = parse_response(bare_frame(payload), api_key, version, limits)
            except DecodeError:
                continue
            body = response.decoded()
            if body.is_exact:
                texts = list(_texts(body.values))
                if any(len(text) >= SHORTEST_TEXT for text in texts) and all(map(str.isprintable, texts)):
                    return True
                if api_key == apis.API_VERSIONS and len(body.values["apiKeys"]) >= FEWEST_APIS:
                    return True
    return False


def _texts(value: Any) -> Iterator[str]:
    """All texts in decoded values except uuids, because any 16 bytes are a uuid."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        named = value.items() if isinstance(value, dict) else ((None, item) for item in value)
        for name, item in named:
            if name not in ("topicId", "clusterId"):
                yield from _texts(item)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _is_text(data: bytes, is_cut: bool = False) -> bool:
    """Whether bytes are UTF-8 without control characters; with ``is_cut``, they may end inside a
    character."""
    text = data.decode("utf-8", "ignore")
    return len(text.encode()) >= len(data) - (3 if is_cut else 0) and text.isprintable()
