"""Copies: which packets without new bytes were captured twice, and which were sent twice."""

from __future__ import annotations

import pickle

import pytest

from kdissect.tcp.copies import COPY_NS, RECENT, Copies


def test_the_same_packet_soon_after_is_a_copy() -> None:
    copies = Copies()
    copies.remember(7, 1_000)
    assert copies.has(7, 1_000)
    assert copies.has(7, 1_000 + COPY_NS)
    assert not copies.has(7, 1_001 + COPY_NS)
    assert not copies.has(8, 1_000)


def test_a_burst_of_packets_may_come_between() -> None:
    copies = Copies()
    for identity in range(1, RECENT + 2):
        copies.remember(identity, identity)
    assert not copies.has(1, RECENT)
    assert all(copies.has(identity, RECENT) for identity in range(2, RECENT + 2))


def counted(number: int) -> int:
    """The identity of a packet whose sender counts its packets."""
    return (number & 0xFFFF) << 16 | number * 7919 % 0xFFFF


@pytest.mark.parametrize("first", [1, 0xFFF0])
def test_a_packet_that_was_sent_before_others_is_a_copy_or_late_after_any_burst(first: int) -> None:
    """A retransmission has a later number."""
    copies = Copies()
    for number in range(first, first + 100):
        copies.remember(counted(number), 1_000)
    assert all(copies.has(counted(number), 1_000) for number in range(first, first + 100) if number % 0x10000)
    assert not copies.has(counted(first + 100), 1_000)
    assert not copies.has(counted(first), 1_001 + COPY_NS)
    assert not copies.has(counted(first + 100 + 0x8000), 1_000)


def test_numbers_that_are_no_count_show_nothing() -> None:
    few, far = Copies(), Copies()
    for number in (10, 11, 12):
        few.remember(counted(number), 1_000)
    for number in (10, 20_000, 40_000, 12, 13, 14):
        far.remember(counted(number), 1_000)
    assert not few.has(counted(9), 1_000)
    assert not far.has(counted(9), 1_000)
    few.remember(counted(13), 1_000)
    assert few.has(counted(9), 1_000)


def test_what_has_no_identity_is_no_copy() -> None:
    copies = Copies()
    copies.remember(0, 1_000)
    assert not copies.has(0, 1_000)


@pytest.mark.parametrize("seen", [0, 3, RECENT, RECENT + 5])
def test_another_process_remembers_the_same(seen: int) -> None:
    copies = Copies()
    for identity in range(1, seen + 1):
        copies.remember(identity, 1_000)
    other = pickle.loads(pickle.dumps(copies))
    for number in range(RECENT + 2):
        for identity in range(seen + number + 2):
            assert other.has(identity, 1_000) == copies.has(identity, 1_000)
        for each in (copies, other):
            each.remember(seen + number + 1, 1_000)  # the oldest is forgotten, there too
    assert other.has(seen + 3, 1_000 + COPY_NS)
    assert not other.has(seen + 3, 1_001 + COPY_NS)


def test_few_segments_are_few_bytes_for_another_process() -> None:
    copies = Copies()
    empty = len(pickle.dumps(copies))
    copies.remember(1 << 40, 1 << 40)
    assert len(pickle.dumps(copies)) < empty + 32
