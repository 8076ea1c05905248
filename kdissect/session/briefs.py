"""An exchange in brief: numbers, and the positions of its bytes. Output lines are written directly from it.
For other uses, an Exchange with the same content is made of it.

Only ordinary exchanges are brief: a request and its complete answer, or a Produce without an answer. Both
were at their expected positions, with plain headers. If record sets are needed (:class:`Interest`), they are
sound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from kdissect.exchange import (
    METADATA_CARRIERS,
    Exchange,
    PartitionKey,
    base_offsets_in,
    begin_exchange,
    may_name_topics,
    names_topics,
)
from kdissect.limits import Limits
from kdissect.message import Request, Response, parse_request, parse_response
from kdissect.model import Direction, Endpoint, Frame
from kdissect.names import METADATA_TOPIC, METADATA_TOPIC_ID, TopicNames
from kdissect.protocol import apis
from kdissect.protocol.entities import COORDINATORS, GROUP
from kdissect.protocol.layout import Layout, layout
from kdissect.protocol.polling import place_of_wait
from kdissect.protocol.survey import Place, Survey, places_at, survey_at
from kdissect.protocol.traits import api_traits
from kdissect.session.sasl import PLAIN_LOGINS
from kdissect.session.throttling import answers_first_in, throttle_in

_TO_BROKER, _FROM_BROKER = Direction.TO_BROKER, Direction.FROM_BROKER

NOT_KNOWN = -1
"""A number of a brief that is None in an exchange."""
_NOT_KNOWN = NOT_KNOWN


class Interest(NamedTuple):
    """The facts needed of exchanges in brief, beside their bytes and times."""

    errors: bool = True
    """Whether it must have the routine codes of its errors."""
    records: bool = True
    """Whether its record sets must be sound, by their headers and checksums."""
    names: bool = True
    """Whether the names of topic ids are needed."""
    bodies: bool = True
    """Whether the bodies of its messages must fit the schemas of their API. ``errors`` and ``records`` need
    this too."""
    faults: bool = True
    """Whether the faults of connections are needed, and the certificates of TLS in their rows and faults.
    Without this, connections show no certificates, and most of these faults are not reported. (It takes
    50 ms to import the library that reads certificates.) The faults of exchanges do not depend on it."""


class PairLayout:
    """The definitions of an API in a version, for both of its messages."""

    __slots__ = (
        *("response", "answers_first", "api", "request", "carries_metadata", "is_brief", "is_login", "key"),
        *("name", "teaches", "throttle_is_at_hand", "throttles", "version", "wait_at", "waits"),
    )

    def __init__(self, key: int, version: int) -> None:
        self.key, self.version = key, version
        self.api = (key, version)
        self.request: Layout = layout(key, version, "request")
        self.response: Layout = layout(key, version, "response")
        headers = self.request.header_version in (1, 2) and self.response.header_version in (0, 1)
        self.is_login = key in (apis.SASL_HANDSHAKE, apis.SASL_AUTHENTICATE)
        """Whether it is a step of a login."""
        is_known = self.request.struct is not None and self.response.struct is not None
        self.is_brief = headers and is_known and (not self.is_login or self.api in PLAIN_LOGINS)
        """Whether its exchanges begin as briefs."""
        self.name = self.request.name
        self.teaches = self.request.teaches or self.response.teaches
        """Whether it may have names of topic ids."""
        self.carries_metadata = key in METADATA_CARRIERS
        """Whether it may have records of ``__cluster_metadata``."""
        self.waits = api_traits(key).waits
        """The event for which the client may let a request wait; None if it cannot."""
        place = place_of_wait(self.request.struct) if self.waits and self.request.struct is not None else None
        self.wait_at = _NOT_KNOWN if place is None else place
        """The position of the wait's length in the request's body, as in :mod:`kdissect.protocol.polling`."""
        self.answers_first = answers_first_in(key, version)
        """As in :func:`~kdissect.session.throttling.answers_first`."""
        self.throttles, self.throttle_is_at_hand = throttle_in(self.response.candidates)
        """Whether its answers have a throttle time. Then whether it can be read without their other fields
        (:func:`~kdissect.session.throttling.throttle_in`)."""

    def __reduce__(self) -> tuple[type[PairLayout], tuple[int, int]]:
        return PairLayout, self.api


BriefSet = tuple[bool, int, int, str | None, str | None, int | None]
"""A record set: whether it is the request's, its position there and its number of bytes, the topic's name,
topic id, partition."""


class Brief:
    """An exchange in brief. Times are in nanoseconds since the epoch. If a value is :data:`NOT_KNOWN` here,
    the exchange has None."""

    __slots__ = (
        *(
            "_response_places",
            "after_api_key",
            "response_data",
            "response_body",
            "response_end",
            "response_first_ns",
        ),
        *(
            "response_frame",
            "response_ns",
            "response_offset",
            "response_packet",
            "response_survey",
            "response_start",
        ),
        *("request_data", "request_body", "request_end", "request_first_ns", "request_frame"),
        *("request_ns", "request_offset", "request_packet", "request_survey", "request_start"),
        *("became", "behind_id", "behind_ns", "breaks_quota", "client_id", "connection", "correlation_id"),
        *("ends", "form", "is_behind", "is_encrypted", "is_over", "limits", "missing", "names"),
        "names_count",
        *(
            "network_ns",
            "number",
            "principal",
            "recognised_packet",
            "routine",
            "think_ns",
            "throttle_ms",
            "throttle_ns",
            "up_to_packet",
        ),
    )

    def __init__(
        self,
        connection: int,
        ends: tuple[Endpoint, Endpoint],
        form: PairLayout,
        correlation_id: int,
        client_id: str,
        limits: Limits,
    ) -> None:
        """Begin a brief. The positions of its bytes and its times must be set afterwards."""
        self.connection = connection
        self.ends = ends
        """The client's endpoint and the broker's."""
        self.form = form
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.limits = limits
        self.number = 0
        self.recognised_packet = 0
        """The current packet when it was recognised."""
        self.is_over = False
        """Whether it is complete."""
        self.missing: str | None = None
        self.became: Exchange | None = None
        """The exchange that replaces it, or that is given in its place."""
        self.request_data = b""
        """Contains the request, without its size, from ``request_start`` to ``request_end``."""
        self.request_start = self.request_body = self.request_end = self.request_offset = 0
        self.request_packet = self.request_first_ns = self.request_ns = 0
        self.request_frame: Frame | None = None
        """The frame, if several packets carried it."""
        self.request_survey: Survey | None = None
        self.response_data: bytes | None = None
        """Contains the response in the same way."""
        self.response_start = self.response_body = self.response_end = self.response_offset = 0
        self.response_packet = self.response_first_ns = self.response_ns = 0
        self.response_frame: Frame | None = None
        self.response_survey: Survey | None = None
        self._response_places: list[Place] | None = None
        self.throttle_ms = 0
        """The throttle time in the answer."""
        self.behind_ns = self.network_ns = self.throttle_ns = _NOT_KNOWN
        self.think_ns = self.after_api_key = _NOT_KNOWN
        self.principal: str | None = None
        """The principal that is logged in."""
        self.is_encrypted = False
        """Whether it came through TLS."""
        self.is_behind = self.breaks_quota = False
        """Whether it waited behind the answer with the id ``behind_id``."""
        self.behind_id = 0
        self.routine: tuple[int, ...] = ()
        """The codes of its errors that are routine."""
        self.names: TopicNames | None = None
        """The names of topic ids: the first ``names_count`` names, from packets up to ``up_to_packet``."""
        self.up_to_packet = self.names_count = 0

    @property
    def latency_ns(self) -> int:
        """From the request's last byte to the answer's first; may be negative, as captured."""
        return self.response_first_ns - self.request_ns

    @property
    def last_packet(self) -> int:
        """The last packet with bytes of it."""
        return self._last()

    def _last(self) -> int:
        return (
            self.request_packet
            if self.response_data is None
            else max(self.request_packet, self.response_packet)
        )

    @property
    def recognised(self) -> tuple[int, int, int]:
        """As in an exchange."""
        return self.recognised_packet, self.connection, self.request_offset

    def survey_request(self) -> Survey | None:
        """The facts of the request for listings; None if it has to be decoded."""
        way = self.form.request.way
        if self.request_survey is None and way is not None:
            self.request_survey = survey_at(
                way, self.request_data, self.request_body, self.request_end, self.limits
            )
        return self.request_survey

    def survey_response(self) -> Survey | None:
        """The facts of the response for listings; None if it has to be decoded, or has not come."""
        way = self.form.response.way
        if self.response_survey is None and self.response_data is not None and way is not None:
            self.response_survey = survey_at(
                way, self.response_data, self.response_body, self.response_end, self.limits
            )
        return self.response_survey

    def has_records(self) -> bool:
        """Whether it has record sets."""
        asked = self.survey_request()
        if asked is None or asked.records:
            return True
        answered = self.survey_response()
        return self.response_data is not None if answered is None else bool(answered.records)

    def record_sets(self) -> list[BriefSet] | None:
        """Its record sets that have bytes, in the order of the wire; None if only its exchange can give
        them."""
        form = self.form
        found: list[BriefSet] = []
        if form.request.has_records():
            places = self._places(form.request, self.request_data, self.request_body, self.request_end)
            if places is None:
                return None
            self._add_sets(True, places, found)
        if self.response_data is not None and form.response.has_records():
            places = self._places_in_response()
            if places is None:
                return None
            self._add_sets(False, places, found)
        return found

    def base_offsets(self) -> dict[PartitionKey, int | None] | None:
        """The base offset of each record set in the answer to a Produce; None if only its exchange can give
        them."""
        if self.response_data is None:
            return {}
        places = self._places_in_response()
        return None if places is None else base_offsets_in(places)

    def _places_in_response(self) -> list[Place] | None:
        """The places in the response, which must be there."""
        if self._response_places is None:
            answer = self.response_data
            assert answer is not None
            found = self._places(self.form.response, answer, self.response_body, self.response_end)
            self._response_places = found
        return self._response_places

    def _places(self, known: Layout, data: bytes, start: int, end: int) -> list[Place] | None:
        way = known.way
        return None if way is None else places_at(way, data, start, end, self.limits)

    def _add_sets(self, is_request: bool, places: list[Place], found: list[BriefSet]) -> None:
        for topic, topic_id, partition, _, start, size in places:
            if not size:
                continue  # most fetches bring no records
            name = topic
            if name is None and topic_id is not None and self.names is not None:
                name = self.names.find(topic_id, self.up_to_packet, self.names_count)
            found.append((is_request, start, size, name, topic_id, partition))

    def size(self) -> int:
        """The number of bytes of its messages."""
        return self.request_end - self.request_start + self.response_end - self.response_start

    def request(self) -> Request:
        """The request as a message."""
        frame = self.request_frame
        if frame is None:
            payload = self.request_data[self.request_start : self.request_end]
            packet, ns = self.request_packet, self.request_ns
            frame = Frame(
                _TO_BROKER, self.request_offset, payload, len(payload), packet, ns, packet, ns, (packet,)
            )
        request = parse_request(frame, self.limits)
        request.client_id = self.client_id  # one text object for all of them
        return request

    def response(self) -> Response:
        """The response as a message; there must be one."""
        frame = self.response_frame
        if frame is None:
            assert self.response_data is not None
            payload = self.response_data[self.response_start : self.response_end]
            packet, ns = self.response_packet, self.response_ns
            frame = Frame(
                _FROM_BROKER, self.response_offset, payload, len(payload), packet, ns, packet, ns, (packet,)
            )
        key, version = self.form.api
        return parse_response(frame, key, version, self.limits)

    def exchange(self) -> Exchange:
        """The exchange with the same content, so far."""
        client, broker = self.ends
        exchange = begin_exchange(self.connection, client, broker)
        exchange.number = self.number
        exchange.recognised = self.recognised
        exchange.missing = self.missing
        exchange.request = self.request()
        if self.response_data is not None:
            exchange.response = self.response()
        exchange.behind_ns = _or_none(self.behind_ns)
        exchange.network_ns = _or_none(self.network_ns)
        exchange.throttle_ns = _or_none(self.throttle_ns)
        exchange.think_ns = _or_none(self.think_ns)
        exchange.after_api_key = _or_none(self.after_api_key)
        exchange.behind_correlation_id = self.behind_id if self.is_behind else None
        exchange.breaks_quota = self.breaks_quota
        exchange.routine = self.routine
        exchange.principal = self.principal
        exchange.is_encrypted = self.is_encrypted
        if self.names is not None:
            exchange.topic_names = self.names.up_to(self.up_to_packet, self.names_count)
        return exchange

    def topics(self) -> list[str]:
        """As :attr:`kdissect.exchange.Exchange.topics`, for a complete one."""
        found: list[str] = []
        asked, answered = self.survey_request(), self.survey_response()
        if asked is None or (answered is None and self.response_data is not None):
            return self.exchange().topics
        self._add_topics(asked.mentions, found)
        if answered is not None:
            self._add_topics(answered.mentions, found)
        return found if len(found) < 2 else list(dict.fromkeys(found))

    def _add_topics(self, mentions: list[tuple[str | None, str | None]], found: list[str]) -> None:
        for topic, topic_id in mentions:
            name = topic
            if not name:
                name = topic_id
                if topic_id and self.names is not None:
                    name = self.names.find(topic_id, self.up_to_packet, self.names_count) or topic_id
            if name and (not found or name != found[-1]):
                found.append(name)

    def named(self, entity: str) -> list[str]:
        """As :attr:`kdissect.exchange.Exchange.groups` or ``transactional_ids``, for a complete one.

        :param entity: ``GROUP`` or ``TRANSACTIONAL_ID`` of :mod:`kdissect.protocol.entities`.
        """
        asked, answered = self.survey_request(), self.survey_response()
        if asked is None or (answered is None and self.response_data is not None):
            exchange = self.exchange()
            return exchange.groups if entity == GROUP else exchange.transactional_ids
        found: list[str] = []
        self._add_named(asked, asked.coordinator_type, entity, found)
        if answered is not None:
            self._add_named(answered, asked.coordinator_type, entity, found)
        return found if len(found) < 2 else list(dict.fromkeys(found))

    def _add_named(self, seen: Survey, coordinators: int, entity: str, found: list[str]) -> None:
        """Add the names in a message.

        :param coordinators: the kind of coordinators that the request asked for.
        """
        told: list[str] | None = seen.groups if entity == GROUP else seen.transactional_ids
        if told is not None:
            found += told
        if seen.keys is not None and COORDINATORS.get(coordinators) == entity:
            found += seen.keys

    def taught_topics(self) -> Iterable[tuple[str, str, int]]:
        """As :meth:`kdissect.exchange.Exchange.taught_topics`."""
        form = self.form
        if form.carries_metadata and self._has_metadata():
            return self.exchange().taught_topics()
        if not form.teaches:
            return ()
        out: list[tuple[str, str, int]] = []
        if form.request.teaches:
            asked = self.survey_request()
            if asked is None:
                return self.exchange().taught_topics()
            if asked.taught is not None:
                out += [(topic_id, name, self.request_packet) for topic_id, name in asked.taught]
        if form.response.teaches and self.response_data is not None:
            answered = self.survey_response()
            if answered is None:
                return self.exchange().taught_topics()
            if answered.taught is not None:
                out += [(topic_id, name, self.response_packet) for topic_id, name in answered.taught]
        return out

    def _has_metadata(self) -> bool:
        """Whether its answer may have records of ``__cluster_metadata`` that name topics."""
        if self.response_data is None:
            return False
        answered = self.response_survey
        if answered is None:
            return self._has_metadata_at(self._places_in_response())
        if not answered.records:
            return False
        asked = self.survey_request()
        if asked is None:
            return True
        if not (_name_metadata(asked.mentions) or _name_metadata(answered.mentions)):
            return False
        return may_name_topics(self.response_data, answered, self.limits)

    def _has_metadata_at(self, places: list[Place] | None) -> bool:
        """Whether an answer without a survey may have such records. The places show it, because one walk
        finds the record sets too."""
        if places is None:
            return True
        for topic, topic_id, _, _, start, size in places:
            if not size or not _is_metadata(topic, topic_id):
                continue
            if self.response_data is not None and names_topics(
                self.response_data, start, start + size, self.limits
            ):
                return True
        return False


def plain_brief(brief: Brief) -> tuple[Any, ...]:
    """The content of a brief that is over, for another process. Names of topic ids are not included, as in
    :mod:`kdissect.plain`."""
    form = brief.form
    return (
        brief.connection, brief.ends, form.key, form.version, brief.correlation_id, brief.client_id,
        brief.number, brief.recognised_packet, brief.missing,
        brief.request_data, brief.request_start, brief.request_body, brief.request_end,
        brief.request_offset, brief.request_packet, brief.request_first_ns, brief.request_ns,
        brief.request_frame, brief.request_survey,
        brief.response_data, brief.response_start, brief.response_body, brief.response_end,
        brief.response_offset, brief.response_packet, brief.response_first_ns, brief.response_ns,
        brief.response_frame, brief.response_survey,
        brief.throttle_ms, brief.behind_ns, brief.network_ns, brief.throttle_ns, brief.think_ns,
        brief.after_api_key, brief.principal, brief.is_behind, brief.breaks_quota, brief.behind_id,
        brief.routine, brief.up_to_packet, brief.names_count, brief.is_encrypted,
    )  # fmt: skip


def brief_of(
    plain: tuple[Any, ...], find: Callable[[int, int], PairLayout], names: TopicNames, limits: Limits
) -> Brief:
    """The brief with this :func:`plain_brief`.

    :param find: returns the layout of an API in a version.
    """
    connection, ends, key, version, correlation_id, client_id = plain[:6]
    brief = Brief(connection, ends, find(key, version), correlation_id, client_id, limits)
    (
        brief.number, brief.recognised_packet, brief.missing,
        brief.request_data, brief.request_start, brief.request_body, brief.request_end,
        brief.request_offset, brief.request_packet, brief.request_first_ns, brief.request_ns,
        brief.request_frame, brief.request_survey,
        brief.response_data, brief.response_start, brief.response_body, brief.response_end,
        brief.response_offset, brief.response_packet, brief.response_first_ns, brief.response_ns,
        brief.response_frame, brief.response_survey,
        brief.throttle_ms, brief.behind_ns, brief.network_ns, brief.throttle_ns, brief.think_ns,
        brief.after_api_key, brief.principal, brief.is_behind, brief.breaks_quota, brief.behind_id,
        brief.routine, brief.up_to_packet, brief.names_count, brief.is_encrypted,
    ) = plain[6:]  # fmt: skip
    brief.is_over = True
    brief.names = names
    return brief


def without_briefs(events: Sequence[Any]) -> list[Any]:
    """The events without the exchanges in brief."""
    out: list[Any] = []
    for each in events:
        if not isinstance(each, Brief):
            out.append(each)
    return out


def runs_of_briefs(events: Sequence[Any]) -> list[Any]:
    """The events, with consecutive exchanges in brief joined in lists."""
    out: list[Any] = []
    run: list[Brief] = []
    for each in events:
        if isinstance(each, Brief):
            if not run:
                out.append(run)
            run.append(each)
        else:
            if run:
                run = []
            out.append(each)
    return out


def _name_metadata(mentions: list[tuple[str | None, str | None]]) -> bool:
    for topic, topic_id in mentions:  # noqa: SIM110  # compiled, a loop is faster than a generator
        if _is_metadata(topic, topic_id):
            return True
    return False


def _is_metadata(topic: str | None, topic_id: str | None) -> bool:
    if topic_id is None:
        return topic == METADATA_TOPIC
    return topic is None and topic_id == METADATA_TOPIC_ID


def _or_none(value: int) -> int | None:
    return None if value < 0 else value
