"""Copies: which packets without new bytes were captured twice, and which were sent twice."""

from __future__ import annotations

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


def test_what_has_no_identity_is_no_copy() -> None:
    copies = Copies()
    copies.remember(0, 1_000)
    assert not copies.has(0, 1_000)
