"""How much of a response time is a wait that the client asked for. Only facts are told.

A broker holds back the answer to some requests by design, and does not say for how long. These facts of one
exchange can be known:

* A request waits behind the one before it on its connection (``Exchange.behind_ns``) and for a quota
  (``throttle_ns``), and it travels (``network_ns``). That is neither work nor a wait that the client asked
  for. The facts below are about the rest, ``served_ns``. If that is unknown, all of them are.
* A long poll (Fetch, ShareFetch) names the longest wait (``maxWaitMs``) and what ends it sooner
  (``minBytes``).
  - If ``maxWaitMs`` is 0, the client asked for no wait: all of the response time is the broker's work.
  - If the answer came after the whole ``maxWaitMs``, and the broker had no other reason to answer, the wait
    was ``maxWaitMs``, and the rest is the broker's work. No other reason means: fewer bytes than
    ``minBytes``, no error, no diverging epoch, no preferred replica, no throttling (which empties a
    response).
  - For all other long polls, it is only known that some of the time may have been a wait.
* JoinGroup and SyncGroup wait for other members, for a time that no field names.
* All other requests have no wait that the client asked for.

The definitions say which API waits for what.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from kdissect.exchange import Exchange
from kdissect.message import Message
from kdissect.protocol.library import Library, library
from kdissect.protocol.polling import place_of_wait
from kdissect.protocol.program import THROTTLE_FIELD
from kdissect.protocol.survey import Survey
from kdissect.protocol.traits import api_traits, traits_of_api
from kdissect.session.briefs import NOT_KNOWN, Brief

MILLISECOND = 1_000_000
_MILLISECOND = MILLISECOND
_NOT_KNOWN = NOT_KNOWN


def is_long_poll(api: str | None) -> bool:
    """Whether a request names the longest wait for records."""
    return traits_of_api(api).waits == "records"


def is_long_poll_of(exchange: Exchange) -> bool:
    """Whether an exchange is a long poll, as :func:`is_long_poll`, by the key of its API."""
    return _waits_of(exchange.api_key) == "records"


def waits_for_members(api: str | None) -> bool:
    """Whether a request waits for other members of its group, for a time that no field names."""
    return traits_of_api(api).waits == "members"


def may_wait(api: str | None) -> bool:
    """Whether a request may wait because the client asked for it."""
    return traits_of_api(api).waits is not None


class Wait(Enum):
    """The known facts of an exchange's wait."""

    NONE = "the client asked for no wait"
    POSSIBLE = "part of the time may be a wait that the client asked for"
    WAITED_OUT = "the broker waited as long as the client asked for"


class WaitAndWork(NamedTuple):
    """The wait and the work in one exchange."""

    wait: Wait
    wait_ns: int | None
    """The wait that the client asked for; None if unknown."""
    broker_ns: int | None
    """The broker's work: ``served_ns`` without that wait; None if unknown."""


_known: tuple[Exchange | None, Message | None, int | None, WaitAndWork | None] = (None, None, None, None)
"""The exchange of the last call, its response, its ``served_ns``, and the result: many statistics ask for the
same one. One value, so that no thread sees a mix of two."""
_new = tuple.__new__
"""``_new(WaitAndWork, values)``: without the second call of NamedTuple's own ``__new__``."""
_waits: dict[int | None, str | None] = {}
"""The kind of wait of each API that was asked for, under the definitions ``_defined``. To ask for the traits
of an API takes longer than the rest of a split."""
_defined: Library | None = None
_POSSIBLE, _NO_WAIT = WaitAndWork(Wait.POSSIBLE, None, None), WaitAndWork(Wait.NONE, None, None)
"""The results if nothing more is known."""


def split(exchange: Exchange) -> WaitAndWork:
    """The known parts of the response time of a whole exchange."""
    global _known  # noqa: PLW0603 - a memory of one
    shared = exchange.shared
    if shared is not None:
        known: WaitAndWork | None = shared.split
        if known is not None:
            return known
    turn = exchange._turn()
    served = None if turn is None else turn - (exchange.network_ns or 0)
    asked, response, took, found = _known
    if asked is exchange and found is not None and response is exchange.response and took == served:
        return found
    found = _split(_waits_of(exchange._first().api_key), turn, served, exchange)
    _known = (exchange, exchange.response, served, found)
    if shared is not None:
        shared.split = found
    return found


def _waits_of(api_key: int | None) -> str | None:
    """The kind of wait that the requests of an API have."""
    global _defined  # noqa: PLW0603 - the definitions may be read anew
    in_use = library()
    if in_use is not _defined:
        _waits.clear()
        _defined = in_use
    if api_key not in _waits:
        _waits[api_key] = api_traits(api_key).waits
    return _waits[api_key]


def _split(waits: str | None, turn: int | None, served: int | None, exchange: Exchange) -> WaitAndWork:
    """The known parts of a response time, by the kind of wait that the requests of its API have."""
    if served is None:
        return _NO_WAIT if waits is None else _POSSIBLE
    if waits == "members":
        return _POSSIBLE
    request, response = exchange.request, exchange.response
    if waits != "records" or request is None or response is None:
        return _new(WaitAndWork, (Wait.NONE, 0, served))
    longest, least = asked_wait(request)
    if longest is None:
        return _POSSIBLE
    if longest <= 0:
        return _new(WaitAndWork, (Wait.NONE, 0, served))
    asked_ns = longest * MILLISECOND
    # With the network: the smallest round trip may be a little too long.
    if turn is None or turn < asked_ns or _has_reason(exchange, response, least):
        return _POSSIBLE
    wait = min(served, asked_ns)
    return _new(WaitAndWork, (Wait.WAITED_OUT, wait, served - wait))


def waited_in_brief(brief: Brief) -> int:
    """The wait of an exchange in brief that has its answer, in one number. It is 0 if the client asked for no
    wait, and :data:`NOT_KNOWN` if some of the time may have been one. Otherwise the wait was over when the
    answer came, and the number is the requested wait, ns."""
    form = brief.form
    if form.waits is None:
        return 0
    if form.waits != "records":
        return _NOT_KNOWN
    at = brief.request_body + form.wait_at
    if form.wait_at >= 0 and at + 8 <= brief.request_end:
        longest, least = _int32(brief.request_data, at), _int32(brief.request_data, at + 4)
    else:
        told, least = asked_wait(brief.request())
        if told is None:
            return _NOT_KNOWN
        longest = told
    if longest <= 0:
        return 0
    asked_ns = longest * _MILLISECOND
    if turn_in_brief(brief) < asked_ns or _has_reason_in_brief(brief, least):
        return _NOT_KNOWN
    return asked_ns


def turn_in_brief(brief: Brief) -> int:
    """Like :attr:`kdissect.exchange.Exchange.turn_ns`."""
    return brief.response_first_ns - brief.request_ns - brief.behind_ns - brief.throttle_ns


def served_in_brief(brief: Brief) -> int:
    """Like :attr:`kdissect.exchange.Exchange.served_ns`."""
    turn = turn_in_brief(brief)
    return turn - brief.network_ns if brief.network_ns > 0 else turn


def asked_wait(request: Message) -> tuple[int | None, int]:
    """How long a long poll may wait, ms, and for how many bytes. If both are at a fixed position, the body is
    not decoded."""
    struct = request.body_struct()
    place = None if struct is None or request.is_cut else place_of_wait(struct)
    if place is not None:
        at = request.body_start + place
        data = request.frame.payload
        if len(data) >= at + 8:
            return _int32(data, at), _int32(data, at + 4)
    body = request.body()
    return body.get("maxWaitMs"), body.get("minBytes", 1)


def _int32(raw: bytes, at: int) -> int:
    """The signed number in the 4 bytes at a position. They must exist."""
    high = raw[at]
    if high > 0x7F:
        high -= 0x100
    return high * 0x100_0000 + (raw[at + 1] << 16 | raw[at + 2] << 8 | raw[at + 3])


def _has_reason(exchange: Exchange, response: Message, least: int) -> bool:
    """Whether the broker may have answered for another reason than the end of the wait, or that is
    unknown."""
    seen = response.survey()
    if seen is not None:  # this decides nearly all, without decoding
        return _reason_seen(seen, least)
    body = response.decoded()
    if body.struct is None or body.faults or response.is_cut:
        return True
    return _values_have_reason(exchange, body.values, least)


def _has_reason_in_brief(brief: Brief, least: int) -> bool:
    """The same as :func:`_has_reason`, for an exchange in brief."""
    seen = brief.survey_response()
    if seen is not None:
        return _reason_seen(seen, least)
    exchange = brief.exchange()
    assert exchange.response is not None
    return _has_reason(exchange, exchange.response, least)


def _reason_seen(seen: Survey, least: int) -> bool:
    """Whether there was another reason, by the survey of a response."""
    if seen.error or seen.throttle_ms or seen.redirects:
        return True
    records, at, held = seen.records, 0, 0
    while at < len(records):
        held += records[at + 1] - records[at]
        at += 2
    return held >= least


def _values_have_reason(exchange: Exchange, response: dict[str, Any], least: int) -> bool:
    if response.get(THROTTLE_FIELD) or next(exchange.error_codes(), None) is not None:
        return True
    size = 0
    for topic in response.get("responses") or ():
        for partition in topic.get("partitions") or ():
            size += len(partition.get("records") or b"")
            if partition.get("divergingEpoch") or partition.get("preferredReadReplica", -1) != -1:
                return True
    return size >= least
