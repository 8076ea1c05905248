"""How much of a response time is a wait that the client asked for, as far as that is a fact.

A broker holds back the answer to some requests by design, and says nothing about for how long. What can
be known of one exchange:

* A request waits behind the one before it on its connection (``Exchange.behind_ns``): that is neither a wait
  that was asked for nor work, and what follows is about the time since its turn had come. Where that wait is
  not known, nothing is.
* Fetch and ShareFetch name the longest wait (``maxWaitMs``) and what ends it sooner (``minBytes``).
  - None was asked for where ``maxWaitMs`` is 0: all of the response time is the broker's work.
  - It was waited out where the answer came no sooner than ``maxWaitMs`` after that, and the broker
    had no other reason to answer than that the time was over: fewer bytes than ``minBytes``, no error,
    no diverging epoch, no preferred replica, no throttling (which empties a response). What goes beyond
    ``maxWaitMs`` is then the broker's work.
  - Of all others nothing more is known than that some of the time may have been a wait.
* JoinGroup and SyncGroup wait for other members, for a time that no field names.
* All other requests do not wait for what the client asked to wait for.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from kdissect.analysis.fold import MILLISECOND
from kdissect.exchange import Exchange

LONG_POLLS = ("Fetch", "ShareFetch")
WAIT_FOR_MEMBERS = ("JoinGroup", "SyncGroup")
MAY_WAIT = LONG_POLLS + WAIT_FOR_MEMBERS


class Wait(Enum):
    """What is known of an exchange's wait."""

    NONE = "none was asked for"
    POSSIBLE = "some of the time may have been one"
    WAITED_OUT = "it lasted as long as was asked for"


class Known(NamedTuple):
    """Wait and work of one exchange."""

    wait: Wait
    work_ns: int | None
    """The response time without the waits; None where it is not known."""


def split(exchange: Exchange) -> Known:
    """What is known of the response time of a whole exchange."""
    own = exchange.own_latency_ns
    if own is None:
        return Known(Wait.POSSIBLE if exchange.api in MAY_WAIT else Wait.NONE, None)
    api = exchange.api
    if api in WAIT_FOR_MEMBERS:
        return Known(Wait.POSSIBLE, None)
    if api not in LONG_POLLS or exchange.request is None or exchange.response is None:
        return Known(Wait.NONE, own)
    request = exchange.request.body()
    longest, least = request.get("maxWaitMs"), request.get("minBytes", 1)
    if longest is None:
        return Known(Wait.POSSIBLE, None)
    if longest <= 0:
        return Known(Wait.NONE, own)
    beyond = own - longest * MILLISECOND
    body = exchange.response.decoded()
    whole = body.struct is not None and not body.faults and not exchange.response.is_cut
    if beyond >= 0 and whole and not _has_reason(exchange, body.values, least):
        return Known(Wait.WAITED_OUT, beyond)
    return Known(Wait.POSSIBLE, None)


def _has_reason(exchange: Exchange, response: dict[str, Any], least: int) -> bool:
    """Whether the broker may have answered for another reason than that the time was over."""
    if response.get("throttleTimeMs") or next(exchange.error_codes(), None) is not None:
        return True
    size = 0
    for topic in response.get("responses") or ():
        for partition in topic.get("partitions") or ():
            size += len(partition.get("records") or b"")
            if partition.get("divergingEpoch") or partition.get("preferredReadReplica", -1) != -1:
                return True
    return size >= least
