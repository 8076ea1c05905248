"""A Kafka request or response: a frame, its header, and a body that is decoded when asked for.

Bodies are decoded lazily and kept, so that listing a million messages costs their headers only. What
comes of decoding is a :class:`Body`: the values as far as they could be read, what is wrong with the
bytes, and the bytes that no field accounts for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any, NamedTuple

from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import DecodeError, Fault, Frame, Node
from kdissect.protocol import apis
from kdissect.protocol.annotate import annotate
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.decode import decode, read_tag_count
from kdissect.protocol.schema import Struct, data_struct, era_structs, message_struct
from kdissect.protocol.select import Picked, Selection, pick, selection
from kdissect.record.records import Record
from kdissect.record.sets import read_record_set

API_VERSIONS = 18

CUT_KINDS = ("truncated", "too-many-elements")
"""What a frame that was not captured whole looks like to its schema."""

SASL_TOKEN = "SaslToken"
"""What kdissect calls a frame that holds a SASL token without a Kafka header."""


class Body(NamedTuple):
    """What became of a message's bytes after the header."""

    struct: Struct | None
    """The schema it was read with; None where there is none (``opaque`` says why)."""
    values: dict[str, Any]
    start: int
    """Where the body begins in the frame's payload."""
    remainder: bytes
    """Bytes that no field accounts for."""
    opaque: str | None
    """Why nothing was decoded."""
    faults: tuple[Fault, ...]
    era: bool = False
    """Whether an older release's layout of the same version was the one that fits."""


class Message:
    """What requests and responses share."""

    __slots__ = (
        "_body",
        "api_key",
        "api_version",
        "body_start",
        "correlation_id",
        "frame",
        "header_faults",
        "header_version",
    )
    kind: str

    def __init__(
        self,
        frame: Frame,
        api_key: int | None,
        api_version: int | None,
        correlation_id: int | None,
        header_version: int,
        body_start: int,
    ) -> None:
        self.frame = frame
        self.api_key = api_key
        """None for a SASL token, and for a response whose request is not known."""
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.header_version = header_version
        self.body_start = body_start
        self.header_faults: tuple[Fault, ...] = ()
        """What is wrong with the header's bytes, though it could be read."""
        self._body: Body | None = None

    @property
    def is_cut(self) -> bool:
        """Whether not all of its bytes were captured."""
        return self.frame.size > len(self.frame.payload)

    def header_struct(self) -> Struct | None:
        """The header's schema; None for a SASL token."""
        raise NotImplementedError

    def body_struct(self) -> Struct | None:
        """The body's schema; None where the definitions have none for this API and version."""
        if self.api_key is None or self.api_version is None:
            return None
        try:
            return message_struct(self.api_key, self.api_version, self.kind)
        except LookupError:
            return None

    def header(self) -> dict[str, Any]:
        """The header's fields, by Kafka's names."""
        struct = self.header_struct()
        values: dict[str, Any] = {}
        if struct is not None:
            with suppress(DecodeError):  # a header breaks off only where its frame is cut, and says so
                decode(struct, Cursor(self.frame.payload), values)
        return values

    def decoded(self) -> Body:
        """The body, decoded once."""
        if self._body is None:
            self._body = self._decode()
        return self._body

    def body(self) -> dict[str, Any]:
        """The body's fields, by Kafka's names, as far as they could be decoded."""
        return self.decoded().values

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong with its bytes, those of the records apart."""
        return self.header_faults + self.decoded().faults

    def record_fields(self) -> Iterator[Picked]:
        """Every record set in the body, undecoded, with its field's name and the structs it stands in."""
        body = self.decoded()
        if body.struct is not None:
            for found in pick(_record_fields(body.struct), body.values):
                if not is_slice(found[0], found[2][-1]):
                    yield found

    def records(self, limits: Limits = DEFAULTS) -> Iterator[Record]:
        """The records of every record set in the body, unpacked one batch at a time."""
        for _, data, _ in self.record_fields():
            yield from read_record_set(data, limits).records()

    def record_faults(self, limits: Limits, may_end_early: bool) -> Iterator[Fault]:
        """What is wrong with the records, which are unpacked to find out.

        :param may_end_early: whether it is ordinary that a record set ends inside a batch.
        """
        for _, data, _ in self.record_fields():
            found = read_record_set(data, limits)
            for batch in found.batches:
                batch.records()
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
            cursor = Cursor(payload, position)
            try:
                annotate(struct, cursor, node)
                position = cursor.position
            except DecodeError as error:
                position = node.end = cursor.position
                node.fault = fault(error.kind, error.reason, self.frame.last_packet, error.offset)
                break
        if position < len(payload):
            why = body.opaque or "_remainder"
            root.children.append(Node(why, "bytes", payload[position:], position, len(payload)))
        return root

    def _candidates(self, struct: Struct) -> tuple[Struct, ...]:
        """Schemas that the body may have, the likeliest first."""
        assert self.api_key is not None
        assert self.api_version is not None
        return (struct, *era_structs(self.api_key, self.api_version, self.kind))

    def _decode(self) -> Body:
        payload, start = self.frame.payload, self.body_start
        struct = self.body_struct()
        if struct is None:
            return Body(None, {}, start, payload[start:], self._why_opaque(), self._opaque_faults())
        first: Body | None = None
        for candidate in self._candidates(struct):
            body = self._try(candidate)
            if first is None:
                first = body
            if not body.faults and not body.remainder:
                return body._replace(era=body is not first and candidate.version == struct.version)
        assert first is not None
        return first

    def _try(self, struct: Struct) -> Body:
        payload, start = self.frame.payload, self.body_start
        packet = self.frame.last_packet
        cursor = Cursor(payload, start)
        values: dict[str, Any] = {}
        faults: list[Fault] = []
        try:
            decode(struct, cursor, values)
        except DecodeError as error:
            end = cursor.position  # where the field begins that could not be read
            if not (self.is_cut and error.kind in CUT_KINDS):  # the cut frame has its own fault
                faults.append(fault(error.kind, error.reason, packet, error.offset))
        else:
            end = cursor.position
            if end < len(payload):
                message = f"{len(payload) - end} bytes are left after the last field"
                faults.append(fault("remainder", message, packet, end))
        faults += [fault(kind, message, packet, offset) for kind, message, offset in cursor.notes]
        return Body(struct, values, start, payload[end:], None, tuple(faults))

    def _why_opaque(self) -> str:
        if self.api_key is None:
            return "the request was not captured"
        name = apis.api_name(self.api_key)
        if self.api_key not in apis.api_keys():
            return f"unknown API key {self.api_key}"
        known = apis.versions(self.api_key)
        return f"unknown version {self.api_version} of {name} (known: {known.start} to {known.stop - 1})"

    def _opaque_faults(self) -> tuple[Fault, ...]:
        if self.api_key is None:
            return ()
        return (fault("unknown-api", self._why_opaque(), self.frame.last_packet, self.body_start),)


def is_slice(name: str, values: Mapping[str, Any]) -> bool:
    """Whether a records field holds a piece from the middle of a record set, which cannot be read alone:
    FetchSnapshot sends a snapshot by byte positions (Kafka's UnalignedRecords).

    :param values: the struct it stands in.
    """
    return name == "unalignedRecords" and values.get("position") != 0


@cache
def _record_fields(struct: Struct) -> Selection:
    return selection(struct, lambda each: each.type == "records")


class Request(Message):
    """A request, or a SASL token on its way to the broker."""

    __slots__ = ("client_id",)
    kind = "request"
    correlation_id: int

    def __init__(
        self,
        frame: Frame,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        header_version: int,
        body_start: int,
    ) -> None:
        super().__init__(frame, api_key, api_version, correlation_id, header_version, body_start)
        self.client_id = client_id

    def header_struct(self) -> Struct | None:
        return data_struct("RequestHeader", self.header_version)


class Response(Message):
    """A response; without its request only the correlation id is known of it."""

    __slots__ = ()
    kind = "response"

    def header_struct(self) -> Struct | None:
        return data_struct("ResponseHeader", self.header_version)

    def body_struct(self) -> Struct | None:
        return super().body_struct() or (self._version_0() if self._is_downgraded() else None)

    def _candidates(self, struct: Struct) -> tuple[Struct, ...]:
        return (self._version_0(), struct) if self._is_downgraded() else super()._candidates(struct)

    def _is_downgraded(self) -> bool:
        """A broker that does not know the version of ApiVersions answers in version 0, with error 35
        (KIP-511)."""
        start = self.body_start
        return self.api_key == API_VERSIONS and self.frame.payload[start : start + 2] == b"\0\x23"

    def _version_0(self) -> Struct:
        return message_struct(API_VERSIONS, 0, "response")


class Token(Message):
    """A SASL token between SaslHandshake v0 (or the start, for bare GSSAPI) and the first request."""

    __slots__ = ("client_id", "kind")

    def __init__(self, frame: Frame, kind: str) -> None:
        super().__init__(frame, None, None, None, 0, 0)
        self.kind = kind
        self.client_id: str | None = None

    def header_struct(self) -> Struct | None:
        return None

    def header(self) -> dict[str, Any]:
        return {}

    def annotate(self) -> Node:
        payload = self.frame.payload
        leaf = Node("authBytes", "bytes", payload, 0, len(payload))
        return Node(SASL_TOKEN, "message", None, 0, len(payload), [leaf])

    def _decode(self) -> Body:
        return Body(None, {"authBytes": self.frame.payload}, 0, b"", None, ())


@lru_cache(maxsize=4096)
def header_versions(api_key: int, api_version: int) -> tuple[int, int]:
    """Of the request and of the response. Of an unknown API only what all headers share is read."""
    if api_key not in apis.api_keys():
        return 1, 0
    request = apis.request_header_version(api_key, api_version)
    return request, apis.response_header_version(api_key, api_version)


def parse_request(frame: Frame) -> Request:
    """Read a frame's request header.

    :raises DecodeError: the bytes captured do not hold one.
    """
    payload = frame.payload
    cursor = Cursor(payload)
    api_key, api_version = cursor.read_int16(), cursor.read_int16()
    correlation_id = cursor.read_int32()
    header_version, _ = header_versions(api_key, api_version)
    client_id: str | None = None
    if header_version >= 1:
        length = cursor.read_int16()
        if length >= 0:
            client_id = cursor.read_text(length)
        elif length != -1:
            raise DecodeError(f"a client id of {length} bytes", cursor.position - 2, "negative-length")
    if header_version >= 2:
        before = cursor.position
        try:
            _pass_tags(cursor)
        except DecodeError:
            if api_version in apis.versions(api_key):
                raise
            # Of a version that is not known, neither is the header's: what all headers share stands.
            header_version, cursor.position = 1, before
    request = Request(frame, api_key, api_version, correlation_id, client_id, header_version, cursor.position)
    request.header_faults = tuple(
        fault(kind, message, frame.last_packet, offset) for kind, message, offset in cursor.notes
    )
    return request


def parse_response(frame: Frame, api_key: int | None, api_version: int | None) -> Response:
    """Read a frame's response header, whose form only its request tells.

    :raises DecodeError: the bytes captured do not hold one.
    """
    cursor = Cursor(frame.payload)
    correlation_id = cursor.read_int32()
    header_version = 0
    if api_key is not None and api_version is not None:
        _, header_version = header_versions(api_key, api_version)
        if header_version >= 1:
            _pass_tags(cursor)
    return Response(frame, api_key, api_version, correlation_id, header_version, cursor.position)


def _pass_tags(cursor: Cursor) -> None:
    for _ in range(read_tag_count(cursor)):
        cursor.read_unsigned_varint()
        cursor.take(cursor.read_unsigned_varint())
