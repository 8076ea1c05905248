"""Lines about an exchange beside its fields: when its bytes came, and in which packets."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.exchange import Exchange
from kdissect.message import Message
from kdissect.model import endpoint_text
from kdissect.present.form import Clock, duration, plural
from kdissect.present.sanitise import sanitise
from kdissect.present.tree import behind_text

_MOST_PACKETS = 200
"""The most packets of one message that are listed."""


def timing_lines(exchange: Exchange, first_ns: int | None) -> Iterator[str]:
    """When the request and the response were captured, and the times between.

    :param first_ns: time of the capture's first packet.
    """
    relative, absolute = Clock("r", first_ns), Clock("u")
    for message in exchange.messages:
        frame = message.frame
        yield f"{message.kind} began: {relative.text(frame.first_ns)}  {absolute.text(frame.first_ns)}"
        yield f"{message.kind} complete: {relative.text(frame.last_ns)}  {absolute.text(frame.last_ns)}"
        if frame.last_ns != frame.first_ns:
            yield f"{message.kind} took: {duration(frame.last_ns - frame.first_ns)}"
    if exchange.latency_ns is not None:
        latency = duration(exchange.latency_ns)
        yield f"latency: {latency}, from the request's last byte to the response's first"
    if exchange.behind_ns:
        yield f"waited: {behind_text(exchange)}; a broker serves one request of a connection at a time"
    for copy in () if exchange.seen is None else exchange.seen.copies:
        if copy.latency_ns is not None:
            yield f"latency at {sanitise(copy.point)}: {duration(copy.latency_ns)}"
    if exchange.request is not None and exchange.response is not None:
        whole = exchange.response.frame.last_ns - exchange.request.frame.first_ns
        yield f"in all: {duration(whole)}, from the request's first byte to the response's last"
    waits = exchange.request.body().get("maxWaitMs") if exchange.request is not None else None
    if isinstance(waits, int):
        yield f"maxWaitMs: {waits} ms, how long the broker may wait for enough bytes"
    throttle = exchange.response.body().get("throttleTimeMs") if exchange.response is not None else None
    if isinstance(throttle, int):
        yield f"throttleTimeMs: {throttle} ms, how long the client must wait"
    if exchange.missing is not None:
        yield f"missing: {sanitise(exchange.missing)}"


def packet_lines(exchange: Exchange) -> Iterator[str]:
    """The connection, and the offsets of the messages in its streams."""
    yield f"connection: {exchange.connection}, {exchange.client} → {exchange.broker}"
    if exchange.seen is not None:
        yield f"capture point: {sanitise(', also at '.join((exchange.seen.point, *exchange.also_at)))}"
    if exchange.proxied is not None and exchange.proxied.client != exchange.client_endpoint:
        yield f"through the proxy: {endpoint_text(exchange.proxied.client)}"
    for message in exchange.messages:
        yield from _message_lines(message, exchange.is_encrypted)


def _message_lines(message: Message, is_encrypted: bool) -> Iterator[str]:
    frame = message.frame
    end = frame.offset + 4 + frame.size
    inside = ", inside TLS" if is_encrypted else ""
    yield f"{message.kind}: bytes {frame.offset:,} to {end:,} of the stream {frame.direction.value}{inside}"
    if not is_encrypted:
        # Wireshark's relative numbers count the SYN. The frame does not know whether there was one.
        number = frame.offset + 1
        yield f"{message.kind} relative sequence: {number:,}, if the stream's first byte is number 1"
    if message.decoded().quirk:
        yield f"{message.kind} has a known quirk: {message.decoded().quirk}"
    yield f"{message.kind} size: {frame.size:,} bytes, after a size field of 4 bytes"
    if message.is_cut:
        yield f"{message.kind} captured: {plural(len(frame.payload), 'byte')}"
    shown = ", ".join(map(str, frame.packets[:_MOST_PACKETS]))
    more = len(frame.packets) - _MOST_PACKETS
    yield f"{message.kind} packets: {shown}" + (f" and {more:,} more" if more > 0 else "")
    if frame.searched:
        yield f"{message.kind} found: by a search, after a gap or because the capture began inside the stream"
