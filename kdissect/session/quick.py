"""Frames of one connection → exchanges in brief: the short way of :mod:`kdissect.session.pairing`.

It takes what nearly all connections have: requests of one client, each with an id of its own, and their whole
answers in that order. What it takes it pairs, times and judges as a Session does. It leaves all else alone,
and says so. A Session then takes over, with the requests that wait. Once the unusual is over and nothing
waits, the connection comes back here, and the Session rests until the next unusual frame.

A request that waits is a Brief (:mod:`kdissect.session.briefs`). Some exchanges cannot be told in brief: they
have a defect, or a body that must be decoded to find what is asked of it. These come out whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kdissect.limits import Limits
from kdissect.message import Request, Response
from kdissect.model import Endpoint, Frame
from kdissect.protocol.apis import API_VERSIONS, PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kdissect.protocol.quirks import UNSUPPORTED_VERSION
from kdissect.protocol.survey import Route, Survey, survey_at
from kdissect.record.sound import is_sound
from kdissect.session.api_versions import LONGEST, shows_answers_first, shows_answers_first_in, software_in
from kdissect.session.briefs import NOT_KNOWN, Brief, Interest, PairLayout
from kdissect.session.expected import Expected, expected_of
from kdissect.session.pairing import FEW, ON_ITS_WAY_NS, Completed, Session, client_bytes
from kdissect.session.pending import REQUEST_BYTES
from kdissect.session.sasl import Login, answer_in, first_field_in
from kdissect.session.throttling import told_ms
from kdissect.tcp.packed import BYTES, number, put
from kdissect.tcp.reassembly import Reassembler

MOST_WAITING = 64
"""The largest number of requests that may wait here; beyond it the connection leaves the fast path."""
_MOST_FORMS = 4_096
_KEYS = 256
_LONGEST_TEXT = 0x7FFF
"""Larger lengths mean null."""
_PARTS_BYTES = 13 * BYTES
_HEADER_BYTES = 10
"""The first bytes of a request: API, version, correlation id, length of the client id."""
_NEVER = -(1 << 63)
_ALWAYS = (1 << 63) - 1
_MILLISECOND = 1_000_000
_ON_ITS_WAY_NS = ON_ITS_WAY_NS
_FEW = FEW
_UNSUPPORTED_VERSION = UNSUPPORTED_VERSION
_REQUEST_BYTES = REQUEST_BYTES
_LONGEST_KEPT = LONGEST
_NOT_KNOWN = NOT_KNOWN


class PairLayouts:
    """The layouts of one reading; the next may use other definitions.

    :param interest: the facts needed of exchanges in brief.
    """

    __slots__ = (
        *("_known", "_offer", "_offer_form", "_recent", "_request", "_request_form", "_shows", "_software"),
        *("checks_bodies", "checks_records", "judges", "reports_faults"),
    )

    def __init__(self, interest: Interest) -> None:
        self.judges, self.checks_records = interest.errors, interest.records
        self.reports_faults = interest.faults
        self.checks_bodies = interest.bodies or interest.errors or interest.records
        self._known: dict[int, PairLayout] = {}
        """The layouts by API and version."""
        self._recent: list[PairLayout | None] = [None] * _KEYS
        """The layout used last of each API."""
        self._request = self._offer = b""
        """The bodies of the latest ApiVersions request and of the latest response: the next connection nearly
        always begins with the same."""
        self._request_form: PairLayout | None = None
        self._software: str | None = None
        """The client's software in that request."""
        self._offer_form: PairLayout | None = None
        self._shows = False
        """Whether that response shows that the broker answers first."""

    def __reduce__(self) -> tuple[type[PairLayouts], tuple[Interest]]:
        bodies, faults = self.checks_bodies, self.reports_faults
        interest = Interest(self.judges, self.checks_records, bodies=bodies, faults=faults)
        return PairLayouts, (interest,)

    def find(self, key: int, version: int) -> PairLayout:
        """The layout of an API, whose key is a byte, in a version."""
        recent = self._recent[key]
        if recent is not None and recent.version == version:
            return recent
        found = self._recent[key] = self._find(key, version)
        return found

    def software_of(self, brief: Brief) -> str | None:
        """Name and version of the client, from its ApiVersions request."""
        form, data, start = brief.form, brief.request_data, brief.request_body
        size, known = brief.request_end - start, self._request
        if self._request_form is form and len(known) == size and data.startswith(known, start):
            return self._software
        body = data[start : start + size]
        told = software_in((form.version, body), brief.request)
        if size <= _LONGEST_KEPT:
            self._request_form, self._request, self._software = form, body, told
        return told

    def shows_answers_first(self, brief: Brief) -> bool:
        """Whether the versions in its answer show that the broker answers before it throttles."""
        form, data, start = brief.form, brief.response_data, brief.response_body
        size, known = brief.response_end - start, self._offer
        assert data is not None
        if self._offer_form is form and len(known) == size and data.startswith(known, start):
            return self._shows
        body = data[start : start + size]
        shows = shows_answers_first_in((form.version, body), brief.response)
        if size <= _LONGEST_KEPT:
            self._offer_form, self._offer, self._shows = form, body, shows
        return shows

    def _find(self, key: int, version: int) -> PairLayout:
        found = self._known.get(key << 16 | version)
        if found is None:
            if len(self._known) >= _MOST_FORMS:
                self._known.clear()
            found = self._known[key << 16 | version] = PairLayout(key, version)
        return found


class QuickSession:
    """Pairs one Kafka connection, as long as it is ordinary.

    The parameters are those of :class:`~kdissect.session.pairing.Session`.

    :param client: the client's side of the connection.
    :param ends: the client's endpoint and the broker's.
    :param forms: the layouts of the reading.
    """

    __slots__ = (
        *("_answers_first", "_client", "_connection", "_ends", "_expected", "_forms", "_latest_api_key"),
        *(
            "_latest_form",
            "_latest_id",
            "_latest_ns",
            "_limits",
            "_most_waiting",
            "_mute_end_ns",
            "_requests",
            "_responses",
        ),
        *("_serial", "_client_bytes", "_waiting", "_waiting_bytes"),
        *("client", "client_id", "ending", "exchanges", "is_encrypted", "login", "most_bytes", "principal"),
        "software",
    )

    def __init__(
        self,
        connection: int,
        client: int,
        ends: tuple[Endpoint, Endpoint],
        limits: Limits,
        from_start: bool,
        requests: Reassembler,
        responses: Reassembler,
        forms: PairLayouts,
    ) -> None:
        self.begin(connection, client, ends, limits, from_start, requests, responses, forms)

    def begin(
        self,
        connection: int,
        client: int,
        ends: tuple[Endpoint, Endpoint],
        limits: Limits,
        from_start: bool,
        requests: Reassembler,
        responses: Reassembler,
        forms: PairLayouts,
    ) -> None:
        """Do the work of ``__init__``; a fast path for compiled callers."""
        self._connection = connection
        self.client = client
        self._ends = ends
        self._limits = limits
        self.most_bytes = limits.frame_bytes
        """The largest size of a frame."""
        self._requests = requests
        self._responses = responses
        self._forms = forms
        self._expected = Expected(from_start)
        self._client: bytes | None = None
        """The client's id as in its requests; None before the first."""
        self.client_id: str | None = None
        self.software: str | None = None
        self._client_bytes = 0
        self._waiting: list[Brief] = []
        """Requests without answers, the oldest first."""
        self._most_waiting = min(MOST_WAITING, limits.pending_requests)
        self._waiting_bytes = 0
        self._serial = 0
        """The number of requests that have waited or wait."""
        self._answers_first = False
        self._latest_ns = _NEVER
        self._latest_id = 0
        self._latest_api_key = _NOT_KNOWN
        self._latest_form: PairLayout | None = None
        """The layout of the latest request: the next one nearly always has it too."""
        self._mute_end_ns = _NEVER
        self.ending = "capture ended"
        self.exchanges = 0
        self.is_encrypted = False
        """Whether its frames come out of TLS."""
        self.login: Login | None = None
        """The login of the client; None without one."""
        self.principal: str | None = None

    def parts(self) -> tuple[Any, ...]:
        """All its values but the streams, for :func:`quick_session_of`."""
        numbers = bytearray(_PARTS_BYTES)
        raw = numbers
        put(raw, 0, self._connection)
        put(raw, 8, self._latest_api_key)
        put(raw, 16, self._latest_id)
        put(raw, 24, self._latest_ns)
        put(raw, 32, self._most_waiting)
        put(raw, 40, self._mute_end_ns)
        put(raw, 48, self._serial)
        put(raw, 56, self._client_bytes)
        put(raw, 64, self._waiting_bytes)
        put(raw, 72, self.client)
        put(raw, 80, self.exchanges)
        put(raw, 88, self.most_bytes)
        put(raw, 96, self.is_encrypted)
        return (
            numbers, *self._expected.parts(), self._answers_first, self._client, self._ends, self._forms,
            self._latest_form, self._limits, self._waiting or None, self.client_id, self.ending, self.login,
            self.principal, self.software,
        )  # fmt: skip

    @property
    def is_waiting(self) -> bool:
        """Whether requests wait for their responses."""
        return bool(self._waiting)

    def held_bytes(self) -> int:
        """The cost of waiting requests, and of the facts remembered about the client."""
        return self._waiting_bytes + self._client_bytes

    def take_request(
        self,
        packet: int,
        data: bytes,
        start: int,
        end: int,
        offset: int,
        first_ns: int,
        last_packet: int,
        last_ns: int,
        frame: Frame | None,
    ) -> Brief | None:
        """Take a complete frame of the client. Return None if it is not ordinary: nothing was taken.

        :param packet: the current packet.
        :param data: contains the frame, without its size, from ``start`` to ``end``.
        :param offset: the offset of its size in the stream.
        :param frame: the frame, if several packets carried it.
        """
        raw = data
        if end - start < _HEADER_BYTES or first_ns < 0 or last_ns < 0:
            return None
        length = raw[start + 8] << 8 | raw[start + 9]
        body = start + _HEADER_BYTES + length
        if raw[start] != 0 or raw[start + 2] != 0 or length > _LONGEST_TEXT or body > end:
            return None
        if len(self._waiting) >= self._most_waiting:
            return None
        key = raw[start + 1]
        form = self._form(key, raw[start + 3])
        if not form.is_brief:
            return None
        if form.request.header_version == 2:
            if body >= end or raw[body] != 0:
                return None
            body += 1
        client = self._client
        if client is None:
            client = data[start + _HEADER_BYTES : start + _HEADER_BYTES + length]
            if not client.isascii():
                return None
        elif len(client) != length or not data.startswith(client, start + _HEADER_BYTES):
            return None
        high = raw[start + 4]  # a separate number: compiled, shifting a byte would lose bits
        correlation_id = high << 24 | raw[start + 5] << 16 | raw[start + 6] << 8 | raw[start + 7]
        if high > 0x7F:
            correlation_id -= 0x1_0000_0000
        for waiting in self._waiting:
            if waiting.correlation_id == correlation_id:
                return None
        seen: Survey | None = None
        if key == PRODUCE:
            way = form.request.way
            assert way is not None
            seen = survey_at(way, data, body, end, self._limits)
            if seen is None:
                return None
            if (
                seen.acks == 0
                and self._forms.checks_records
                and not _are_sound(data, seen, self._limits, False)
            ):
                return None
        elif form.is_login:
            seen = _survey_login(form.request.way, data, body, end, self._limits)
            said = None if seen is None else first_field_in(form.api, data, body)
            if said is None or (key == SASL_HANDSHAKE and not said.isascii()):
                return None
            self._learn_login(key, said)
        if self._client is None:
            self._client, self.client_id = client, client.decode("ascii")
            self._count_client_bytes()
        assert self.client_id is not None
        # Set attribute by attribute: compiled, that is several times faster than one call with all values.
        brief = Brief.__new__(Brief)
        _begin(brief)
        brief.connection, brief.ends, brief.form = self._connection, self._ends, form
        brief.client_id, brief.limits = self.client_id, self._limits
        brief.principal, brief.is_encrypted = self.principal, self.is_encrypted
        brief.correlation_id, brief.recognised_packet = correlation_id, packet
        brief.request_data, brief.request_start, brief.request_end, brief.request_body = (
            data,
            start,
            end,
            body,
        )
        brief.request_offset, brief.request_packet = offset, last_packet
        brief.request_first_ns, brief.request_ns, brief.request_frame = first_ns, last_ns, frame
        self.exchanges += 1
        self._set_think_time(brief)
        if key == API_VERSIONS:
            told = self._forms.software_of(brief)
            if told is not None:
                self.software = told
                self._count_client_bytes()
        if seen is not None:
            if len(seen.mentions) + len(seen.records) <= _FEW:
                brief.request_survey = seen
            if seen.acks == 0:
                brief.missing, brief.is_over = "acks=0", True
                brief.request_survey = seen
                return brief
        self._waiting.append(brief)
        self._waiting_bytes += _REQUEST_BYTES + 2 * (end - start)
        self._serial += 1
        return brief

    def take_response(
        self,
        data: bytes,
        start: int,
        end: int,
        offset: int,
        first_ns: int,
        last_packet: int,
        last_ns: int,
        frame: Frame | None,
    ) -> Brief | Completed | None:
        """Take a complete frame of the broker; the parameters are those of :meth:`take_request`. Return the
        exchange in brief, or as a whole if a brief cannot hold it. Return None if it is not the answer to the
        oldest request, or not ordinary: nothing was taken."""
        raw = data
        if end - start < 4 or not self._waiting or first_ns < 0 or last_ns < 0:
            return None
        brief = self._waiting[0]
        seen: Survey | None = None
        high = raw[start]  # as above
        correlation_id = high << 24 | raw[start + 1] << 16 | raw[start + 2] << 8 | raw[start + 3]
        if high > 0x7F:
            correlation_id -= 0x1_0000_0000
        if correlation_id != brief.correlation_id:
            return None
        form, body = brief.form, start + 4
        key = form.key
        if form.response.header_version == 1:
            if body >= end or raw[body] != 0:
                return None
            body += 1
        if form.is_login:
            seen = _survey_login(form.response.way, data, body, end, self._limits)
            if seen is None or seen.error:
                return None
        del self._waiting[0]
        self._waiting_bytes -= _REQUEST_BYTES + 2 * (brief.request_end - brief.request_start)
        brief.response_data, brief.response_start, brief.response_end, brief.response_body = (
            data,
            start,
            end,
            body,
        )
        brief.response_offset, brief.response_packet = offset, last_packet
        brief.response_first_ns, brief.response_ns, brief.response_frame = first_ns, last_ns, frame
        way = form.response.way
        if (
            key == API_VERSIONS
            and end - body >= 2
            and raw[body] == 0
            and raw[body + 1] == _UNSUPPORTED_VERSION
        ):
            # A broker that does not know the version answers in the oldest one.
            way = self._forms.find(API_VERSIONS, 0).response.way
        is_at_hand = form.throttle_is_at_hand and not (form.throttles and end - body < 4)
        is_looked_at = self._forms.checks_bodies or not is_at_hand or key == API_VERSIONS or form.is_login
        throttle_ms = 0
        if is_looked_at:
            if seen is None and way is not None:
                seen = survey_at(way, data, body, end, self._limits)
            brief.response_survey = seen
            throttle_ms = told_ms(brief.response()) if seen is None else seen.throttle_ms
        elif form.throttles:
            high = raw[body]
            throttle_ms = high << 24 | raw[body + 1] << 16 | raw[body + 2] << 8 | raw[body + 3]
            if high > 0x7F:
                throttle_ms -= 0x1_0000_0000
        brief.throttle_ms = throttle_ms
        throttle_ns = throttle_ms * _MILLISECOND if throttle_ms > 0 else 0
        if throttle_ns and not self._answers_first:
            self._answers_first = form.answers_first
        if self._set_waits(brief, throttle_ns):
            throttle_ns = 0  # the throttling is over
        self._latest_api_key, self._latest_ns, self._latest_id = key, last_ns, correlation_id
        self._mute_end_ns = _NEVER
        if throttle_ns:
            self._mute_end_ns = first_ns + throttle_ns if first_ns <= _ALWAYS - throttle_ns else _ALWAYS
        if seen is None:
            if is_looked_at:
                return self._complete_whole(brief)
            brief.is_over = True
            return brief
        if key == SASL_AUTHENTICATE and self.login is not None:
            token, lifetime_ms = answer_in(form.version, data, body)
            if self.login.is_over(token):
                self.login.outcome = "authenticated"
                self.login.lasts(last_ns, lifetime_ms)
        if key == API_VERSIONS and not seen.error and not self._answers_first:
            self._answers_first = form.answers_first or self._forms.shows_answers_first(brief)
        if self._forms.judges and (seen.error or not self._expected.note_success(key)):
            brief.routine = self._expected.judge_brief(brief)
        if not self._forms.checks_records or self._is_sound(brief):
            brief.is_over = True
            return brief
        brief.became = brief.exchange()
        return Completed(brief.became)

    def _complete_whole(self, brief: Brief) -> Completed:
        """The whole exchange of a brief, because its answer must be decoded."""
        exchange = brief.became = brief.exchange()
        assert isinstance(exchange.request, Request)
        assert isinstance(exchange.response, Response)
        form = brief.form
        if form.key == API_VERSIONS and not self._answers_first and exchange.error is None:
            self._answers_first = form.answers_first or shows_answers_first(exchange.response)
        exchange.routine = self._expected.judge(exchange, exchange.request, exchange.response)
        return Completed(exchange)

    def renumber(self, number: int, exchange_number: Callable[[int], int]) -> None:
        """As :meth:`Session.renumber`."""
        self._connection = number
        for brief in self._waiting:
            brief.connection, brief.number = number, exchange_number(brief.number)

    def resume_with(self, forms: PairLayouts) -> None:
        """Use the layouts of this process, because the connection came from another process."""
        self._forms, self._latest_form = forms, None
        for brief in self._waiting:
            brief.form = forms.find(brief.form.key, brief.form.version)

    def take_over(self, session: Session, client_id: str) -> None:
        """Replace a settled Session.

        :param client_id: the client id of its latest requests.
        """
        self.login, self.principal = session.login, session.login.principal
        self._client, self.client_id = client_id.encode("ascii"), client_id
        self.software, self._client_bytes = session.software, session._client_bytes
        self.exchanges, self.ending = session.exchanges, session.ending
        self._expected, self._answers_first = session._expected, session._answers_first
        self._latest_ns, self._mute_end_ns = session._latest_ns, session._mute_end_ns
        assert session._latest_id is not None
        assert session._latest_api_key is not None
        self._latest_id, self._latest_api_key = session._latest_id, session._latest_api_key
        self._serial = session._answered

    def hand_over(self, session: Session) -> None:
        """Let a Session replace this one: a new one, or the one that this one replaced."""
        session.client_id, session.software = self.client_id, self.software
        session.exchanges = self.exchanges
        session.ending = self.ending
        session._client_bytes = self._client_bytes
        session._saw_request = self.exchanges > 0
        session._saw_response = self._latest_ns != _NEVER
        session._expected = self._expected
        session._answers_first = self._answers_first
        session._latest_ns, session._mute_end_ns = self._latest_ns, self._mute_end_ns
        if session._saw_response:
            session._latest_id, session._latest_api_key = self._latest_id, self._latest_api_key
            session._is_latest = True
        if self.login is not None:
            session.login = self.login
        if self.client_id is not None:
            session.witness.know(self.client_id)
        session._pending.begin_at(self._serial - len(self._waiting))
        session._answered = self._serial - len(self._waiting)
        for brief in self._waiting:
            exchange = brief.became = brief.exchange()
            session._pending.add(exchange, session._response_losses)

    def _form(self, key: int, version: int) -> PairLayout:
        latest = self._latest_form
        if latest is not None and latest.key == key and latest.version == version:
            return latest
        found = self._latest_form = self._forms.find(key, version)
        return found

    def _learn_login(self, key: int, said: bytes) -> None:
        """As a Session learns from a request of a login: a mechanism begins one, all else are its tokens."""
        if self.login is None:
            self.login = Login()
        if key == SASL_HANDSHAKE:
            self.login.begin(said.decode("ascii"))
        else:
            self.login.read_token(said)
        self.principal = self.login.principal

    def _is_sound(self, brief: Brief) -> bool:
        """Whether both messages, and the parts of their records that listings need, are sound."""
        asked, answered = brief.survey_request(), brief.response_survey
        if asked is None or answered is None:
            return False
        if asked.records and not _are_sound(brief.request_data, asked, self._limits, False):
            return False
        if not answered.records:
            return True
        answer = brief.response_data
        return answer is not None and _are_sound(answer, answered, self._limits, True)

    def _set_think_time(self, brief: Brief) -> None:
        """As :meth:`Session._set_think_time`."""
        before, asked = self._latest_ns, brief.request_first_ns
        if before < 0:
            return
        think = asked - before
        if self._responses.path_ns > 0:
            think -= self._responses.path_ns
        think = max(think, 0)
        if not self._waiting:
            brief.think_ns = think
        if self._mute_end_ns > asked and think >= _ON_ITS_WAY_NS:
            brief.breaks_quota = 2 * think < self._mute_end_ns - before

    def _set_waits(self, brief: Brief, throttle_ns: int) -> bool:
        """As :meth:`Session._set_waits`."""
        brief.after_api_key = self._latest_api_key
        asked, before, answered = brief.request_ns, self._latest_ns, brief.response_first_ns
        network = path = 0
        if self._requests.round_trip_ns > 0:
            network = self._requests.round_trip_ns
            if self._requests.path_ns >= 0:
                brief.network_ns = path = self._requests.path_ns
        before = min(before, answered)  # a retransmission: that is the network's time
        behind = 0
        if before > asked:
            behind = before - asked - network
            behind = max(behind, 0)
            if behind:
                brief.is_behind, brief.behind_id = True, self._latest_id
        brief.behind_ns, brief.throttle_ns = behind, 0
        if answered <= asked:
            if path:
                brief.network_ns = 0  # no round trip was shorter
            return False
        left = answered - asked - behind
        if left < path:
            brief.network_ns = path = left
        left -= path
        muted = 0
        if self._mute_end_ns > asked:
            muted = self._mute_end_ns - asked - network - behind
            muted = max(muted, 0)
            muted = min(muted, left)
            brief.throttle_ns = muted
        if throttle_ns == 0 or self._answers_first or left - muted < throttle_ns:
            return False
        brief.throttle_ns = muted + throttle_ns
        return True

    def _count_client_bytes(self) -> None:
        """As :meth:`Session._count_client_bytes`."""
        self._client_bytes = client_bytes(self.client_id, self.software)


def quick_session_of(parts: tuple[Any, ...], streams: tuple[Reassembler, Reassembler]) -> QuickSession:
    """The session with these :meth:`~QuickSession.parts`.

    :param streams: both streams of its connection, by side.
    """
    made = QuickSession.__new__(QuickSession)
    (
        numbers, *expected, made._answers_first, made._client, made._ends, made._forms, made._latest_form,
        made._limits, waiting, made.client_id, made.ending, made.login, made.principal, made.software,
    ) = parts  # fmt: skip
    raw = numbers
    made._connection = number(raw, 0)
    made._latest_api_key = number(raw, 8)
    made._latest_id = number(raw, 16)
    made._latest_ns = number(raw, 24)
    made._most_waiting = number(raw, 32)
    made._mute_end_ns = number(raw, 40)
    made._serial = number(raw, 48)
    made._client_bytes = number(raw, 56)
    made._waiting_bytes = number(raw, 64)
    made.client = number(raw, 72)
    made.exchanges = number(raw, 80)
    made.most_bytes = number(raw, 88)
    made.is_encrypted = number(raw, 96) != 0
    made._waiting = [] if waiting is None else waiting
    made._expected = expected_of(tuple(expected))
    made._requests, made._responses = streams[made.client], streams[1 - made.client]
    return made


def _begin(brief: Brief) -> None:
    """Set the attributes that all briefs have at first, as ``__init__`` does."""
    brief.number = brief.up_to_packet = brief.names_count = 0
    brief.missing = brief.became = brief.names = None
    brief.request_survey = brief.response_survey = brief.response_data = brief.response_frame = None
    brief._response_places = None
    brief.response_start = brief.response_body = brief.response_end = brief.response_offset = 0
    brief.response_packet = brief.response_first_ns = brief.response_ns = 0
    brief.behind_ns = brief.network_ns = brief.throttle_ns = _NOT_KNOWN
    brief.think_ns = brief.after_api_key = _NOT_KNOWN
    brief.is_over = brief.is_behind = brief.breaks_quota = False
    brief.behind_id = brief.throttle_ms = 0
    brief.routine = ()


def _survey_login(way: Route | None, data: bytes, start: int, end: int, limits: Limits) -> Survey | None:
    """What was found in a body of a login; None where that is not ordinary."""
    return None if way is None else survey_at(way, data, start, end, limits)


def _are_sound(data: bytes, seen: Survey, limits: Limits, may_end_early: bool) -> bool:
    """Whether every found record set is sound by its headers and checksums.

    :param may_end_early: whether it is normal that a set ends inside a batch.
    """
    places, at = seen.records, 0
    while at < len(places):
        if not is_sound(data, places[at], places[at + 1], limits, False, may_end_early):
            return False
        at += 2
    return True
