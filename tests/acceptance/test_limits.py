"""Limits smaller than anybody needs: whatever they are together, no byte goes astray, and what they cost is
told."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from kdissect.capture.segments import SegmentReader
from kdissect.dissect import Event
from kdissect.exchange import Exchange
from kdissect.limits import DEFAULTS, Limits
from kdissect.model import Fault, Packet, Segment
from kdissect.session.conversation import Connection
from tests.acceptance.mutate import connections, damaged_capture, look_at
from tests.accounts import astray
from tests.amount import times
from tests.dissecting import dissect

SMALL: dict[str, tuple[int, ...]] = {
    "layers": (1, 2),
    "tunnels": (1,),
    "fragment_bytes": (1, 1_000),
    "fragments": (1, 2),
    "fragment_ns": (1,),
    "reorder_bytes": (1, 100, 2_000),
    "reorder_one_sided_bytes": (1, 100),
    "waiting_bytes": (1, 100, 3_000, 50_000),
    "frame_bytes": (1, 50, 100, 1_000),
    "connections": (1, 2, 5),
    "tenants": (1,),
    "settle_bytes": (1, 30, 500),
    "tls_wait_bytes": (1, 1_000),
    "elements": (1, 3),
    "message_elements": (1, 5),
    "tree_nodes": (1, 20),
    "tagged_fields": (1,),
    "decompressed_bytes": (1, 1_000),
    "decompressed_ratio": (1,),
    "pending_requests": (1, 2, 5),
    "topic_names": (1,),
    "secret_bytes": (1, 1_000),
}
"""Of each limit that counts while packets become exchanges, small values."""

LIMITS = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values) for name, values in SMALL.items()}
).map(lambda few: DEFAULTS._replace(**few))
SEEDS = st.integers(0, 1 << 32)
REACH = 6
"""Packets by which one may come early or late."""


def test_every_limit_that_dissecting_has_is_tried() -> None:
    others = {"packet_bytes", "block_bytes"}  # of files
    others |= {
        "rows",
        "timeline_events",
        "timeline_key_events",
        "delivery_sets",
        "fact_bytes",
    }  # of statistics
    assert set(SMALL) == set(Limits._fields) - others


@settings(max_examples=times(80, 300), deadline=None)
@given(seed=SEEDS, limits=LIMITS)
def test_no_byte_of_a_damaged_capture_goes_astray(seed: int, limits: Limits) -> None:
    events = list(dissect(damaged_capture(random.Random(seed)), limits))
    assert astray(events) == {}
    for event in events:
        if isinstance(event, Exchange):
            look_at(event)


@settings(max_examples=times(80, 300), deadline=None)
@given(seed=SEEDS, limits=LIMITS)
def test_what_a_limit_costs_is_told(seed: int, limits: Limits) -> None:
    packets = whole_capture(random.Random(seed))
    unlimited, limited = list(dissect(packets)), list(dissect(packets, limits))
    assert astray(limited) == {}
    rows = [event for event in limited if isinstance(event, Connection)]
    if messages(unlimited) - messages(limited):
        assert any(isinstance(event, Fault) for event in limited) or any(row.skipped_bytes for row in rows)
    said = sum(row.bytes_to_broker + row.bytes_from_broker + row.gap_bytes for row in rows)
    if not any(isinstance(event, Fault) and event.layer == "link" for event in limited):
        # More, where bytes come again after what they are a copy of was forgotten.
        assert said + left_out(limited) >= carried(packets)


def whole_capture(randomly: random.Random) -> list[Packet]:
    """Connections one inside the other, of which no packet is missing, though some come early or late."""
    some = [list(randomly.choice(connections())) for _ in range(3)]
    packets = []
    while any(some):
        packets.append(randomly.choice([each for each in some if each]).pop(0))
    late = randomly.choice((0, 0, REACH))
    order = sorted(range(len(packets)), key=lambda at: at + randomly.random() * late)
    return [packets[at]._replace(number=number) for number, at in enumerate(order, 1)]


def messages(events: Iterable[Event]) -> Counter[bytes]:
    """The bytes of every message, and how often they occur."""
    exchanges = [event for event in events if isinstance(event, Exchange)]
    return Counter(message.frame.payload for each in exchanges for message in each.messages)


def left_out(events: Iterable[Event]) -> int:
    """How many bytes lie where none of the stream can."""
    told = " ".join(e.message for e in events if isinstance(e, Fault) and e.kind == "out-of-window")
    counts = re.findall(r"([\d,]+) bytes? (?:that|before)", told)
    return sum(int(count.replace(",", "")) for count in counts)


def carried(packets: Iterable[Packet]) -> int:
    """How many bytes of streams the packets carry, each counted once."""
    reader = SegmentReader()
    places = {
        (segment.source, segment.destination, segment.seq + at)
        for packet in packets
        if isinstance(segment := reader.feed(packet), Segment)
        for at in range(len(segment.payload))
    }
    return len(places)
