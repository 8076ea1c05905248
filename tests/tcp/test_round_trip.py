"""How long bytes and their acknowledgement take between the capture point and the receiver."""

from __future__ import annotations

import pickle

import pytest

from kdissect.model import SYN, Segment
from kdissect.tcp.duplex import Duplex
from kdissect.tcp.reassembly import ROUND_TRIPS, RoundTrips
from tests.tcp.segments import BROKER, CLIENT, Wire

MS = 1_000_000


def round_trips(*segments: Segment) -> tuple[int, int]:
    """Of the client's bytes to the broker, and of the broker's to the client."""
    duplex = Duplex(segments[0])
    for segment in segments:
        duplex.feed(segment)
    client, broker = duplex.streams
    return client.round_trip_ns, broker.round_trip_ns


def test_the_handshake_tells_both() -> None:
    wire = Wire()
    assert round_trips(
        wire.segment(CLIENT, -1, ack=None, flags=SYN, at_ns=0),
        wire.segment(BROKER, -1, ack=0, flags=SYN, at_ns=120 * MS),
        wire.segment(CLIENT, 0, ack=0, at_ns=121 * MS),
    ) == (120 * MS, MS)


def test_data_and_the_acknowledgement_that_covers_it_tell_it_where_the_handshake_is_missing() -> None:
    wire = Wire()
    asked = wire.segment(CLIENT, 0, b"ab", ack=0, at_ns=10 * MS)
    more = wire.segment(CLIENT, 2, b"cd", ack=0, at_ns=11 * MS)
    answered = wire.segment(BROKER, 0, b"x", ack=4, at_ns=15 * MS)
    assert round_trips(asked, more, answered) == (5 * MS, -1)


def test_nothing_is_known_before_anything_was_acknowledged() -> None:
    wire = Wire()
    assert round_trips(wire.segment(CLIENT, 0, b"ab", ack=0), wire.segment(CLIENT, 2, b"cd", ack=0)) == (
        -1,
        -1,
    )


def test_the_smallest_counts() -> None:
    wire = Wire()
    segments = []
    for at, took in enumerate((40, 3, 500)):
        segments += [
            wire.segment(CLIENT, at, b"a", ack=at, at_ns=at * 1_000 * MS),
            wire.segment(BROKER, at, b"x", ack=at + 1, at_ns=(at * 1_000 + took) * MS),
        ]
    assert round_trips(*segments)[0] == 3 * MS


def test_a_retransmission_is_not_timed() -> None:
    """The acknowledgement of the first copy may come just after the second."""
    wire = Wire()
    first = wire.segment(CLIENT, 0, b"ab", ack=0, at_ns=0)
    again = wire.segment(CLIENT, 0, b"ab", ack=0, at_ns=199 * MS)
    assert round_trips(first, again, wire.segment(BROKER, 0, ack=2, at_ns=200 * MS)) == (200 * MS, -1)


def test_bytes_that_fill_a_hole_are_not_timed() -> None:
    """Nobody knows whether they were sent again."""
    wire = Wire()
    first = wire.segment(CLIENT, 0, b"a", ack=0, at_ns=0)
    known = wire.segment(BROKER, 0, ack=1, at_ns=50 * MS)
    beyond = wire.segment(CLIENT, 2, b"c", ack=0, at_ns=60 * MS)
    late = wire.segment(CLIENT, 1, b"b", ack=0, at_ns=99 * MS)
    assert round_trips(first, known, beyond, late, wire.segment(BROKER, 0, ack=3, at_ns=100 * MS)) == (
        50 * MS,
        -1,
    )


def test_bytes_that_the_capture_has_behind_their_acknowledgement_are_not_timed() -> None:
    wire = Wire()
    first = wire.segment(CLIENT, 0, b"a", ack=0, at_ns=0)
    known = wire.segment(BROKER, 0, ack=1, at_ns=50 * MS)
    early = wire.segment(BROKER, 0, ack=2, at_ns=70 * MS)
    late = wire.segment(CLIENT, 1, b"b", ack=0, at_ns=70 * MS)
    again = wire.segment(BROKER, 0, b"x", ack=2, at_ns=71 * MS)
    assert round_trips(first, known, early, late, again)[0] == 50 * MS


def test_a_clock_that_goes_back_tells_nothing() -> None:
    wire = Wire()
    asked = wire.segment(CLIENT, 0, b"a", ack=0, at_ns=100 * MS)
    assert round_trips(asked, wire.segment(BROKER, 0, ack=1, at_ns=99 * MS)) == (-1, -1)


def test_bytes_that_the_snap_length_cut_are_timed() -> None:
    wire = Wire()
    asked = wire.segment(CLIENT, 0, b"ab", ack=0, length=1_000, at_ns=0)
    assert round_trips(asked, wire.segment(BROKER, 0, ack=1_000, at_ns=7 * MS))[0] == 7 * MS


def test_it_goes_on_where_the_state_is_sent_elsewhere() -> None:
    wire = Wire()
    asked, acknowledged = (
        wire.segment(CLIENT, 0, b"a", ack=0, at_ns=0),
        wire.segment(BROKER, 0, ack=1, at_ns=MS),
    )
    duplex = Duplex(asked)
    duplex.feed(asked)
    duplex = pickle.loads(pickle.dumps(duplex))
    duplex.feed(acknowledged)
    assert duplex.streams[0].round_trip_ns == MS


@pytest.mark.parametrize("count", [0, 3, ROUND_TRIPS - 1, ROUND_TRIPS, 3 * ROUND_TRIPS + 1])
def test_another_process_keeps_the_same(count: int) -> None:
    kept = RoundTrips(range(count))
    other = pickle.loads(pickle.dumps(kept))
    assert other.values() == kept.values()
    assert (kept.values() == list(range(count))) == (count < ROUND_TRIPS)


def test_an_acknowledgement_that_comes_with_bytes_shows_that_bare_ones_were_delayed() -> None:
    """Ends acknowledge what they do not answer at once up to 40 ms later, or more."""
    wire, segments = Wire(), []
    for at, took in enumerate((41, 40, 42)):
        segments += [
            wire.segment(CLIENT, at, b"a", ack=0, at_ns=at * 1_000 * MS),
            wire.segment(BROKER, 0, ack=at + 1, at_ns=(at * 1_000 + took) * MS),
        ]
    quick = [
        wire.segment(CLIENT, 3, b"a", ack=0, at_ns=9_000 * MS),
        wire.segment(BROKER, 0, b"x", ack=4, at_ns=9_001 * MS),
    ]

    def path_ns(*segments: Segment) -> int:
        duplex = Duplex(segments[0])
        for segment in segments:
            duplex.feed(segment)
        return duplex.streams[0].path_ns

    assert path_ns(*segments) == 40 * MS
    assert path_ns(*segments, *quick) == MS
    assert path_ns(*quick) == -1  # it may have waited for what the broker did
    before = [
        wire.segment(CLIENT, 0, b"a", ack=0, at_ns=0),
        wire.segment(BROKER, 0, b"x", ack=1, at_ns=MS),
        wire.segment(CLIENT, 1, b"a", ack=1, at_ns=9_000 * MS),
        wire.segment(BROKER, 1, ack=2, at_ns=9_040 * MS),
    ]
    assert path_ns(*before) == MS
