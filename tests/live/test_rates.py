"""Packets a second, from what the kernel counts."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from kdissect.live.devices import ANY
from kdissect.live.rates import InterfaceRate, Rates, counts_of, interfaces, packet_counts

TEXT = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 3801413963 2266065    0    0    0     0          0         0 3801413963 2266065    0    0    0     0       0          0
  eth0: 2655032206   66157    0    0    0     0          0         0  4315589   40114    0    0    0     0       0          0
"""  # noqa: E501


def test_sent_and_received_count_but_loopback_counts_once() -> None:
    assert counts_of(TEXT) == {"lo": 2_266_065, "eth0": 66_157 + 40_114}
    assert counts_of("") == {}


def test_a_rate_is_what_came_since_the_look_before() -> None:
    counts: Iterator[dict[str, int]] = iter(
        ({"eth0": 100, "lo": 5}, {"eth0": 400, "lo": 5}, {"eth0": 10, "lo": 7, "new": 9})
    )
    names = (ANY, "eth0", "lo", "new")
    rates = Rates(lambda: [InterfaceRate(name, "up") for name in names], lambda: next(counts))
    looks = [{each.name: each.rate for each in rates.look(at)} for at in (10.0, 12.0, 13.0)]
    assert looks == [
        dict.fromkeys(names),
        {ANY: 150.0, "eth0": 150.0, "lo": 0.0, "new": None},
        # A counter that went back is another interface of that name.
        {ANY: 0.0, "eth0": 0.0, "lo": 2.0, "new": None},
    ]


def test_nobody_needs_to_be_somebody_to_see_what_goes_on_here() -> None:
    if not packet_counts():
        pytest.skip("the system does not tell")
    rates = Rates()
    first = {each.name: each for each in rates.look(0.0)}
    assert first["lo"].description == "loopback"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        for _ in range(1_000):
            sending.sendto(b"x", ("127.0.0.1", 9))
    second = {each.name: each.rate for each in rates.look(1.0)}
    assert (second["lo"] or 0) >= 1_000
    assert next(each.name for each in interfaces()) == ANY
