"""The facts about the network and both ends in a finished connection's segments."""

from __future__ import annotations

from itertools import chain
from typing import Any

from kdissect.tcp.clocks import halted_on_both_sides
from kdissect.tcp.duplex import Duplex, Side
from kdissect.tcp.options import Offered, offered
from kdissect.tcp.reassembly import NOWHERE, Reassembler
from kdissect.tcp.troubles import EXAMPLES, Troubles

ANSWERED, REFUSED, UNANSWERED = "answered", "refused", "unanswered"
"""The result of a SYN."""
NEAR = 0.2
"""If at most this part of the round trip is between capture point and one end, the capture point is near that
end."""
LEAST_PATH_NS = 200_000
"""If the round trip is shorter, as on one host, the capture point is near both ends."""


_NONE = Troubles()
"""For a direction without troubles; it must not be changed."""


def tcp_facts(duplex: Duplex, client: Side) -> dict[str, Any]:
    """Plain values by the names of the columns of the statistic ``tcp``; None if unknown.

    :param client: the side of the client.
    """
    asking, answering = duplex.streams[client], duplex.streams[1 - client]
    for stream in duplex.streams:
        if stream.troubles is not None:
            stream.troubles.count_outage(duplex.last_ns)
    ours, theirs = _offered(asking), _offered(answering)
    both = ours is not None and theirs is not None
    scales = both and ours.scale is not None and theirs.scale is not None  # type: ignore[union-attr]
    to_broker, to_client = _or_none(asking.path_ns), _or_none(answering.path_ns)
    mine, yours = asking.troubles or _NONE, answering.troubles or _NONE
    sent, answered = _losses(asking), _losses(answering)
    late: list[tuple[int, int]] = []
    if sent is not _NONE or answered is not _NONE:
        late = sorted(chain(sent.late(), answered.late()))[:EXAMPLES]
    worst = answered if answered.outage_ns > sent.outage_ns else sent
    opener = duplex.streams[0]
    mine_shut_ns, yours_shut_ns = asking.shut_ns(duplex.last_ns), answering.shut_ns(duplex.last_ns)
    return {
        "opening": _opening(duplex),
        "syns": duplex.syns,
        "syn_rtt_client_ns": _or_none(answering.syn_ns),
        "syn_rtt_broker_ns": _or_none(asking.syn_ns),
        "rtt_client_ns": to_client,
        "rtt_broker_ns": to_broker,
        "rtt_min_ns": None if to_broker is None or to_client is None else to_broker + to_client,
        "rtt_p50_ns": _median(asking, answering),
        "captured_near": _captured_near(to_client, to_broker),
        "wscale_client": None if ours is None else ours.scale,
        "wscale_broker": None if theirs is None else theirs.scale,
        "mss_client": None if ours is None else ours.mss,
        "mss_broker": None if theirs is None else theirs.mss,
        "sack": ours.sack and theirs.sack if ours is not None and theirs is not None else None,
        "timestamps": ours.timestamps and theirs.timestamps
        if ours is not None and theirs is not None
        else None,
        "window_max_client": _window(asking, ours, bool(scales)) if both else None,
        "window_max_broker": _window(answering, theirs, bool(scales)) if both else None,
        "zero_window_client_count": mine.zeros,
        "zero_window_client_ns": mine.zero_ns + mine_shut_ns,
        "zero_window_client_max_ns": max(mine.zero_longest_ns, mine_shut_ns),
        "zero_window_broker_count": yours.zeros,
        "zero_window_broker_ns": yours.zero_ns + yours_shut_ns,
        "zero_window_broker_max_ns": max(yours.zero_longest_ns, yours_shut_ns),
        "lost_to_broker": sent.lost,
        "lost_to_client": answered.lost,
        "retransmitted_segments": sent.lost + answered.lost,
        "rto_like": sent.lost_late + answered.lost_late,
        "rto_ns": [ns for ns, _ in late],
        "rto_packets": [packet for _, packet in late],
        "outage_ns": worst.outage_ns,
        "outage_from_ns": worst.outage_from_ns,
        "reset_by": _name(duplex.reset_side, client),
        "closed_by": _name(duplex.closed_side, client),
        "closed_ns": duplex.closed_ns,
        "clock_halts": halted_on_both_sides(duplex.clock_halts),
        "handshake_ns": _handshake(duplex, opener),
    }


def _name(side: Side | None, client: Side) -> str | None:
    return None if side is None else "client" if side == client else "broker"


def _or_none(ns: int) -> int | None:
    return None if ns < 0 else int(ns)


def _losses(stream: Reassembler) -> Troubles:
    """The losses of a stream. Only its receiver shows what it had. If nothing of the receiver was captured,
    retransmissions prove nothing."""
    return stream.troubles or _NONE if stream.acknowledged != NOWHERE else _NONE


def _offered(stream: Reassembler) -> Offered | None:
    """The options that the sender of a stream offered; None if its SYN was not captured."""
    if not stream.opened or stream.syn_options is None:
        return None
    return offered(stream.syn_options)


def _opening(duplex: Duplex) -> str | None:
    first, other = duplex.streams
    if not first.opened or not duplex.syns:
        return None
    if other.opened or other.next:
        return ANSWERED
    if duplex.reset_side == 1:
        return REFUSED
    # If the other end was not captured, an end that goes on after its SYN was answered.
    goes_on = first.next > 0 or first.ended_at != NOWHERE or other.acknowledged != NOWHERE
    return UNANSWERED if first.acknowledged == NOWHERE and not goes_on else ANSWERED


def _captured_near(to_client: int | None, to_broker: int | None) -> str | None:
    if to_client is None or to_broker is None or to_client + to_broker < LEAST_PATH_NS:
        return None
    share = to_broker / (to_client + to_broker)
    return "broker" if share <= NEAR else "client" if share >= 1 - NEAR else "between"


def _window(stream: Reassembler, own: Offered | None, scales: bool) -> int | None:
    if stream.window < 0:
        return None
    scale = (own.scale or 0) if scales and own is not None else 0
    return int(stream.window) << scale


def _median(asking: Reassembler, answering: Reassembler) -> int | None:
    parts = []
    for stream in (asking, answering):
        if stream.round_trips is None:
            return None
        found = sorted(stream.round_trips.values())
        parts.append(int(found[len(found) // 2]))
    return sum(parts)


def _handshake(duplex: Duplex, opener: Reassembler) -> int | None:
    """The time from the first SYN until the SYN-ACK was acknowledged."""
    end = duplex.streams[1].syn_acknowledged_ns
    if not opener.opened or not duplex.streams[1].opened or end < 0 or duplex.first_ns < 0:
        return None
    return max(0, int(end) - int(duplex.first_ns))
