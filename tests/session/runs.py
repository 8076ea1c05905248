"""What a Conversation makes of segments, and a Session of frames."""

from __future__ import annotations

from collections.abc import Sequence

from kdissect.exchange import Exchange
from kdissect.faults import fault
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Direction, Fault, Frame, Segment
from kdissect.session.conversation import Connection, Conversation, Event, recognised_in_order
from kdissect.session.pairing import Completed
from tests.kafka import METADATA_RESPONSE_1, request, response


def run(segments: list[Segment], limits: Limits = DEFAULTS) -> tuple[list[Exchange], list[Fault], Connection]:
    """Feed all segments of a connection: its exchanges by number, the faults outside them, its row."""
    conversation = Conversation(0, segments[0], limits)
    events: list[Event] = []
    number = 0
    for segment in [*segments, None]:
        fed = conversation.feed(segment) if segment else conversation.close(10**9, cut=True)
        for begun in recognised_in_order(fed):
            number += 1
            begun.number = number
        events += fed
    exchanges = sorted(completed(events), key=lambda e: e.number)
    return exchanges, [e for e in events if isinstance(e, Fault)], conversation.summary()


def completed(events: Sequence[Event]) -> list[Exchange]:
    """The exchanges of which nothing more will come."""
    return [event.exchange for event in events if isinstance(event, Completed)]


def metadata(correlation: int, version: int = 1) -> bytes:
    """A request for one topic."""
    return request("Metadata", version, correlation, topics=[{"name": "orders"}])


def metadata_answer(correlation: int) -> bytes:
    """The response to it in version 1."""
    return response("Metadata", 1, correlation, **METADATA_RESPONSE_1)


def frame(payload: bytes, direction: Direction = Direction.TO_BROKER, packet: int = 1) -> Frame:
    """A frame that came whole, in one packet."""
    return Frame(direction, 0, payload, len(payload), packet, packet, packet, packet, (packet,))


def cut_frame(payload: bytes, captured: int, direction: Direction = Direction.FROM_BROKER) -> Frame:
    """A frame of which only the first bytes were captured."""
    why = fault("cut-frame", f"{len(payload)} bytes announced, {captured} captured", 1)
    return frame(payload, direction)._replace(payload=payload[:captured], fault=why)
