"""The requests of both ends of a connection: one Session, and a second one if the roles turn round.

    Frame ─► Session of the end that asked first ─► events
      │        │ a frame of the other kind
      └────────┴─► Session of the other end, with the roles turned round ─► events

Nearly every connection has one Session, and its Dialogue only passes frames to it.
"""

from __future__ import annotations

from collections.abc import Callable

from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Direction, Endpoint, Frame
from kdissect.session.pairing import Event, Session
from kdissect.session.roles import opposite, turned
from kdissect.session.witness import FrameWitness
from kdissect.tcp.reassembly import Reassembler

_TO_BROKER = Direction.TO_BROKER


class Dialogue:
    """Handles one Kafka connection; ``client`` sent the first request. The parameters are those of
    :class:`~kdissect.session.pairing.Session`.

    :param streams: the streams of the client and the broker, with their round trips.
    """

    __slots__ = ("_first", "_second", "_turned_arguments", "_turned_streams")

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
        streams: tuple[Reassembler | None, Reassembler | None] = (None, None),
    ) -> None:
        self.begin(
            connection, client, broker, limits, inferred, correlation_id, client_id, from_start, streams
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
        streams: tuple[Reassembler | None, Reassembler | None],
    ) -> None:
        """Do the work of ``__init__``; a fast path for compiled callers."""
        first = Session.__new__(Session)
        first.begin(
            connection,
            client,
            broker,
            limits,
            inferred,
            correlation_id,
            client_id,
            from_start,
            streams[0],
            streams[1],
        )
        self._first = first
        self._second: Session | None = None
        """The Session of the broker's requests."""
        self._turned_arguments = (connection, broker, client, limits, inferred)
        self._turned_streams = (streams[1], streams[0])

    @property
    def first(self) -> Session:
        """The Session of the end that sent the first request."""
        return self._first

    @property
    def witness(self) -> FrameWitness:
        """Decides where frames may begin, for the framers of both directions."""
        return self._first.witness

    @property
    def exchanges(self) -> int:
        """The number of exchanges that began."""
        return sum(each.exchanges for each in self._sessions())

    def feed(self, frame: Frame, packet: int) -> list[Event]:
        """The events of a frame; ``packet`` is the current one, for the order of recognition."""
        if self._second is not None:
            return self._feed_either(self._second, frame, packet)
        events = self._first.feed(frame, packet)
        if events is None:
            return self._turn().feed(turned(frame), packet) or []
        return events

    def gap(self, direction: Direction, packet: int) -> None:
        """Note that bytes of a direction were not captured; ``packet`` showed it."""
        self._first.gap(direction, packet)
        if self._second is not None:
            self._second.gap(opposite(direction), packet)

    def skip(self, direction: Direction) -> None:
        """Note that no frame was found in captured bytes of a direction."""
        self._first.skip(direction)
        if self._second is not None:
            self._second.skip(opposite(direction))

    def end(self, reason: str) -> None:
        """End the streams: later frames are remainders, and ``reason`` explains it."""
        self._first.end(reason)
        if self._second is not None:
            self._second.end(reason)

    def held_bytes(self) -> int:
        """The cost of waiting requests, and of the facts remembered about the clients."""
        held: int = self._first.held_bytes()
        return held if self._second is None else held + self._second.held_bytes()

    @property
    def is_waiting(self) -> bool:
        """Whether requests wait for their responses."""
        return any(each.is_waiting for each in self._sessions())

    def give_up(self) -> list[Event]:
        """Stop waiting for responses, because all connections together hold more than the limit."""
        return [event for each in self._sessions() for event in each.give_up()]

    def close(self) -> list[Event]:
        """End the connection: no response will come any more."""
        out = self._first.close()
        if self._second is not None:
            out += self._second.close()
        return out

    def _sessions(self) -> tuple[Session, ...]:
        return (self._first,) if self._second is None else (self._first, self._second)

    def renumber(self, number: int, exchange_number: Callable[[int], int]) -> None:
        """As :meth:`kdissect.session.conversation.Conversation.renumber`."""
        self._turned_arguments = (number, *self._turned_arguments[1:])
        for each in self._sessions():
            each.renumber(number, exchange_number)

    def _turn(self) -> Session:
        """Begin the second Session: from now on both ends may send requests."""
        requests, responses = self._turned_streams
        second = self._second = Session(*self._turned_arguments, requests=requests, responses=responses)
        second.end(self._first.ending)
        self._first.takes_all = second.takes_all = True
        self._first.witness.turn(second.witness)
        second.witness.turn(self._first.witness)
        return second

    def _feed_either(self, second: Session, frame: Frame, packet: int) -> list[Event]:
        """The events of a frame that may be a request or a response of its sender."""
        asker, answered = (self._first, second) if frame.direction is _TO_BROKER else (second, self._first)
        is_response = answered.is_awaited(frame) or not asker.may_be_request(frame)
        heard = answered if is_response else asker
        return heard.feed(frame if heard is self._first else turned(frame), packet) or []
