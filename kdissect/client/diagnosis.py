"""What it means that a broker does not answer as one: a line that says what happened and what to do."""

from __future__ import annotations

from collections.abc import Collection

from kdissect.client.session import ClientSession, Heard
from kdissect.exchange import Exchange
from kdissect.protocol import apis

_TLS_RECORDS = (0x15, 0x16)
"""An alert and a handshake: what a TLS listener says to who does not speak TLS."""


def not_kafka(heard: Heard, session: ClientSession, has_answered: bool) -> str | None:
    """Whether what came cannot be answers of a broker; None where it can.

    :param has_answered: whether it has answered a request before.
    """
    if any(each.kind == "bad-size" for each in heard.faults):
        return _opening(session.opening, has_answered)
    strange = next((each for each in heard.completed if each.request is None), None)
    if strange is not None:
        return (
            f"it answered a request that was not sent (correlation id {strange.correlation_id}): "
            "is it a broker of Kafka's?"
        )
    if any(each.kind == "malformed" for each in heard.faults):
        return "it sent a frame too short for an answer: is it a broker of Kafka's?"
    return None


def _opening(data: bytes, has_answered: bool) -> str:
    if has_answered:
        return "it sent a size that no answer has: from there on its bytes mean nothing"
    if len(data) > 1 and data[0] in _TLS_RECORDS and data[1] == 3:
        return "it speaks TLS on this port: give --tls, or the port of a plaintext listener"
    if data.startswith(b"HTTP/"):
        return "it answered in HTTP, this is no Kafka listener: which port has the broker?"
    return f"it answered with bytes that are no Kafka ({data[:12]!r}): which port has the broker?"


def what_closing_means(exchange: Exchange, session: ClientSession, answered: Collection[int | None]) -> str:
    """Why a request has no whole answer, after the connection ended.

    :param answered: the APIs of which it has answered a request before; None is a SASL token.
    """
    name = "a SASL token" if exchange.api_key is None else f"{exchange.api} v{exchange.api_version}"
    response = exchange.response
    if response is not None:
        frame = response.frame
        return (
            f"it closed the connection in the middle of its answer to {name} "
            f"({len(frame.payload):,} of {frame.size:,} bytes): see the broker's log"
        )
    if session.received and not answered and len(session.opening) > 1:
        data = session.opening
        if data[0] in _TLS_RECORDS and data[1] == 3:
            return _opening(data, False)
        return f"it closed the connection after {session.received:,} bytes that are no answer to {name}"
    if answered:
        login = (
            " it may want a login (--sasl), or not take this version;"
            if set(answered) == {apis.API_VERSIONS}
            else ""
        )
        return f"it closed the connection instead of answering {name}:{login} see the broker's log"
    if exchange.api_key == apis.API_VERSIONS:
        return (
            f"it closed the connection instead of answering {name}: a TLS listener (--tls), one that wants a "
            "login (--sasl), a broker before 0.10 (--api-version), or no Kafka"
        )
    return (
        f"it closed the connection instead of answering {name}: it may not know this version (kdissect "
        "client conformance lists them), speak TLS (--tls) or want a login (--sasl)"
    )
