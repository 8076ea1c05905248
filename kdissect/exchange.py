# cython: always_allow_keywords=True
"""An exchange: a request and its response, or only one of the two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from kdissect.lazy import Later
from kdissect.limits import Limits
from kdissect.message import SASL_TOKEN, Message, Request, Response, Token
from kdissect.model import Endpoint, Fault, endpoint_text
from kdissect.names import METADATA_TOPIC, METADATA_TOPIC_ID, NO_NAMES, Names, is_metadata_topic
from kdissect.protocol import apis
from kdissect.protocol.entities import (
    COORDINATORS,
    GROUP,
    KEY_TYPE,
    TOPIC,
    TRANSACTIONAL_ID,
    named_around,
    names_in,
)
from kdissect.protocol.errors import class_in, error_name, gravest
from kdissect.protocol.program import is_error_code
from kdissect.protocol.schema import Struct
from kdissect.protocol.select import Selection, first_true, pick, selection
from kdissect.protocol.survey import Place, Survey, places_at, route
from kdissect.protocol.topics import mentioned_topics, partition_of, taught_topics
from kdissect.record.sets import read_record_set
from kdissect.record.sound import is_sound, may_have_value

if TYPE_CHECKING:
    from kdissect.embedded import decoded, faults, internal
else:  # only few messages need it
    decoded, faults = Later("kdissect.embedded.decoded"), Later("kdissect.embedded.faults")
    internal = Later("kdissect.embedded.internal")

PartitionKey = tuple[str | None, str | None, int | None]
"""Topic name, or else topic id; partition."""

new_tuple = tuple.__new__

_NOT_RECOGNISED = (0, 0, 0)

METADATA_CARRIERS = (apis.FETCH, apis.FETCH_SNAPSHOT)


class Proxied(NamedTuple):
    """The path of an exchange's connection through a proxy, from the preamble of the proxy."""

    client: Endpoint
    """The sender of the client's packets: the proxy, if it named its client to the broker."""
    peer: Endpoint
    """The receiver of these packets."""
    packets: tuple[int, ...]
    """The packets of the preamble, which are needed to read the connection in the same way."""
    has_login: bool
    """Whether the preamble had a login at the proxy."""


class Copy(NamedTuple):
    """The facts of an exchange at another capture point."""

    point: str
    request_time_ns: int | None
    response_start_ns: int | None

    @property
    def latency_ns(self) -> int | None:
        """The latency at that capture point."""
        if self.request_time_ns is None or self.response_start_ns is None:
            return None
        return self.response_start_ns - self.request_time_ns


class Seen(NamedTuple):
    """The capture points of an exchange, if the input has several."""

    point: str
    """The capture point of this copy."""
    copies: tuple[Copy, ...] = ()
    """The copies of the other capture points."""


class Exchange:
    """One request and its response on one connection. At least one of the two is there.

    Times are nanoseconds since the epoch. Packet numbers count from 1 over the input. Sizes are bytes of a
    message without the 4-byte size before it. A missing message has None for its values.
    """

    __slots__ = (
        *(
            "_base_offsets",
            "_broker",
            "_client",
            "_faults",
            "after_api_key",
            "behind_correlation_id",
            "behind_ns",
        ),
        *("broker_endpoint", "breaks_quota"),
        *("client_endpoint", "connection", "embedded", "inferred", "is_encrypted", "missing", "network_ns"),
        *("number", "principal", "proxied", "recognised", "request", "response", "routine"),
        *("seen", "session_faults", "shared", "think_ns", "throttle_ns", "topic_names"),
    )

    def __init__(
        self,
        connection: int,
        client_endpoint: Endpoint,
        broker_endpoint: Endpoint,
        request: Request | Token | None = None,
        response: Response | Token | None = None,
        missing: str | None = None,
        inferred: str | None = None,
        number: int = 0,
        session_faults: list[Fault] | None = None,
        topic_names: Names = NO_NAMES,
        embedded: bool = False,
        is_encrypted: bool = False,
        proxied: Proxied | None = None,
        principal: str | None = None,
        routine: tuple[int, ...] = (),
        behind_ns: int | None = None,
        behind_correlation_id: int | None = None,
        network_ns: int | None = None,
        throttle_ns: int | None = None,
        think_ns: int | None = None,
        after_api_key: int | None = None,
        breaks_quota: bool = False,
        seen: Seen | None = None,
    ) -> None:
        self.connection = connection
        self.client_endpoint = client_endpoint
        self.broker_endpoint = broker_endpoint
        self.request = request
        self.response = response
        self.missing = missing
        """The reason why one side is absent or the response is incomplete: ``acks=0``, ``not captured``,
        ``gap``, ``skipped`` (captured, but no frame was found in the bytes), ``capture ended``, ``connection
        closed``, ``waiting``, ``evicted``. None means that the response has all its bytes."""
        self.inferred = inferred
        """A conclusion that was not on the wire, with the evidence."""
        self.number = number
        """1, 2, … in the order of recognition; 0 before it is numbered."""
        self.recognised: tuple[int, int, int] = (0, 0, 0)
        """The sort key of that order: packet, connection, stream offset."""
        self.session_faults: list[Fault] = [] if session_faults is None else session_faults
        self.topic_names = topic_names
        """The names of its topic ids, if the capture had them."""
        self.embedded = embedded
        """Whether embedded bytes of its messages are read too; then :attr:`faults` has their faults."""
        self.is_encrypted = is_encrypted
        """Whether it came through TLS. Then its packets can only be read with all packets before them."""
        self.proxied = proxied
        """Its path through a proxy; None without a known proxy."""
        self.principal = principal
        """The principal that is logged in, or logs in with it, by the login on its connection."""
        self.routine = routine
        """The codes of its errors that are routine here (:mod:`kdissect.session.expected`)."""
        self.behind_ns = behind_ns
        """The time in ns that the request waited at the broker behind the request before it on its
        connection, because brokers serve one at a time. It is a part of :attr:`latency_ns`, but not the
        broker's work on this request. None if a message is missing, or if another response may have been lost
        before its own."""
        self.behind_correlation_id = behind_correlation_id
        """The correlation id of the request before it, if it waited behind that one."""
        self.network_ns = network_ns
        """The smallest round trip so far between the capture point and the broker on its connection, ns; None
        if unknown."""
        self.throttle_ns = throttle_ns
        """The part of :attr:`latency_ns` in which a quota throttled the exchange, ns
        (:mod:`kdissect.session.throttling`); None if :attr:`behind_ns` is None."""
        self.think_ns = think_ns
        """The client's time between the last byte of the answer before and the first byte of the request, ns,
        if no other request waited; None if unknown."""
        self.after_api_key = after_api_key
        """The API of the answer before its own on its connection: the request waited behind it, or the
        client's think time began with it; None if unknown."""
        self.breaks_quota = breaks_quota
        """Whether the client sent it too early: the answer before had told the client to wait, and less than
        half of that time was over."""
        self.seen = seen
        """Its capture points; None if the input has only one."""
        self.shared: Any = None
        """The shared results of statistics that read many exchanges one by one, while they read this one."""
        self._faults: tuple[Fault, ...] | None = None
        self._base_offsets: dict[PartitionKey, int | None] | None = None
        """The base offsets in the response to a Produce, once they were needed."""
        self._client: str | None = None
        self._broker: str | None = None

    def __repr__(self) -> str:
        return f"<Exchange {self.number} of connection {self.connection}>"

    @property
    def client(self) -> str:
        return self._client_address()

    def _client_address(self) -> str:
        # Compiled modules call this method and others below in C. To read a property takes several times as
        # long, and tables read a few of each exchange.
        if self._client is None:
            self._client = _text_of(self.client_endpoint)
        return self._client

    @property
    def broker(self) -> str:
        return self._broker_address()

    def _broker_address(self) -> str:
        if self._broker is None:
            self._broker = _text_of(self.broker_endpoint)
        return self._broker

    @property
    def messages(self) -> tuple[Message, ...]:
        """The request and the response; only one of them if the other is missing."""
        return self._both()

    def _both(self) -> tuple[Message, ...]:
        if self.request is None or self.response is None:
            return (self._first(),)
        return self.request, self.response

    def size(self) -> int:
        """The captured bytes of its messages."""
        size = 0
        if self.request is not None:
            size += len(self.request.frame.payload)
        if self.response is not None:
            size += len(self.response.frame.payload)
        return size

    def _first(self) -> Message:
        """The request, else the response."""
        first: Message | None = self.request if self.request is not None else self.response
        assert first is not None
        return first

    @property
    def api_key(self) -> int | None:
        return self._first().api_key

    @property
    def api_version(self) -> int | None:
        return self._first().api_version

    @property
    def api(self) -> str | None:
        """Kafka's newest name of the API; None for a response whose request is unknown."""
        return self._api()

    def _api(self) -> str | None:
        first = self._first()
        known = first.layout()
        if known is not None:
            return known.name
        return SASL_TOKEN if isinstance(first, Token) else None

    @property
    def correlation_id(self) -> int | None:
        return self._first().correlation_id

    @property
    def client_id(self) -> str | None:
        return self._client_id()

    def _client_id(self) -> str | None:
        request = self.request
        if isinstance(request, Request):
            sent: Request = request  # in C, with its type
            return sent.client_id
        return None if request is None else request.client_id

    @property
    def request_packet(self) -> int | None:
        """The packet whose arrival completed the request (Wireshark's ``frame.number`` for one file)."""
        return None if self.request is None else self.request.frame.last_packet

    @property
    def response_packet(self) -> int | None:
        """The packet whose arrival completed the response."""
        return None if self.response is None else self.response.frame.last_packet

    @property
    def request_start_ns(self) -> int | None:
        """When the packet with the request's first byte was captured, ns since the epoch."""
        return None if self.request is None else self.request.frame.first_ns

    @property
    def request_time_ns(self) -> int | None:
        """When the packet that completed the request was captured, ns since the epoch."""
        return None if self.request is None else self.request.frame.last_ns

    @property
    def response_start_ns(self) -> int | None:
        """When the packet with the response's first byte was captured, ns since the epoch."""
        return None if self.response is None else self.response.frame.first_ns

    @property
    def response_time_ns(self) -> int | None:
        """When the packet that completed the response was captured, ns since the epoch."""
        return None if self.response is None else self.response.frame.last_ns

    @property
    def request_size(self) -> int | None:
        """Bytes that the request announces, captured or not, without the 4-byte size."""
        return None if self.request is None else self.request.frame.size

    @property
    def response_size(self) -> int | None:
        """Bytes that the response announces, captured or not, without the 4-byte size."""
        return None if self.response is None else self.response.frame.size

    @property
    def begun_ns(self) -> int:
        """The time at which it began in the capture: when its request was complete, or when its response
        came."""
        return self._begun()

    def _begun(self) -> int:
        if self.request is not None:
            return self.request.frame.last_ns
        return self._first().frame.first_ns

    @property
    def ended_ns(self) -> int:
        """When its response was complete; without a response, when its request was complete."""
        return self._ended()

    def _ended(self) -> int:
        if self.response is not None:
            return self.response.frame.last_ns
        return self._first().frame.last_ns

    @property
    def latency_ns(self) -> int | None:
        """Nanoseconds from the request's last byte to the response's first; may be negative, as captured.
        Also None if two absurd timestamps are further apart than 64 bits can express."""
        return self._latency()

    def _latency(self) -> int | None:
        if self.request is None or self.response is None:
            return None
        return _from_to(self.request.frame.last_ns, self.response.frame.first_ns)

    @property
    def turn_ns(self) -> int | None:
        """:attr:`latency_ns` without the waits behind an earlier request and for a quota. None if one of
        these is unknown."""
        return self._turn()

    def _turn(self) -> int | None:
        latency, behind, throttle = self._latency(), self.behind_ns, self.throttle_ns
        return None if latency is None or behind is None or throttle is None else latency - behind - throttle

    @property
    def served_ns(self) -> int | None:
        """The time of the broker, including the wait that the client asked for: ``latency_ns - behind_ns -
        throttle_ns - network_ns``. An unknown ``network_ns`` counts as 0; None if another part is unknown."""
        return self._served()

    def _served(self) -> int | None:
        turn = self._turn()
        return None if turn is None else turn - (self.network_ns or 0)

    @property
    def request_transfer_ns(self) -> int | None:
        """From the packet with the request's first byte to the one with its last, ns."""
        return None if self.request is None else _between(self.request)

    @property
    def response_transfer_ns(self) -> int | None:
        """From the packet with the response's first byte to the one with its last, ns."""
        return None if self.response is None else _between(self.response)

    @property
    def capture_point(self) -> str | None:
        """The capture point of this copy; None if the input has only one capture point."""
        return None if self.seen is None else self.seen.point

    @property
    def also_at(self) -> list[str]:
        """The other capture points that saw it."""
        return [] if self.seen is None else [copy.point for copy in self.seen.copies]

    @property
    def between_ns(self) -> int | None:
        """Latency at the capture point farthest from the broker minus that at the nearest, ns. The network
        between the two took that time, both ways together. None if only one point has both sides.
        """
        if self.seen is None or self.latency_ns is None:
            return None
        took = [copy.latency_ns for copy in self.seen.copies if copy.latency_ns is not None]
        return max(*took, self.latency_ns) - min(*took, self.latency_ns) if took else None

    @property
    def last_packet(self) -> int:
        """The last packet that carried its bytes."""
        return self._last()

    def _last(self) -> int:
        if self.request is None or self.response is None:
            return self._first().frame.last_packet
        return max(self.request.frame.last_packet, self.response.frame.last_packet)

    @property
    def error(self) -> str | None:
        """The name of the first error code in the response that is not 0."""
        return self._error()

    def _error(self) -> str | None:
        if self.response is None:
            return None
        seen = self.response.survey()
        if seen is not None:
            return error_name(seen.error) if seen.error else None
        body = self.response.decoded()
        if body.struct is None:
            return None
        code = first_true(_error_fields(body.struct), body.values)
        return None if code is None else error_name(code)

    @property
    def error_class(self) -> str | None:
        """The class of its gravest error: ``fatal``, ``retriable`` or ``routine``; None without an
        error."""
        return None if self._error() is None else gravest(self.error_classes())

    def error_classes(self) -> list[str]:
        """The class of each of its errors, in the order of the message."""
        return [self.class_of(code) for code in self.codes()]

    def codes(self) -> list[int]:
        """Every error code in the response that is not 0, in the order of the message."""
        seen = self.response.survey() if self.response is not None else None
        if seen is None:
            return [code for code, _ in self.error_codes()]
        return [] if seen.errors is None else list(seen.errors)

    def class_of(self, code: int) -> str:
        """The class of one of its errors."""
        return class_in(code, self.routine)

    @property
    def groups(self) -> list[str]:
        """Ids of the groups that its messages name, each once."""
        return self._named(GROUP)

    @property
    def transactional_ids(self) -> list[str]:
        """Transactional ids that its messages name, each once."""
        return self._named(TRANSACTIONAL_ID)

    def _named(self, entity: str) -> list[str]:
        found: list[str] = []
        for message in self._both():
            seen = message.survey()
            if seen is not None:
                told = seen.groups if entity == GROUP else seen.transactional_ids
                if told is not None:
                    found += told
                if seen.keys is not None and self._coordinators() == entity:
                    found += seen.keys
                continue
            body = message.decoded()
            if body.struct is not None:
                asked = self.request.body() if self.request is not None else None
                found += names_in(entity, body.struct, body.values, asked)
        return found if len(found) < 2 else list(dict.fromkeys(found))

    def _coordinators(self) -> str | None:
        """The kind of things that the coordinators' keys in it name."""
        if self.request is None:
            return None
        seen = self.request.survey()
        asked = self.request.body().get(KEY_TYPE, 0) if seen is None else seen.coordinator_type
        return COORDINATORS.get(asked)

    def subject_at(self, entity: str, ancestors: tuple[dict[str, Any], ...]) -> str | None:
        """The group, transactional id or topic (by name) that a place in the response is about. None if that
        is unknown, or if the request is about several.

        :param ancestors: the structs of the response around the place, outermost first.
        """
        assert self.response is not None
        struct = self.response.decoded().struct
        if struct is None:
            return None
        asked = self.request.body() if self.request is not None else None
        found = named_around(entity, struct, ancestors, asked)
        if found is None and entity != TOPIC:
            every = self._named(entity)
            found = every[0] if len(every) == 1 else None
        return found

    def error_codes(self) -> Iterator[tuple[int, tuple[dict[str, Any], ...]]]:
        """Every error code in the response that is not 0, with the structs around it, outermost first."""
        if self.response is None:
            return
        seen = self.response.survey()
        if seen is not None and not seen.error:
            return
        body = self.response.decoded()
        if body.struct is not None:
            for _, code, ancestors in pick(_error_fields(body.struct), body.values):
                if code:
                    yield code, ancestors

    @property
    def topics(self) -> list[str]:
        """Topics in the order of the message, each once; by name if the capture has it, otherwise by id."""
        found: list[str] = []
        for topic, topic_id in self._topic_mentions():
            name = topic or (self.topic_names.get(topic_id) if topic_id else None) or topic_id
            if name and (not found or name != found[-1]):
                found.append(name)
        return found if len(found) < 2 else list(dict.fromkeys(found))

    def topic_ids(self) -> set[str]:
        """The topic ids in its messages."""
        return {topic_id for _, topic_id in self._topic_mentions() if topic_id}

    def _topic_mentions(self) -> list[tuple[str | None, str | None]]:
        found: list[tuple[str | None, str | None]] = []
        for message in self._both():
            seen = message.survey()
            if seen is not None:
                found += seen.mentions
                continue
            body = message.decoded()
            if body.struct is not None:
                found += mentioned_topics(body.struct, body.values)
        return found

    @property
    def faults(self) -> list[Fault]:
        """The faults of the session, of both messages, and of their records, which are unpacked for it. With
        :attr:`embedded`, also the faults of embedded bytes. They are computed once, when the exchange is
        complete.

        A record set of a response may end inside a batch: brokers cut there (KIP-74).
        """
        if self._faults is None:
            self._faults = self._find_faults(unpacks=True)
        return list(self._faults)

    @property
    def cheap_faults(self) -> list[Fault]:
        """The :attr:`faults` that can be found without unpacking: compressed records are checked by headers
        and checksums."""
        return list(self._find_faults(unpacks=False) if self._faults is None else self._faults)

    def _find_faults(self, unpacks: bool) -> tuple[Fault, ...]:
        messages = self._both()
        if self._is_sound(messages, unpacks):
            return ()
        found = list(self.session_faults)
        for message in messages:
            found += message.faults
        for message in messages:
            if message.may_have_records():
                found += message.record_faults(message is self.response, unpacks)
            found += self._embedded_faults(message) if self.embedded else ()
        place = (self.connection, self.number)
        return tuple([new_tuple(Fault, each[:-2] + place) for each in found]) if found else ()

    def _is_sound(self, messages: tuple[Message, ...], unpacks: bool) -> bool:
        """Whether there are certainly no faults; otherwise a closer check decides."""
        if self.session_faults or self.embedded:
            return False
        for message in messages:
            seen = message.survey()
            if seen is None or message.header_faults:
                return False
            places = seen.records
            at = 0
            while at < len(places):
                payload, start, end = message.frame.payload, places[at], places[at + 1]
                if not is_sound(payload, start, end, message.limits, unpacks, message is self.response):
                    return False
                at += 2
        return True

    def _embedded_faults(self, message: Message) -> Iterator[Fault]:
        asked = self.request.body() if self.request is not None and message is self.response else None
        context = decoded.Context(asked, limits=message.limits)
        body = message.decoded()
        if body.struct is not None:
            for each in faults.embedded_faults(body.struct.name, body.values, context):
                yield each._replace(packet=message.frame.last_packet)

    def record_sets(self) -> Iterator[RecordSetPlace]:
        """Every record set in it, with its topic and partition."""
        for message in self._both():
            if not message.may_have_records():
                continue
            found = _places(message)
            if found is None:
                for name, value, ancestors in message.record_fields():
                    yield self._place(message, name, value, *partition_of(ancestors))
                continue
            payload = message.frame.payload
            for topic, topic_id, partition, name, start, size in found:
                yield self._place(message, name, payload[start : start + size], topic, topic_id, partition)

    def _place(
        self,
        message: Message,
        name: str,
        value: bytes,
        topic: str | None,
        topic_id: str | None,
        partition: int | None,
    ) -> RecordSetPlace:
        if topic is None and topic_id is not None:
            topic = self.topic_names.get(topic_id)
        return new_place(RecordSetPlace, (message, name, value, topic, topic_id, partition))

    def assigned_base_offset(self, place: RecordSetPlace) -> int | None:
        """The offset that the broker gave the first record of a produced set, if the response has it."""
        if self._api() != "Produce" or self.response is None or place.message is not self.request:
            return None
        if self._base_offsets is None:
            self._base_offsets = _base_offsets(self.response)
        return base_offset_of(self._base_offsets, place.topic, place.topic_id, place.partition)

    def taught_topics(self) -> Iterable[tuple[str, str, int]]:
        """The topic ids with names in this exchange: (id, name, the packet with the name)."""
        out: list[tuple[str, str, int]] = []
        for message in self._both():
            known = message.layout()
            if known is None or not known.teaches:
                continue  # not decoded without need
            seen = message.survey()
            if seen is not None:
                if seen.taught is not None:
                    packet = message.frame.last_packet
                    out += [(topic_id, name, packet) for topic_id, name in seen.taught]
                continue
            body = message.decoded()
            assert body.struct is not None
            for topic_id, name in taught_topics(body.struct, body.values):
                out.append((topic_id, name, message.frame.last_packet))
            if self.response is None:
                message.forget_body()  # it may wait for a long time
        if self.response is not None and self.may_carry_metadata():
            return chain(out, self._topics_in_metadata())
        return out

    def may_carry_metadata(self) -> bool:
        """Whether it may contain records of ``__cluster_metadata``."""
        if self._first().api_key not in METADATA_CARRIERS:
            return False
        for message in self._both():
            seen = message.survey()
            if seen is None:
                return True
            for topic, topic_id in seen.mentions:
                if topic == METADATA_TOPIC or topic_id == METADATA_TOPIC_ID:
                    return True
        return False

    def _topics_in_metadata(self) -> Iterator[tuple[str, str, int]]:
        """The topic ids and names in the records of a fetched ``__cluster_metadata``."""
        if not any(_may_name_topics(message) for message in self._both()):
            return  # in nearly all cases, several times a second
        for place in self.record_sets():
            message, data = place.message, place.data
            if not is_metadata_topic(place.topic, place.topic_id):
                continue
            values = (record.value for record in read_record_set(data, message.limits).records())
            for topic_id, name in internal.topic_names_in_metadata(values, message.limits):
                yield topic_id, name, message.frame.last_packet


def begin_exchange(connection: int, client_endpoint: Endpoint, broker_endpoint: Endpoint) -> Exchange:
    """``Exchange(connection, client_endpoint, broker_endpoint)``, set attribute by attribute: compiled, that
    is several times faster than the call."""
    exchange = Exchange.__new__(Exchange)
    exchange.connection = connection
    exchange.client_endpoint, exchange.broker_endpoint = client_endpoint, broker_endpoint
    exchange.request = exchange.response = exchange.missing = exchange.inferred = None
    exchange.number, exchange.recognised = 0, _NOT_RECOGNISED
    exchange.session_faults, exchange.topic_names = [], NO_NAMES
    exchange.embedded = exchange.is_encrypted = exchange.breaks_quota = False
    exchange.proxied = exchange.principal = exchange.seen = exchange.shared = None
    exchange.routine = ()
    exchange.behind_ns = exchange.behind_correlation_id = exchange.network_ns = None
    exchange.throttle_ns = exchange.think_ns = exchange.after_api_key = None
    exchange._faults = exchange._base_offsets = exchange._client = exchange._broker = None
    return exchange


_text_of = lru_cache(maxsize=4_096)(endpoint_text)
"""One text object for all exchanges of a connection, because tables keep it often."""


def _between(message: Message) -> int | None:
    """The time from its first byte to its last, ns."""
    return _from_to(message.frame.first_ns, message.frame.last_ns)


def _from_to(first_ns: int, last_ns: int) -> int | None:
    """The time between two times, ns; None if two absurd times are further apart than 64 bits can express."""
    if first_ns >= 0 and last_ns >= 0:
        return last_ns - first_ns
    between = int(last_ns) - int(first_ns)  # compiled, these are C numbers, which would overflow
    return between if -(1 << 63) <= between < 1 << 63 else None


def _may_name_topics(message: Message) -> bool:
    seen = message.survey()
    return seen is None or may_name_topics(message.frame.payload, seen, message.limits)


_topic_record_start: bytes | None = None
"""The first bytes of values that name a topic, once needed. Asking a module that is loaded late takes as long
as searching a record set."""


def may_name_topics(data: bytes, seen: Survey, limits: Limits) -> bool:
    """Whether a record in a message may name a topic. It may if a record set contains the first bytes of such
    a record, or if records are compressed.

    :param data: the bytes that were surveyed.
    """
    places, at = seen.records, 0
    while at < len(places):
        if names_topics(data, places[at], places[at + 1], limits):
            return True
        at += 2
    return False


def names_topics(data: bytes, start: int, end: int, limits: Limits) -> bool:
    """Whether a record of the record set from ``start`` to ``end`` may name a topic."""
    global _topic_record_start  # noqa: PLW0603 - found once
    if start >= end:
        return False
    if _topic_record_start is None:
        _topic_record_start = internal.topic_record_start()
    return may_have_value(data, start, end, _topic_record_start, limits)


def _places(message: Message) -> list[Place] | None:
    """The places in a message that can be found without decoding it; None if it has to be decoded."""
    struct = message.body_struct()
    if struct is None:
        return None
    way = route(message._candidates(struct)[0])
    if way is None:
        return None
    data = message.frame.payload
    return places_at(way, data, message.body_start, len(data), message.limits)


def _base_offsets(response: Message) -> dict[PartitionKey, int | None]:
    """The base offset of each partition in the response to a Produce; for a repeated partition, the first."""
    places = _places(response)
    if places is not None:
        return base_offsets_in(places)
    found: dict[PartitionKey, int | None] = {}
    produced = response.body()
    for topic in produced.get("responses") or ():
        name = topic.get("name")
        topic_id = topic.get("topicId") if name is None else None
        for partition in topic.get("partitionResponses") or ():
            offset = partition.get("baseOffset")
            known = isinstance(offset, int) and offset >= 0
            found.setdefault((name, topic_id, partition.get("index")), offset if known else None)
    return found


def base_offsets_in(places: list[Place]) -> dict[PartitionKey, int | None]:
    """The base offset of each partition, from places in the response to a Produce."""
    found: dict[PartitionKey, int | None] = {}
    for topic, topic_id, partition, _, offset, _ in places:
        key = (topic, topic_id if topic is None else None, partition)
        found.setdefault(key, offset if offset >= 0 else None)
    return found


def base_offset_of(
    found: dict[PartitionKey, int | None], topic: str | None, topic_id: str | None, partition: int | None
) -> int | None:
    """The base offset of a produced record set, which may have another name in the response."""
    key = (topic, None, partition)
    return found[key] if key in found else found.get((None, topic_id, partition))


new_place = tuple.__new__
"""``new_place(RecordSetPlace, values)`` with all values: avoids the second call that NamedTuple's own
``__new__`` makes."""


class RecordSetPlace(NamedTuple):
    """A record set with its topic and partition."""

    message: Message
    field: str
    data: bytes
    topic: str | None
    topic_id: str | None
    partition: int | None


@cache
def _error_fields(struct: Struct) -> Selection:
    return selection(struct, is_error_code)
