"""Frames of both directions of one connection → exchanges: which response answers which request.

Rules

1. All state from one frame to the next is in this module.
2. A response is read with its request's API and version. Without its request it is opaque.
3. Brokers answer a connection's requests in order (the channel is muted per request). The correlation id
   decides; among equal ids, the oldest request. The order is only checked: a violation is a Fault, unless
   bytes of the responses were lost, which explains it.
4. A Produce request with acks=0 has no response. To find acks, the body is decoded, because from version 3 on
   a transactional id precedes it.
5. ApiVersions responses have header version 0. A broker that does not know the version answers in body
   version 0 with error 35 (message.py does both).
6. After SaslHandshake v0, and at the start if a client opens with bare GSSAPI, frames are tokens without a
   Kafka header. They end when the client sends a request that fits to the last byte. A broker's frame then
   answers the oldest token that waits, unless an older request waits.
7. Facts for display (client id, software, SASL, which errors are routine) are never needed for decoding.
8. A frame of the opposite kind, because the roles turned round, is returned to
   :mod:`kdissect.session.dialogue`, which handles it.
9. A broker serves one request of a connection at a time (SocketServer mutes the channel until the response is
   sent). So a request waits behind the response before its own: from its arrival at the broker until the last
   byte of that response leaves. The request is captured half a round trip before it arrives, the response
   half a round trip after it leaves. So the round trip between capture point and broker is subtracted. The
   path between capture point and client does not matter. If bytes between the two responses were lost,
   another response may have been there, and the wait is unknown. A broker that throttles serves the next
   request even later (:mod:`kdissect.session.throttling`).
10. The client's think time is from the arrival of the last answer until its next request leaves, if no other
    request waits. At the capture point that time is longer by a round trip to the client, which is
    subtracted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from kdissect.exchange import Exchange, begin_exchange
from kdissect.faults import fault, of_connection
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Request, Token, bare_frame, parse_request, parse_response
from kdissect.model import DecodeError, Direction, Endpoint, Fault, Frame, Value, endpoint_text
from kdissect.protocol.apis import API_VERSIONS, PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kdissect.protocol.header import read_correlation_id
from kdissect.session.api_versions import shows_answers_first, software
from kdissect.session.expected import Expected
from kdissect.session.pending import REQUEST_BYTES, Pending, Waiting
from kdissect.session.recognise import GSSAPI_TOKEN
from kdissect.session.roles import fits_as_response, is_surely_request, may_be_request
from kdissect.session.sasl import Login
from kdissect.session.throttling import answers_first, told_ms
from kdissect.session.witness import FrameWitness
from kdissect.tcp.reassembly import Reassembler
from kdissect.wording import plural

ORDINARY_CLIENT_BYTES = 512
"""Client ids and software shorter than this are not counted."""

PARTITION_BYTES = 100
"""The fewest bytes of memory for a decoded partition of a Produce request, beside its records."""


FEW = 16
"""The survey of a waiting request is kept if it has at most this number of topics and record sets. That costs
less than the request's object."""
_FEW = FEW


TURNING_EFFORT = 1 << 20
"""The number of bytes of frames, unfit as requests, that are tried as responses on one connection."""
_NEVER = -(1 << 63)
"""A time before any other."""
_ALWAYS = (1 << 63) - 1
"""A time after any other."""
_MILLISECOND = 1_000_000
ON_ITS_WAY_NS = 10 * _MILLISECOND
"""A request that follows an answer sooner was sent before the client had read the answer."""


class Recognised(Value):
    """An exchange has begun: its request, or otherwise its response, was recognised."""

    __slots__ = ("exchange",)

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange


class Completed(Value):
    """An exchange is complete: nothing more will come of it."""

    __slots__ = ("exchange",)

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange


Event = Recognised | Completed | Fault

_TO_BROKER = Direction.TO_BROKER


class Session:
    """Pairs the frames of one Kafka connection. ``client`` and ``broker`` are its endpoints.

    :param inferred: a conclusion about the connection that applies to each of its exchanges.
    :param correlation_id: the id of a request that is known to come.
    :param from_start: whether both directions were captured from their first byte.
    :param requests: the stream of the requests; it has the round trip to the broker.
    :param responses: the stream of the responses; it has the round trip to the client.
    """

    __slots__ = (
        *(
            "_answered",
            "_broker",
            "_client",
            "_connection",
            "_evicted",
            "_expected",
            "_expects_tokens",
            "_gap_packet",
            "_inferred",
            "_limits",
            "_most",
        ),
        *("_answers_first", "_is_fresh_loss", "_is_latest", "_latest_api_key", "_latest_id"),
        *("_latest_is_whole", "_latest_ns"),
        *("_lost_behind", "_mute_end_ns", "_pending", "_request_loss", "_requests", "_responses"),
        *("_response_gap", "_response_losses", "_saw_request", "_saw_response", "_client_bytes"),
        *("_turning_effort", "client_id", "ending", "exchanges", "login", "software"),
        *("takes_all", "witness"),
    )

    def __init__(
        self,
        connection: int,
        client: Endpoint,
        broker: Endpoint,
        limits: Limits = DEFAULTS,
        inferred: str | None = None,
        correlation_id: int | None = None,
        client_id: str | None = None,
        from_start: bool = False,
        requests: Reassembler | None = None,
        responses: Reassembler | None = None,
    ) -> None:
        self.begin(
            *(connection, client, broker, limits, inferred, correlation_id, client_id, from_start),
            requests,
            responses,
        )

    def begin(
        self,
        connection: int,
        client: Endpoint,
        broker: Endpoint,
        limits: Limits,
        inferred: str | None,
        correlation_id: int | None,
        client_id: str | None,
        from_start: bool,
        requests: Reassembler | None,
        responses: Reassembler | None,
    ) -> None:
        """Do the work of ``__init__``; a fast path for compiled callers."""
        self._connection = connection
        self._client = client
        self._broker = broker
        self._limits = limits
        self._most = limits.pending_requests
        self._inferred = inferred
        self._pending = Pending()
        self.witness = FrameWitness(self._pending, limits, correlation_id, client_id)
        """Decides where frames may begin, for the framers of both directions."""
        self._expected = Expected(from_start)
        self._expects_tokens = False
        self._saw_request = False
        self._saw_response = False
        self.ending = "capture ended"
        self._response_losses = 0
        """How often bytes of the responses were not captured, or skipped."""
        self._response_gap = 0
        """The count at the latest loss because of missing bytes."""
        self._gap_packet = 0
        """The packet that showed that loss: lost bytes may have come until then."""
        self._request_loss: str | None = None
        """The reason why a request may be absent: the latest loss of bytes of requests."""
        self._is_fresh_loss = False
        """Whether no request came since."""
        self._lost_behind = 0
        """The latest request before that loss."""
        self._client_bytes = 0
        self._answered = 0
        """The latest request that was answered; brokers answer in order."""
        self._requests = requests
        self._responses = responses
        self._latest_ns = _NEVER
        """The capture time of the latest response's last byte."""
        self._latest_is_whole = True
        self._is_latest = False
        """Whether nothing of the responses was lost since."""
        self._answers_first = False
        """Whether the broker is known to answer before it throttles."""
        self._mute_end_ns = _NEVER
        """The end of the time in which the broker does not read from the connection because of throttling."""
        self._latest_api_key: int | None = None
        self._latest_id: int | None = None
        """The latest response's correlation id, if it has one."""
        self._evicted: int | None = None
        """The correlation id of the latest request dropped because of a limit; clients count up."""
        self.takes_all = False
        """Whether another object decides the kind of each frame, so that no frame is returned."""
        self.exchanges = 0
        self._turning_effort = TURNING_EFFORT
        self.client_id: str | None = None
        self.software: str | None = None
        """Name and version of the client, from an ApiVersions request."""
        self.login = Login()

    def feed(self, frame: Frame, packet: int) -> list[Event] | None:
        """The events of a frame; ``packet`` is the current one, for the order of recognition. None if the
        frame is of the opposite kind, because the roles turned round."""
        self.witness.refresh()
        if frame.direction is _TO_BROKER:
            return self._feed_request(frame, packet)
        return self._feed_response(frame, packet)

    def gap(self, direction: Direction, packet: int = 0) -> None:
        """Note that bytes of a direction were not captured; ``packet`` showed it. A gap is given in one
        piece, at its beginning. Some of its bytes may have come after frames that were read before that
        packet."""
        self._expected.forget_all()
        if direction is not _TO_BROKER:
            self._is_latest = False
            self._response_losses += 1
            self._response_gap = self._response_losses
            self._gap_packet = packet
        elif self._saw_request:
            self._request_loss = "gap"
            self._is_fresh_loss = True
            self._lost_behind = self._pending.latest

    def skip(self, direction: Direction) -> None:
        """Note that no frame was found in captured bytes of a direction."""
        self._expected.forget_all()
        if direction is not _TO_BROKER:
            self._is_latest = False
            self._response_losses += 1
        elif self._request_loss != "gap" or not self._is_fresh_loss:
            self._request_loss = "skipped"  # after a gap, the gap is the reason
            self._lost_behind = self._pending.latest

    def end(self, reason: str) -> None:
        """End the streams: later frames are remainders. ``connection closed``, ``capture ended`` or
        ``evicted`` is why they are incomplete."""
        self.ending = reason

    def held_bytes(self) -> int:
        """The cost of waiting requests, and of the facts remembered about the client."""
        return self._pending.held_bytes + self._client_bytes

    @property
    def is_waiting(self) -> bool:
        """Whether requests wait for their responses."""
        return len(self._pending) > 0

    def is_settled(self) -> bool:
        """Whether what was unusual is over. Nothing waits, the latest response answered a known request, and
        no earlier loss can explain what comes next."""
        if len(self._pending._waiting) or self._expects_tokens or self.takes_all or not self._is_latest:
            return False
        if self._latest_id is None or self._latest_api_key is None or self._request_loss is not None:
            return False
        if self._evicted is not None or self._inferred is not None or self.client_id is None:
            return False
        return self._answered == self._pending.latest and self.witness._known_correlation is not None

    def renumber(self, number: int, exchange_number: Callable[[int], int]) -> None:
        """As :meth:`kdissect.session.conversation.Conversation.renumber`."""
        self._connection = number
        for waiting in self._pending.waiting():
            waiting.exchange.connection = number
            waiting.exchange.number = exchange_number(waiting.exchange.number)

    def give_up(self) -> list[Event]:
        """Stop waiting for responses, because all connections together hold more than the limit."""
        out: list[Event] = []
        for waiting in self._pending.clear():
            out.append(self._forget(waiting.exchange))
        return out

    def _forget(self, exchange: Exchange) -> Completed:
        exchange.missing = "evicted"
        request = exchange.request
        if isinstance(request, Request):
            self._evicted = request.correlation_id
        return Completed(exchange)

    def close(self) -> list[Event]:
        """End the connection: no response will come any more."""
        out: list[Event] = []
        for waiting in self._pending.clear():
            waiting.exchange.missing = self._missing_reason(waiting)
            out.append(Completed(waiting.exchange))
        return out

    def _missing_reason(self, waiting: Waiting) -> str:
        return self._loss_reason(waiting) if self._may_be_lost(waiting) else self.ending

    def _may_be_lost(self, waiting: Waiting) -> bool:
        """Whether bytes of responses were lost since a request began to wait."""
        return self._response_losses > waiting.losses or self._is_in_gap(waiting)

    def _is_in_gap(self, waiting: Waiting) -> bool:
        """Whether bytes of a gap may have come after a request, though the gap begins before it."""
        request = waiting.exchange.request
        return request is not None and self._gap_packet > request.frame.last_packet

    def _loss_reason(self, waiting: Waiting) -> str:
        """The reason for a response in bytes that were lost since its request began to wait."""
        if self._response_gap <= waiting.losses and not self._is_in_gap(waiting):
            return "skipped"
        return "gap" if self._saw_response else "not captured"

    # -- requests -----------------------------------------------------------------------------------

    def _feed_request(self, frame: Frame, packet: int) -> list[Event] | None:
        if (self._expects_tokens or not self._saw_request) and self._is_token(frame):
            return self._feed_token(frame, packet)
        try:
            request = parse_request(frame, self._limits)
        except DecodeError as error:
            return self._report_headless(frame, f"without a request header: {error.reason}")
        if request.client_id != self.client_id and self._is_unmatched_response(request):
            return None
        self._saw_request = True
        self._is_fresh_loss = False
        key = request.api_key
        self._expects_tokens = key == SASL_HANDSHAKE and request.api_version == 0
        exchange = self._exchange(frame, packet)
        exchange.request = request
        self._set_think_time(exchange, frame)
        self._learn_from_request(request)
        exchange.principal = self.login.principal
        begun = Recognised.__new__(Recognised)
        begun.exchange = exchange
        out: list[Event] = [begun]
        if key == PRODUCE and self._expects_no_response(request):
            exchange.missing = "acks=0"
            out.append(Completed(exchange))
            return out
        if self._is_late_request(request, frame):
            exchange.missing, exchange.think_ns = "not captured", None
            out.append(Completed(exchange))
            return out
        same = self._pending.find(request.correlation_id)
        if same is not None and same < self._answered:
            # Answers come in order, and the client reuses the id: the older request's answer was lost.
            older = self._pending.take(same)
            lost = older.exchange
            lost.missing = "not captured"
            if self._may_be_lost(older):
                lost.missing = self._loss_reason(older)
            out.append(Completed(lost))
        elif same is not None:
            message = f"correlation id {request.correlation_id} belongs to a request that still waits"
            exchange.session_faults.append(fault("duplicate-correlation", message, frame.last_packet, 4))
        self._pending.add(exchange, self._response_losses)
        if len(self._pending) > self._most:
            out.append(self._evict())
        return out

    def _is_late_request(self, request: Request, frame: Frame) -> bool:
        """Whether the capture has a request after its answer, which is an exchange without a request by now.

        The latest answer belongs to no known request, has the same correlation id, and a later time. That
        happens where a capture begins in the middle of a connection and has packets in another order. If it
        waited for an answer, all later answers would seem to come out of order.
        """
        is_unknown = self._latest_api_key is None and self._latest_id == request.correlation_id
        return is_unknown and frame.last_ns < self._latest_ns

    def _expects_no_response(self, produce: Request) -> bool:
        """Whether the broker sends no response to it."""
        seen = produce.survey()
        if seen is not None:
            if len(seen.mentions) + len(seen.records) > _FEW:
                produce.forget_body()  # as below
            return seen.acks == 0
        body = produce.body()
        partitions = sum(len(topic.get("partitionData") or ()) for topic in body.get("topicData") or ())
        if PARTITION_BYTES * partitions > REQUEST_BYTES + len(produce.frame.payload):
            produce.forget_body()  # larger than its counted cost while it waits
        return body.get("acks") == 0

    def _is_token(self, frame: Frame) -> bool:
        payload = frame.payload
        if not self._expects_tokens and payload[:1] != bytes((GSSAPI_TOKEN,)):
            return False  # at the beginning of a connection, only GSSAPI comes unannounced
        try:
            is_request = parse_request(bare_frame(payload), self._limits).decoded().is_exact
        except DecodeError:
            is_request = False
        self._expects_tokens = not is_request
        return not is_request

    def _feed_token(self, frame: Frame, packet: int) -> list[Event]:
        exchange = self._exchange(frame, packet)
        exchange.request = Token(frame, "request")
        exchange.request.client_id = self.client_id
        if not self._saw_request:
            self.login.mechanism = "GSSAPI"
        self.login.read_token(frame.payload)
        exchange.principal = self.login.principal
        self._pending.add(exchange, self._response_losses)
        if len(self._pending) > self._most:
            return [Recognised(exchange), self._evict()]
        return [Recognised(exchange)]

    def _evict(self) -> Event:
        """Give up the oldest waiting request."""
        exchange = self._pending.remove(self._pending.oldest())
        message = _too_many_pending(self._limits.pending_requests)
        exchange.session_faults.append(fault("too-many-pending", message, exchange.request_packet))
        return self._forget(exchange)

    # -- responses ----------------------------------------------------------------------------------

    def _feed_response(self, frame: Frame, packet: int) -> list[Event] | None:
        token = self._pending.token()
        if token is not None and not self._answers_request(frame.payload):
            self._saw_response = True
            waiting = self._pending.take(token)
            why_missing = self._missing_reason(waiting)
            exchange = waiting.exchange
            exchange.response = Token(frame, "response")
            self._set_waits(waiting, frame, 0)
            self._note_response(frame, None, 0)
            exchange.session_faults += _own_faults(frame)
            if exchange.response.is_cut:
                exchange.missing = why_missing
            return [Completed(exchange)]
        if len(frame.payload) < 4:
            self._saw_response = True
            self._note_response(frame, None, 0)
            return self._report_headless(frame, "without a correlation id")
        correlation_id = read_correlation_id(frame.payload)
        serial = self._pending.find(correlation_id)
        if serial is None:
            unmatched = self._feed_unmatched(frame, packet)
            if unmatched is not None:  # otherwise it is a request of the broker
                self._saw_response = True
                self._note_response(frame, correlation_id, 0)
            return unmatched
        self._saw_response = True
        out = [] if self._pending.oldest() == serial else self._resolve_earlier(serial, frame)
        waiting = self._pending.take(serial)
        exchange = waiting.exchange
        asked = exchange.request
        assert isinstance(asked, Request)
        self._answered = max(self._answered, serial)
        if self._request_loss is not None and serial > self._lost_behind:
            self._request_loss = None  # brokers answer in order: lost requests were answered before it
        try:
            exchange.response = parse_response(frame, asked.api_key, asked.api_version, self._limits)
        except DecodeError as error:
            exchange.response = parse_response(frame, None, None, self._limits)
            message = f"the response header is incomplete: {error.reason}"
            exchange.session_faults.append(
                fault("truncated", message, frame.last_packet, error.offset, layer="session")
            )
        seen = exchange.response.survey()
        throttle_ns = (
            told_ms(exchange.response) if seen is None else max(0, seen.throttle_ms)
        ) * _MILLISECOND
        if throttle_ns and not self._answers_first:
            self._answers_first = answers_first(asked)
        if self._set_waits(waiting, frame, throttle_ns):
            throttle_ns = 0  # the throttling is over
        self._note_response(frame, correlation_id, throttle_ns, asked.api_key)
        if frame.fault is not None:
            exchange.session_faults.append(frame.fault)
        if frame.size > len(frame.payload):
            exchange.missing = self._missing_reason(waiting)
        if frame.searched:
            exchange.inferred = _join(exchange.inferred, _boundary("response"))
        key = asked.api_key
        if key in (API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE):
            self._learn_from_response(exchange)
        exchange.routine = self._expected.judge(exchange, asked, exchange.response)
        # Set attribute by attribute: compiled, that is several times faster than a call.
        done = Completed.__new__(Completed)
        done.exchange = exchange
        out.append(done)
        return out

    def _set_think_time(self, exchange: Exchange, frame: Frame) -> None:
        """Set an exchange's think time of its client; ``frame`` is the request."""
        before, asked = self._latest_ns, frame.first_ns
        if not self._is_latest or before < 0 or asked < 0:
            return
        think = asked - before
        # An acknowledgement in the next request has waited for that request, so it is no measure of the path.
        if self._responses is not None and self._responses.path_ns > 0:
            think -= self._responses.path_ns
        think = max(think, 0)
        if not len(self._pending):
            exchange.think_ns = think
        # A request right after an answer was already on its way when the client learnt that it has to wait.
        if self._mute_end_ns > asked and think >= ON_ITS_WAY_NS:
            exchange.breaks_quota = 2 * think < self._mute_end_ns - before

    def _set_waits(self, waiting: Waiting, frame: Frame, throttle_ns: int) -> bool:
        """Set the waiting exchange's times that were not its own work: the wait behind the response before
        ``frame`` (its own), the wait for a quota, and the network's part.

        :param throttle_ns: the throttle time in its response.
        :returns: whether that time is part of its latency, and over.
        """
        exchange = waiting.exchange
        request = exchange.request
        if request is None:
            return False
        exchange.after_api_key = self._latest_api_key
        asked, before, answered = request.frame.last_ns, self._latest_ns, frame.first_ns
        network = path = 0
        if self._requests is not None and self._requests.round_trip_ns > 0:
            network = self._requests.round_trip_ns
            if self._requests.path_ns >= 0:
                exchange.network_ns = path = self._requests.path_ns
        if frame.searched and self._response_losses > waiting.losses:
            return False  # bytes between the two responses were lost
        if not self._latest_is_whole:
            return False  # the time of its last byte is unknown
        before = min(before, answered)  # a retransmission: that is the network's time
        if asked < 0 <= answered:
            if before <= asked:
                exchange.behind_ns = exchange.throttle_ns = 0
            return False  # absurd timestamps: compiled, their distance does not fit
        behind = 0
        if before > asked:
            behind = max(0, before - asked - network)
            if behind:
                exchange.behind_correlation_id = self._latest_id
        exchange.behind_ns, exchange.throttle_ns = behind, 0
        if answered <= asked:
            if path:
                exchange.network_ns = 0  # no round trip was shorter
            return False
        left = answered - asked - behind
        if left < path:
            exchange.network_ns = path = left
        left -= path
        muted = 0
        if self._mute_end_ns > asked >= 0:
            muted = min(left, max(0, self._mute_end_ns - asked - network - behind))
            exchange.throttle_ns = muted
        if throttle_ns == 0 or self._answers_first or left - muted < throttle_ns:
            return False
        exchange.throttle_ns = muted + throttle_ns
        return True

    def _note_response(
        self, frame: Frame, correlation_id: int | None, mute_ns: int, api_key: int | None = None
    ) -> None:
        """Note that the next response waits behind this one, and for its quota."""
        self._latest_api_key = api_key
        self._latest_ns, self._latest_id = frame.last_ns, correlation_id
        self._latest_is_whole = frame.size <= len(frame.payload)
        self._is_latest = self._latest_is_whole
        self._mute_end_ns = _NEVER
        if mute_ns and frame.first_ns >= 0:
            self._mute_end_ns = min(int(frame.first_ns) + mute_ns, _ALWAYS)

    def _answers_request(self, payload: bytes) -> bool:
        """Whether a frame is the response to a waiting request, although tokens wait too. The client's last
        GSSAPI token has no answer, so the order alone does not decide."""
        if len(payload) < 4:
            return False
        serial = self._pending.find(read_correlation_id(payload))
        if serial is None:
            return False
        return self.witness.answers(payload, self._pending.request(serial))

    def _resolve_earlier(self, serial: int, frame: Frame) -> list[Event]:
        """Handle the waiting requests that are older than the answered one: their answers were lost, or the
        order is broken."""
        out: list[Event] = []
        for older in self._pending.older_than(serial):
            waiting = self._pending[older]
            if isinstance(waiting.exchange.request, Token):
                continue
            if self._may_be_lost(waiting):
                self._pending.remove(older)
                waiting.exchange.missing = self._loss_reason(waiting)
                out.append(Completed(waiting.exchange))
                continue
            answered = self._pending[serial].exchange
            message = f"its response came before that to the older request {waiting.exchange.correlation_id}"
            answered.session_faults.append(fault("out-of-order", message, frame.last_packet, 0))
            break
        return out

    def _feed_unmatched(self, frame: Frame, packet: int) -> list[Event] | None:
        if self._is_broker_request(frame):
            return None
        exchange = self._exchange(frame, packet)
        exchange.response = parse_response(frame, None, None, self._limits)
        exchange.missing = self._request_loss or "not captured"
        if self._evicted is not None and read_correlation_id(frame.payload) <= self._evicted:
            exchange.missing = "evicted"
        return [Recognised(exchange), Completed(exchange)]

    # -- the roles turned round ---------------------------------------------------------------------

    def _is_broker_request(self, frame: Frame) -> bool:
        """Whether a broker's frame that answers nothing is a request of the broker."""
        if self.takes_all:
            return False
        if is_surely_request(frame, self._limits):
            return True
        # No request waits, and all earlier ones are known: there is nothing that it could answer.
        is_answer_to_none = self._saw_request and not len(self._pending) and self._request_loss is None
        is_answer_to_none = is_answer_to_none and self._answered > 0 and self._evicted is None
        return is_answer_to_none and may_be_request(frame, self._limits)

    def _is_unmatched_response(self, request: Request) -> bool:
        """Whether a client's frame is no request, but the response to an unknown request."""
        if self.takes_all or not self._saw_request or self._turning_effort <= 0:
            return False
        self._turning_effort -= len(request.frame.payload)
        return fits_as_response(request, self._limits)

    def is_awaited(self, frame: Frame) -> bool:
        """Whether a frame, or its captured part, is the response to a waiting request."""
        if len(frame.payload) < 4:
            return False
        serial = self._pending.find(read_correlation_id(frame.payload))
        if serial is None:
            return False
        is_cut = frame.size > len(frame.payload)
        return is_cut or self.witness.answers(frame.payload, self._pending.request(serial))

    def may_be_request(self, frame: Frame) -> bool:
        """Whether a frame can be a request of this client, if its end also answers requests."""
        if is_surely_request(frame, self._limits):
            return True
        try:
            client_id = parse_request(frame, self._limits).client_id
        except DecodeError:
            return False
        return self.client_id in (None, client_id) and may_be_request(frame, self._limits)

    def _report_headless(self, frame: Frame, what: str) -> list[Event]:
        """Report a frame without a complete header. It belongs to no exchange, so its fault has its position
        in the stream."""
        sender = endpoint_text(self._client if frame.direction is _TO_BROKER else self._broker)
        message = f"from {sender}: a frame of {plural(frame.size, 'byte')} at byte {frame.offset:,}, {what}"
        faults = [fault("malformed", message, frame.last_packet, 0, layer="session")]
        return [of_connection(each, self._connection) for each in _own_faults(frame) + faults]

    # -- both ---------------------------------------------------------------------------------------

    def _exchange(self, frame: Frame, packet: int) -> Exchange:
        self.exchanges += 1
        exchange = begin_exchange(self._connection, self._client, self._broker)
        exchange.recognised = (packet, self._connection, frame.offset)
        exchange.inferred = self._inferred
        exchange.principal = self.login.principal
        if frame.fault is not None:
            exchange.session_faults.append(frame.fault)
        if frame.searched:
            side = "request" if frame.direction is _TO_BROKER else "response"
            exchange.inferred = _join(exchange.inferred, _boundary(side))
        return exchange

    def _learn_from_request(self, request: Request) -> None:
        if request.client_id is not None:
            if request.client_id != self.client_id:
                self.client_id = request.client_id
                self._count_client_bytes()
            request.client_id = self.client_id  # one text object for all of them
        self.witness.learn(request)
        key = request.api_key
        if key == API_VERSIONS:
            told = software(request)
            if told is not None:
                self.software = told
                self._count_client_bytes()
        elif key == SASL_HANDSHAKE:
            self.login.begin(request.body().get("mechanism"))
        elif key == SASL_AUTHENTICATE:
            self.login.read_token(request.body().get("authBytes") or b"")

    def _count_client_bytes(self) -> None:
        self._client_bytes = client_bytes(self.client_id, self.software)

    def _learn_from_response(self, exchange: Exchange) -> None:
        """:param exchange: an exchange of a login, or of ApiVersions."""
        if exchange.api_key == API_VERSIONS:
            if exchange.error is None and exchange.response is not None and not self._answers_first:
                asked = exchange.request
                first = isinstance(asked, Request) and answers_first(asked)
                self._answers_first = first or shows_answers_first(exchange.response)
            return
        if exchange.error is not None:
            self.login.outcome = exchange.error
        elif exchange.api_key == SASL_AUTHENTICATE and exchange.response is not None:
            body = exchange.response.body()
            if not self.login.is_over(body.get("authBytes") or b""):
                return
            self.login.outcome = "authenticated"
            lifetime = body.get("sessionLifetimeMs") or 0
            self.login.lasts(exchange.response.frame.last_ns, lifetime)


def client_bytes(client_id: str | None, software: str | None) -> int:
    """The cost of remembering a client's id and software."""
    told = 0 if software is None else len(software)
    if client_id is not None:
        told += 2 * len(client_id)  # the witness keeps it too
    return told if told > ORDINARY_CLIENT_BYTES else 0


@cache
def _too_many_pending(limit: int) -> str:
    """The message of the fault; each request beyond the limit has it."""
    return f"more than {plural(limit, 'request')} wait for a response; kdissect gave up the oldest"


def _own_faults(frame: Frame) -> list[Fault]:
    return [] if frame.fault is None else [frame.fault]


def _boundary(side: str) -> str:
    return f"boundary of the {side}: found by its contents (after a gap, or where the capture began)"


def _join(first: str | None, second: str) -> str:
    return second if first is None else f"{first}; {second}"
