"""Which end sends the requests. On most connections it is the end that sent the first one; on some the roles
turn round.

A broker that cannot be reached opens the connection itself and gets requests over it. Confluent's
source-initiated cluster links do that. Any protocol that hands a connection over may do it too. From then on
the former broker's frames are requests and the former client's are responses. Kafka's frames do not contain
their kind. A response that is read as a request looks like an incomplete Produce request: its correlation id
is read as key and version. So the only test of a frame is which of the two fits it.
"""

from __future__ import annotations

from kdissect.limits import Limits
from kdissect.message import Request
from kdissect.model import Direction, Frame
from kdissect.session.evidence import Evidence, examine_request, is_distinctive_response, read_head


def opposite(direction: Direction) -> Direction:
    """The opposite direction."""
    return Direction.FROM_BROKER if direction is Direction.TO_BROKER else Direction.TO_BROKER


def turned(frame: Frame) -> Frame:
    """The frame with the opposite direction, for exchanged roles."""
    return frame._replace(direction=opposite(frame.direction))


def is_surely_request(frame: Frame, limits: Limits) -> bool:
    """Whether a frame is a request with a client id, and fits to the last byte."""
    data = _with_size(frame)
    if read_head(data, 0, limits) is None:
        return False
    return examine_request(data, 0, limits)[0] is Evidence.EXACT


def may_be_request(frame: Frame, limits: Limits) -> bool:
    """Whether a frame's header is a request's, with a client id. Its body need not be known or complete."""
    return read_head(_with_size(frame), 0, limits) is not None


def fits_as_response(request: Request, limits: Limits) -> bool:
    """Whether a frame that was read as a request does not fit as one, but fits as a response."""
    frame = request.frame
    if request.is_cut or request.survey() is not None or request.decoded().is_exact:
        return False
    request.forget_body()
    return is_distinctive_response(frame.payload, limits)


def _with_size(frame: Frame) -> bytes:
    return frame.size.to_bytes(4, "big") + frame.payload
