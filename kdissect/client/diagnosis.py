"""Why a broker does not answer like a broker: a line that says what happened and what to do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from kdissect.client.session import ClientSession, SessionEvents
from kdissect.exchange import Exchange
from kdissect.protocol import apis
from kdissect.wording import plural

_TLS_RECORDS = (0x15, 0x16)
"""An alert and a handshake: the TLS records that a listener sends to a client without TLS."""

MOST_BYTES = 16
"""The most unexpected bytes that a line shows."""


class ConnectionFacts(NamedTuple):
    """Facts about a connection, without a guess."""

    is_tls: bool
    shows_certificate: bool
    """Whether the client has a certificate of its own."""
    logs_in: bool
    """Whether a login comes before all other requests."""
    advertised: Mapping[int, range] | None
    """The versions that the broker advertises, by API; None if it was not asked."""


def not_kafka(heard: SessionEvents, session: ClientSession, has_answered: bool) -> str | None:
    """Why these bytes cannot be answers of a broker; None if they can.

    :param has_answered: whether the broker has answered a request before.
    """
    if any(each.kind == "bad-size" for each in heard.faults):
        return _opening(session.opening, has_answered)
    strange = next((each for each in heard.completed if each.request is None), None)
    if strange is not None:
        times = "is not waiting" if has_answered else "was not sent"
        return f"it answered a request that {times} (correlation id {strange.correlation_id})" + (
            "" if has_answered else ": is it a broker of Kafka's?"
        )
    if any(each.kind == "malformed" for each in heard.faults):
        return "it sent a frame too short for an answer: is it a broker of Kafka's?"
    return None


def _opening(data: bytes, has_answered: bool) -> str:
    if has_answered:
        return "it sent an impossible size: the bytes after it cannot be read"
    if len(data) > 1 and data[0] in _TLS_RECORDS and data[1] == 3:
        return "it speaks TLS on this port: give --tls, or the port of a plaintext listener"
    if data.startswith(b"HTTP/"):
        return "it answered in HTTP, so this is not a Kafka listener: which port has the broker?"
    return f"it answered with bytes that are not Kafka ({data[:12]!r}): which port has the broker?"


def what_closing_means(
    exchange: Exchange, session: ClientSession, answered: Collection[int | None], known: ConnectionFacts
) -> str:
    """Why the connection ended before a request had a whole answer.

    :param answered: the APIs that the broker has answered before; None is a SASL token.
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
        return f"it closed the connection after {session.received:,} bytes that are not a response to {name}"
    return f"it closed the connection instead of answering {name}: {_why(exchange, answered, known)}"


def _why(exchange: Exchange, answered: Collection[int | None], known: ConnectionFacts) -> str:
    """The possible reasons that agree with all facts."""
    key, version = exchange.api_key, exchange.api_version
    said = ""
    if known.advertised is not None and key is not None and version is not None:
        not_advertised = beyond(known.advertised, key, version)
        if not_advertised is not None:
            return not_advertised
        said = "it advertises this version: "
    wants_login = set(answered) <= {apis.API_VERSIONS} and not known.logs_in and key != apis.API_VERSIONS
    if answered:
        return said + ("does it want a login (--sasl)? " if wants_login else "") + "see the broker's log"
    reasons = []
    if known.advertised is None and key != apis.API_VERSIONS:
        reasons.append("not know this version")
    if not known.is_tls:
        reasons.append("speak TLS (--tls)")
    elif not known.shows_certificate:
        reasons.append("want a certificate of the client (--tls-cert)")
    if wants_login:
        reasons.append("want a login (--sasl)")
    if key == apis.API_VERSIONS:
        reasons.append("be a broker before 0.10, which does not know ApiVersions (--api-version)")
    reasons.append("not be Kafka at all")
    return f"it may {', '.join(reasons[:-1])} or {reasons[-1]}"


def beyond(advertised: Mapping[int, range], api_key: int, version: int) -> str | None:
    """A line that says that the broker does not advertise this version; None if it does advertise it."""
    theirs = advertised.get(api_key)
    name = apis.api_name(api_key)
    if theirs is None:
        return f"it does not advertise {name}"
    if version in theirs:
        return None
    return f"it advertises versions {theirs.start} to {theirs.stop - 1} of {name}"


def bytes_text(data: bytes) -> str:
    """The number of bytes, and the first of them."""
    shown = data[:MOST_BYTES].hex(" ") + (" …" if len(data) > MOST_BYTES else "")
    return f"{plural(len(data), 'byte')} ({shown})"
