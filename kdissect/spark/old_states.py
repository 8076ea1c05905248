"""States of format 4, which no release could drain → their ending (:mod:`kdissect.spark.ending`).

Such a state is only a pickle. Its classes have changed since then. So it is read as plain values: each object
becomes a :class:`_Thing`, and no code of it runs. Its waiting requests become exchanges, and its connections
become rows. A message that had not come completely becomes a fault, because the rest of it cannot follow.
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict, deque
from collections.abc import Iterator
from typing import Any

from kdissect.faults import fault
from kdissect.model import Fault, endpoint_text
from kdissect.session.conversation import Connection
from kdissect.spark.ending import plain_connection, plain_exchange, plain_fault, written
from kdissect.spark.stream_state import Drained
from kdissect.wording import plural

FORMAT = 4

_MAKER = "__pyx_unpickle_"
"""How the names of functions begin that make objects of compiled classes."""
_HARMLESS: dict[tuple[str, str], Any] = {
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("builtins", "getattr"): lambda *_: None,
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "deque"): deque,
}
_PARTS = {
    "Connection": Connection._fields,
    "Fault": Fault._fields,
    "Frame": (
        *("direction", "offset", "payload", "size", "first_packet", "first_ns", "last_packet", "last_ns"),
        *("packets", "searched", "fault"),
    ),
    "Piece": ("offset", "length", "data", "packet", "timestamp_ns"),
    "Chunk": ("offset", "data", "packet", "timestamp_ns", "packets"),
    "Recognised": ("exchange",),
    "Completed": ("exchange",),
    "Verdict": ("protocol", "client", "starts", "inferred", "correlation_id", "client_id", "doubt"),
}
"""The names of the parts of values, in order."""


_COMPILED = {
    "Dissector": (
        *("_awaiting", "_closed", "_embedded", "_held_bytes", "_holding", "_lanes", "_late", "_late_bytes"),
        *("_limits", "_lingering", "_lingers_since", "_listener", "_names_are_complete"),
        *("_names_left_out", "_numbering", "_older", "_ports", "_remembered", "_reopened", "_segments"),
        *("_table", "_tells_tcp", "_told_of_secrets", "_tunnelled", "_uses_lanes", "_watch", "journal"),
        *("names", "packets", "secrets"),
    ),
    "Numbering": ("connections", "exchanges"),
    "Conversation": (
        *("_broker_ports", "_bytes", "_duplex", "_flushed", "_framers", "_held", "_limits", "_listener"),
        *("_origin", "_preambles", "_proxied", "_proxies", "_recogniser", "_secrets", "_session", "_skipped"),
        *("_tls", "_verdict", "_witnesses", "counted_bytes", "decrypted_listener", "ends", "held_bytes"),
        "number",
    ),
    "Duplex": (
        *("_backlogs", "_limit", "_queued_cost", "_syn_ns", "closed_ns", "closed_side", "endpoints"),
        *("first_is_other", "first_ns", "held_bytes", "last_ns", "last_packet", "packets", "reset"),
        *("reset_side", "streams", "syns"),
    ),
    "Reassembler": (
        *("_base", "_base_is_sure", "_copies", "_impatience", "_initial", "_initials", "_last_data"),
        *("_last_ns", "_last_offset", "_last_packet", "_last_size", "_last_start", "_limits"),
        *("_overdue_since", "_passed", "_stray_end", "_stride", "_timed_end", "_timed_ns", "_waiting"),
        *("_zero_since_ns", "acknowledged", "copied", "ended_at", "gap_bytes", "gaps", "kept", "next"),
        *("opened", "path_ns", "retransmitted", "round_trip_ns", "round_trips", "syn_acknowledged_ns"),
        *("syn_ns", "syn_options", "troubles", "window"),
    ),
    "Framer": (
        *("_cut_at", "_found_by_search", "_have", "_limits", "_most", "_parts", "_searching", "_size"),
        *("_skip", "direction"),
    ),
    "Dialogue": ("_first", "_second", "_turned_arguments", "_turned_streams"),
    "Session": (
        *("_answered", "_answers_first", "_broker", "_client", "_connection", "_evicted", "_expected"),
        *("_expects_tokens", "_gap_packet", "_inferred", "_is_fresh_loss", "_is_latest", "_latest_api_key"),
        *("_latest_id", "_latest_is_whole", "_latest_ns", "_limits", "_lost_behind", "_most"),
        *("_mute_end_ns", "_pending", "_request_loss", "_requests", "_response_gap", "_response_losses"),
        *("_responses", "_saw_request", "_saw_response", "_told_bytes", "_turning_effort", "client_id"),
        *("ending", "exchanges", "login", "software", "takes_all", "witness"),
    ),
    "Waiting": ("exchange", "losses"),
    "Pending": ("_by_correlation", "_oldest", "_serial", "_tokens", "_waiting", "held_bytes"),
    "Exchange": (
        *("_base_offsets", "_faults", "after_api_key", "behind_correlation_id", "behind_ns"),
        *("breaks_quota", "broker_endpoint", "client_endpoint", "connection", "embedded", "inferred"),
        *("is_encrypted", "missing", "network_ns", "number", "principal", "proxied", "recognised"),
        *("request", "response", "routine", "seen", "session_faults", "think_ns", "throttle_ns"),
        "topic_names",
    ),
    "Request": (
        *("_body", "_is_surveyed", "_layout", "_survey", "api_key", "api_version", "body_start"),
        *("client_id", "correlation_id", "frame", "header_faults", "header_version", "limits"),
    ),
    "Response": (
        *("_body", "_is_surveyed", "_layout", "_survey", "api_key", "api_version", "body_start"),
        *("correlation_id", "frame", "header_faults", "header_version", "limits"),
    ),
    "Token": (
        *("_body", "_is_surveyed", "_layout", "_survey", "api_key", "api_version", "body_start"),
        *("client_id", "correlation_id", "frame", "header_faults", "header_version", "kind", "limits"),
    ),
    "TopicNames": ("_told", "order"),
}
"""The names of the attributes of compiled classes, whose values come without names, in their order."""


class OldStateError(Exception):
    """A state has something that a state of this format does not have."""


class _Thing:
    """An object of a state: only its attributes."""

    def __new__(cls, *values: Any) -> _Thing:
        thing = super().__new__(cls)
        thing.__dict__.update(zip(_PARTS.get(cls.__name__, ()), values, strict=False))
        return thing

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):
            self.__dict__.update(state)
        elif len(state) == 2 and isinstance(state[1], dict) and isinstance(state[0], dict | None):
            self.__dict__.update((state[0] or {}) | state[1])
        elif (names := _COMPILED.get(type(self).__name__)) is not None:
            self.__dict__.update(zip(names, state, strict=True))

    def __getattr__(self, name: str) -> Any:
        raise OldStateError(f"{type(self).__name__} has no {name}")

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__dict__.values())


class _InertUnpickler(pickle.Unpickler):
    """Reads a pickle and makes things in place of objects."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self._classes: dict[str, type[_Thing]] = {}

    def find_class(self, module: str, name: str) -> Any:
        """A class of things, or a function that makes one."""
        if (module, name) in _HARMLESS:
            return _HARMLESS[module, name]
        if not module.startswith("kdissect."):
            raise OldStateError(f"it names {module}.{name}")
        if name.startswith(_MAKER):
            return _made
        if name not in self._classes:
            self._classes[name] = type(name, (_Thing,), {})
        return self._classes[name]


def _made(kind: type[_Thing], _: int, state: tuple[Any, ...] | None = None) -> _Thing:
    """The thing in place of an object of a compiled class."""
    thing = kind()
    if state is not None:
        thing.__setstate__(state)
    return thing


def old_ending(data: bytes) -> bytes:
    """The ending of a state.

    :param data: its pickle.
    :raises OldStateError: it is not the pickle of a state of this format.
    """
    try:
        return _ending(_InertUnpickler(data).load())
    except (pickle.UnpicklingError, ValueError, TypeError, LookupError, EOFError, AttributeError) as error:
        raise OldStateError(str(error)) from error


def _ending(carried: Any) -> bytes:
    dissector = carried.dissector
    found = [*dissector._table.values(), *dissector._reopened.older.values()]
    conversations = sorted({id(each): each for each in found}.values(), key=lambda each: each.number)
    numbering, names = dissector._numbering, [tuple(each) for each in dissector.names.order]
    late = [each.exchange for each in dissector._late if type(each).__name__ == "Recognised"]
    for exchange in sorted(late, key=lambda each: each.recognised):
        numbering.exchanges += 1
        exchange.number = numbering.exchanges
    done = [each.exchange for each in dissector._late if type(each).__name__ == "Completed"]
    done += [each for conversation in conversations for each in _unanswered(conversation)]
    events = [plain_exchange(each, (_last_packet(each), len(names))) for each in done]
    events += [plain_fault(each) for conversation in conversations for each in _unread(conversation)]
    events += [plain_connection(_row(conversation)) for conversation in conversations]
    drained = Drained(
        *(carried.packets, carried.last_ns, carried.items, sorted(carried.final), carried.sizes),
        *(carried.firsts, numbering.connections, numbering.exchanges, names),
    )
    return written(drained, events)


def _last_packet(exchange: Any) -> int:
    both = [each for each in (exchange.request, exchange.response) if each is not None]
    return int(max(each.frame.last_packet for each in both))


def _sessions(conversation: Any) -> list[Any]:
    dialogue = conversation._session
    return [] if dialogue is None else [each for each in (dialogue._first, dialogue._second) if each]


def _unanswered(conversation: Any) -> Iterator[Any]:
    """The exchanges that wait for responses, with the reason why these are missing."""
    for session in _sessions(conversation):
        ending = session.ending if not _has_ended(conversation) else "connection closed"
        for waiting in session._pending._waiting.values():
            exchange = waiting.exchange
            is_in_gap = session._gap_packet > exchange.request.frame.last_packet
            exchange.missing = ending
            if session._response_gap > waiting.losses or is_in_gap:
                exchange.missing = "gap" if session._saw_response else "not captured"
            elif session._response_losses > waiting.losses:
                exchange.missing = "skipped"
            yield exchange


def _unread(conversation: Any) -> Iterator[Fault]:
    """The bytes that waited for others."""
    duplex = conversation._duplex
    waiting = [stream._waiting for stream in duplex.streams if stream._waiting is not None]
    held = [*(conversation._held or ()), *(each for log in duplex._backlogs or () for each in log.queue)]
    size = sum(len(piece.data) for each in waiting for piece in each._pieces)
    size += sum(len(piece.data) for _, piece in held if type(piece).__name__ == "Chunk")
    size += sum(framer._have for framer in conversation._framers or ())
    found = [f"{plural(size, 'byte')} that waited for others"] if size else []
    if conversation._tls is not None:
        found.append("the facts of the TLS handshake, and bytes that waited for secrets")
    if found:
        words = f"kdissect was upgraded here, and left out {' and '.join(found)}"
        yield fault("skipped", words, duplex.last_packet, connection=conversation.number)


def _has_ended(conversation: Any) -> bool:
    duplex = conversation._duplex
    return duplex.reset or any(stream.ended_at is not None for stream in duplex.streams)


def _row(conversation: Any) -> Connection:
    """The row of a connection, without facts of its TLS handshake."""
    duplex, verdict, sizes = conversation._duplex, conversation._verdict, conversation._bytes
    sessions, tls = _sessions(conversation), conversation._tls
    client, protocol = (0, "unknown") if verdict is None else (verdict.client, verdict.protocol)
    skipped = conversation._skipped
    if conversation._recogniser is not None:
        skipped += sum(side.passed for side in conversation._recogniser._sides)
    if tls is not None:
        is_decrypted = any(flow.opened for flow in tls._flows)
        skipped += sum(sizes) - (tls.read_bytes if is_decrypted else 0)
        protocol = "tls" if protocol == "unknown" else protocol
    origin = conversation._origin
    near = origin[1] if origin is not None and origin[0] == client else duplex.endpoints[client]
    one, other = duplex.streams
    return Connection(
        connection=conversation.number,
        client=endpoint_text(near),
        broker=endpoint_text(duplex.endpoints[1 - client]),
        start_ns=duplex.first_ns,
        end_ns=duplex.last_ns,
        end="rst" if duplex.reset else "fin" if _has_ended(conversation) else "open",
        packets=duplex.packets,
        bytes_to_broker=sizes[client],
        bytes_from_broker=sizes[1 - client],
        retransmitted=one.retransmitted + other.retransmitted,
        gaps=one.gaps + other.gaps,
        gap_bytes=one.gap_bytes + other.gap_bytes,
        skipped_bytes=skipped,
        exchanges=sum(session.exchanges for session in sessions),
        protocol=protocol,
        client_id=sessions[0].client_id if sessions else None,
        software=sessions[0].software if sessions else None,
        sasl=_login(sessions[0].login) if sessions else None,
        proxies=conversation._proxies or None,
        opened=duplex.streams[client].opened,
    )


def _login(login: Any) -> dict[str, Any] | None:
    if login.mechanism is None:
        return None
    return {name: getattr(login, name) for name in ("mechanism", "principal", "outcome", "expires_ms")}
