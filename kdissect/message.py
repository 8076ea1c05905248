# cython: always_allow_keywords=True
"""A Kafka request or response: a frame, its header, and a body that is decoded on demand.

Bodies are decoded lazily and kept. If a message has no faults, the facts for listings are found without
decoding it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import DecodeError, Direction, Fault, Frame, Node
from kdissect.protocol import apis
from kdissect.protocol.annotate import annotate
from kdissect.protocol.body import Body, read_body
from kdissect.protocol.cursor import Cursor, cursor_at
from kdissect.protocol.decode import decode
from kdissect.protocol.header import read_correlation_id, read_request_header, read_response_header
from kdissect.protocol.layout import Layout, layout, record_fields
from kdissect.protocol.quirks import named
from kdissect.protocol.schema import REMAINDER, Struct, data_struct, message_struct
from kdissect.protocol.select import Picked, pick
from kdissect.protocol.survey import Survey, survey_at
from kdissect.protocol.vendors import vendor_of
from kdissect.record.records import Record
from kdissect.record.sets import read_record_set

_API_VERSIONS = apis.API_VERSIONS

SASL_TOKEN = "SaslToken"
"""kdissect's name for a frame with a SASL token without a Kafka header."""


_HEADERS = {"request": "RequestHeader", "response": "ResponseHeader"}
"""Kafka's message class of the header, by the kind of the message."""


class Message:
    """The common part of requests and responses. ``limits`` bound the decoding."""

    __slots__ = (
        "_body",
        "_is_surveyed",
        "_layout",
        "_survey",
        "api_key",
        "api_version",
        "body_start",
        "correlation_id",
        "frame",
        "header_faults",
        "header_version",
        "limits",
    )
    kind = ""
    """``request`` or ``response``."""

    def __init__(
        self,
        frame: Frame,
        api_key: int | None,
        api_version: int | None,
        correlation_id: int | None,
        header_version: int | None,
        body_start: int,
        limits: Limits = DEFAULTS,
    ) -> None:
        self.frame = frame
        self.api_key = api_key
        """None for a SASL token, and for a response whose request is unknown."""
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.header_version = header_version
        """None if the bytes begin with the body: a SASL token, or bytes that are no frame."""
        self.body_start = body_start
        self.limits = limits
        self.header_faults: tuple[Fault, ...] = ()
        """Faults of the header's bytes that did not prevent reading it."""
        self._body: Body | None = None
        self._layout: Layout | None = None
        self._survey: Survey | None = None
        self._is_surveyed = False

    @property
    def is_cut(self) -> bool:
        """Whether not all of its bytes were captured."""
        return self.frame.size > len(self.frame.payload)

    def header_struct(self) -> Struct | None:
        """The header's schema; None without a header."""
        if self.header_version is None:
            return None
        return data_struct(_HEADERS[self.kind], self.header_version)

    def layout(self) -> Layout | None:
        """The definitions' layout of its API and version; None if these are unknown."""
        if self._layout is None and self.api_key is not None and self.api_version is not None:
            self._layout = layout(self.api_key, self.api_version, self.kind)
        return self._layout

    def body_struct(self) -> Struct | None:
        """The body's schema; None if the definitions have none for this API and version."""
        known = self.layout()
        return None if known is None else known.struct

    def header(self) -> dict[str, Any]:
        """The header's fields, by Kafka's names."""
        struct = self.header_struct()
        values: dict[str, Any] = {}
        if struct is not None:
            with suppress(DecodeError):  # a header is incomplete only if its frame is cut, which is a fault
                decode(struct, self._cursor(0), values)
        return values

    def decoded(self) -> Body:
        """The body, decoded once."""
        if self._body is None:
            self._body = self._decode()
        return self._body

    def forget_body(self) -> None:
        """Drop the decoded body, and decode it again on demand: many small elements take a hundred times
        their bytes when decoded."""
        self._body = None
        self._survey = None
        self._is_surveyed = False

    def survey(self) -> Survey | None:
        """The facts of the body for listings, found without decoding it. None if it must be decoded: it has a
        fault, or several schemas may fit."""
        if not self._is_surveyed:
            self._is_surveyed = True
            known = self._likeliest_layout()
            payload = self.frame.payload
            if known is not None and known.way is not None and self.frame.size <= len(payload):
                self._survey = survey_at(known.way, payload, self.body_start, len(payload), self.limits)
        return self._survey

    def _likeliest_layout(self) -> Layout | None:
        """The layout of the first of its candidates."""
        return self.layout()

    def body(self) -> dict[str, Any]:
        """The body's decoded fields, by Kafka's names."""
        return self.decoded().values

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults of its bytes, except faults of records."""
        return self.header_faults + self.decoded().faults

    def record_fields(self) -> Iterator[Picked]:
        """Every record set in the body, undecoded, with its field's name and the structs around it."""
        if not self.may_have_records():
            return
        body = self.decoded()
        if body.struct is not None:
            for found in pick(record_fields(body.struct), body.values):
                if not is_slice(found[0], found[2][-1]):
                    yield found

    def may_have_records(self) -> bool:
        """Whether its schema, in any release, has a records field; nothing is decoded for that."""
        known = self.layout()
        return known is not None and known.has_records()

    def records(self) -> Iterator[Record]:
        """The records of every record set in the body, unpacked one batch at a time."""
        for _, data, _ in self.record_fields():
            yield from read_record_set(data, self.limits).records()

    def record_faults(self, may_end_early: bool, unpacks: bool = True) -> Iterator[Fault]:
        """The faults of the records.

        :param may_end_early: whether it is normal that a record set ends inside a batch.
        :param unpacks: whether compressed records are unpacked for that.
        """
        for _, data, _ in self.record_fields():
            found = read_record_set(data, self.limits)
            for batch in found.batches:
                if unpacks or not batch.is_packed:
                    batch.check()
            for each in found.faults:
                if not (may_end_early and each.kind == "partial-batch"):
                    yield each._replace(packet=self.frame.last_packet)

    def annotate(self) -> Node:
        """The whole frame as a tree whose leaves cover every byte of the payload once."""
        payload = self.frame.payload
        root = Node(self.kind, "message", None, 0, len(payload))
        header = self.header_struct()
        body = self.decoded()
        position = 0
        for name, struct in (("header", header), ("body", body.struct)):
            if struct is None:
                continue
            node = Node(name, struct.name, None, position, position)
            root.children.append(node)
            cursor = self._cursor(position)
            try:
                annotate(struct, cursor, node)
                position = cursor.position
            except DecodeError as error:
                position = node.end = cursor.position
                node.fault = fault(error.kind, error.reason, self.frame.last_packet, error.offset)
                break
        if position < len(payload):
            why = body.opaque or ("(known quirk)" if body.quirk else REMAINDER)
            root.children.append(Node(why, "bytes", payload[position:], position, len(payload)))
        return root

    def _cursor(self, position: int) -> Cursor:
        return Cursor(self.frame.payload, position, limits=self.limits)

    def _candidates(self, struct: Struct) -> tuple[Struct, ...]:
        """Schemas that the body may have, the likeliest first."""
        known = self.layout()
        assert known is not None
        return known.candidates

    def _decode(self) -> Body:
        payload, start = self.frame.payload, self.body_start
        struct = self.body_struct()
        if struct is None:
            why = self._why_opaque()
            return Body(None, {}, start, payload[start:], why, self._opaque_faults(why))
        packet, candidates = self.frame.last_packet, self._candidates(struct)
        body = read_body(self._cursor(start), candidates, struct.version, packet, self.is_cut)
        if body.is_exact and body.struct is struct:
            return body
        assert self.api_key is not None
        assert self.api_version is not None
        return named(body, self.api_key, self.api_version, self.kind)

    def _why_opaque(self) -> str:
        if self.api_key is None or self.api_version is None:
            return "the request is not known"
        return _why_unknown(self.api_key, self.api_version)

    def _opaque_faults(self, why: str) -> tuple[Fault, ...]:
        if self.api_key is None:
            return ()
        return (fault("unknown-api", why, self.frame.last_packet, self.body_start),)


@lru_cache(maxsize=256)
def _why_unknown(api_key: int, api_version: int) -> str:
    """Why the definitions have no schema for a version of an API."""
    if not apis.is_api(api_key):
        vendor = vendor_of(api_key)
        if vendor is None:
            return f"unknown API key {api_key}"
        how = f"kdissect schema import --vendor {vendor.lower()} JAR imports them"
        return f"unknown API key {api_key}, one of {vendor}'s own ({how})"
    name, known = apis.api_name(api_key), apis.versions(api_key)
    return f"unknown version {api_version} of {name} (known: {known.start} to {known.stop - 1})"


def is_slice(name: str, values: Mapping[str, Any]) -> bool:
    """Whether a records field holds a part from the middle of a record set, which cannot be read alone.
    FetchSnapshot sends a snapshot by byte positions (Kafka's UnalignedRecords).

    :param values: the struct around the field.
    """
    return name == "unalignedRecords" and values.get("position") != 0


class Request(Message):
    """A request, or a SASL token on its way to the broker."""

    __slots__ = ("client_id",)
    kind = "request"

    def __init__(
        self,
        frame: Frame,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        header_version: int | None,
        body_start: int,
        limits: Limits = DEFAULTS,
    ) -> None:
        Message.__init__(  # super() takes longer
            self, frame, api_key, api_version, correlation_id, header_version, body_start, limits
        )
        self.correlation_id: int = correlation_id
        self.client_id = client_id


class Response(Message):
    """A response; without its request, only its correlation id is known."""

    __slots__ = ()
    kind = "response"

    def body_struct(self) -> Struct | None:
        # super() does not work in a compiled method of this kind.
        return Message.body_struct(self) or (self._version_0() if self._is_downgraded() else None)

    def _candidates(self, struct: Struct) -> tuple[Struct, ...]:
        return (self._version_0(), struct) if self._is_downgraded() else Message._candidates(self, struct)

    def _likeliest_layout(self) -> Layout | None:
        return layout(_API_VERSIONS, 0, "response") if self._is_downgraded() else self.layout()

    def _is_downgraded(self) -> bool:
        """Whether a broker that does not know the version of ApiVersions answered in version 0, with error 35
        (KIP-511)."""
        start = self.body_start
        return self.api_key == _API_VERSIONS and self.frame.payload[start : start + 2] == b"\0\x23"

    def _version_0(self) -> Struct:
        return message_struct(apis.API_VERSIONS, 0, "response")


class Token(Message):
    """A SASL token between SaslHandshake v0 (or the start, for bare GSSAPI) and the first request."""

    __slots__ = ("client_id", "kind")

    def __init__(self, frame: Frame, kind: str) -> None:
        super().__init__(frame, None, None, None, None, 0)
        self.kind = kind
        self.client_id: str | None = None

    def annotate(self) -> Node:
        payload = self.frame.payload
        leaf = Node("authBytes", "bytes", payload, 0, len(payload))
        return Node(SASL_TOKEN, "message", None, 0, len(payload), [leaf])

    def _decode(self) -> Body:
        return Body(None, {"authBytes": self.frame.payload}, 0, b"", None, ())


def parse_request(frame: Frame, limits: Limits = DEFAULTS) -> Request:
    """Read a frame's request header.

    :param limits: for decoding the request, including its body.
    :raises DecodeError: the captured bytes do not hold a request header.
    """
    plain = _plain_request(frame, limits)
    if plain is not None:
        return plain
    cursor = cursor_at(frame.payload, 0, limits)
    head = read_request_header(cursor)
    # Set attribute by attribute: compiled, that is several times faster than one call with all values.
    request = Request.__new__(Request)
    begin(request, frame, limits, cursor.position)
    request.api_key, request.api_version = head.api_key, head.api_version
    request.correlation_id, request.client_id = head.correlation_id, head.client_id
    request.header_version, request._layout = head.version, head.layout
    if cursor.notes:
        request.header_faults = tuple(
            [fault(kind, message, frame.last_packet, offset) for kind, message, offset in cursor.notes]
        )
    return request


def parse_response(
    frame: Frame, api_key: int | None, api_version: int | None, limits: Limits = DEFAULTS
) -> Response:
    """Read a frame's response header. Only the request determines the header's form.

    :param api_key: the request's; None if unknown.
    :param limits: for decoding the response, including its body.
    :raises DecodeError: the captured bytes do not hold a response header.
    """
    known = None if api_key is None or api_version is None else layout(api_key, api_version, "response")
    response = Response.__new__(Response)
    payload = frame.payload
    if known is not None and known.header_version == 1 and len(payload) > 4 and payload[4] == 0:
        # The form of nearly all headers: a correlation id and no tagged fields.
        begin(response, frame, limits, 5)
        response.correlation_id, response.header_version = read_correlation_id(payload), 1
    else:
        cursor = cursor_at(payload, 0, limits)
        head = read_response_header(cursor, known)
        begin(response, frame, limits, cursor.position)
        response.correlation_id, response.header_version = head.correlation_id, head.version
    response.api_key, response.api_version = api_key, api_version
    response._layout = known
    return response


_FIXED_BYTES = 10
"""The first bytes of a request: API, version, correlation id, length of the client id."""


def _plain_request(frame: Frame, limits: Limits) -> Request | None:
    """The request, if its header has the form of nearly all: a client id in ASCII and no tagged fields."""
    payload = frame.payload
    raw, size = payload, len(payload)
    if size < _FIXED_BYTES:
        return None
    length = raw[8] << 8 | raw[9]
    end = _FIXED_BYTES + length
    if raw[0] > 0x7F or raw[2] > 0x7F or raw[8] > 0x7F or end >= size:
        return None
    for at in range(_FIXED_BYTES, end):
        if raw[at] > 0x7F:
            return None
    api_key, api_version = raw[0] << 8 | raw[1], raw[2] << 8 | raw[3]
    known = layout(api_key, api_version, "request")
    version = known.header_version
    if version == 2:
        if raw[end] != 0:
            return None
        end += 1
    elif version != 1:
        return None
    high = raw[4]  # a separate number: compiled, shifting a byte would lose bits
    correlation_id = high << 24 | raw[5] << 16 | raw[6] << 8 | raw[7]
    request = Request.__new__(Request)
    begin(request, frame, limits, end)
    request.api_key, request.api_version = api_key, api_version
    request.correlation_id = correlation_id - 0x1_0000_0000 if high > 0x7F else correlation_id
    request.client_id = raw[_FIXED_BYTES : _FIXED_BYTES + length].decode("ascii")
    request.header_version, request._layout = version, known
    return request


def begin(message: Message, frame: Frame, limits: Limits, body_start: int) -> None:
    """Set the attributes that all messages have at first, as ``__init__`` does."""
    message.frame, message.limits, message.body_start = frame, limits, body_start
    message.header_faults = ()
    message._body = message._layout = message._survey = None
    message._is_surveyed = False


def bare_frame(payload: bytes) -> Frame:
    """A frame with a payload only; its other fields have no meaning."""
    return Frame(Direction.TO_BROKER, 0, payload, len(payload), 0, 0, 0, 0, ())
