"""Exchanges ─► a temporary file without a name ─► exchanges.

The process that decodes appends what an exchange was made from: its frames, what their headers told, and
the topic names it needs. Any process that has the file reads one back by its place. Nothing that was
decoded is kept, so the file is about as large as the capture, and neither process holds the frames in
memory. The name is gone when the file is made: it ends with the last process that has it open.

A capture cannot serve instead: it may be a pipe or compressed, and a frame in it may be scattered over
packets that came twice, in pieces, or in another order.
"""

from __future__ import annotations

import os
import pickle
from typing import Any, BinaryIO

from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.message import Message, Request, Response, Token
from kdissect.model import Direction, Fault, Frame

_DIRECTIONS = tuple(Direction)


class SpoolWriter:
    """Appends exchanges to ``file``, which nobody else writes to."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = 0
        """Bytes that were appended."""

    def write(self, exchange: Exchange) -> tuple[int, int]:
        """Append an exchange; gives its place and length. It can be read after :meth:`flush`."""
        data = pickle.dumps(_plain(exchange), pickle.HIGHEST_PROTOCOL)
        self._file.write(data)
        place = self.size
        self.size += len(data)
        return place, len(data)

    def flush(self) -> None:
        """Hand what was written to the system."""
        self._file.flush()


def read_exchange(descriptor: int, place: int, length: int, limits: Limits = DEFAULTS) -> Exchange:
    """An exchange from the spool, as it was when it was complete; its bodies are decoded when asked for.

    :raises OSError: the file cannot be read, or ends before ``length`` bytes.
    """
    data = bytearray()
    while len(data) < length:
        piece = os.pread(descriptor, length - len(data), place + len(data))
        if not piece:
            raise OSError(f"the spool ends at byte {place + len(data):,}")
        data += piece
    return _exchange(pickle.loads(data), limits)  # what this program wrote itself, in a nameless file


def _plain(exchange: Exchange) -> tuple[Any, ...]:
    names = {topic_id: exchange.topic_names.get(topic_id) for topic_id in exchange.topic_ids()}
    return (
        exchange.connection,
        exchange.client_endpoint,
        exchange.broker_endpoint,
        _plain_message(exchange.request),
        _plain_message(exchange.response),
        exchange.missing,
        exchange.inferred,
        exchange.number,
        [tuple(fault) for fault in exchange.session_faults],
        {topic_id: name for topic_id, name in names.items() if name is not None},
        exchange.embedded,
        exchange.is_encrypted,
    )


def _plain_message(message: Message | None) -> tuple[Any, ...] | None:
    if message is None:
        return None
    frame = message.frame
    place = _DIRECTIONS.index(frame.direction)
    fault = None if frame.fault is None else tuple(frame.fault)
    plain = tuple(frame._replace(direction=place, fault=fault))  # type: ignore[arg-type]
    if isinstance(message, Token):
        return plain, message.kind
    key, version, correlation = message.api_key, message.api_version, message.correlation_id
    known = (key, version, correlation, message.header_version, message.body_start)
    return (plain, *known, message.client_id) if isinstance(message, Request) else (plain, *known)


def _exchange(plain: tuple[Any, ...], limits: Limits) -> Exchange:
    connection, client, broker, request, response, missing, inferred, number, faults, names, *flags = plain
    embedded, is_encrypted = flags
    return Exchange(
        connection,
        client,
        broker,
        request=_request(request, limits),
        response=_response(response, limits),
        missing=missing,
        inferred=inferred,
        number=number,
        session_faults=[Fault(*fault) for fault in faults],
        topic_names=names,
        embedded=embedded,
        is_encrypted=is_encrypted,
    )


def _frame(plain: tuple[Any, ...]) -> Frame:
    frame = Frame(*plain)
    fault = None if frame.fault is None else Fault(*frame.fault)
    return frame._replace(direction=_DIRECTIONS[plain[0]], fault=fault)


def _request(plain: tuple[Any, ...] | None, limits: Limits) -> Request | Token | None:
    if plain is None or len(plain) == 2:
        return _token(plain)
    frame, key, version, correlation, header_version, start, client_id = plain
    return Request(_frame(frame), key, version, correlation, client_id, header_version, start, limits)


def _response(plain: tuple[Any, ...] | None, limits: Limits) -> Response | Token | None:
    if plain is None or len(plain) == 2:
        return _token(plain)
    frame, key, version, correlation, header_version, start = plain
    return Response(_frame(frame), key, version, correlation, header_version, start, limits)


def _token(plain: tuple[Any, ...] | None) -> Token | None:
    return None if plain is None else Token(_frame(plain[0]), plain[1])
