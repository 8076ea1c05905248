"""Frames of both directions of one connection → exchanges: which response answers which request.

Rules

1. Whatever must be remembered from one frame to the next lives here.
2. A response is read with its request's API and version. Without its request it is opaque.
3. Brokers answer a connection's requests in order (the channel is muted per request). The correlation
   id decides; among equals, the oldest request. The order is only checked: a breach is a Fault, unless
   bytes of the responses were lost, which explains it.
4. A Produce request with acks=0 has no response. To find acks, the body is decoded: from version 3 on
   a transactional id stands before it.
5. ApiVersions responses have header version 0, and where the broker does not know the version it
   answers in body version 0 with error 35 (message.py does both).
6. After SaslHandshake v0, and at the start where a client opens with bare GSSAPI, frames are tokens
   without a Kafka header, until the client sends a request that fits to the last byte. A broker's
   frame then answers the oldest token that waits, unless an older request waits.
7. What is learnt here for display (client id, software, SASL) is never needed to decode.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from kdissect.exchange import Exchange
from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import API_VERSIONS, Request, Token, parse_request, parse_response
from kdissect.model import DecodeError, Direction, Endpoint, Fault, Frame
from kdissect.session.evidence import HEADER_BYTES, Evidence, bare_frame, body_fits, examine_request
from kdissect.session.recognise import GSSAPI_TOKEN
from kdissect.session.sasl import principal

PRODUCE, SASL_HANDSHAKE, SASL_AUTHENTICATE = 0, 17, 36

SEARCH_EFFORT = 1 << 20
"""Bytes that are decoded at guessed positions before the next frame is found; then only starts of segments
are looked at."""

UNSEEN_REQUESTS = 1_024
"""How far below the first captured correlation id those of requests sent before the capture may lie."""


class Recognised(NamedTuple):
    """An exchange has begun: its request, or else its response, was recognised."""

    exchange: Exchange


class Completed(NamedTuple):
    """Nothing more will come of an exchange."""

    exchange: Exchange


Event = Recognised | Completed | Fault


class _Waiting(NamedTuple):
    exchange: Exchange
    gaps: int
    """Gaps among the responses when the request came."""


class Session:
    """The machine of one Kafka connection. ``client`` and ``broker`` are its endpoints."""

    def __init__(
        self,
        connection: int,
        client: Endpoint,
        broker: Endpoint,
        limits: Limits = DEFAULTS,
        inferred: str | None = None,
    ) -> None:
        self._connection = connection
        self._client = client
        self._broker = broker
        self._limits = limits
        self._inferred = inferred
        self._waiting: dict[int, _Waiting] = {}
        """Requests and tokens that wait for an answer, by a running number: oldest first."""
        self._by_correlation: dict[int, deque[int]] = {}
        self._tokens: deque[int] = deque()
        self._serial = 0
        self._expects_tokens = False
        self._saw_request = False
        self._first_correlation: int | None = None
        self._effort = SEARCH_EFFORT
        self._saw_response = False
        self._ending = "capture ended"
        self._response_gaps = 0
        self._request_gaps = 0
        self.exchanges = 0
        self.client_id: str | None = None
        self.software: str | None = None
        """Name and version, from an ApiVersions request."""
        self.sasl_mechanism: str | None = None
        self.sasl_principal: str | None = None
        self.sasl_outcome: str | None = None

    def feed(self, frame: Frame, packet: int) -> list[Event]:
        """What a frame means; ``packet`` is the one being read, for the order of recognition."""
        self._effort = SEARCH_EFFORT
        if frame.direction is Direction.TO_BROKER:
            return self._feed_request(frame, packet)
        return self._feed_response(frame, packet)

    def gap(self, direction: Direction) -> None:
        """Bytes of a direction are missing."""
        if direction is Direction.TO_BROKER:
            self._request_gaps += 1
        else:
            self._response_gaps += 1

    def end(self, reason: str) -> None:
        """Frames that come from now on are what is left: ``connection closed``, ``capture ended`` or
        ``evicted`` is why they are not whole."""
        self._ending = reason

    def close(self) -> list[Event]:
        """No response will come any more."""
        out: list[Event] = []
        for waiting in self._waiting.values():
            waiting.exchange.missing = self._why_missing(waiting)
            out.append(Completed(waiting.exchange))
        self._waiting.clear()
        self._by_correlation.clear()
        self._tokens.clear()
        return out

    def _why_missing(self, waiting: _Waiting) -> str:
        if self._response_gaps > waiting.gaps:
            return "gap" if self._saw_response else "not captured"
        return self._ending

    # -- requests -----------------------------------------------------------------------------------

    def _feed_request(self, frame: Frame, packet: int) -> list[Event]:
        if self._is_token(frame):
            return self._feed_token(frame, packet)
        try:
            request = parse_request(frame)
        except DecodeError as error:
            return self._report_headless(frame, f"no request header: {error.reason}")
        self._saw_request = True
        self._expects_tokens = request.api_key == SASL_HANDSHAKE and request.api_version == 0
        if self._first_correlation is None:
            self._first_correlation = request.correlation_id
        exchange = self._exchange(frame, packet)
        exchange.request = request
        self._learn_from_request(request)
        out: list[Event] = [Recognised(exchange)]
        if request.api_key == PRODUCE and request.body().get("acks") == 0:
            exchange.missing = "acks=0"
            out.append(Completed(exchange))
            return out
        same = self._by_correlation.setdefault(request.correlation_id, deque())
        if same:
            message = f"correlation id {request.correlation_id} is that of a request that still waits"
            exchange.session_faults.append(fault("duplicate-correlation", message, frame.last_packet, 4))
        same.append(self._wait(exchange))
        return out + self._evict()

    def _is_token(self, frame: Frame) -> bool:
        payload = frame.payload
        opens_bare = not self._saw_request and payload[:1] == bytes((GSSAPI_TOKEN,))
        if not (self._expects_tokens or opens_bare):
            return False
        try:
            is_request = body_fits(parse_request(bare_frame(payload)))
        except DecodeError:
            is_request = False
        self._expects_tokens = not is_request
        return not is_request

    def _feed_token(self, frame: Frame, packet: int) -> list[Event]:
        exchange = self._exchange(frame, packet)
        exchange.request = Token(frame, "request")
        exchange.request.client_id = self.client_id
        if not self._saw_request:
            self.sasl_mechanism = "GSSAPI"
        self._learn_from_token(frame.payload)
        self._tokens.append(self._wait(exchange))
        return [Recognised(exchange), *self._evict()]

    def _wait(self, exchange: Exchange) -> int:
        self._serial += 1
        self._waiting[self._serial] = _Waiting(exchange, self._response_gaps)
        return self._serial

    def _evict(self) -> list[Event]:
        if len(self._waiting) <= self._limits.pending_requests:
            return []
        serial = next(iter(self._waiting))
        exchange = self._forget(serial)
        exchange.missing = "evicted"
        message = (
            f"more than {self._limits.pending_requests} requests wait for a response; the oldest was given up"
        )
        exchange.session_faults.append(fault("too-many-pending", message, exchange.last_packet))
        return [Completed(exchange)]

    def _forget(self, serial: int) -> Exchange:
        exchange = self._waiting.pop(serial).exchange
        if isinstance(exchange.request, Request):
            same = self._by_correlation[exchange.request.correlation_id or 0]
            same.remove(serial)
            if not same:
                del self._by_correlation[exchange.request.correlation_id or 0]
        else:
            self._tokens.remove(serial)
        return exchange

    # -- responses ----------------------------------------------------------------------------------

    def _feed_response(self, frame: Frame, packet: int) -> list[Event]:
        self._saw_response = True
        if self._tokens and not self._answers_request(frame.payload):
            exchange = self._forget(self._tokens[0])
            exchange.response = Token(frame, "response")
            exchange.session_faults += _own_faults(frame)
            return [Completed(exchange)]
        if len(frame.payload) < 4:
            return self._report_headless(frame, "no correlation id")
        correlation = int.from_bytes(frame.payload[:4], "big", signed=True)
        same = self._by_correlation.get(correlation)
        if not same:
            return self._feed_unmatched(frame, packet)
        out = self._settle_earlier(same[0], frame)
        why_missing = self._why_missing(self._waiting[same[0]])
        exchange = self._forget(same[0])
        assert exchange.request is not None
        try:
            exchange.response = parse_response(frame, exchange.request.api_key, exchange.request.api_version)
        except DecodeError as error:
            exchange.response = parse_response(frame, None, None)
            message = f"the response header breaks off: {error.reason}"
            exchange.session_faults.append(
                fault("truncated", message, frame.last_packet, error.offset, layer="session")
            )
        exchange.session_faults += _own_faults(frame)
        if exchange.response.is_cut:
            exchange.missing = why_missing
        if frame.searched:
            exchange.inferred = _join(exchange.inferred, _boundary("response"))
        self._learn_from_response(exchange)
        return [*out, Completed(exchange)]

    def _answers_request(self, payload: bytes) -> bool:
        """Whether a frame, while tokens wait too, is the response to a waiting request. The client's last
        GSSAPI token has no answer, so the order alone does not tell."""
        same = self._by_correlation.get(int.from_bytes(payload[:4], "big", signed=True))
        return same is not None and len(payload) >= 4 and self._fits(payload, same[0])

    def _settle_earlier(self, serial: int, frame: Frame) -> list[Event]:
        """Requests older than the one that is answered now: lost answers, or a broken order."""
        out: list[Event] = []
        for older in [s for s in self._waiting if s < serial]:
            waiting = self._waiting[older]
            if isinstance(waiting.exchange.request, Token):
                continue
            if self._response_gaps > waiting.gaps:
                self._forget(older)
                waiting.exchange.missing = "gap"
                out.append(Completed(waiting.exchange))
                continue
            answered = self._waiting[serial].exchange
            message = f"answered before the older request {waiting.exchange.correlation_id}"
            answered.session_faults.append(fault("out-of-order", message, frame.last_packet, 0))
            break
        return out

    def _feed_unmatched(self, frame: Frame, packet: int) -> list[Event]:
        exchange = self._exchange(frame, packet)
        exchange.response = parse_response(frame, None, None)
        exchange.missing = "gap" if self._request_gaps and self._saw_request else "not captured"
        return [Recognised(exchange), Completed(exchange)]

    def _report_headless(self, frame: Frame, what: str) -> list[Event]:
        """A frame without a whole header belongs to no exchange."""
        message = f"{what} in a frame of {frame.size} bytes"
        faults = [fault("malformed", message, frame.last_packet, 0, layer="session")]
        return [each._replace(connection=self._connection) for each in _own_faults(frame) + faults]

    # -- both ---------------------------------------------------------------------------------------

    def _exchange(self, frame: Frame, packet: int) -> Exchange:
        self.exchanges += 1
        exchange = Exchange(self._connection, self._client, self._broker, self._limits)
        exchange.recognised = (packet, self._connection, frame.offset)
        exchange.inferred = self._inferred
        exchange.session_faults += _own_faults(frame)
        if frame.searched:
            side = "request" if frame.direction is Direction.TO_BROKER else "response"
            exchange.inferred = _join(exchange.inferred, _boundary(side))
        return exchange

    def _learn_from_request(self, request: Request) -> None:
        if request.client_id is not None:
            self.client_id = request.client_id
        if request.api_key == API_VERSIONS and (name := request.body().get("clientSoftwareName")):
            self.software = f"{name} {request.body().get('clientSoftwareVersion')}"
        elif request.api_key == SASL_HANDSHAKE:
            self.sasl_mechanism = request.body().get("mechanism")
            self.sasl_principal = self.sasl_outcome = None
        elif request.api_key == SASL_AUTHENTICATE:
            self._learn_from_token(request.body().get("authBytes") or b"")

    def _learn_from_token(self, token: bytes) -> None:
        if self.sasl_principal is None and self.sasl_mechanism:
            self.sasl_principal = principal(self.sasl_mechanism, token)

    def _learn_from_response(self, exchange: Exchange) -> None:
        if exchange.api_key in (SASL_AUTHENTICATE, SASL_HANDSHAKE):
            if exchange.error is not None:
                self.sasl_outcome = exchange.error
            elif exchange.api_key == SASL_AUTHENTICATE:
                self.sasl_outcome = "authenticated"

    # -- the witness of framing ---------------------------------------------------------------------

    def begins_request(self, data: bytes, position: int, at_segment_start: bool) -> bool | None:
        """Whether a request begins here: one that fits exactly, or the header of a known client's."""
        if not at_segment_start and self._effort <= 0:
            return False
        evidence, end = examine_request(data, position, self._limits.frame_bytes)
        if evidence is not Evidence.NONE:
            self._effort -= min(end, len(data)) - position
        if evidence is Evidence.EXACT:
            return True
        if evidence is Evidence.MORE:
            return None if at_segment_start and len(data) - position < HEADER_BYTES else False
        if evidence in (Evidence.HEADER, Evidence.LOOSE) and at_segment_start:
            length = int.from_bytes(data[position + 12 : position + 14], "big")
            client_id = data[position + 14 : position + 14 + length]
            return self.client_id is None or client_id == self.client_id.encode("utf-8", "surrogateescape")
        return False

    def begins_response(self, data: bytes, position: int, at_segment_start: bool) -> bool | None:
        """Whether a response begins here: one whose request waits, and that fits as far as it is there."""
        left = len(data) - position
        if left < 8:
            return None if at_segment_start else False
        size = int.from_bytes(data[position : position + 4], "big", signed=True)
        if not 4 <= size <= self._limits.frame_bytes:
            return False
        correlation = int.from_bytes(data[position + 4 : position + 8], "big", signed=True)
        same = self._by_correlation.get(correlation)
        if same:
            if left < size + 4 or (not at_segment_start and self._effort <= 0):
                return at_segment_start
            self._effort -= size
            return self._fits(data[position + 4 : position + 4 + size], same[0])
        return at_segment_start and left == size + 4 and self._was_sent_before(correlation)

    def _fits(self, payload: bytes, serial: int) -> bool:
        request = self._waiting[serial].exchange.request
        assert request is not None
        try:
            response = parse_response(bare_frame(payload), request.api_key, request.api_version)
        except DecodeError:
            return False
        body = response.decoded()
        return body.opaque is not None or (not body.faults and not body.remainder)

    def _was_sent_before(self, correlation: int) -> bool:
        """Whether this can answer a request from before the capture, or from a gap."""
        first = self._first_correlation
        return first is not None and first - UNSEEN_REQUESTS <= correlation < first + UNSEEN_REQUESTS


def _own_faults(frame: Frame) -> list[Fault]:
    return [] if frame.fault is None else [frame.fault]


def _boundary(side: str) -> str:
    return f"boundary of the {side}: found by its contents (after a gap, or where the capture began)"


def _join(first: str | None, second: str) -> str:
    return second if first is None else f"{first}; {second}"
