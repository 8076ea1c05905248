"""What both ends of a connection ask each other: one Session, and where the roles turn round a second.

    Frame ─► Session of the end that asked first ─► events
      │        │ a frame of the other kind
      └────────┴─► Session of the other end, with the roles turned round ─► events

Nearly every connection has one Session, and a Dialogue just hands on to it.
"""

from __future__ import annotations

from collections.abc import Callable

from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Direction, Endpoint, Frame
from kdissect.session.pairing import Event, Session
from kdissect.session.turning import opposite, turned
from kdissect.session.witness import FrameWitness
from kdissect.tcp.reassembly import Reassembler

_TO_BROKER = Direction.TO_BROKER


class Dialogue:
    """The machine of one Kafka connection, of which ``client`` asked first. The parameters are those of
    :class:`~kdissect.session.pairing.Session`.

    :param streams: what the client and the broker send; they know the round trips.
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
        told = (inferred, correlation_id, client_id, from_start)
        self._first = Session(connection, client, broker, limits, *told, *streams)
        self._second: Session | None = None
        """What the broker asks."""
        self._turned_arguments = (connection, broker, client, limits, inferred)
        self._turned_streams = (streams[1], streams[0])

    @property
    def first(self) -> Session:
        """The Session of the end that asked first."""
        return self._first

    @property
    def witness(self) -> FrameWitness:
        """Where frames may begin, for the framer of either direction."""
        return self._first.witness

    @property
    def exchanges(self) -> int:
        """How many began."""
        return sum(each.exchanges for each in self._sessions())

    def feed(self, frame: Frame, packet: int) -> list[Event]:
        """What a frame means; ``packet`` is the one being read, for the order of recognition."""
        if self._second is not None:
            return self._feed_either(self._second, frame, packet)
        events = self._first.feed(frame, packet)
        if events is None:
            return self._turn().feed(turned(frame), packet) or []
        return events

    def gap(self, direction: Direction, packet: int) -> None:
        """Bytes of a direction were not captured, as a packet settled."""
        self._first.gap(direction, packet)
        if self._second is not None:
            self._second.gap(opposite(direction), packet)

    def skip(self, direction: Direction) -> None:
        """Bytes of a direction were captured, and no frame was found in them."""
        self._first.skip(direction)
        if self._second is not None:
            self._second.skip(opposite(direction))

    def end(self, reason: str) -> None:
        """Frames that come from now on are what is left, and why."""
        for each in self._sessions():
            each.end(reason)

    def held_bytes(self) -> int:
        """What requests cost that wait for their responses, and what is remembered of the clients."""
        held: int = self._first.held_bytes()
        return held if self._second is None else held + self._second.held_bytes()

    @property
    def is_waiting(self) -> bool:
        """Whether requests wait for their responses."""
        return any(each.is_waiting for each in self._sessions())

    def give_up(self) -> list[Event]:
        """Wait no longer for responses: all connections together hold more than the limit."""
        return [event for each in self._sessions() for event in each.give_up()]

    def close(self) -> list[Event]:
        """No response will come any more."""
        return [event for each in self._sessions() for event in each.close()]

    def _sessions(self) -> tuple[Session, ...]:
        return (self._first,) if self._second is None else (self._first, self._second)

    def renumber(self, number: int, exchange_number: Callable[[int], int]) -> None:
        """As :meth:`kdissect.session.conversation.Conversation.renumber`."""
        self._turned_arguments = (number, *self._turned_arguments[1:])
        for each in self._sessions():
            each.renumber(number, exchange_number)

    def _turn(self) -> Session:
        """From now on either end may ask."""
        requests, responses = self._turned_streams
        second = self._second = Session(*self._turned_arguments, requests=requests, responses=responses)
        second.end(self._first.ending)
        self._first.takes_all = second.takes_all = True
        self._first.witness.turn(second.witness)
        second.witness.turn(self._first.witness)
        return second

    def _feed_either(self, second: Session, frame: Frame, packet: int) -> list[Event]:
        """What a frame means that may be a request of its sender's or a response."""
        asker, answered = (self._first, second) if frame.direction is _TO_BROKER else (second, self._first)
        is_response = answered.awaits(frame) or not asker.may_ask(frame)
        heard = answered if is_response else asker
        return heard.feed(frame if heard is self._first else turned(frame), packet) or []
