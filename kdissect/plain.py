"""An exchange ↔ plain values, to send it to another process: its captured parts, not its decoded values.

The frames, the fields of their headers and the facts found about them become tuples of numbers, text and
bytes. pickle and marshal copy these ten times faster than objects. Names of topic ids are not included,
because they belong to the capture. The code that makes the exchange again adds them.
"""

from __future__ import annotations

from typing import Any

from kdissect.exchange import Copy, Exchange, Proxied, Seen
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Message, Request, Response, Token, begin
from kdissect.model import Direction, Fault, Frame
from kdissect.names import NO_NAMES, Names

_FROM_BROKER, _TO_BROKER = Direction.FROM_BROKER, Direction.TO_BROKER
_make = tuple.__new__


def plain_exchange(exchange: Exchange) -> tuple[Any, ...]:
    """The captured parts of an exchange."""
    return (
        exchange.connection,
        exchange.client_endpoint,
        exchange.broker_endpoint,
        _plain_message(exchange.request),
        _plain_message(exchange.response),
        exchange.missing,
        exchange.inferred,
        exchange.number,
        _plain_faults(exchange.session_faults),
        exchange.embedded,
        exchange.is_encrypted,
        None if exchange.proxied is None else tuple(exchange.proxied),
        exchange.principal,
        exchange.routine,
        exchange.behind_ns,
        exchange.behind_correlation_id,
        exchange.network_ns,
        exchange.throttle_ns,
        exchange.think_ns,
        exchange.after_api_key,
        exchange.breaks_quota,
        None if exchange.seen is None else (exchange.seen.point, tuple(map(tuple, exchange.seen.copies))),
    )


def exchange_of(plain: tuple[Any, ...], names: Names = NO_NAMES, limits: Limits = DEFAULTS) -> Exchange:
    """The exchange as it was when it was complete; its bodies are decoded on demand."""
    connection, client, broker, request, response, missing, inferred, number, faults = plain[:9]
    embedded, tls, proxied, principal, routine, behind_ns, behind_correlation_id = plain[9:16]
    network_ns, throttle_ns, think_ns, after_api_key, breaks_quota, seen = plain[16:]
    return Exchange(
        connection,
        client,
        broker,
        None if request is None else _request(request, limits),
        None if response is None else _response(response, limits),
        missing,
        inferred,
        number,
        session_faults=[_make(Fault, each) for each in faults],
        topic_names=names,
        embedded=embedded,
        is_encrypted=tls,
        proxied=None if proxied is None else _make(Proxied, proxied),
        principal=principal,
        routine=routine,
        behind_ns=behind_ns,
        behind_correlation_id=behind_correlation_id,
        network_ns=network_ns,
        throttle_ns=throttle_ns,
        think_ns=think_ns,
        after_api_key=after_api_key,
        breaks_quota=breaks_quota,
        seen=None if seen is None else Seen(seen[0], tuple([_make(Copy, each) for each in seen[1]])),
    )


def _plain_message(message: Message | None) -> tuple[Any, ...] | None:
    if message is None:
        return None
    frame = _plain_frame(message.frame)
    if isinstance(message, Token):
        token = message
        return frame, token.kind, token.client_id
    known = (
        frame,
        message.api_key,
        message.api_version,
        message.correlation_id,
        message.header_version,
        message.body_start,
        _plain_faults(message.header_faults),
    )
    if isinstance(message, Request):
        request = message
        return (*known, request.client_id)
    return known


def _plain_frame(frame: Frame) -> tuple[Any, ...]:
    return (
        frame.direction is _FROM_BROKER,
        frame.offset,
        frame.payload,
        frame.size,
        frame.first_packet,
        frame.first_ns,
        frame.last_packet,
        frame.last_ns,
        frame.packets,
        frame.searched,
        None if frame.fault is None else tuple(frame.fault),
    )


def _plain_faults(faults: list[Fault] | tuple[Fault, ...]) -> tuple[tuple[Any, ...], ...]:
    return tuple(map(tuple, faults)) if faults else ()


def _frame(plain: tuple[Any, ...]) -> Frame:
    # Set attribute by attribute: compiled, that is several times faster than one call with all values.
    frame = Frame.__new__(Frame)
    from_broker, offset, payload, size, first, first_ns, last, last_ns, packets, searched, fault = plain
    frame.direction = _FROM_BROKER if from_broker else _TO_BROKER
    frame.offset, frame.payload, frame.size = offset, payload, size
    frame.first_packet, frame.first_ns = first, first_ns
    frame.last_packet, frame.last_ns = last, last_ns
    frame.packets, frame.searched = packets, searched
    frame.fault = None if fault is None else _make(Fault, fault)
    return frame


def _request(plain: tuple[Any, ...], limits: Limits) -> Request | Token:
    if len(plain) == 3:
        return _token(plain)
    frame, key, version, correlation, header_version, start, faults, client_id = plain
    request = Request.__new__(Request)
    begin(request, _frame(frame), limits, start)
    request.api_key, request.api_version, request.correlation_id = key, version, correlation
    request.header_version, request.client_id = header_version, client_id
    if faults:
        request.header_faults = tuple([_make(Fault, each) for each in faults])
    return request


def _response(plain: tuple[Any, ...], limits: Limits) -> Response | Token:
    if len(plain) == 3:
        return _token(plain)
    frame, key, version, correlation, header_version, start, faults = plain
    response = Response.__new__(Response)
    begin(response, _frame(frame), limits, start)
    response.api_key, response.api_version, response.correlation_id = key, version, correlation
    response.header_version = header_version
    if faults:
        response.header_faults = tuple([_make(Fault, each) for each in faults])
    return response


def _token(plain: tuple[Any, ...]) -> Token:
    frame, kind, client_id = plain
    token = Token(_frame(frame), kind)
    token.client_id = client_id
    return token
