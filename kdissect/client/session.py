"""One connection of the client, sans I/O: requests in, bytes out; bytes in, exchanges out.

The client has no framing and no pairing of its own. Everything that it sends and receives goes through the
analyser's framer and session (:mod:`kdissect.session.pairing`), as if it were captured. So an exchange of the
client is an ordinary exchange. A broker that answers out of order, twice or with a wrong size gets the same
faults as in a capture.

Rules

1. Correlation ids count from 1; each connection has its own.
2. A request is encoded with its header's version, by the same schema that decodes it.
3. If the boundary of a frame is lost, the connection ends: a client must know where answers begin.
4. Raw bytes are sent as they are. The session reads them back to learn what they mean.
"""

from __future__ import annotations

from typing import NamedTuple

from kdissect.client.transcript import Recording, Transcript
from kdissect.exchange import Exchange
from kdissect.model import Direction, Endpoint, Fault, Frame
from kdissect.protocol import apis
from kdissect.protocol.encode import encode
from kdissect.protocol.framing import Framer, Witness
from kdissect.protocol.schema import data_struct
from kdissect.session.pairing import Completed, Recognised, Session

CLIENT_ID = "kdissect"


class SessionEvents(NamedTuple):
    """The results of sent or received bytes."""

    begun: list[Exchange]
    completed: list[Exchange]
    faults: list[Fault]
    """Faults that belong to no exchange."""


class ClientSession:
    """The machine of one connection.

    :param is_tls: whether the bytes went through TLS.
    """

    def __init__(
        self,
        transcript: Transcript,
        client: Endpoint,
        broker: Endpoint,
        now_ns: int,
        client_id: str | None = CLIENT_ID,
        is_tls: bool = False,
    ) -> None:
        self._transcript = transcript
        self._client_id = client_id
        self._recording: Recording = transcript.open(client, broker, now_ns, is_tls)
        self._session = Session(self._recording.number, client, broker, transcript.limits, from_start=True)
        self._session.takes_all = True  # this side sends requests, and the other one answers
        self._framers = {each: Framer(each, transcript.limits) for each in Direction}
        self._correlation_id = 0
        self.received = 0
        """The number of received bytes."""
        self.unframed = 0
        """The number of received bytes that belong to no answer yet, or never will."""
        self._latest = b""
        self.opening = b""
        """The first received bytes, to find out which other protocol they are."""

    def request(self, api_key: int, api_version: int, body: bytes) -> bytes:
        """The bytes of a request: size, header, body. Give them to :meth:`feed_sent` when they are
        sent."""
        self._correlation_id += 1
        version = _header_version(api_key, api_version)
        header: dict[str, int | str | None] = {
            "requestApiKey": api_key,
            "requestApiVersion": api_version,
            "correlationId": self._correlation_id,
        }
        if version >= 1:
            header["clientId"] = self._client_id
        return sized(encode(data_struct("RequestHeader", version), header) + body)

    def repeat_request(self, message: bytes) -> bytes:
        """The bytes of a whole request from elsewhere, header first, with a correlation id of this
        connection and its size.

        :raises ValueError: there is no room for a header in them.
        """
        if len(message) < 8:
            raise ValueError(f"a request header has at least 8 bytes, but these are {len(message)}")
        self._correlation_id += 1
        return sized(message[:4] + self._correlation_id.to_bytes(4, "big") + message[8:])

    def feed_sent(self, data: bytes, now_ns: int) -> SessionEvents:
        """Take in bytes that the client sent."""
        return self._feed(Direction.TO_BROKER, data, now_ns)

    def feed_received(self, data: bytes, now_ns: int) -> SessionEvents:
        """Take in bytes that the broker sent."""
        self.received += len(data)
        self.unframed += len(data)
        self._latest = data
        if len(self.opening) < 16:
            self.opening = (self.opening + data)[:16]
        return self._feed(Direction.FROM_BROKER, data, now_ns)

    @property
    def stray(self) -> bytes:
        """The last bytes that belong to no answer. Call it when no answer is expected."""
        return self._latest[-self.unframed :] if self.unframed else b""

    def close(self, now_ns: int, by_broker: bool) -> SessionEvents:
        """End the connection: waiting requests get no answer."""
        heard = SessionEvents([], [], [])
        self._session.end("connection closed")
        for direction in Direction:
            for event in self._framers[direction].close(self._witness(direction)):
                self._take(event, heard)
        for unanswered in self._session.close():
            self._publish(unanswered, heard)
        first = Direction.FROM_BROKER if by_broker else Direction.TO_BROKER
        self._recording.close(first, now_ns)
        return heard

    def _feed(self, direction: Direction, data: bytes, now_ns: int) -> SessionEvents:
        heard = SessionEvents([], [], [])
        witness = self._witness(direction)
        for chunk in self._recording.chunks(direction, data, now_ns):
            for event in self._framers[direction].feed(chunk, witness):
                self._take(event, heard)
        return heard

    def _witness(self, direction: Direction) -> Witness:
        found = self._session.witness
        return found.begins_request if direction is Direction.TO_BROKER else found.begins_response

    def _take(self, event: object, heard: SessionEvents) -> None:
        if isinstance(event, Frame):
            if event.direction is Direction.FROM_BROKER and len(event.payload) == event.size:
                self.unframed -= 4 + event.size
            for each in self._session.feed(event, event.last_packet) or ():
                self._publish(each, heard)
        elif isinstance(event, Fault):
            heard.faults.append(event._replace(connection=self._recording.number))

    def _publish(self, event: Recognised | Completed | Fault, heard: SessionEvents) -> None:
        if isinstance(event, Fault):
            heard.faults.append(event)
            return
        exchange = event.exchange
        if isinstance(event, Recognised):
            self._transcript.begin(exchange)
            heard.begun.append(exchange)
            if exchange.request is not None:
                self._recording.note_complete(exchange.request)
            return
        if exchange.response is not None:
            self._recording.note_complete(exchange.response)
        self._transcript.complete(exchange)
        heard.completed.append(exchange)


def sized(payload: bytes) -> bytes:
    """A frame: the size as int32, then the bytes."""
    return len(payload).to_bytes(4, "big") + payload


def _header_version(api_key: int, api_version: int) -> int:
    """The version of the request header. For an unknown API it is the version with a client id, which all
    APIs have."""
    return apis.request_header_version(api_key, api_version) if apis.is_api(api_key) else 1
