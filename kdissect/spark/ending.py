"""How a state ends, in a form that any later release reads.

Only the build that pickled a state can load it. So each state also has its ending: the events that would come
if nothing more were read, and the drained state after them. It is JSON and holds plain values. A build that
cannot make the state again from its files uses the ending, if the user wants that (``--drain``).
"""

from __future__ import annotations

import json
import pickle
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from kdissect.dissect import Event
from kdissect.exchange import Exchange, Proxied
from kdissect.limits import Limits
from kdissect.message import Message, Request, Response, Token
from kdissect.model import Direction, Fault, Frame
from kdissect.names import TopicNames
from kdissect.session.conversation import Connection
from kdissect.spark.stream_state import Carried, Drained

FORM = 1

_EXCHANGE = (
    *("connection", "client_endpoint", "broker_endpoint", "missing", "inferred", "number", "embedded"),
    *("is_encrypted", "principal", "behind_ns", "behind_correlation_id", "network_ns", "throttle_ns"),
    *("think_ns", "after_api_key", "breaks_quota"),
)
_HEADER = ("api_key", "api_version", "correlation_id", "header_version", "body_start")
_FRAME = (
    *("offset", "payload", "size", "first_packet", "first_ns", "last_packet", "last_ns", "searched"),
    *("packets", "fault"),
)
_BASE64 = "base64"


class Ending(NamedTuple):
    """How a state ends."""

    drained: Drained
    events: list[Event]

    @property
    def requests(self) -> int:
        """The number of exchanges that it ends."""
        return sum(isinstance(each, Exchange) for each in self.events)

    @property
    def connections(self) -> int:
        """The number of connections that it ends."""
        return sum(isinstance(each, Connection) for each in self.events)


def ending_of(carried: Carried, pickled: bytes) -> bytes:
    """The ending of a state, which stays as it is.

    :param pickled: the pickle of the state, for a copy of it.
    """
    if carried.judge is not None:  # a copy of the judge would be large, and is not needed
        pickled = pickle.dumps(replace(carried, judge=None), pickle.HIGHEST_PROTOCOL)
    reading = pickle.loads(pickled).reading  # it was just made
    events = [_plain_event(each) for each in reading.end()]
    return written(replace(carried, reading=reading).drained(), events)


def written(drained: Drained, events: Iterable[dict[str, Any]]) -> bytes:
    """An ending as it is stored."""
    value = {"drained": drained._asdict(), "events": list(events)}
    return json.dumps(value, default=_in_base64, separators=(",", ":")).encode()


def read(data: bytes, limits: Limits) -> Ending:
    """The ending that was stored.

    :param limits: for decoding messages.
    :raises ValueError: it is damaged.
    """
    try:
        value = json.loads(data, object_hook=_from_base64)
        drained = drained_of(value["drained"])
        names = TopicNames()
        for each in drained.names:
            names.learn(*each)
        return Ending(drained, [_event(each, names, limits) for each in value["events"]])
    except (TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def drained_of(value: dict[str, Any]) -> Drained:
    """A drained state from its values.

    :raises TypeError: they are those of something else.
    """
    return Drained(**{**value, "names": [tuple(each) for each in value["names"]]})


def plain_exchange(exchange: Any, names: tuple[int, int]) -> dict[str, Any]:
    """The captured parts of an exchange.

    :param exchange: the exchange, or an object with the same attributes.
    :param names: the last packet, and the number of entries, whose names of topic ids it knows.
    """
    values = {name: getattr(exchange, name) for name in _EXCHANGE}
    values["proxied"] = None if exchange.proxied is None else list(exchange.proxied)
    values["routine"] = list(exchange.routine)
    values["session_faults"] = [list(each) for each in exchange.session_faults]
    values["request"] = _plain_message(exchange.request)
    values["response"] = _plain_message(exchange.response)
    return {"exchange": values, "names": names}


def plain_connection(connection: Connection) -> dict[str, Any]:
    """The row of a connection, without the facts that only statistics need."""
    return {"connection": connection._replace(tcp=None)._asdict()}


def plain_fault(fault: Fault) -> dict[str, Any]:
    """A fault."""
    return {"fault": list(fault)}


def _plain_event(event: Event) -> dict[str, Any]:
    if isinstance(event, Exchange):
        known: Any = event.topic_names
        return plain_exchange(event, (known.packet, known.count))
    return plain_connection(event) if isinstance(event, Connection) else plain_fault(event)


def _plain_message(message: Any) -> dict[str, Any] | None:
    if message is None:
        return None
    values = {name: getattr(message, name) for name in _HEADER}
    values["client_id"] = getattr(message, "client_id", None)
    values["header_faults"] = [list(each) for each in message.header_faults]
    frame = {name: getattr(message.frame, name) for name in _FRAME}
    return values | {"is_token": type(message).__name__ == Token.__name__, "frame": frame}


def _event(value: dict[str, Any], names: TopicNames, limits: Limits) -> Event:
    if "connection" in value:
        return Connection(**value["connection"])
    if "fault" in value:
        return Fault(*value["fault"])
    known = value["exchange"]
    proxied = known["proxied"]
    changed = {
        "request": _message(known["request"], "request", limits),
        "response": _message(known["response"], "response", limits),
        "session_faults": [Fault(*each) for each in known["session_faults"]],
        "routine": tuple(known["routine"]),
        "proxied": proxied and Proxied(proxied[0], proxied[1], tuple(proxied[2]), proxied[3]),
    }
    return Exchange(**(known | changed), topic_names=names.up_to(*value["names"]))


def _message(value: dict[str, Any] | None, kind: str, limits: Limits) -> Any:
    if value is None:
        return None
    direction = Direction.TO_BROKER if kind == "request" else Direction.FROM_BROKER
    frame_values = value["frame"]
    fault = frame_values["fault"]
    changed = {"packets": tuple(frame_values["packets"]), "fault": None if fault is None else Fault(*fault)}
    frame = Frame(direction, **(frame_values | changed))
    if value["is_token"]:
        token = Token(frame, kind)
        token.client_id = value["client_id"]
        return token
    header = {name: value[name] for name in _HEADER}
    message: Message
    if kind == "request":
        message = Request(frame, **header, client_id=value["client_id"], limits=limits)
    else:
        message = Response(frame, **header, limits=limits)
    message.header_faults = tuple(Fault(*each) for each in value["header_faults"])
    return message


def _in_base64(value: object) -> dict[str, str]:
    """The form of bytes in JSON.

    :raises TypeError: it is something else that JSON does not have.
    """
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"{type(value).__name__} is not a plain value")
    return {_BASE64: b64encode(value).decode("ascii")}


def _from_base64(value: dict[str, Any]) -> Any:
    return b64decode(value[_BASE64]) if value.keys() == {_BASE64} else value
