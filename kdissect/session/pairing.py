"""Frames of both directions of one connection → exchanges: which response answers which request.

Rules

1. All that must be remembered from one frame to the next lives here.
2. A response is read with its request's API and version. Without its request it is opaque.
3. Brokers answer a connection's requests in order (the channel is muted per request). The correlation
   id decides; among equals, the oldest request. The order is only checked: a breach is a Fault, unless
   bytes of the responses were lost, which explains it.
4. A Produce request with acks=0 has no response. To find acks, the body is decoded: from version 3 on
   a transactional id stands before it.
5. ApiVersions responses have header version 0. A broker that does not know the version answers in body
   version 0 with error 35 (message.py does both).
6. After SaslHandshake v0, and at the start if a client opens with bare GSSAPI, frames are tokens without a
   Kafka header. They end when the client sends a request that fits to the last byte. A broker's frame then
   answers the oldest token that waits, unless an older request waits.
7. What is learnt here for display (client id, software, SASL, which errors are routine) is never needed to
   decode.
8. A frame that is of the other kind than its direction's, because the roles turned round, is given back:
   :mod:`kdissect.session.dialogue` knows who asks then.
9. A broker serves one request of a connection at a time (SocketServer mutes the channel until the response is
   sent). So a request waits behind the response before its own: from its arrival at the broker until the last
   byte of that response leaves. The request is captured half a round trip before it arrives, the response
   half a round trip after it leaves. So the round trip between capture point and broker is taken off. The way
   between capture point and client has no part in it. If bytes between the two responses were lost, another
   response may have been there, and the wait is not known. A broker that throttles serves the next request
   later still (:mod:`kdissect.session.throttling`).
10. The client thinks from when the last answer reaches it until its next request leaves it, if nothing else
    is asked. The capture point sees that time a round trip to the client longer, which is taken off.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from kdissect.exchange import Exchange, begin_exchange
from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Request, Token, bare_frame, parse_request, parse_response
from kdissect.model import DecodeError, Direction, Endpoint, Fault, Frame, Value, endpoint_text
from kdissect.protocol.apis import API_VERSIONS, PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kdissect.protocol.header import read_correlation_id
from kdissect.session.expected import Expected
from kdissect.session.greeting import shows_answers_first, software
from kdissect.session.pending import REQUEST_BYTES, Pending, Waiting
from kdissect.session.recognise import GSSAPI_TOKEN
from kdissect.session.sasl import Login
from kdissect.session.throttling import answers_first, told_ms
from kdissect.session.turning import fits_as_response, is_surely_request, may_be_request
from kdissect.session.witness import FrameWitness
from kdissect.tcp.reassembly import Reassembler
from kdissect.wording import plural

ORDINARY_TOLD_BYTES = 512
"""What clients say of themselves is shorter, and not counted."""

PARTITION_BYTES = 100
"""What a partition of a Produce request takes when it is decoded, beside its records, at the least."""


FEW = 16
"""Topics and record sets of a request that waits: what of it was found out is kept with it, if it is no more.
It costs less than the request's object."""
_FEW = FEW


TURNING_EFFORT = 1 << 20
"""Bytes of frames that do not fit as requests which are tried as responses, on one connection."""
_NEVER = -(1 << 63)
"""Before any time."""
_ALWAYS = (1 << 63) - 1
"""After any time."""
_MILLISECOND = 1_000_000
ON_ITS_WAY_NS = 10 * _MILLISECOND
"""A request that follows an answer sooner was sent before the client had read it."""


class Recognised(Value):
    """An exchange has begun: its request, or else its response, was recognised."""

    __slots__ = ("exchange",)

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange


class Completed(Value):
    """Nothing more will come of an exchange."""

    __slots__ = ("exchange",)

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange


Event = Recognised | Completed | Fault

_TO_BROKER = Direction.TO_BROKER


class Session:
    """The machine of one Kafka connection. ``client`` and ``broker`` are its endpoints.

    :param inferred: what was concluded of the connection, which holds for each of its exchanges.
    :param correlation_id: of a request that is known to come, before it has.
    :param from_start: whether both directions were captured from their first byte.
    :param requests: the stream that the requests come in; it knows the round trip to the broker.
    :param responses: the other one; it knows the round trip to the client.
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
        *("_response_gap", "_response_losses", "_saw_request", "_saw_response", "_told_bytes"),
        *("_turning_effort", "client_id", "ending", "exchanges", "has_logged_in", "login", "software"),
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
        self._connection = connection
        self._client = client
        self._broker = broker
        self._limits = limits
        self._most = limits.pending_requests
        self._inferred = inferred
        self._pending = Pending()
        self.witness = FrameWitness(self._pending, limits, correlation_id, client_id)
        """Where frames may begin, for the framer of either direction."""
        self._expected = Expected(from_start)
        self._expects_tokens = False
        self._saw_request = False
        self._saw_response = False
        self.ending = "capture ended"
        self._response_losses = 0
        """How often bytes of the responses were not captured, or skipped."""
        self._response_gap = 0
        """The latest of these times when they were not captured."""
        self._gap_packet = 0
        """The packet that settled that: bytes that were lost may have come until then."""
        self._request_loss: str | None = None
        """Why a request may be absent: what happened to bytes among them, the latest time."""
        self._is_fresh_loss = False
        """No request came since."""
        self._lost_behind = 0
        """The latest request before that."""
        self._told_bytes = 0
        self._answered = 0
        """The latest request that was answered; brokers answer in order."""
        self._requests = requests
        self._responses = responses
        self._latest_ns = _NEVER
        """When the last byte of the latest response was captured."""
        self._latest_is_whole = True
        self._is_latest = False
        """Whether nothing of the responses was lost since."""
        self._answers_first = False
        """Whether the broker is known to answer before it throttles."""
        self._mute_end_ns = _NEVER
        """Until when it does not read from the connection because of that."""
        self._latest_api_key: int | None = None
        self._latest_id: int | None = None
        """Its correlation id, if it has one."""
        self._evicted: int | None = None
        """The correlation id of the latest that a limit made us forget; clients count up."""
        self.takes_all = False
        """Somebody else tells which frames are of which kind, and none is given back."""
        self.exchanges = 0
        self._turning_effort = TURNING_EFFORT
        self.client_id: str | None = None
        self.software: str | None = None
        """Name and version, from an ApiVersions request."""
        self.login = Login()
        self.has_logged_in = False
        """Whether a login has succeeded, until somebody takes note of it."""

    def feed(self, frame: Frame, packet: int) -> list[Event] | None:
        """What a frame means; ``packet`` is the one being read, for the order of recognition. None where it
        is of the other kind: the roles turned round."""
        self.witness.refresh()
        if frame.direction is _TO_BROKER:
            return self._feed_request(frame, packet)
        return self._feed_response(frame, packet)

    def gap(self, direction: Direction, packet: int = 0) -> None:
        """Bytes of a direction were not captured, as ``packet`` settled. A gap is told in one piece, where it
        begins. Some of its bytes may have come behind what was read before that packet."""
        self._expected.lose()
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
        """Bytes of a direction were captured, and no frame was found in them."""
        self._expected.lose()
        if direction is not _TO_BROKER:
            self._is_latest = False
            self._response_losses += 1
        elif self._request_loss != "gap" or not self._is_fresh_loss:
            self._request_loss = "skipped"  # behind a gap it is the gap that loses them
            self._lost_behind = self._pending.latest

    def end(self, reason: str) -> None:
        """Frames that come from now on are what is left: ``connection closed``, ``capture ended`` or
        ``evicted`` is why they are not whole."""
        self.ending = reason

    def held_bytes(self) -> int:
        """What requests cost that wait for their responses, and what is remembered of the client."""
        return self._pending.held_bytes + self._told_bytes

    @property
    def is_waiting(self) -> bool:
        """Whether requests wait for their responses."""
        return len(self._pending) > 0

    @property
    def is_ordinary(self) -> bool:
        """Whether nothing waits, and the latest response answered a known request. Lost bytes are not its
        subject: the streams tell of them."""
        waits = self.is_waiting or self._expects_tokens
        answered = self._is_latest and self._latest_id is not None and self._latest_api_key is not None
        return answered and not waits and not self.takes_all and self._evicted is None

    def renumber(self, number: int, exchange_number: Callable[[int], int]) -> None:
        """As :meth:`kdissect.session.conversation.Conversation.renumber`."""
        self._connection = number
        for waiting in self._pending.waiting():
            waiting.exchange.connection = number
            waiting.exchange.number = exchange_number(waiting.exchange.number)

    def give_up(self) -> list[Event]:
        """Wait no longer for responses: all connections together hold more than the limit."""
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
        """No response will come any more."""
        out: list[Event] = []
        for waiting in self._pending.clear():
            waiting.exchange.missing = self._why_missing(waiting)
            out.append(Completed(waiting.exchange))
        return out

    def _why_missing(self, waiting: Waiting) -> str:
        return self._why_lost(waiting) if self._may_be_lost(waiting) else self.ending

    def _may_be_lost(self, waiting: Waiting) -> bool:
        """Whether bytes of responses were lost since a request waits."""
        return self._response_losses > waiting.losses or self._is_in_gap(waiting)

    def _is_in_gap(self, waiting: Waiting) -> bool:
        """Whether bytes of a gap may have come behind a request, though the gap begins before it."""
        request = waiting.exchange.request
        return request is not None and self._gap_packet > request.frame.last_packet

    def _why_lost(self, waiting: Waiting) -> str:
        """The response lies in bytes that were lost since its request waits."""
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
        if request.client_id != self.client_id and self._is_answer(request):
            return None
        self._saw_request = True
        self._is_fresh_loss = False
        key = request.api_key
        self._expects_tokens = key == SASL_HANDSHAKE and request.api_version == 0
        exchange = self._exchange(frame, packet)
        exchange.request = request
        self._tell_thinking(exchange, frame)
        self._learn_from_request(request)
        exchange.principal = self.login.principal
        begun = Recognised.__new__(Recognised)
        begun.exchange = exchange
        out: list[Event] = [begun]
        if key == PRODUCE and self._asks_for_nothing(request):
            exchange.missing = "acks=0"
            out.append(Completed(exchange))
            return out
        same = self._pending.find(request.correlation_id)
        if same is not None and same < self._answered:
            # Answers come in order, and the client uses the id again: the older one's was lost.
            older = self._pending.take(same)
            lost = older.exchange
            lost.missing = "not captured"
            if self._may_be_lost(older):
                lost.missing = self._why_lost(older)
            out.append(Completed(lost))
        elif same is not None:
            message = f"correlation id {request.correlation_id} belongs to a request that still waits"
            exchange.session_faults.append(fault("duplicate-correlation", message, frame.last_packet, 4))
        self._pending.add(exchange, self._response_losses)
        if len(self._pending) > self._most:
            out.append(self._evict())
        return out

    def _asks_for_nothing(self, produce: Request) -> bool:
        """Whether the broker sends no response to it."""
        seen = produce.survey()
        if seen is not None:
            if len(seen.mentions) + len(seen.records) > _FEW:
                produce.forget_body()  # as below
            return seen.acks == 0
        body = produce.body()
        partitions = sum(len(topic.get("partitionData") or ()) for topic in body.get("topicData") or ())
        if PARTITION_BYTES * partitions > REQUEST_BYTES + len(produce.frame.payload):
            produce.forget_body()  # more than what it is counted for while it waits
        return body.get("acks") == 0

    def _is_token(self, frame: Frame) -> bool:
        payload = frame.payload
        if not self._expects_tokens and payload[:1] != bytes((GSSAPI_TOKEN,)):
            return False  # where the connection opens, only GSSAPI comes unannounced
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
        """Give up the oldest request that waits."""
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
            why_missing = self._why_missing(waiting)
            exchange = waiting.exchange
            exchange.response = Token(frame, "response")
            self._tell_wait(waiting, frame, 0)
            self._answer_came(frame, None, 0)
            exchange.session_faults += _own_faults(frame)
            if exchange.response.is_cut:
                exchange.missing = why_missing
            return [Completed(exchange)]
        if len(frame.payload) < 4:
            self._saw_response = True
            self._answer_came(frame, None, 0)
            return self._report_headless(frame, "without a correlation id")
        correlation_id = read_correlation_id(frame.payload)
        serial = self._pending.find(correlation_id)
        if serial is None:
            unmatched = self._feed_unmatched(frame, packet)
            if unmatched is not None:  # else it is a request of the broker's own
                self._saw_response = True
                self._answer_came(frame, correlation_id, 0)
            return unmatched
        self._saw_response = True
        out = [] if self._pending.oldest() == serial else self._settle_earlier(serial, frame)
        waiting = self._pending.take(serial)
        exchange = waiting.exchange
        asked = exchange.request
        assert isinstance(asked, Request)
        self._answered = max(self._answered, serial)
        if self._request_loss is not None and serial > self._lost_behind:
            self._request_loss = None  # brokers answer in order: what was lost before it was answered before
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
        if self._tell_wait(waiting, frame, throttle_ns):
            throttle_ns = 0  # it is over
        self._answer_came(frame, correlation_id, throttle_ns, asked.api_key)
        if frame.fault is not None:
            exchange.session_faults.append(frame.fault)
        if frame.size > len(frame.payload):
            exchange.missing = self._why_missing(waiting)
        if frame.searched:
            exchange.inferred = _join(exchange.inferred, _boundary("response"))
        key = asked.api_key
        if key in (API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE):
            self._learn_from_response(exchange)
        exchange.routine = self._expected.judge(exchange, asked, exchange.response)
        # Made part by part: compiled, that is several times faster than a call.
        done = Completed.__new__(Completed)
        done.exchange = exchange
        out.append(done)
        return out

    def _tell_thinking(self, exchange: Exchange, frame: Frame) -> None:
        """Tell an exchange how long its client took to ask again; ``frame`` is the request."""
        before, asked = self._latest_ns, frame.first_ns
        if not self._is_latest or before < 0 or asked < 0:
            return
        think = asked - before
        # An acknowledgement that comes with the next request has waited for it: it tells no way.
        if self._responses is not None and self._responses.path_ns > 0:
            think -= self._responses.path_ns
        think = max(think, 0)
        if not len(self._pending):
            exchange.think_ns = think
        # What follows an answer at once was on its way when the client heard that it has to wait.
        if self._mute_end_ns > asked and think >= ON_ITS_WAY_NS:
            exchange.breaks_quota = 2 * think < self._mute_end_ns - before

    def _tell_wait(self, waiting: Waiting, frame: Frame, throttle_ns: int) -> bool:
        """Tell the exchange that waited what of its time was another's: the wait behind the response before
        ``frame``, its own, the wait for a quota, and the network's part.

        :param throttle_ns: what its own response tells of a quota.
        :returns: whether that is a part of its time, and over.
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
            return False  # what was between the two responses was lost
        if not self._latest_is_whole:
            return False  # when its last byte came is not known
        before = min(before, answered)  # it was sent again: that is the network's time
        if asked < 0 <= answered:
            if before <= asked:
                exchange.behind_ns = exchange.throttle_ns = 0
            return False  # as absurd timestamps: compiled, their distance has no room
        behind = 0
        if before > asked:
            behind = max(0, before - asked - network)
            if behind:
                exchange.behind_correlation_id = self._latest_id
        exchange.behind_ns, exchange.throttle_ns = behind, 0
        if answered <= asked:
            if path:
                exchange.network_ns = 0  # nothing was shorter than this
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

    def _answer_came(
        self, frame: Frame, correlation_id: int | None, mute_ns: int, api_key: int | None = None
    ) -> None:
        """The next response waits behind this one, and for its quota."""
        self._latest_api_key = api_key
        self._latest_ns, self._latest_id = frame.last_ns, correlation_id
        self._latest_is_whole = frame.size <= len(frame.payload)
        self._is_latest = self._latest_is_whole
        self._mute_end_ns = _NEVER
        if mute_ns and frame.first_ns >= 0:
            self._mute_end_ns = min(int(frame.first_ns) + mute_ns, _ALWAYS)

    def _answers_request(self, payload: bytes) -> bool:
        """Whether a frame, while tokens wait too, is the response to a waiting request. The client's last
        GSSAPI token has no answer, so the order alone does not tell."""
        if len(payload) < 4:
            return False
        serial = self._pending.find(read_correlation_id(payload))
        if serial is None:
            return False
        return self.witness.answers(payload, self._pending.request(serial))

    def _settle_earlier(self, serial: int, frame: Frame) -> list[Event]:
        """Requests older than the one that is answered now: lost answers, or a broken order."""
        out: list[Event] = []
        for older in self._pending.older_than(serial):
            waiting = self._pending[older]
            if isinstance(waiting.exchange.request, Token):
                continue
            if self._may_be_lost(waiting):
                self._pending.remove(older)
                waiting.exchange.missing = self._why_lost(waiting)
                out.append(Completed(waiting.exchange))
                continue
            answered = self._pending[serial].exchange
            message = f"its response came before that to the older request {waiting.exchange.correlation_id}"
            answered.session_faults.append(fault("out-of-order", message, frame.last_packet, 0))
            break
        return out

    def _feed_unmatched(self, frame: Frame, packet: int) -> list[Event] | None:
        if self._is_asked(frame):
            return None
        exchange = self._exchange(frame, packet)
        exchange.response = parse_response(frame, None, None, self._limits)
        exchange.missing = self._request_loss or "not captured"
        if self._evicted is not None and read_correlation_id(frame.payload) <= self._evicted:
            exchange.missing = "evicted"
        return [Recognised(exchange), Completed(exchange)]

    # -- the roles turned round ---------------------------------------------------------------------

    def _is_asked(self, frame: Frame) -> bool:
        """Whether a frame of the broker's that answers nothing is a request of its own."""
        if self.takes_all:
            return False
        if is_surely_request(frame, self._limits):
            return True
        # Nothing is asked, and nothing that was is unknown: there is nothing that it could answer.
        is_answer_to_none = self._saw_request and not len(self._pending) and self._request_loss is None
        is_answer_to_none = is_answer_to_none and self._answered > 0 and self._evicted is None
        return is_answer_to_none and may_be_request(frame, self._limits)

    def _is_answer(self, request: Request) -> bool:
        """Whether a frame of the client's is no request, but the response to one that is not known."""
        if self.takes_all or not self._saw_request or self._turning_effort <= 0:
            return False
        self._turning_effort -= len(request.frame.payload)
        return fits_as_response(request, self._limits)

    def awaits(self, frame: Frame) -> bool:
        """Whether a frame, or the part of it that is there, is the response to a request that waits."""
        if len(frame.payload) < 4:
            return False
        serial = self._pending.find(read_correlation_id(frame.payload))
        if serial is None:
            return False
        is_cut = frame.size > len(frame.payload)
        return is_cut or self.witness.answers(frame.payload, self._pending.request(serial))

    def may_ask(self, frame: Frame) -> bool:
        """Whether a frame can be a request of this client's, where its end answers requests too."""
        if is_surely_request(frame, self._limits):
            return True
        try:
            client_id = parse_request(frame, self._limits).client_id
        except DecodeError:
            return False
        return self.client_id in (None, client_id) and may_be_request(frame, self._limits)

    def _report_headless(self, frame: Frame, what: str) -> list[Event]:
        """A frame without a whole header belongs to no exchange: its fault says where in the stream it is."""
        sender = endpoint_text(self._client if frame.direction is _TO_BROKER else self._broker)
        message = f"from {sender}: a frame of {plural(frame.size, 'byte')} at byte {frame.offset:,}, {what}"
        faults = [fault("malformed", message, frame.last_packet, 0, layer="session")]
        return [each._replace(connection=self._connection) for each in _own_faults(frame) + faults]

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
                self._count_told()
            request.client_id = self.client_id  # one text for all of them
        self.witness.learn(request)
        key = request.api_key
        if key == API_VERSIONS:
            told = software(request)
            if told is not None:
                self.software = told
                self._count_told()
        elif key == SASL_HANDSHAKE:
            self.login.begin(request.body().get("mechanism"))
        elif key == SASL_AUTHENTICATE:
            self.login.read_token(request.body().get("authBytes") or b"")

    def _count_told(self) -> None:
        self._told_bytes = told_bytes(self.client_id, self.software)

    def _learn_from_response(self, exchange: Exchange) -> None:
        """:param exchange: a login's, or one of ApiVersions."""
        if exchange.api_key == API_VERSIONS:
            if exchange.error is None and exchange.response is not None and not self._answers_first:
                asked = exchange.request
                first = isinstance(asked, Request) and answers_first(asked)
                self._answers_first = first or shows_answers_first(exchange.response)
            return
        if exchange.error is not None:
            self.login.outcome = exchange.error
        elif exchange.api_key == SASL_AUTHENTICATE and exchange.response is not None:
            self.login.outcome = "authenticated"
            self.has_logged_in = True
            lifetime = exchange.response.body().get("sessionLifetimeMs") or 0
            self.login.lasts(exchange.response.frame.last_ns, lifetime)


def told_bytes(client_id: str | None, software: str | None) -> int:
    """What it costs to remember what a client says of itself."""
    told = 0 if software is None else len(software)
    if client_id is not None:
        told += 2 * len(client_id)  # the witness has it too
    return told if told > ORDINARY_TOLD_BYTES else 0


@cache
def _too_many_pending(limit: int) -> str:
    """It is said of each request beyond the limit."""
    return f"more than {plural(limit, 'request')} wait for a response; kdissect gave up the oldest"


def _own_faults(frame: Frame) -> list[Fault]:
    return [] if frame.fault is None else [frame.fault]


def _boundary(side: str) -> str:
    return f"boundary of the {side}: found by its contents (after a gap, or where the capture began)"


def _join(first: str | None, second: str) -> str:
    return second if first is None else f"{first}; {second}"
