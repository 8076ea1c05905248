"""How much of a response time is a wait that the client asked for. Only facts are told.

A broker holds back the answer to some requests by design, and says nothing about for how long. What can
be known of one exchange:

* A request waits behind the one before it on its connection (``Exchange.behind_ns``) and for a quota
  (``throttle_ns``), and it travels (``network_ns``). That is neither a wait that was asked for nor work. What
  follows is about the rest, ``served_ns``. If that is not known, no part of it is.
* A long poll (Fetch, ShareFetch) names the longest wait (``maxWaitMs``) and what ends it sooner
  (``minBytes``).
  - None was asked for where ``maxWaitMs`` is 0: all of the response time is the broker's work.
  - It was waited out where the answer came no sooner than ``maxWaitMs`` after that, and the broker
    had no other reason to answer than that the time was over: fewer bytes than ``minBytes``, no error,
    no diverging epoch, no preferred replica, no throttling (which empties a response). What goes beyond
    ``maxWaitMs`` is then the broker's work.
  - Of all others nothing more is known than that some of the time may have been a wait.
* JoinGroup and SyncGroup wait for other members, for a time that no field names.
* All other requests do not wait for what the client asked to wait for.

The definitions say which API waits for what.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from kdissect.exchange import Exchange
from kdissect.message import Message
from kdissect.protocol.plan import ARRAY, COMPACT_ARRAY, STRING, STRUCT, WIDTHS, least_bytes
from kdissect.protocol.program import THROTTLE_FIELD
from kdissect.protocol.schema import Struct
from kdissect.protocol.survey import Survey
from kdissect.protocol.traits import api_traits, traits_of_api
from kdissect.session.briefs import Brief

MILLISECOND = 1_000_000


def is_long_poll(api: str | None) -> bool:
    """Whether a request names the longest wait for records."""
    return traits_of_api(api).waits == "records"


def waits_for_members(api: str | None) -> bool:
    """Whether a request waits for other members of its group, for a time that no field names."""
    return traits_of_api(api).waits == "members"


def may_wait(api: str | None) -> bool:
    """Whether a request may wait because the client asked for that."""
    return traits_of_api(api).waits is not None


class Wait(Enum):
    """What is known of an exchange's wait."""

    NONE = "none was asked for"
    POSSIBLE = "some of the time may have been one"
    WAITED_OUT = "it lasted as long as was asked for"


class WaitAndWork(NamedTuple):
    """Wait and work of one exchange."""

    wait: Wait
    wait_ns: int | None
    """The wait that was asked for; None where it is not known."""
    broker_ns: int | None
    """The broker's work: ``served_ns`` without that wait; None where it is not known."""


_known: tuple[Exchange | None, Message | None, int | None, WaitAndWork | None] = (None, None, None, None)
"""The exchange that was asked for last, its response and the time that it was served in, and the answer: many
statistics ask for the same one. One value, so that no thread sees half of it."""
_new = tuple.__new__
"""``_new(WaitAndWork, values)``: without the second call that NamedTuple's own ``__new__`` costs."""
_POSSIBLE, _NO_WAIT = WaitAndWork(Wait.POSSIBLE, None, None), WaitAndWork(Wait.NONE, None, None)
"""Where nothing more is known."""


def split(exchange: Exchange) -> WaitAndWork:
    """What is known of the response time of a whole exchange."""
    global _known  # noqa: PLW0603 - a memory of one
    served = exchange.served_ns
    asked, response, took, found = _known
    if asked is exchange and found is not None and response is exchange.response and took == served:
        return found
    found = _split(api_traits(exchange.api_key).waits, exchange.turn_ns, served, exchange, None)
    _known = (exchange, exchange.response, served, found)
    return found


def split_brief(brief: Brief) -> WaitAndWork:
    """The same of an exchange in brief that has its answer."""
    turn = brief.answer_first_ns - brief.asked_ns - brief.behind_ns - brief.throttle_ns
    served = turn - brief.network_ns if brief.network_ns > 0 else turn
    return _split(brief.form.waits, turn, served, None, brief)


def _split(
    waits: str | None, turn: int | None, served: int | None, exchange: Exchange | None, brief: Brief | None
) -> WaitAndWork:
    """What is known of a response time, by what requests of its API may wait for, and by the exchange in one
    of its two forms."""
    if served is None:
        return _NO_WAIT if waits is None else _POSSIBLE
    if waits == "members":
        return _POSSIBLE
    if waits != "records":
        return _new(WaitAndWork, (Wait.NONE, 0, served))
    if brief is not None:
        longest, least = _asked_wait_in_brief(brief)
    elif exchange is None or exchange.request is None or exchange.response is None:
        return _new(WaitAndWork, (Wait.NONE, 0, served))
    else:
        longest, least = asked_wait(exchange.request)
    if longest is None:
        return _POSSIBLE
    if longest <= 0:
        return _new(WaitAndWork, (Wait.NONE, 0, served))
    asked_ns = longest * MILLISECOND
    # With the network: the smallest round trip may be a little too long.
    if turn is None or turn < asked_ns:
        return _POSSIBLE
    if brief is not None:
        has_reason = _has_reason_in_brief(brief, least)
    else:
        assert exchange is not None
        assert exchange.response is not None
        has_reason = _has_reason(exchange, exchange.response, least)
    if has_reason:
        return _POSSIBLE
    wait = min(served, asked_ns)
    return _new(WaitAndWork, (Wait.WAITED_OUT, wait, served - wait))


def asked_wait(request: Message) -> tuple[int | None, int]:
    """How long a long poll may wait, ms, and for how many bytes. If the two stand at a fixed place, the body
    is not decoded."""
    struct = request.body_struct()
    at = None if struct is None or request.is_cut else _place(struct)
    if at is not None:
        at += request.body_start
        data = request.frame.payload[at : at + 8]
        if len(data) == 8:
            return _wait_in(data)
    body = request.body()
    return body.get("maxWaitMs"), body.get("minBytes", 1)


def _asked_wait_in_brief(brief: Brief) -> tuple[int | None, int]:
    """The same of a request in brief."""
    struct = brief.form.asked.struct
    at = None if struct is None else _place(struct)
    if at is not None:
        at += brief.asked_body
        if at + 8 <= brief.asked_end:
            return _wait_in(brief.asked[at : at + 8])
    return asked_wait(brief.request())


def _wait_in(data: bytes) -> tuple[int, int]:
    return int.from_bytes(data[:4], "big", signed=True), int.from_bytes(data[4:], "big", signed=True)


@cache
def _place(struct: Struct) -> int | None:
    """Where in a body ``maxWaitMs`` stands, with ``minBytes`` behind it; None where that depends on what is
    before it."""
    at, names = 0, [field.name for field in struct.fields]
    if ("maxWaitMs", "minBytes") not in pairwise(names):
        return None
    for opcode, name, _ in struct.plan[1]:
        if name == "maxWaitMs":
            return at
        if opcode >= STRING:
            return None
        at += WIDTHS[opcode]
    return None


def _has_reason(exchange: Exchange, response: Message, least: int) -> bool:
    """Whether the broker may have answered for another reason than that the time was over, or that is not
    known."""
    seen = response.survey()
    if seen is not None:  # most are told by this, and need not be decoded
        size = len(response.frame.payload) - response.body_start
        known = _reason_seen(seen, response.body_struct(), size, least)
        if known is not None:
            return known
    body = response.decoded()
    if body.struct is None or body.faults or response.is_cut:
        return True
    return _values_have_reason(exchange, body.values, least)


def _has_reason_in_brief(brief: Brief, least: int) -> bool:
    """The same of an exchange in brief."""
    seen = brief.answer_seen
    if seen is not None:
        struct, size = brief.form.answered.struct, brief.answer_end - brief.answer_body
        known = _reason_seen(seen, struct, size, least)
        if known is not None:
            return known
    exchange = brief.exchange()
    assert exchange.response is not None
    return _has_reason(exchange, exchange.response, least)


def _reason_seen(seen: Survey, struct: Struct | None, size: int, least: int) -> bool | None:
    """Whether there was another reason, by the survey of a response whose body has ``size`` bytes. None where
    that does not tell."""
    if seen.error or seen.throttle_ms or sum(seen.records[1::2]) - sum(seen.records[::2]) >= least:
        return True
    if struct is not None and size < _with_a_topic(struct):
        return False  # without a partition there is no other reason
    return None


@cache
def _with_a_topic(struct: Struct) -> int:
    """The fewest bytes of a response that tells anything of a topic; 0 where that is not known."""
    for opcode, name, argument in struct.plan[1]:
        if name == "responses" and opcode in (ARRAY, COMPACT_ARRAY):
            return least_bytes(STRUCT, struct.plan) + int(argument[3])
    return 0


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
