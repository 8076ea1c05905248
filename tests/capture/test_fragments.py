"""IP fragments: any order, bounded, cut, lost."""

from __future__ import annotations

import random
import tracemalloc
from collections import deque
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdissect.capture.fragments import Fragment, Fragments
from kdissect.capture.segments import SegmentReader
from kdissect.limits import DEFAULTS
from kdissect.model import Fault, Segment
from tests.capture.build import ethernet, extension, ipv4, ipv6, ipv6_fragment, packet, tcp

PAYLOAD = bytes(range(256)) * 4
WHOLE = tcp(PAYLOAD)


def fragments4(size: int, identification: int = 7) -> list[bytes]:
    pieces = range(0, len(WHOLE), size)
    return [
        ethernet(
            ipv4(
                WHOLE[at : at + size],
                identification=identification,
                fragment=at // 8 | (0x2000 if at + size < len(WHOLE) else 0),
            )
        )
        for at in pieces
    ]


def fragments6(size: int) -> list[bytes]:
    body = extension(6) + WHOLE
    return [
        ethernet(ipv6(ipv6_fragment(60, at, at + size < len(body), 9, body[at : at + size]), 44), 0x86DD)
        for at in range(0, len(body), size)
    ]


def feed(reader: SegmentReader, frames: list[bytes]) -> list[Segment | Fault]:
    found = [reader.feed(packet(frame, number=number)) for number, frame in enumerate(frames, 1)]
    return [item for item in found if item is not None]


@pytest.mark.parametrize("frames", [fragments4(200), fragments6(200), fragments4(8), fragments6(8)])
def test_any_order_and_any_number_of_copies_give_the_segment_once(frames: list[bytes]) -> None:
    for shuffle in range(5):
        order = frames[:-1] * 2
        random.Random(shuffle).shuffle(order)
        reader = SegmentReader()
        (found,) = feed(reader, [*order, frames[-1]])
        assert isinstance(found, Segment)
        assert (found.packet, found.payload, found.length) == (len(order) + 1, PAYLOAD, len(PAYLOAD))
        assert reader.close() == []


def test_reversed_order_completes_with_the_first_fragment() -> None:
    (found,) = feed(SegmentReader(), fragments4(200)[::-1])
    assert isinstance(found, Segment)
    assert found.payload == PAYLOAD


def test_two_datagrams_do_not_mix() -> None:
    frames = [frame for pair in zip(fragments4(200, 1), fragments4(200, 2), strict=True) for frame in pair]
    found = feed(SegmentReader(), frames)
    assert [item.payload for item in found if isinstance(item, Segment)] == [PAYLOAD, PAYLOAD]


def test_of_bytes_that_overlap_the_first_count() -> None:
    frames = fragments4(200)
    lie = ethernet(ipv4(b"\xff" * 208, fragment=0x2000 | 192 // 8))
    (found,) = feed(SegmentReader(), [frames[0], frames[1], lie, *frames[2:]])
    assert isinstance(found, Segment)
    assert found.payload == PAYLOAD


def test_of_a_fragment_that_overlaps_only_what_is_new_counts() -> None:
    frames = [
        ethernet(ipv4(WHOLE[at:end], fragment=at // 8 | (0x2000 if end < len(WHOLE) else 0)))
        for at, end in ((400, 600), (0, 208), (192, 408), (80, 800), (720, len(WHOLE)))
    ]
    (found,) = feed(SegmentReader(), frames)
    assert isinstance(found, Segment)
    assert found.payload == PAYLOAD


def test_a_cut_fragment_ends_the_payload_not_its_length() -> None:
    reader = SegmentReader()
    frames = fragments4(200)
    found = [reader.feed(packet(frame[:134], wire_length=len(frame))) for frame in frames]
    assert isinstance(found[-1], Segment)
    assert (found[-1].payload, found[-1].length) == (PAYLOAD[:80], len(PAYLOAD))


def test_fragments_that_never_come_are_a_fault_at_the_end() -> None:
    reader = SegmentReader()
    assert feed(reader, fragments4(200)[1:]) == []
    (fault,) = reader.close()
    assert (fault.layer, fault.kind, fault.packet) == ("link", "fragment-lost", 5)
    assert reader.close() == []


def test_fragments_do_not_wait_longer_than_the_limit() -> None:
    reader = SegmentReader()
    first, *rest = fragments4(200)
    reader.feed(packet(first, timestamp_ns=0))
    other = fragments4(200, 8)[0]
    fault = reader.feed(packet(other, number=2, timestamp_ns=DEFAULTS.fragment_ns + 1))
    assert isinstance(fault, Fault)
    assert fault.kind == "fragment-lost"
    late = [reader.feed(packet(frame, timestamp_ns=DEFAULTS.fragment_ns + 2)) for frame in rest]
    assert late == [None] * len(rest)
    assert len(reader.close()) == 2


def test_fragments_that_wait_are_bounded_by_bytes_and_number() -> None:
    limits = DEFAULTS._replace(fragment_bytes=20_000)
    reader = SegmentReader(limits)
    faults: list[Fault] = []
    for identification in range(1_000):
        found = reader.feed(packet(fragments4(200, identification)[0]))
        if isinstance(found, Fault):
            faults.append(found)
        assert reader._datagrams._fragments._cost <= 20_000
    faults += reader.close()
    assert len(faults) == 1_000


@pytest.mark.parametrize("size", [0, 1, 8, 200])
def test_what_waits_takes_no_more_memory_than_is_charged(size: int) -> None:
    limit = 1_000_000
    fragments = Fragments(DEFAULTS._replace(fragment_bytes=limit))
    tracemalloc.start()
    try:
        for number in range(5_000):
            key = (number.to_bytes(4, "big"), bytes([10, 0, 0, number & 0xFF]), 6, number, 0)
            fragments.add([number], number, Fragment(key, 800, bytes([number & 0xFF]) * size, size, True))
            fragments.faults.clear()
        # Threads of other tests in this process allocate too: only what was allocated here counts.
        here = [tracemalloc.Filter(True, path) for path in (__file__, "*/kdissect/capture/fragments.py")]
        taken = tracemalloc.take_snapshot().filter_traces(here).statistics("filename")
    finally:
        tracemalloc.stop()
    # What tables have room for beyond their entries depends on the order of tests: a twentieth.
    assert 0 < sum(each.size for each in taken) < 1.05 * limit


def test_a_flood_of_lost_fragments_is_reported_in_order() -> None:
    fragments = Fragments(DEFAULTS)
    for number in range(100):
        fragments.add([number], 0, Fragment((b"a", b"b", 6, number, 0), 0, b"", 0, True))
    fragments.add([100], DEFAULTS.fragment_ns + 1, Fragment((b"a", b"b", 6, 100, 0), 0, b"", 0, True))
    assert isinstance(fragments.faults, deque)  # they are taken from the front, one a packet
    assert [fault.packet for fault in fragments.faults] == list(range(100))


def test_more_datagrams_that_wait_cost_no_more_each() -> None:
    def seconds(most: int) -> float:
        fragments = Fragments(DEFAULTS._replace(fragments=most, fragment_bytes=1 << 40))
        before = process_time()
        for number in range(3 * most):
            key = (number.to_bytes(4, "big"), b"here", 6, 0, 0)
            fragments.add([number], number, Fragment(key, 0, b"eight of", 8, True))
            fragments.faults.clear()
        return process_time() - before

    least, most = (min(seconds(size) for _ in range(2)) for size in (1_000, 40_000))
    assert most < 100 * least, "40 times the datagrams"


def test_a_fragment_beyond_any_packet_is_a_bad_header() -> None:
    fault = SegmentReader().feed(packet(ethernet(ipv4(bytes(400), fragment=0x1FFF))))
    assert isinstance(fault, Fault)
    assert fault.kind == "bad-header"


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 80), st.booleans(), st.integers(0, 2), st.booleans())
    )
)
def test_any_fragments_end_in_segments_and_faults(parts: list[tuple[int, int, bool, int, bool]]) -> None:
    reader = SegmentReader(DEFAULTS._replace(fragment_bytes=2_000))
    for offset, size, more, identification, six in parts:
        data = (b"\x50" * 100)[:size]
        if six:
            frame = ethernet(ipv6(ipv6_fragment(6, offset * 8, more, identification, data), 44), 0x86DD)
        else:
            frame = ethernet(ipv4(data, identification=identification, fragment=offset | more << 13))
        assert isinstance(reader.feed(packet(frame)), Segment | Fault | None)
    assert all(fault.kind == "fragment-lost" for fault in reader.close())
